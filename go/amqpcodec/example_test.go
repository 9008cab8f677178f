package amqpcodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"

	amqp "courser/amqpcodec"
)

// A method is written as a frame, and found in the stream again.
func Example() {
	publish := amqp.BasicPublish{Exchange: "events", RoutingKey: "order.created"}
	stream, err := publish.AppendFrame(nil, 1)
	if err != nil {
		log.Fatal(err)
	}

	frame, n, err := amqp.ParseFrame(stream, amqp.DefaultFrameMax)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n == len(stream), frame.Type, "on channel", frame.Channel)

	var view amqp.BasicPublishView // its strings alias the stream
	if err := view.Parse(frame.Payload); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", view.Exchange, view.RoutingKey)
	// Output:
	// true method on channel 1
	// events: order.created
}

// A program that treats some methods and passes the others on.
func ExampleReader() {
	var stream bytes.Buffer
	writer := amqp.NewWriter(&stream)
	deliver := amqp.BasicDeliver{ConsumerTag: "c", DeliveryTag: 7, RoutingKey: "jobs"}
	properties := amqp.Properties{ContentType: "text/plain", DeliveryMode: 2}
	if err := errors.Join(
		writer.WriteContent(1, &deliver, &properties, []byte("hello")),
		writer.WriteFrame(amqp.Frame{Type: amqp.FrameHeartbeat}),
		writer.Flush(),
	); err != nil {
		log.Fatal(err)
	}

	reader := amqp.NewReader(&stream)
	var delivered amqp.BasicDeliverView
	var header amqp.ContentHeaderView
	for frame, err := range reader.All() {
		if err != nil {
			log.Fatal(err)
		}
		switch frame.Type {
		case amqp.FrameMethod:
			if id, err := amqp.ParseMethodID(frame.Payload); err != nil || id != amqp.BasicDeliverID {
				continue
			}
			if err := delivered.Parse(frame.Payload); err != nil {
				log.Fatal(err)
			}
			fmt.Printf("delivery %d of %q\n", delivered.DeliveryTag, delivered.RoutingKey)
		case amqp.FrameHeader:
			if err := header.Parse(frame.Payload); err != nil {
				log.Fatal(err)
			}
			contentType, _ := header.Properties.ContentType()
			fmt.Printf("%d bytes of %s\n", header.BodySize, contentType)
		case amqp.FrameBody:
			fmt.Printf("%s\n", frame.Payload)
		case amqp.FrameHeartbeat:
			fmt.Println("a heartbeat")
		}
	}
	// Output:
	// delivery 7 of "jobs"
	// 5 bytes of text/plain
	// hello
	// a heartbeat
}

// Publishing without an allocation: the frames go into the writer's own buffer.
func ExampleWriter_AvailableBuffer() {
	writer := amqp.NewWriter(io.Discard)
	publish := amqp.BasicPublish{RoutingKey: "jobs"}
	header := amqp.ContentHeader{ClassID: amqp.ClassBasic}
	for _, body := range [][]byte{[]byte("one"), []byte("two")} {
		header.BodySize = uint64(len(body))
		frames, err := publish.AppendFrame(writer.AvailableBuffer(), 1)
		if err == nil {
			frames, err = header.AppendFrame(frames, 1)
		}
		if err != nil {
			log.Fatal(err)
		}
		if _, err := writer.Write(frames); err != nil {
			log.Fatal(err)
		}
		if err := writer.WriteBody(1, body); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(writer.Buffered(), "bytes wait")
	if err := writer.Flush(); err != nil {
		log.Fatal(err)
	}
	// Output: 108 bytes wait
}

// Any method, without knowing its type.
func ExampleParseFields() {
	declare := amqp.QueueDeclare{Queue: "jobs", Durable: true, Arguments: map[string]any{"x-max-length": 1000}}
	for field, err := range amqp.ParseFields(declare.AppendTo(nil)) {
		if err != nil {
			log.Fatal(err)
		}
		switch field.Kind {
		case amqp.KindBit:
			fmt.Println(field.Name, field.Bool())
		case amqp.KindShortString, amqp.KindLongString:
			fmt.Printf("%s %q\n", field.Name, field.Bytes())
		case amqp.KindTable:
			arguments, err := field.Table().Map()
			fmt.Println(field.Name, arguments, err)
		default:
			fmt.Println(field.Name, field.Uint64())
		}
	}
	// Output:
	// queue "jobs"
	// passive false
	// durable true
	// exclusive false
	// auto-delete false
	// nowait false
	// arguments map[x-max-length:1000] <nil>
}

// The entries of a table in their order, without a copy.
func ExampleTableView_All() {
	encoded, err := amqp.AppendMap(nil, map[string]any{"x-message-ttl": 60000})
	if err != nil {
		log.Fatal(err)
	}
	table, _, err := amqp.ParseTable(encoded)
	if err != nil {
		log.Fatal(err)
	}
	for entry, err := range table.All() {
		if err != nil {
			log.Fatal(err)
		}
		ttl, _ := entry.Value.Int64()
		fmt.Printf("%s = %d (%v)\n", entry.Key, ttl, entry.Value.Tag())
	}
	// Output: x-message-ttl = 60000 (long)
}

// A table without a map.
func ExampleTableWriter() {
	lent := make([]byte, 0, 256)
	writer := amqp.NewTableWriter(lent)
	writer.PutString("product", "example")
	writer.BeginTable("capabilities")
	writer.PutBool("basic.nack", true)
	writer.EndTable()
	table, err := writer.Table()
	if err != nil {
		log.Fatal(err)
	}
	start := amqp.ConnectionStartView{VersionMinor: 9, ServerProperties: table, Mechanisms: []byte("PLAIN")}
	fmt.Println(len(start.AppendTo(nil)), "bytes")
	// Output: 74 bytes
}

// An error says where and why.
func ExampleDecodeError() {
	payload := []byte{0, 60, 0, 40, 0, 0, 4, 'a', 'b'} // a basic.publish that ends within its exchange
	_, err := amqp.UnmarshalMethod(payload)
	fmt.Println(err)

	var failure *amqp.DecodeError
	fmt.Println(errors.Is(err, amqp.ErrTruncated), errors.As(err, &failure) && failure.Offset == 6)
	// Output:
	// amqpcodec: input ends within a value at offset 6
	// true true
}
