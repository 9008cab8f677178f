// Package tap relays connections between AMQP 0-9-1 clients and a broker and shows the frames that pass.
//
// The bytes have precedence. A [Proxy] hands on what it reads, whatever it is. On the way a scanner finds where the
// frames begin and end, and puts what is worth showing into a queue of bounded size, never waiting; a printer of its own
// takes it out, decodes and formats it. When the printer cannot keep up, frames are not shown, which is said; when the
// scanner does not understand a stream, it says so and gives up on it, while the relay goes on.
package tap

import (
	"time"

	"courser/amqpcodec"
)

// A side of a connection.
type side uint8

const (
	client side = iota
	broker
)

// String returns "client" or "broker".
func (s side) String() string {
	if s == client {
		return "client"
	}
	return "broker"
}

// An event is what a record tells.
type event uint8

const (
	// eventFrame is a frame that passed.
	eventFrame event = iota
	// eventProtocolHeader is the bytes before all frames, with the protocol's name and version.
	eventProtocolHeader
	// eventOpen is a connection that was made, to the client and the broker named in the record's text.
	eventOpen
	// eventUnreachable is a connection that could not be made to the broker.
	eventUnreachable
	// eventLost is a stream that is no longer understood, for the reason in the record's text.
	eventLost
	// eventClose is a connection that ended.
	eventClose
	// eventGap is bytes of a stream that a capture lacks, or that no frame is found in, as the record's text says.
	eventGap
)

// A record is something to be shown. It holds no slices: the bytes that go with it are in its batch.
type record struct {
	time       time.Time
	connection uint64
	event      event
	from       side
	kind       amqpcodec.FrameType
	channel    uint16
	// size is that of the frame's payload, of which the bytes that go with the record may be only the beginning.
	size uint32
	data span
	// offset is where in its direction's stream the event happened.
	offset int64
	text   string
	totals totals
	// after is how long the request, the publish or the delivery that this answers has waited, if it answers one.
	after time.Duration
}

// A span is a piece of a batch's bytes.
type span struct{ start, end int }

// totals is what has passed, from each side.
type totals struct {
	frames, bytes [2]int64
}
