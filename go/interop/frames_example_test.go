package interop

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"sync"

	"courser/amqpcodec"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The code of docs/go-frames.md and of the module's README; pages_test.go holds the pages against it.

// A publish as amqp091-go writes it: method, header and body in one write.
func Example_writeFrames() {
	var connection bytes.Buffer

	writer := amqpcodec.NewWriter(&connection)
	publish := amqpcodec.BasicPublish{Exchange: "events", RoutingKey: "order.created"}
	properties := amqpcodec.Properties{ContentType: "text/plain", DeliveryMode: 2}
	if err := writer.WriteContent(1, &publish, &properties, []byte("hello")); err != nil {
		log.Fatal(err) // a name of more than 255 bytes, a header without a form: nothing was written
	}
	if err := writer.Flush(); err != nil {
		log.Fatal(err) // the connection's
	}

	fmt.Println(connection.Len(), "bytes")
	// Output: 83 bytes
}

// The frames that amqp091-go's reader gives, as values of this module.
func Example_readFrames() {
	connection := deliveries()

	reader := amqpcodec.NewReader(connection)
	reader.SetFrameMax(131072) // what connection.tune-ok says
	for frame, err := range reader.All() {
		if err != nil {
			log.Fatal(err)
		}
		switch frame.Type {
		case amqpcodec.FrameMethod:
			method, err := amqpcodec.UnmarshalMethod(frame.Payload)
			if err != nil {
				log.Fatal(err)
			}
			if deliver, ok := method.(*amqpcodec.BasicDeliver); ok {
				fmt.Println("delivery", deliver.DeliveryTag, "of", deliver.RoutingKey)
			}
		case amqpcodec.FrameHeader:
			var header amqpcodec.ContentHeader
			if err := header.UnmarshalBinary(frame.Payload); err != nil {
				log.Fatal(err)
			}
			fmt.Println(header.BodySize, "bytes of", header.Properties.ContentType)
		case amqpcodec.FrameBody:
			body := bytes.Clone(frame.Payload) // what is kept beyond the next frame needs a copy
			fmt.Println(string(body))
		}
	}

	// Output:
	// delivery 7 of jobs
	// 5 bytes of text/plain
	// hello
}

// A table of amqp091-go is a map; only its Decimal is a type that this module can't know.
func Example_tables() {
	arguments := amqp.Table{"x-max-length": int32(1000), "nested": amqp.Table{"flag": true}}
	encoded, err := amqpcodec.AppendMap(nil, arguments)
	if err != nil {
		log.Fatal(err)
	}

	table, _, err := amqpcodec.ParseTable(encoded)
	if err != nil {
		log.Fatal(err)
	}
	decoded, err := table.Map()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(amqp.Table(decoded)["x-max-length"], decoded["nested"].(map[string]any)["flag"])

	price := amqp.Decimal{Scale: 2, Value: 1995}
	fmt.Println(amqpcodec.Decimal{Scale: price.Scale, Digits: uint32(price.Value)})

	// Output:
	// 1000 true
	// 19.95
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Goroutines that publish over one connection: each encodes into a buffer of the pool, and holds the lock for one write.
type publisher struct {
	lock       sync.Mutex
	connection io.Writer
}

func (p *publisher) publish(channel uint16, method *amqpcodec.BasicPublish, header *amqpcodec.ContentHeader, body []byte) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	frames, err := method.AppendFrame((*buffer)[:0], channel)
	if err != nil {
		return err
	}
	if frames, err = header.AppendFrame(frames, channel); err != nil {
		return err
	}
	*buffer = amqpcodec.AppendBody(frames, channel, body, amqpcodec.DefaultFrameMax)
	p.lock.Lock()
	defer p.lock.Unlock()
	_, err = p.connection.Write(*buffer)
	return err
}

func Example_concurrent() {
	var connection bytes.Buffer
	p := publisher{connection: &connection}
	var group sync.WaitGroup
	for channel := range uint16(4) {
		group.Add(1)
		go func() {
			defer group.Done()
			method := amqpcodec.BasicPublish{RoutingKey: "jobs"}
			header := amqpcodec.ContentHeader{ClassID: amqpcodec.ClassBasic, BodySize: 5}
			for range 100 {
				if err := p.publish(channel+1, &method, &header, []byte("hello")); err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	group.Wait()
	count := 0
	for _, err := range amqpcodec.NewReader(&connection).All() {
		if err != nil {
			log.Fatal(err)
		}
		count++
	}
	fmt.Println(count, "frames")
	// Output: 1200 frames
}

// What the README of the module shows.
func Example_readme() {
	connection, buf := deliveries(), make([]byte, 0, 512)

	publish := amqpcodec.BasicPublish{Exchange: "events", RoutingKey: "order.created"}
	frame, err := publish.AppendFrame(buf[:0], 1) // into a buffer that you lend
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(frame), "bytes")

	var deliver amqpcodec.BasicDeliverView // its strings alias what was read
	for frame, err := range amqpcodec.NewReader(connection).All() {
		if err != nil {
			log.Fatal(err)
		}
		if frame.Type == amqpcodec.FrameMethod && deliver.Parse(frame.Payload) == nil {
			fmt.Println("delivery", deliver.DeliveryTag)
		}
	}

	// Output:
	// 36 bytes
	// delivery 7
}

// deliveries is a stream with one message for a consumer.
func deliveries() io.Reader {
	var stream bytes.Buffer
	writer := amqpcodec.NewWriter(&stream)
	deliver := amqpcodec.BasicDeliver{ConsumerTag: "c", DeliveryTag: 7, RoutingKey: "jobs"}
	if err := writer.WriteContent(1, &deliver, &amqpcodec.Properties{ContentType: "text/plain"}, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	if err := writer.Flush(); err != nil {
		log.Fatal(err)
	}
	return &stream
}
