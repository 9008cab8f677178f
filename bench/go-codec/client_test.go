package gocodec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	amqp "courser/amqpcodec"

	client "github.com/rabbitmq/amqp091-go"
)

// What amqp091-go has in public: a client over any io.ReadWriteCloser. Its way of writing a publish and of reading
// deliveries is measured through it, against a broker in memory that costs next to nothing: it answers the handshake,
// and then swallows what comes, or sends the same deliveries again and again. Ours does the same work with a writer and
// a reader: for a publish method, header and body frame in one write; of a delivery all fields and properties, owned, and
// a body of its own.

const bodySize = 1024

// A wire is the client's end of a connection whose other end is played.
type wire struct {
	input chan []byte
	rest  []byte
	// deliveries is sent over and over, when it is set.
	deliveries []byte
	closed     chan struct{}
	once       sync.Once
}

func newWire() *wire { return &wire{input: make(chan []byte, 16), closed: make(chan struct{})} }

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wire) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		if w.rest = w.deliveries; len(w.rest) == 0 {
			select {
			case w.rest = <-w.input:
			case <-w.closed:
				return 0, io.EOF
			}
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

var startOk = methodPrefix(amqp.ConnectionStartOkID)

// Write answers the methods of a handshake, found by their first bytes. Publishes are let through without a look.
func (w *wire) Write(p []byte) (int, error) {
	size := len(p)
	if len(p) >= 8 && string(p[:4]) == "AMQP" {
		w.answer(0, &amqp.ConnectionStart{VersionMinor: 9, Mechanisms: "PLAIN", Locales: "en_US"})
		return size, nil
	}
	if bytes.HasPrefix(p[min(7, len(p)):], startOk) || bytes.HasPrefix(p[min(7, len(p)):], []byte{0, 60, 0, 40}) {
		if p[10] == 11 {
			w.answer(0, &amqp.ConnectionTune{ChannelMax: 2047, FrameMax: 131072})
		}
		return size, nil
	}
	for len(p) > 0 {
		one, n, err := amqp.ParseFrame(p, 0)
		if err != nil || n == 0 {
			break
		}
		p = p[n:]
		if one.Type != amqp.FrameMethod {
			continue
		}
		switch id, _ := amqp.ParseMethodID(one.Payload); id {
		case amqp.ConnectionOpenID:
			w.answer(0, &amqp.ConnectionOpenOk{})
		case amqp.ChannelOpenID:
			w.answer(one.Channel, &amqp.ChannelOpenOk{})
		case amqp.BasicConsumeID:
			w.answer(one.Channel, &amqp.BasicConsumeOk{ConsumerTag: "consumer-123"})
		}
	}
	return size, nil
}

func methodPrefix(id amqp.MethodID) []byte {
	return []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
}

func (w *wire) answer(channel uint16, method amqp.Method) {
	raw, err := method.AppendFrame(nil, channel)
	if err != nil {
		panic(err)
	}
	w.input <- raw
}

// deliveriesOf is many deliveries, encoded.
func deliveriesOf(b *testing.B) (stream []byte, count int) {
	properties := amqp.Properties{ContentType: "application/json", DeliveryMode: 2}
	for count = range 64 {
		deliver := amqp.BasicDeliver{
			ConsumerTag: "consumer-123", DeliveryTag: uint64(count + 1), Exchange: "test.exchange", RoutingKey: "test.key",
		}
		contentHeader := amqp.ContentHeader{ClassID: amqp.ClassBasic, BodySize: bodySize, Properties: properties}
		var err error
		stream, err = deliver.AppendFrame(stream, 1)
		check(b, err)
		stream, err = contentHeader.AppendFrame(stream, 1)
		check(b, err)
		stream = amqp.AppendBody(stream, 1, make([]byte, bodySize), 0)
	}
	return stream, count + 1
}

func open(b *testing.B) (*wire, *client.Channel) {
	connection := newWire()
	channel, err := openOver(b, connection).Channel()
	check(b, err)
	return connection, channel
}

// openConnection is for those who open channels themselves.
func openConnection(b *testing.B) *client.Connection { return openOver(b, newWire()) }

func openOver(b *testing.B, connection *wire) *client.Connection {
	opened, err := client.Open(connection, client.Config{SASL: []client.Authentication{&client.PlainAuth{}}, Heartbeat: -1})
	check(b, err)
	b.Cleanup(func() { _ = connection.Close() })
	return opened
}

func BenchmarkClient(b *testing.B) {
	run(b, []row{
		{name: fmt.Sprint("publish/", bodySize), lent: publishOurs, client: publishTheirs},
		{name: fmt.Sprint("deliver/", bodySize), lent: deliverViews, fresh: deliverOurs, client: deliverTheirs},
	})
}

func publishOurs(b *testing.B) {
	writer := amqp.NewWriter(io.Discard)
	publish := amqp.BasicPublish{Exchange: "test.exchange", RoutingKey: "test.key"}
	properties := amqp.Properties{ContentType: "application/json", DeliveryMode: 2}
	body := make([]byte, bodySize)
	for b.Loop() {
		check(b, writer.WriteContent(1, &publish, &properties, body))
		check(b, writer.Flush())
	}
}

func publishTheirs(b *testing.B) {
	_, channel := open(b)
	publishing := client.Publishing{ContentType: "application/json", DeliveryMode: 2, Body: make([]byte, bodySize)}
	ctx := context.Background()
	for b.Loop() {
		check(b, channel.PublishWithContext(ctx, "test.exchange", "test.key", false, false, publishing))
	}
}

// A delivery is all of a message, owned.
type delivery struct {
	method amqp.BasicDeliver
	header amqp.ContentHeader
	body   []byte
}

var delivered delivery

func deliverOurs(b *testing.B) {
	reader, connection := deliveryReader(b)
	defer connection.Close()
	for b.Loop() {
		method, err := reader.Next()
		check(b, err)
		check(b, delivered.method.UnmarshalBinary(method.Payload))
		contentHeader, err := reader.Next()
		check(b, err)
		check(b, delivered.header.UnmarshalBinary(contentHeader.Payload))
		body, err := reader.Next()
		check(b, err)
		delivered.body = bytes.Clone(body.Payload)
	}
}

func deliverViews(b *testing.B) {
	reader, connection := deliveryReader(b)
	defer connection.Close()
	var deliver amqp.BasicDeliverView
	var contentHeader amqp.ContentHeaderView
	for b.Loop() {
		one, err := reader.Next()
		check(b, err)
		check(b, deliver.Parse(one.Payload))
		one, err = reader.Next()
		check(b, err)
		check(b, contentHeader.Parse(one.Payload))
		check(b, views.Parse(contentHeader.Properties))
		frame, err = reader.Next()
		check(b, err)
	}
}

func deliveryReader(b *testing.B) (*amqp.Reader, *wire) {
	connection := newWire()
	connection.deliveries, _ = deliveriesOf(b)
	return amqp.NewReader(connection), connection
}

func deliverTheirs(b *testing.B) {
	connection, channel := open(b)
	deliveries, err := channel.Consume("queue", "consumer-123", true, false, false, false, nil)
	check(b, err)
	stream, count := deliveriesOf(b)
	// The client takes all it gets into memory: it gets no more than two streams ahead of the consumer.
	connection.input <- stream
	connection.input <- stream
	taken := 0
	for b.Loop() {
		one := <-deliveries
		raw = one.Body
		if taken++; taken%count == 0 {
			connection.input <- stream
		}
	}
}
