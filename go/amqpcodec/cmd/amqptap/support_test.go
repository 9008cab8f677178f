package main

import (
	"context"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"courser/amqpcodec"
)

// TestMain lets the test's own program be amqptap, for the tests that need it in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("BE_AMQPTAP") != "" {
		main()
	}
	os.Exit(m.Run())
}

// patience is how long anything may take.
const patience = 20 * time.Second

// A buffer is output that may be read while it is written.
type buffer struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// listen is where a broker is played.
func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// A tapped is an amqptap that runs.
type tapped struct {
	address        string
	stdout, stderr buffer
	stop           func() int
}

// start runs amqptap in this process, in front of a broker.
func start(t *testing.T, broker string, arguments ...string) *tapped {
	t.Helper()
	var running tapped
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	arguments = append([]string{"--listen", "127.0.0.1:0", "--broker", broker}, arguments...)
	go func() { ended <- run(ctx, arguments, &running.stdout, &running.stderr) }()
	running.stop = sync.OnceValue(func() int {
		cancel()
		select {
		case status := <-ended:
			return status
		case <-time.After(patience):
			t.Error("amqptap does not end")
			return -1
		}
	})
	t.Cleanup(func() { running.stop() })
	running.address = relayed(t, &running.stderr)
	return &running
}

// relayed waits for amqptap to say where clients connect to.
func relayed(t *testing.T, stderr *buffer) string {
	t.Helper()
	said := regexp.MustCompile(`relaying (\S+) to `)
	eventually(t, "amqptap says where it listens", func() bool { return said.MatchString(stderr.String()) })
	return said.FindStringSubmatch(stderr.String())[1]
}

// connect makes a connection through amqptap, and gives both its ends.
func connect(t *testing.T, running *tapped, listener *net.TCPListener) (client, broker *net.TCPConn) {
	t.Helper()
	dialled, err := net.Dial("tcp", running.address)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	client, broker = dialled.(*net.TCPConn), accepted
	for _, end := range []*net.TCPConn{client, broker} {
		t.Cleanup(func() { _ = end.Close() })
		if err := end.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
	return client, broker
}

// pass sends bytes from one end and sees that the other gets them.
func pass(t *testing.T, from, to net.Conn, data []byte) {
	t.Helper()
	failure := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		failure <- err
	}()
	got := make([]byte, len(data))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != string(data) {
		t.Fatalf("%.60x passed as %.60x, %v", data, got, err)
	}
	if err := <-failure; err != nil {
		t.Fatal(err)
	}
}

// method is a method's frame.
func method(t *testing.T, channel uint16, method amqpcodec.Method) []byte {
	t.Helper()
	frame, err := method.AppendFrame(nil, channel)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// content is the frames of a message: method, header, body.
func content(t *testing.T, channel uint16, m amqpcodec.Method, properties amqpcodec.Properties, body string) []byte {
	t.Helper()
	header := amqpcodec.ContentHeader{ClassID: amqpcodec.ClassBasic, BodySize: uint64(len(body)), Properties: properties}
	frames, err := header.AppendFrame(method(t, channel, m), channel)
	if err != nil {
		t.Fatal(err)
	}
	return amqpcodec.AppendBody(frames, channel, []byte(body), 4096)
}

// untimed is output without what differs from run to run: times and addresses.
func untimed(output string) string {
	output = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{6} `).ReplaceAllString(output, "")
	output = regexp.MustCompile(`"time":"[^"]*",`).ReplaceAllString(output, "")
	output = regexp.MustCompile(`,"after_ms":[\d.]+`).ReplaceAllString(output, "")
	output = regexp.MustCompile(`\(after \d+\.\d{3} ms\)`).ReplaceAllString(output, "(after TIME)")
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(output, "HOST")
}
