package tap

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"courser/amqpcodec"
)

// A gate is output that takes nothing until it is opened.
type gate struct {
	open  chan struct{}
	mutex sync.Mutex
	text  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.text.Write(p)
}

func TestAnOutputThatIsStuckNeitherHoldsTheStreamNorTakesMemory(t *testing.T) {
	const messages, size = 50_000, 1024
	output := &gate{open: make(chan struct{})}
	echo := loopback(t)
	go func() {
		for {
			connection, err := echo.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, connection)
			_ = connection.Close()
		}
	}()
	proxy := New(Options{
		Dial:           func(ctx context.Context) (net.Conn, error) { return net.Dial("tcp", echo.Addr().String()) },
		Output:         output,
		BodyMax:        64,
		Channel:        -1,
		ConnectionsMax: 10,
		Warn:           func(problem string) { t.Error(problem) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listener := loopback(t)
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(ctx, listener) }()

	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	message, err := (&amqpcodec.BasicPublish{RoutingKey: "jobs"}).AppendFrame(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	message = amqpcodec.AppendBody(message, 1, make([]byte, size), 0)
	_ = client.SetDeadline(time.Now().Add(30 * time.Second))
	for range messages {
		if _, err := client.Write(message); err != nil {
			t.Fatalf("the stream is held: %v", err)
		}
	}
	// All of it arrives although nothing was printed: the broker's side ends when the client's does.
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the stream is held: %v", err)
	}
	proxy.queue.mutex.Lock()
	waiting := cap(proxy.queue.filling.data) + cap(proxy.queue.filling.records)*recordSize
	proxy.queue.mutex.Unlock()
	if waiting > 4*queueMax {
		t.Errorf("%d bytes wait", waiting)
	}

	close(output.open)
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	text := output.text.String()
	shown := strings.Count(text, "basic.publish") + strings.Count(text, "body 1024 B")
	if shown == 0 || shown >= 2*messages || !strings.Contains(text, " frames not shown: the output could not keep up\n") {
		t.Errorf("%d frames shown, and at the end: %s", shown, text[max(0, len(text)-300):])
	}
	if !strings.Contains(text, "#1 closed; client: 100000 frames") {
		t.Errorf("the end is not shown: %s", text[max(0, len(text)-300):])
	}
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestAQueueCountsWhatItHasNoRoomFor(t *testing.T) {
	queue := newQueue(3 * recordSize)
	for range 5 {
		queue.put(record{}, nil)
	}
	queue.put(record{event: eventClose}, nil)
	queue.close()
	var taken batch
	if !queue.take(&taken) || len(taken.records) != 4 || taken.missed != 2 {
		t.Errorf("%d records, %d missed", len(taken.records), taken.missed)
	}
	if queue.take(&taken) {
		t.Error("a closed queue has more")
	}
	queue.put(record{}, nil)
	if queue.take(&taken) {
		t.Error("a closed queue takes more")
	}
}
