package interop

import (
	"bytes"
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"courser/amqpcodec"

	amqp "github.com/rabbitmq/amqp091-go"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// unindented is a text without the white space at the beginning and the end of its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func TestTheCodeOfThePagesIsThatOfTheExamples(t *testing.T) {
	examples, err := os.ReadFile("frames_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tested := unindented(string(examples))
	for _, page := range []string{"../../docs/go-frames.md", "../amqpcodec/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := goBlock.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s: no code", page)
		}
		for _, block := range blocks {
			if !strings.Contains(tested, unindented(block[1])) {
				t.Errorf("%s: no example has this code:\n%s", page, block[1])
			}
		}
	}
}

// A recorder keeps what goes over a connection.
type recorder struct {
	net.Conn
	lock    sync.Mutex
	written bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.written.Write(p)
	return r.Conn.Write(p)
}

func TestAPublishHasTheBytesOfAmqp091(t *testing.T) {
	connection, err := net.Dial("tcp", serveScripted(t))
	if err != nil {
		t.Fatal(err)
	}
	recorded := &recorder{Conn: connection}
	client, err := amqp.Open(recorded, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "guest", Password: "guest"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	channel, err := client.Channel()
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Unix(1609459200, 0)
	// One entry, as the order of a map's is not known.
	headers := amqp.Table{"nested": amqp.Table{"list": []any{
		true, int8(-1), uint8(1), int16(-2), uint16(2), int32(-3), uint32(3), int64(-4), float32(0.5), 2.5, "text", []byte("bytes"), sent, nil,
	}}}
	body := bytes.Repeat([]byte("body"), 100)
	err = channel.PublishWithContext(context.Background(), "events", "order.created", true, false, amqp.Publishing{
		Headers: headers, ContentType: "text/plain", DeliveryMode: amqp.Persistent, Priority: 5, CorrelationId: "c",
		ReplyTo: "r", Expiration: "60000", MessageId: "m", Timestamp: sent, Type: "t", AppId: "a", Body: body,
	})
	if err != nil {
		t.Fatal(err)
	}
	var ours bytes.Buffer
	writer := amqpcodec.NewWriter(&ours)
	publish := amqpcodec.BasicPublish{Exchange: "events", RoutingKey: "order.created", Mandatory: true}
	properties := amqpcodec.Properties{
		Headers: headers, ContentType: "text/plain", DeliveryMode: 2, Priority: 5, CorrelationID: "c",
		ReplyTo: "r", Expiration: "60000", MessageID: "m", Timestamp: sent, Type: "t", AppID: "a",
	}
	if err := writer.WriteContent(1, &publish, &properties, body); err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	recorded.lock.Lock()
	defer recorded.lock.Unlock()
	if theirs := recorded.written.Bytes(); !bytes.HasSuffix(theirs, ours.Bytes()) {
		t.Errorf("amqp091-go: %x\nours: %x", theirs[max(0, len(theirs)-ours.Len()):], ours.Bytes())
	}
}
