package tap

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"courser/amqpcodec"
)

// shown is a record with its bytes.
type shown struct {
	record record
	data   string
}

// scan puts a stream through a scanner in pieces of up to size bytes, and gives the records.
func scan(stream []byte, size int) (records []shown, passed totals) {
	queue := newQueue(1 << 28)
	s := scanner{queue: queue, connection: 7, bodyMax: 5, totals: &passed}
	for rest := stream; len(rest) > 0; {
		piece := rest[:min(size, len(rest))]
		// What a scanner keeps of a piece has to be a copy: the relay's buffer is used again.
		lent := bytes.Clone(piece)
		s.feed(lent, time.Unix(1, 0))
		clear(lent)
		rest = rest[len(piece):]
	}
	queue.close()
	var taken batch
	for queue.take(&taken) {
		for i := range taken.records {
			r := taken.records[i]
			data := string(taken.of(&r))
			r.data = span{}
			records = append(records, shown{r, data})
		}
	}
	return records, passed
}

func stream() []byte {
	data := []byte(amqpcodec.ProtocolHeader)
	for _, size := range []int{0, 1, 4, 6, 100, 70_000, 3} {
		body := amqpcodec.Frame{Type: amqpcodec.FrameBody, Channel: 1, Payload: bytes.Repeat([]byte("b"), size)}
		method := amqpcodec.Frame{Type: amqpcodec.FrameMethod, Channel: 2, Payload: bytes.Repeat([]byte("m"), size)}
		data = method.AppendTo(body.AppendTo(data))
	}
	return data
}

func TestFramesAreFoundHoweverTheStreamIsCut(t *testing.T) {
	whole, passed := scan(stream(), 1<<30)
	if len(whole) != 15 || passed.frames[client] != 14 || passed.bytes[client] != int64(len(stream())) {
		t.Fatalf("%d records, %v", len(whole), passed)
	}
	if first := whole[0]; first.record.event != eventProtocolHeader || first.data != amqpcodec.ProtocolHeader {
		t.Errorf("%v", first)
	}
	for i, size := range []int{0, 1, 4, 6, 100, 70_000, 3} {
		body, method := whole[1+2*i], whole[2+2*i]
		if int(body.record.size) != size || len(body.data) != min(size, 5) || body.record.channel != 1 {
			t.Errorf("%v", body)
		}
		if int(method.record.size) != size || len(method.data) != min(size, captureMax) || method.record.channel != 2 {
			t.Errorf("%v", method.record)
		}
	}
	for _, size := range []int{1, 2, 3, 7, 8, 9, 64, 4096} {
		if pieces, _ := scan(stream(), size); !reflect.DeepEqual(pieces, whole) {
			t.Errorf("in pieces of %d bytes they differ", size)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add(stream()[:200], 3)
	f.Add([]byte("AMQP\x00\x00\x09\x01\x08\x00\x00\x00\x00\x00\x00\xce"), 1)
	f.Add([]byte("AMQX"), 2)
	f.Add([]byte("\x01\x00\x01\x00\x00\x00\x01x\x00"), 4)
	f.Add([]byte("\x16\x03\x01"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		if size < 1 {
			size = 1
		}
		whole, passed := scan(stream, 1<<30)
		pieces, alsoPassed := scan(stream, size)
		// What is wrong may be known before all of it is there.
		lost := func(records []shown) bool {
			return len(records) > 0 && records[len(records)-1].record.event == eventLost
		}
		if lost(whole) != lost(pieces) || len(whole) != len(pieces) {
			t.Fatalf("%v and, in pieces of %d, %v", whole, size, pieces)
		}
		if lost(whole) {
			whole, pieces = whole[:len(whole)-1], pieces[:len(pieces)-1]
		}
		if !reflect.DeepEqual(whole, pieces) || passed != alsoPassed {
			t.Fatalf("%v and, in pieces of %d, %v", whole, size, pieces)
		}
		for _, options := range []Options{{BodyMax: 5, Channel: -1}, {JSON: true, BodyMax: 5}, {Colours: true, Secrets: true}} {
			printer := newPrinter(&options)
			for _, shown := range whole {
				if text := printer.format.record(nil, &shown.record, []byte(shown.data)); !bytes.HasSuffix(text, []byte("\n")) ||
					bytes.Count(text, []byte("\n")) != 1 {
					t.Fatalf("%q", text)
				}
			}
		}
	})
}
