package amqpcodec

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

const (
	// FrameHeaderSize is how many bytes stand before a frame's payload: type, channel, size of the payload.
	FrameHeaderSize = 7
	// FrameOverhead is how many bytes a frame has beside its payload: the header and the end.
	FrameOverhead = FrameHeaderSize + 1

	// joinedMin is the smallest payload in bytes for which [bytes.Join] makes a frame faster: it does not clear a slice
	// that it fills.
	joinedMin = 2 * 1024
)

// knownFrameTypes has the bit of every frame type.
const knownFrameTypes = 1<<FrameMethod | 1<<FrameHeader | 1<<FrameBody | 1<<FrameHeartbeat

// known reports whether the protocol has this frame type.
func (t FrameType) known() bool { return t < 16 && knownFrameTypes>>t&1 != 0 }

// String returns "method", "header", "body", "heartbeat", or the number of a type that the protocol lacks.
func (t FrameType) String() string {
	if name := t.name(); name != "" {
		return name
	}
	return "frame type " + strconv.Itoa(int(t))
}

// A Frame is the unit of the wire (section 4.2.3 of the specification).
type Frame struct {
	// Type says what the payload is.
	Type FrameType
	// Channel is 0 for what concerns the whole connection.
	Channel uint16
	// Payload is what lies between header and end. In frames of [ParseFrame] and [Reader.Next] it is a view.
	Payload []byte
}

// ParseFrame reads the frame that src begins with. It returns the frame, whose payload is a view of src, and how many
// bytes that was; 0 without an error means that the frame is not all there yet. frameMax is the largest frame in
// bytes that is taken, overhead included; 0 is no limit.
//
// What can never become a frame is refused as early as its first bytes show it.
func ParseFrame(src []byte, frameMax uint32) (frame Frame, n int, err error) {
	if len(src) < FrameHeaderSize {
		if len(src) > 0 && !FrameType(src[0]).known() {
			return Frame{}, 0, refuseFrame(src, 0)
		}
		return Frame{}, 0, nil
	}
	size := uint64(binary.BigEndian.Uint32(src[3:])) + FrameOverhead
	if !FrameType(src[0]).known() || (frameMax != 0 && size > uint64(frameMax)) {
		return Frame{}, 0, refuseFrame(src, size)
	}
	if uint64(len(src)) < size {
		return Frame{}, 0, nil
	}
	end := int(size) - 1
	if src[end] != FrameEnd {
		return Frame{}, 0, &DecodeError{Offset: end, Cause: ErrBadFrameEnd, Found: uint64(src[end])}
	}
	channel := binary.BigEndian.Uint16(src[1:])
	return Frame{FrameType(src[0]), channel, src[FrameHeaderSize:end:end]}, end + 1, nil
}

// refuseFrame is the error for a frame whose header is wrong: an unknown type, or else a size above the limit.
func refuseFrame(src []byte, size uint64) error {
	if kind := FrameType(src[0]); !kind.known() {
		return &DecodeError{Offset: 0, Cause: ErrUnknownFrameType, Found: uint64(kind)}
	}
	return &DecodeError{Offset: 0, Cause: ErrFrameTooLarge, Found: size}
}

// Size returns how many bytes the frame has on the wire.
func (f *Frame) Size() int { return FrameOverhead + len(f.Payload) }

// AppendTo appends the frame. It panics when the payload has more than 4 GiB; type and limit are the caller's to mind.
func (f *Frame) AppendTo(dst []byte) []byte { return must(f.AppendBinary(dst)) }

// AppendBinary appends the frame. The error is that of a payload of more than 4 GiB.
func (f *Frame) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(f.Payload)) {
		return dst, tooLong("payload")
	}
	dst = withRoom(dst, FrameOverhead+len(f.Payload), 0)
	dst = AppendFrameHeader(dst, f.Type, f.Channel, uint32(len(f.Payload)))
	dst = append(dst, f.Payload...)
	return append(dst, FrameEnd), nil
}

// MarshalBinary returns the frame in a slice of its own; [Frame.AppendBinary] takes one instead.
func (f *Frame) MarshalBinary() ([]byte, error) {
	n := len(f.Payload)
	if !fitsLong(n) {
		return nil, tooLong("payload")
	}
	if n >= joinedMin {
		var header [FrameHeaderSize]byte
		AppendFrameHeader(header[:0], f.Type, f.Channel, uint32(n))
		return bytes.Join([][]byte{header[:], f.Payload, {FrameEnd}}, nil), nil
	}
	out := make([]byte, FrameOverhead+n)
	out[0] = byte(f.Type)
	binary.BigEndian.PutUint16(out[1:], f.Channel)
	binary.BigEndian.PutUint32(out[3:], uint32(n))
	copy(out[FrameHeaderSize:], f.Payload)
	out[FrameHeaderSize+n] = FrameEnd
	return out, nil
}

// UnmarshalBinary reads a slice that holds one frame and nothing else. The payload is copied, into the frame's present
// payload slice where that has room; [ParseFrame] does without a copy.
func (f *Frame) UnmarshalBinary(data []byte) error {
	n := len(data) - FrameOverhead
	if n < 0 || uint64(n) != uint64(binary.BigEndian.Uint32(data[3:])) || data[len(data)-1] != FrameEnd || !FrameType(data[0]).known() {
		return refuseWhole(data)
	}
	f.Type, f.Channel = FrameType(data[0]), binary.BigEndian.Uint16(data[1:])
	if cap(f.Payload) < n {
		// In this form, Go does not clear the slice before it copies.
		f.Payload = make([]byte, n)
		copy(f.Payload, data[FrameHeaderSize:])
	} else {
		f.Payload = append(f.Payload[:0], data[FrameHeaderSize:FrameHeaderSize+n]...)
	}
	return nil
}

// refuseWhole is the error for a slice that does not hold one frame and nothing else.
func refuseWhole(data []byte) error {
	_, n, err := ParseFrame(data, 0)
	switch {
	case err != nil:
		return err
	case n == 0:
		return &DecodeError{Offset: len(data), Cause: ErrTruncated}
	default:
		return &DecodeError{Offset: n, Cause: ErrTrailingBytes}
	}
}

// AppendFrameHeader appends type, channel and size of the payload. The payload and a [FrameEnd] have to follow.
func AppendFrameHeader(dst []byte, kind FrameType, channel uint16, payloadSize uint32) []byte {
	return append(dst, byte(kind), byte(channel>>8), byte(channel),
		byte(payloadSize>>24), byte(payloadSize>>16), byte(payloadSize>>8), byte(payloadSize))
}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(dst []byte) []byte {
	return append(dst, byte(FrameHeartbeat), 0, 0, 0, 0, 0, 0, FrameEnd)
}

// AppendBody appends a message's body as body frames of at most frameMax bytes each, overhead included. 0 is no limit;
// a limit that leaves no room for a payload is taken as [FrameMinSize]. An empty body has no frames.
func AppendBody(dst []byte, channel uint16, body []byte, frameMax uint32) []byte {
	room := bodyRoom(frameMax)
	dst = withRoom(dst, len(body)+FrameOverhead*((len(body)+room-1)/room), 0)
	for len(body) > 0 {
		piece := body[:min(len(body), room)]
		dst = AppendFrameHeader(dst, FrameBody, channel, uint32(len(piece)))
		dst = append(dst, piece...)
		dst = append(dst, FrameEnd)
		body = body[len(piece):]
	}
	return dst
}

// bodyRoom is how many bytes of a body go into one frame.
func bodyRoom(frameMax uint32) int {
	switch {
	case frameMax == 0:
		// Half of what the size can say, so that it is an int everywhere.
		return math.MaxInt32 - FrameOverhead
	case frameMax <= FrameOverhead:
		return FrameMinSize - FrameOverhead
	default:
		return int(min(frameMax, math.MaxInt32) - FrameOverhead)
	}
}

// beginFrame appends a frame header whose size is not known yet.
func beginFrame(dst []byte, kind FrameType, channel uint16) []byte {
	return AppendFrameHeader(dst, kind, channel, 0)
}

// endFrame completes the frame that begins at start, or takes it back when its payload could not be written.
func endFrame(dst []byte, start int, err error) ([]byte, error) {
	size := len(dst) - start - FrameHeaderSize
	if err == nil && !fitsLong(size) {
		err = tooLong("payload")
	}
	if err != nil {
		return dst[:start], err
	}
	binary.BigEndian.PutUint32(dst[start+3:], uint32(size))
	return append(dst, FrameEnd), nil
}
