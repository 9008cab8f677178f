package tap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"time"

	"courser/amqpcodec"
)

const (
	flagRst = 4
	// earlyMax is how many bytes that came before their turn are kept, of one direction and of all; earlyPieces is in how
	// many pieces.
	earlyMax    = 1 << 20
	allEarlyMax = 64 << 20
	earlyPieces = 1024
	// feedMax is how many bytes are looked at before what was found is printed: their frames fit into the queue.
	feedMax = 8 * 1024
	// replayedMax is how many connections of a capture may be open at the same time.
	replayedMax = 100_000
)

// Replay shows the frames in a capture, of the connections to a port, as if they passed now. It returns what [Proxy.Summary]
// says of them.
func Replay(options Options, input io.Reader, port uint16) (string, error) {
	options.replay = true
	packets, err := openCapture(input)
	if err != nil {
		return "", err
	}
	r := &replay{
		queue: newQueue(queueMax), bodyMax: max(options.BodyMax, 0), connections: map[endpoints]*replayed{},
	}
	r.printer = newPrinter(&options)
	for !r.printer.failed {
		at, packet, failure := packets.next()
		if failure != nil {
			if !errors.Is(failure, io.EOF) {
				err = failure
			}
			break
		}
		r.last = at
		if s, ok := parseSegment(packets.network(packet)); ok {
			if failure := r.segment(&s, at, port); failure != nil {
				err = failure
				break
			}
		}
	}
	r.finish()
	return summary(r.count, &r.totals, r.printer.tracker), err
}

type endpoints struct{ client, broker netip.AddrPort }

// A replay puts the connections of a capture together again.
type replay struct {
	queue       *queue
	printer     *printer
	taken       batch
	bodyMax     int
	connections map[endpoints]*replayed
	count       uint64
	early       int
	totals      totals
	last        time.Time
}

// A replayed is a connection of a capture.
type replayed struct {
	ends    endpoints
	number  uint64
	totals  totals
	streams [2]direction
}

// A direction is what comes from one side of a connection.
type direction struct {
	scanner scanner
	// next is the sequence number of the next byte, once one is known.
	next    uint32
	begun   bool
	aligned bool
	ended   bool
	// skipped is how many bytes no frame was found in since the last gap.
	skipped int64
	early   []early
	held    int
}

// early is a piece of a stream that came before its turn.
type early struct {
	sequence uint32
	data     []byte
}

func (r *replay) segment(s *segment, at time.Time, port uint16) error {
	from, ends := client, endpoints{s.source, s.target}
	switch port {
	case s.target.Port():
	case s.source.Port():
		from, ends = broker, endpoints{s.target, s.source}
	default:
		return nil
	}
	c := r.connections[ends]
	opens := s.flags&flagSyn != 0
	if c != nil && opens && c.streams[from].begun && c.streams[from].next != s.sequence+1 {
		r.close(c)
		c = nil
	}
	if c == nil {
		if !opens && len(s.data) == 0 {
			return nil
		}
		if len(r.connections) >= replayedMax {
			return fmt.Errorf("the capture has more than %d connections at the same time", replayedMax)
		}
		c = r.open(ends, at, opens)
	}
	direction := &c.streams[from]
	sequence := s.sequence
	if opens {
		sequence++
	}
	if !direction.begun {
		direction.begun, direction.next, direction.aligned = true, sequence, opens
	}
	r.take(c, from, sequence, s.data, at)
	if s.missing > 0 {
		r.gap(c, from, int64(s.missing), at)
		direction.next += uint32(s.missing)
	}
	if s.flags&flagFin != 0 {
		direction.ended = true
	}
	if s.flags&flagRst != 0 || (c.streams[client].ended && c.streams[broker].ended) {
		r.close(c)
	}
	r.print(0)
	return nil
}

func (r *replay) open(ends endpoints, at time.Time, opens bool) *replayed {
	r.count++
	c := &replayed{ends: ends, number: r.count}
	for which := range c.streams {
		c.streams[which].scanner = scanner{
			queue: r.queue, connection: c.number, from: side(which), bodyMax: r.bodyMax, totals: &c.totals,
		}
	}
	r.connections[ends] = c
	text := fmt.Sprintf("%v to %v", ends.client, ends.broker)
	if !opens {
		text += ", before the capture began"
	}
	r.queue.put(record{time: at, connection: c.number, event: eventOpen, text: text}, nil)
	return c
}

// take puts a piece of a stream where it belongs: it may come twice, too early, or never.
func (r *replay) take(c *replayed, from side, sequence uint32, data []byte, at time.Time) {
	s := &c.streams[from]
	ahead := int32(sequence - s.next)
	switch {
	case len(data) == 0:
	case ahead <= 0:
		if known := int(-int64(ahead)); known < len(data) {
			r.feed(c, from, data[known:], at)
		}
	case len(s.early) < earlyPieces && s.held+len(data) <= earlyMax && r.early+len(data) <= allEarlyMax:
		s.early = append(s.early, early{sequence, append([]byte(nil), data...)})
		s.held += len(data)
		r.early += len(data)
		return
	case len(s.early) > 0:
		// What is missing does not come any more.
		r.skip(c, from, at)
		r.take(c, from, sequence, data, at)
		return
	default:
		// Other connections have taken all the room.
		r.gap(c, from, int64(ahead), at)
		s.next = sequence
		r.feed(c, from, data, at)
	}
	r.continueWithEarly(c, from, at)
}

// continueWithEarly takes what came early and has its turn now.
func (r *replay) continueWithEarly(c *replayed, from side, at time.Time) {
	s := &c.streams[from]
	for again := true; again; {
		again = false
		for i, e := range s.early {
			if int32(e.sequence-s.next) <= 0 {
				s.early = append(s.early[:i], s.early[i+1:]...)
				s.held -= len(e.data)
				r.early -= len(e.data)
				if known := int(-int64(int32(e.sequence - s.next))); known < len(e.data) {
					r.feed(c, from, e.data[known:], at)
				}
				again = true
				break
			}
		}
	}
}

// skip goes to the next piece that is there, over bytes that the capture lacks.
func (r *replay) skip(c *replayed, from side, at time.Time) {
	s := &c.streams[from]
	nearest := int32(s.early[0].sequence - s.next)
	for _, e := range s.early {
		nearest = min(nearest, int32(e.sequence-s.next))
	}
	r.gap(c, from, int64(nearest), at)
	s.next += uint32(nearest)
	r.continueWithEarly(c, from, at)
}

// gap says that bytes are not there; the stream is followed again from a packet that begins with a frame.
func (r *replay) gap(c *replayed, from side, missing int64, at time.Time) {
	s := &c.streams[from]
	s.aligned = false
	r.say(c, from, at, fmt.Sprintf("%d bytes are not in the capture", missing))
	s.scanner.offset += missing
}

func (r *replay) say(c *replayed, from side, at time.Time, text string) {
	r.queue.put(record{
		time: at, connection: c.number, event: eventGap, from: from, offset: c.streams[from].scanner.offset, text: text,
	}, nil)
}

// feed looks at the next bytes of a stream.
func (r *replay) feed(c *replayed, from side, data []byte, at time.Time) {
	s := &c.streams[from]
	s.next += uint32(len(data))
	if !s.aligned {
		if !beginsWithFrame(data) {
			s.skipped += int64(len(data))
			s.scanner.offset += int64(len(data))
			c.totals.bytes[from] += int64(len(data))
			return
		}
		if s.skipped > 0 {
			r.say(c, from, at, fmt.Sprintf("%d bytes before the first whole frame are not shown", s.skipped))
		}
		offset := s.scanner.offset
		s.scanner = scanner{
			queue: r.queue, connection: c.number, from: from, bodyMax: r.bodyMax, totals: &c.totals, offset: offset,
		}
		s.aligned, s.skipped = true, 0
	}
	for len(data) > 0 {
		piece := data[:min(len(data), feedMax)]
		s.scanner.feed(piece, at)
		r.print(queueMax / 4)
		data = data[len(piece):]
	}
	if s.scanner.lost {
		s.aligned = false
	}
}

// beginsWithFrame reports whether a packet begins with the protocol's header or with a whole frame.
func beginsWithFrame(data []byte) bool {
	if len(data) >= protocolHeaderSize && string(data[:len(protocolName)]) == protocolName {
		return true
	}
	_, n, err := amqpcodec.ParseFrame(data, believedMax)
	return err == nil && n > 0
}

// print shows what was found when it takes more than so many bytes.
func (r *replay) print(above int) {
	if r.queue.filling.size() > above {
		r.queue.swap(&r.taken)
		r.printer.print(&r.taken)
	}
}

// close ends a connection, with what came of it out of turn.
func (r *replay) close(c *replayed) {
	for _, from := range []side{client, broker} {
		for len(c.streams[from].early) > 0 {
			r.skip(c, from, r.last)
		}
		if skipped := c.streams[from].skipped; skipped > 0 {
			r.say(c, from, r.last, fmt.Sprintf("no frame was found in the last %d bytes", skipped))
		}
		r.totals.frames[from] += c.totals.frames[from]
		r.totals.bytes[from] += c.totals.bytes[from]
	}
	delete(r.connections, c.ends)
	r.queue.put(record{time: r.last, connection: c.number, event: eventClose, totals: c.totals}, nil)
}

// finish ends the connections that are open at the end of the capture, in the order in which they began.
func (r *replay) finish() {
	open := slices.SortedFunc(maps.Values(r.connections), func(a, b *replayed) int { return cmp.Compare(a.number, b.number) })
	for _, c := range open {
		r.close(c)
		r.print(queueMax / 4)
	}
	r.print(0)
}
