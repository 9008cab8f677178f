package tap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"courser/amqpcodec"
)

const (
	// captureMax is how many bytes of a method's or a header's payload are kept to be shown.
	captureMax = 64 * 1024
	// believedMax is the largest frame in bytes that is taken for one: a size above it is noise.
	believedMax = 128 << 20
	// protocolName begins the bytes that come before all frames.
	protocolName = "AMQP"
	// protocolHeaderSize is how many bytes these are.
	protocolHeaderSize = 8
)

// A scanner finds the frames in one direction of a connection, in pieces of the stream as they come.
type scanner struct {
	queue      *queue
	connection uint64
	from       side
	// bodyMax is how many bytes of a body frame are kept to be shown.
	bodyMax int
	totals  *totals
	// lost is set when the stream is not understood any more.
	lost bool

	// offset is where in the stream the next byte is, frameAt where the frame began.
	offset, frameAt int64
	// head is the bytes of a frame's header so far, captured what is kept of its payload.
	head     []byte
	captured []byte
	frame    amqpcodec.FrameType
	channel  uint16
	size     uint32
	// rest is how many bytes of the payload and the end are yet to come, when the header is there.
	rest int64
	// begun is set once something came that the stream may only begin with.
	begun bool
}

// feed looks at a piece of the stream that came at this time.
func (s *scanner) feed(piece []byte, now time.Time) {
	s.totals.bytes[s.from] += int64(len(piece))
	for len(piece) > 0 && !s.lost {
		var used int
		if s.rest > 0 {
			used = s.payload(piece, now)
		} else {
			used = s.header(piece, now)
		}
		s.offset += int64(used)
		piece = piece[used:]
	}
}

// header takes bytes of a frame's header, or of the protocol's.
func (s *scanner) header(piece []byte, now time.Time) (used int) {
	if len(s.head) == 0 {
		s.frameAt = s.offset
	}
	want := amqpcodec.FrameHeaderSize
	first := piece[0]
	if len(s.head) > 0 {
		first = s.head[0]
	}
	protocol := !s.begun && first == protocolName[0]
	if protocol {
		want = protocolHeaderSize
	}
	used = min(want-len(s.head), len(piece))
	s.head = append(s.head, piece[:used]...)
	switch {
	case protocol && !bytes.HasPrefix([]byte(protocolName), s.head[:min(len(s.head), len(protocolName))]):
		s.lose(now, fmt.Sprintf("no AMQP: it begins with %q", s.head))
	case len(s.head) < want && (protocol || known(first)):
		return used
	case protocol:
		s.begun = true
		s.queue.put(record{
			time: now, connection: s.connection, event: eventProtocolHeader, from: s.from, offset: s.frameAt,
		}, s.head)
		s.head = s.head[:0]
	default:
		s.begin(now)
	}
	return used
}

func known(kind byte) bool {
	switch amqpcodec.FrameType(kind) {
	case amqpcodec.FrameMethod, amqpcodec.FrameHeader, amqpcodec.FrameBody, amqpcodec.FrameHeartbeat:
		return true
	default:
		return false
	}
}

// begin starts a frame whose header is there, or refuses it.
func (s *scanner) begin(now time.Time) {
	if !known(s.head[0]) {
		reason := fmt.Sprintf("no frame: it begins with %#02x", s.head[0])
		if !s.begun && s.head[0] == 0x16 {
			reason += ", which looks like TLS"
		}
		s.lose(now, reason)
		return
	}
	s.begun = true
	s.frame = amqpcodec.FrameType(s.head[0])
	s.channel = binary.BigEndian.Uint16(s.head[1:])
	s.size = binary.BigEndian.Uint32(s.head[3:])
	if s.size > believedMax {
		s.lose(now, fmt.Sprintf("no frame: its size is given as %d bytes", s.size))
		return
	}
	s.rest = int64(s.size) + 1
	s.captured = s.captured[:0]
	s.head = s.head[:0]
}

// payload takes bytes of the payload and the end of a frame.
func (s *scanner) payload(piece []byte, now time.Time) (used int) {
	used = int(min(s.rest, int64(len(piece))))
	s.rest -= int64(used)
	content := piece[:used]
	if s.rest == 0 {
		content = content[:used-1]
	}
	keep := captureMax
	if s.frame == amqpcodec.FrameBody {
		keep = s.bodyMax
	}
	kept := content[:min(len(content), keep-len(s.captured))]
	if s.rest > 0 || len(s.captured) > 0 {
		s.captured = append(s.captured, kept...)
		kept = s.captured
	}
	if s.rest > 0 {
		return used
	}
	if end := piece[used-1]; end != amqpcodec.FrameEnd {
		s.lose(now, fmt.Sprintf("the frame that began there ends with %#02x instead of 0xce", end))
		return used
	}
	s.totals.frames[s.from]++
	s.queue.put(record{
		time: now, connection: s.connection, from: s.from, offset: s.frameAt,
		kind: s.frame, channel: s.channel, size: s.size,
	}, kept)
	if cap(s.captured) > captureMax/4 {
		s.captured = nil
	}
	return used
}

// lose gives up on the stream.
func (s *scanner) lose(now time.Time, reason string) {
	s.lost = true
	s.head, s.captured = nil, nil
	s.queue.put(record{
		time: now, connection: s.connection, event: eventLost, from: s.from, offset: s.frameAt, text: reason,
	}, nil)
}
