//go:build !race

package amqpcodec_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	amqp "courser/amqpcodec"
)

func TestNothingIsAllocatedWhereTheCallerLendsABuffer(t *testing.T) {
	lent := make([]byte, 0, 4096)
	declare := amqp.QueueDeclare{Queue: "q", Durable: true, Arguments: map[string]any{"x-message-ttl": int32(1000)}}
	deliver := amqp.BasicDeliver{ConsumerTag: "c", DeliveryTag: 1, Exchange: "e", RoutingKey: "k"}
	header := amqp.ContentHeader{ClassID: amqp.ClassBasic, BodySize: 5, Properties: amqp.Properties{
		ContentType: "text/plain", Headers: map[string]any{"h": "v"}, DeliveryMode: 2,
	}}
	declared, delivered, headed := declare.AppendTo(nil), deliver.AppendTo(nil), header.AppendTo(nil)
	frame := amqp.Frame{Type: amqp.FrameMethod, Channel: 1, Payload: delivered}
	framed := frame.AppendTo(nil)
	var parser amqp.MethodParser
	var view amqp.ContentHeaderView
	var properties amqp.PropertiesView
	var tables amqp.TableWriter
	reader, source := amqp.NewReader(nil), bytes.NewReader(nil)
	writer := amqp.NewWriter(io.Discard)
	var read amqp.Frame
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]func(){
		"method":  func() { _, err := declare.AppendFrame(lent, 1); must(err) },
		"header":  func() { _, err := header.AppendFrame(lent, 1); must(err) },
		"frame":   func() { _, err := frame.AppendBinary(lent); must(err) },
		"body":    func() { amqp.AppendBody(lent, 1, framed, 0) },
		"writer":  func() { must(writer.WriteMethod(1, &declare)); must(writer.WriteBody(1, framed)); must(writer.Flush()) },
		"content": func() { must(writer.WriteContent(1, &deliver, &header.Properties, framed)); must(writer.Flush()) },
		"table": func() {
			tables.Reset(lent)
			tables.BeginTable("t")
			tables.PutString("k", "v")
			tables.EndTable()
			_, err := tables.Table()
			must(err)
		},
		"parse": func() { _, _, err := amqp.ParseFrame(framed, 0); must(err) },
		"any method": func() {
			_, err := parser.Parse(declared)
			must(err)
			_, err = parser.Parse(delivered)
			must(err)
		},
		"all fields": func() {
			for _, err := range amqp.ParseFields(declared) {
				must(err)
			}
		},
		"properties": func() {
			must(view.Parse(headed))
			must(properties.Parse(view.Properties))
			view.Properties.DeliveryMode()
			must(view.Properties.Validate())
		},
		"entries": func() {
			for _, err := range properties.Headers.All() {
				must(err)
			}
			_, _, err := properties.Headers.Get("h")
			must(err)
		},
		"reader": func() {
			source.Reset(framed)
			reader.Reset(source)
			_, err := reader.Next()
			must(err)
		},
		"single read": func() {
			source.Reset(framed)
			must(amqp.ReadFrame(source, &read, 0))
		},
	}
	for name, do := range cases {
		do()
		if allocations := testing.AllocsPerRun(100, do); allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}

func TestAShortStringIsAppendedWithOneAllocationAtMost(t *testing.T) {
	for _, length := range []int{0, 1, 7, 8, 100, 254, 255} {
		value := strings.Repeat("v", length)
		want := string([]byte{byte(length)}) + value
		for _, room := range []int{0, 1, length, length + 1, length + 2, 300} {
			dst := append(make([]byte, 0, 3+room), "dst"...)
			var written []byte
			var err error
			allocations := testing.AllocsPerRun(10, func() { written, err = amqp.AppendShortString(dst, value) })
			if err != nil || string(written) != "dst"+want {
				t.Errorf("%d bytes into room for %d: %q, %v", length, room, written, err)
			}
			if fits := room > length; (fits && allocations != 0) || allocations > 1 {
				t.Errorf("%d bytes into room for %d: %v allocations", length, room, allocations)
			}
		}
	}
	written, err := amqp.AppendShortString([]byte("dst"), strings.Repeat("v", 256))
	if !errors.Is(err, amqp.ErrTooLong) || string(written) != "dst" {
		t.Errorf("%q, %v", written, err)
	}
}

func TestAFrameInASliceOfItsOwnIsTheSameAsAppended(t *testing.T) {
	for _, size := range []int{0, 1, 2047, 2048, 2049, 16384, 131064} {
		frame := amqp.Frame{Type: amqp.FrameBody, Channel: 0x1234, Payload: bytes.Repeat([]byte{0xAB}, size)}
		var own []byte
		var err error
		allocations := testing.AllocsPerRun(10, func() { own, err = frame.MarshalBinary() })
		if err != nil || !bytes.Equal(own, frame.AppendTo(nil)) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if allocations != 1 {
			t.Errorf("%d bytes: %v allocations", size, allocations)
		}
	}
}
