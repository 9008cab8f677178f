package tap

import (
	"fmt"
	"io"
	"path"

	"courser/amqpcodec"
)

// flushAt is how many bytes of output are gathered before they are written, when there is more to come.
const flushAt = 64 * 1024

// A formatter turns records into output.
type formatter interface {
	// record appends what is shown of a record, with the bytes that go with it.
	record(dst []byte, r *record, data []byte) []byte
	// missed appends that so many frames are not shown.
	missed(dst []byte, frames int64) []byte
}

// A printer takes records from a queue and writes them to the output.
type printer struct {
	options *Options
	output  io.Writer
	format  formatter
	tracker *tracker
	buffer  []byte
	failed  bool
}

func newPrinter(options *Options) *printer {
	var format formatter = &textFormat{options: options, colours: coloursOf(options.Colours)}
	if options.JSON {
		format = &jsonFormat{options: options}
	}
	return &printer{options: options, output: options.Output, format: format, tracker: newTracker(options)}
}

// run prints until the queue is closed. When the output fails it says so, and goes on taking records.
func (p *printer) run(queue *queue) {
	var taken batch
	for queue.take(&taken) {
		p.print(&taken)
	}
}

func (p *printer) print(taken *batch) {
	for i := range taken.records {
		r := &taken.records[i]
		data := taken.of(r)
		if p.tracker.track(r, data) && p.wanted(r, data) {
			p.buffer = p.format.record(p.buffer, r, data)
		}
		if len(p.buffer) >= flushAt {
			p.flush()
		}
	}
	if taken.missed > 0 {
		p.tracker.missed()
		p.buffer = p.format.missed(p.buffer, taken.missed)
	}
	p.flush()
}

func (p *printer) flush() {
	if len(p.buffer) > 0 && !p.failed {
		if _, err := p.output.Write(p.buffer); err != nil {
			p.failed = true
			text := fmt.Sprintf("nothing more is shown (%v)", err)
			if !p.options.replay {
				text += "; relaying goes on"
			}
			p.options.Warn(text)
		}
	}
	p.buffer = p.buffer[:0]
}

// wanted reports whether a record is one of those to be shown. Events always are.
func (p *printer) wanted(r *record, data []byte) bool {
	if p.failed {
		return false
	}
	if r.event != eventFrame {
		return true
	}
	if p.options.Channel >= 0 && int(r.channel) != p.options.Channel {
		return false
	}
	if r.kind == amqpcodec.FrameBody && p.options.BodyMax < 0 {
		return false
	}
	if len(p.options.Only) == 0 {
		return true
	}
	name := r.kind.String()
	if r.kind == amqpcodec.FrameMethod {
		id, _ := amqpcodec.ParseMethodID(data)
		name = id.String()
	}
	for _, pattern := range p.options.Only {
		if matches, _ := path.Match(pattern, name); matches {
			return true
		}
	}
	return false
}
