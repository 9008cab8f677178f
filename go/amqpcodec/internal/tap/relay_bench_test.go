//go:build unix

package tap

import (
	"bytes"
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"courser/amqpcodec"
)

// cpuTime is what this process has used of processors, which other processes do not add to.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// publishes is a stream of messages of 1 KiB, each a method, a header and a body frame.
func publishes(b *testing.B, count int) []byte {
	b.Helper()
	var stream []byte
	publish := amqpcodec.BasicPublish{Exchange: "test.exchange", RoutingKey: "test.key"}
	header := amqpcodec.ContentHeader{ClassID: amqpcodec.ClassBasic, BodySize: 1024, Properties: amqpcodec.Properties{
		ContentType: "application/json", DeliveryMode: 2,
	}}
	for range count {
		var err error
		if stream, err = publish.AppendFrame(stream, 1); err == nil {
			stream, err = header.AppendFrame(stream, 1)
		}
		if err != nil {
			b.Fatal(err)
		}
		stream = amqpcodec.AppendBody(stream, 1, bytes.Repeat([]byte("data "), 1024)[:1024], 0)
	}
	return stream
}

// BenchmarkLook is what looking at a message costs on its way through the relay; nothing is shown.
func BenchmarkLook(b *testing.B) {
	const count = 32
	var passed totals
	stream := publishes(b, count)
	queue := newQueue(0)
	s := scanner{queue: queue, bodyMax: 64, totals: &passed}
	now := time.Now()
	messages, before := 0, cpuTime()
	for b.Loop() {
		s.feed(stream, now)
		messages += count
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(messages), "cpu-ns/message")
}

// BenchmarkShow is what showing a message costs, which is the printer's time and not the relay's.
func BenchmarkShow(b *testing.B) {
	for name, options := range map[string]Options{
		"text": {BodyMax: 64, Channel: -1}, "json": {JSON: true, BodyMax: 64, Channel: -1},
	} {
		b.Run(name, func(b *testing.B) {
			records, _ := scan(publishes(b, 32), 1<<30)
			printer := newPrinter(&options)
			messages, before := 0, cpuTime()
			for b.Loop() {
				for i := range records {
					printer.buffer = printer.format.record(printer.buffer, &records[i].record, []byte(records[i].data))
				}
				printer.buffer = printer.buffer[:0]
				messages += 32
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(messages), "cpu-ns/message")
		})
	}
}

// BenchmarkRelay sends messages over the loopback to a side that drops them: straight, through a relay that looks at
// nothing, and through a tap.
func BenchmarkRelay(b *testing.B) {
	sink := listenFor(b, func(connection net.Conn) { _, _ = io.Copy(io.Discard, struct{ io.Reader }{connection}) })
	plain := listenFor(b, func(connection net.Conn) {
		onward, err := net.Dial("tcp", sink)
		if err != nil {
			return
		}
		_, _ = io.Copy(struct{ io.Writer }{onward}, struct{ io.Reader }{connection})
		_ = onward.Close()
	})
	b.Run("straight", func(b *testing.B) { send(b, sink) })
	b.Run("plain", func(b *testing.B) { send(b, plain) })
	for name, options := range map[string]Options{
		"tap": {}, "tap-json": {JSON: true}, "tap-nothing-shown": {Only: []string{"nothing"}},
	} {
		b.Run(name, func(b *testing.B) {
			options.Output, options.BodyMax, options.Channel, options.ConnectionsMax = io.Discard, 64, -1, 10
			options.Dial = func(context.Context) (net.Conn, error) { return net.Dial("tcp", sink) }
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			proxy := New(options)
			go func() { served <- proxy.Serve(ctx, listener) }()
			send(b, listener.Addr().String())
			cancel()
			<-served
		})
	}
}

// listenFor serves every connection by a function, and gives the address.
func listenFor(b *testing.B, serve func(net.Conn)) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				serve(connection)
				_ = connection.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// send writes messages until the benchmark ends, and waits until the other side has all.
func send(b *testing.B, address string) {
	const count = 30
	stream := publishes(b, count)
	connection, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(stream)))
	messages, before := 0, cpuTime()
	for b.Loop() {
		if _, err := connection.Write(stream); err != nil {
			b.Fatal(err)
		}
		messages += count
	}
	_ = connection.(*net.TCPConn).CloseWrite()
	_, _ = connection.Read(make([]byte, 1))
	_ = connection.Close()
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(cpuTime()-before)/float64(messages), "cpu-ns/message")
}
