package codec

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What results go to, so that none is left out.
var (
	raw    []byte
	text   string
	frame  Frame
	parsed *Frame
	table  amqp.Table
	size   uint64
	props  *amqp.Publishing
)

func run(b *testing.B, name string, once func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			once()
		}
	})
}

func table10() amqp.Table {
	return amqp.Table{
		"key1": "value1", "key2": int32(42), "key3": true, "key4": "another string", "key5": int32(999),
		"key6": false, "key7": "more data", "key8": int32(12345), "key9": "test value", "key10": int32(67890),
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, row := range []struct {
		name string
		size int
	}{{"100", 100}, {"1024", 1024}} {
		f := &Frame{Type: 1, Channel: 1, Payload: make([]byte, row.size)}
		input := f.Marshal()
		run(b, "marshal/"+row.name, func() { raw = f.Marshal() })
		run(b, "unmarshal/"+row.name, func() { _ = frame.Unmarshal(input) })
	}
	for _, row := range []struct {
		name string
		size int
	}{{"4", 4}, {"1024", 1024}} {
		input := (&Frame{Type: 1, Channel: 1, Payload: make([]byte, row.size)}).Marshal()
		reader := bytes.NewReader(input)
		run(b, "read/"+row.name, func() {
			reader.Reset(input)
			parsed, _ = ReadFrame(reader)
		})
	}
	var target bytes.Buffer
	target.Grow(64)
	four := &Frame{Type: 1, Channel: 1, Payload: make([]byte, 4)}
	run(b, "write/4", func() {
		target.Reset()
		WriteFrame(&target, four)
	})
	many := bytes.Repeat((&Frame{Type: 1, Channel: 1, Payload: make([]byte, 64)}).Marshal(), 256)
	reader := bytes.NewReader(many)
	buffered := bufio.NewReaderSize(reader, 16*1024)
	run(b, "read-many/256x64", func() {
		reader.Reset(many)
		buffered.Reset(reader)
		for range 256 {
			parsed, _ = ReadFrame(buffered)
		}
	})
	for _, row := range []struct {
		name string
		size int
	}{{"100", 100}, {"1024", 1024}, {"4096", 4096}, {"16384", 16384}} {
		f := &Frame{Type: 1, Channel: 1, Payload: make([]byte, row.size)}
		run(b, "round-trip/"+row.name, func() {
			raw = f.Marshal()
			_ = frame.Unmarshal(raw)
		})
	}
}

func BenchmarkMethod(b *testing.B) {
	server := amqp.Table{"product": "test", "version": "1.0"}
	run(b, "connection.start", func() { raw = Start(0, 9, server, "PLAIN", "en_US") })
	client := amqp.Table{"product": "client"}
	run(b, "connection.start-ok", func() { raw = StartOk(client, "PLAIN", "\x00guest\x00guest", "en_US") })
	run(b, "basic.publish", func() { raw = Publish("test.exchange", "test.key", false, false) })
	run(b, "basic.deliver", func() { raw = Deliver("consumer-123", 1, false, "test.exchange", "test.key") })
}

func BenchmarkTable(b *testing.B) {
	two := amqp.Table{"key1": "value1", "key2": int32(42)}
	run(b, "encode/2", func() { raw = EncodeTable(two) })
	ten := table10()
	run(b, "encode/10", func() { raw = EncodeTable(ten) })
	nested := amqp.Table{
		"key1": "value1", "nested": amqp.Table{"inner1": "inner value", "inner2": int32(100)}, "key2": int32(42),
	}
	run(b, "encode/nested", func() { raw = EncodeTable(nested) })
	five := EncodeTable(amqp.Table{
		"key1": "value1", "key2": int32(42), "key3": true, "key4": "another string", "key5": int32(999),
	})
	run(b, "decode/5", func() { table, _ = DecodeTable(five) })
}

func BenchmarkString(b *testing.B) {
	out := make([]byte, 0, 64)
	run(b, "short/encode", func() { raw = EncodeShort(out[:0], "hello world") })
	short := EncodeShort(nil, "hello world")
	run(b, "short/decode", func() { text, _, _ = DecodeShort(short, 0) })
	content := string(bytes.Repeat([]byte("a"), 1000))
	run(b, "long/encode", func() { raw = EncodeLong(content) })
	long := EncodeLong(content)
	run(b, "long/decode", func() { text, _, _ = DecodeLong(long, 0) })
}

func BenchmarkHeader(b *testing.B) {
	minimal := &amqp.Publishing{}
	run(b, "encode/minimal", func() { raw = EncodeHeader(1024, minimal) })
	full := &amqp.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", Headers: amqp.Table{"x-custom": "value"},
		DeliveryMode: 2, Priority: 5, CorrelationId: "correlation-123", ReplyTo: "reply-queue", Expiration: "60000",
		MessageId: "msg-456", Timestamp: time.Unix(1609459200, 0),
	}
	run(b, "encode/full", func() { raw = EncodeHeader(1024, full) })
	two := EncodeHeader(1024, &amqp.Publishing{ContentType: "application/json", DeliveryMode: 2})
	run(b, "decode/2", func() { size, props, _ = DecodeHeader(two) })
}

// BenchmarkCopy is the yardstick: copying as many bytes as the stream of publishes has.
func BenchmarkCopy(b *testing.B) {
	from, to := make([]byte, 4546560), make([]byte, 4546560)
	b.SetBytes(int64(len(from)))
	run(b, "memcpy", func() { copy(to, from) })
}
