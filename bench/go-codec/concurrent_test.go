package gocodec

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	amqp "courser/amqpcodec"

	client "github.com/rabbitmq/amqp091-go"
)

// Rows of many goroutines, one for each processor: with memory of their own (lent), with a new slice each time (fresh), and a
// publish over one connection that all share, with buffers out of a pool. BenchmarkPooled has the pool in one goroutine.

// parallel runs work in a goroutine for each processor; each gets its own from make.
func parallel(make func(b *testing.B) func() error) func(*testing.B) {
	return func(b *testing.B) {
		b.RunParallel(func(turns *testing.PB) {
			work := make(b)
			for turns.Next() {
				if err := work(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
}

func BenchmarkConcurrent(b *testing.B) {
	value := frameOf(bodySize)
	input := value.AppendTo(nil)
	run(b, []row{
		{
			name: "marshal/1024",
			lent: parallel(func(*testing.B) func() error {
				lent := make([]byte, 0, value.Size())
				return func() error {
					_, err := value.AppendBinary(lent)
					return err
				}
			}),
			fresh: parallel(func(*testing.B) func() error {
				return func() error {
					_, err := value.MarshalBinary()
					return err
				}
			}),
		},
		{
			name: "unmarshal/1024",
			lent: parallel(func(*testing.B) func() error {
				return func() error {
					_, _, err := amqp.ParseFrame(input, 0)
					return err
				}
			}),
			fresh: parallel(func(*testing.B) func() error {
				var own amqp.Frame
				return func() error {
					own.Payload = nil
					return own.UnmarshalBinary(input)
				}
			}),
		},
		{name: fmt.Sprint("publish/", bodySize), lent: publishTogether, client: publishTogetherTheirs},
	})
}

var writers = sync.Pool{New: func() any { return amqp.NewWriter(nil) }}

// writePooled writes the frames of a publish to a connection through a writer of the pool.
func writePooled(connection io.Writer, channel uint16, publish *amqp.BasicPublish, properties *amqp.Properties, body []byte) error {
	writer := writers.Get().(*amqp.Writer)
	defer writers.Put(writer)
	writer.Reset(connection)
	if err := writer.WriteContent(channel, publish, properties, body); err != nil {
		return err
	}
	return writer.Flush()
}

// A shared connection takes one write at a time.
type shared struct {
	lock sync.Mutex
	io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.Writer.Write(p)
}

func publishTogether(b *testing.B) {
	connection := &shared{Writer: io.Discard}
	parallel(func(*testing.B) func() error {
		publish := amqp.BasicPublish{Exchange: "test.exchange", RoutingKey: "test.key"}
		properties := amqp.Properties{ContentType: "application/json", DeliveryMode: 2}
		body := make([]byte, bodySize)
		return func() error { return writePooled(connection, 1, &publish, &properties, body) }
	})(b)
}

// publishTogetherTheirs gives each goroutine a channel of its own, as amqp091-go asks for. They are open before anything is
// published: the wire does not look into what comes behind a publish.
func publishTogetherTheirs(b *testing.B) {
	connection, channels := openConnection(b), make(chan *client.Channel, runtime.GOMAXPROCS(0))
	for range cap(channels) {
		channel, err := connection.Channel()
		check(b, err)
		channels <- channel
	}
	parallel(func(*testing.B) func() error {
		channel := <-channels
		publishing := client.Publishing{ContentType: "application/json", DeliveryMode: 2, Body: make([]byte, bodySize)}
		ctx := context.Background()
		return func() error {
			return channel.PublishWithContext(ctx, "test.exchange", "test.key", false, false, publishing)
		}
	})(b)
}

func BenchmarkPooled(b *testing.B) {
	publish := amqp.BasicPublish{Exchange: "test.exchange", RoutingKey: "test.key"}
	properties := amqp.Properties{ContentType: "application/json", DeliveryMode: 2}
	var rows []row
	for _, size := range []int{4, bodySize, 16 * 1024} {
		body := make([]byte, size)
		rows = append(rows, row{
			name: fmt.Sprint("publish/", size),
			lent: func(b *testing.B) {
				for b.Loop() {
					check(b, writePooled(io.Discard, 1, &publish, &properties, body))
				}
			},
			// Without a pool: a new writer each time, with a buffer for this message.
			fresh: func(b *testing.B) {
				for b.Loop() {
					writer := amqp.NewWriterSize(io.Discard, 256+size)
					check(b, writer.WriteContent(1, &publish, &properties, body))
					check(b, writer.Flush())
				}
			},
		})
	}
	run(b, rows)
}
