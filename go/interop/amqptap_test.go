// Package interop holds amqpcodec and amqptap against amqp091-go and a broker. It is a module of its own, so that
// amqpcodec needs nothing but the standard library.
package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const patience = 30 * time.Second

var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "amqptap")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "amqptap")
	status := 1
	if output, err := exec.Command("go", "build", "-o", program, "courser/amqpcodec/cmd/amqptap").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "amqptap does not build: %v\n%s", err, output)
	} else {
		status = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// A tap is an amqptap that runs in front of a broker.
type tap struct {
	address string
	output  *os.File
	command *exec.Cmd
}

func startTap(t *testing.T, broker string, arguments ...string) *tap {
	t.Helper()
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, append([]string{"--listen", "127.0.0.1:0", "--broker", broker}, arguments...)...)
	command.Stdout = output
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait(); _ = output.Close() })
	line := make([]byte, 200)
	n, _ := said.Read(line)
	address := regexp.MustCompile(`relaying (\S+) to`).FindSubmatch(line[:n])
	if address == nil {
		t.Fatalf("amqptap says %q", line[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return &tap{string(address[1]), output, command}
}

// stop ends amqptap as Ctrl-C does, and gives what it showed.
func (p *tap) stop(t *testing.T) string {
	t.Helper()
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	killed := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	if err := p.command.Wait(); err != nil || !killed.Stop() {
		t.Errorf("amqptap ended with %v", err)
	}
	shown, err := os.ReadFile(p.output.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(shown)
}

// A broker is one that the tests talk to through amqptap.
type broker struct{ address, user, password, vhost string }

// brokers are the scripted one and the real one that COURSER_TEST_URI names, such as
// amqp://guest:guest@127.0.0.1:5672/; go/run starts one and names it.
func brokers(t *testing.T) map[string]func(t *testing.T) broker {
	t.Helper()
	found := map[string]func(*testing.T) broker{
		"scripted": func(t *testing.T) broker { return broker{serveScripted(t), "guest", "guest", "/"} },
	}
	if uri := os.Getenv("COURSER_TEST_URI"); uri != "" {
		parsed, err := amqp.ParseURI(uri)
		if err != nil {
			t.Fatal(err)
		}
		live := broker{net.JoinHostPort(parsed.Host, fmt.Sprint(parsed.Port)), parsed.Username, parsed.Password, parsed.Vhost}
		found["live"] = func(*testing.T) broker { return live }
	}
	return found
}

// dial connects amqp091-go to a broker by way of amqptap.
func dial(t *testing.T, p *tap, b broker) *amqp.Connection {
	t.Helper()
	uri := url.URL{Scheme: "amqp", User: url.UserPassword(b.user, b.password), Host: p.address, Path: "/" + b.vhost, RawPath: "/" + url.PathEscape(b.vhost)}
	connection, err := amqp.Dial(uri.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// publishing has all that a client can set, and a body of some frames.
func publishing() amqp.Publishing {
	return amqp.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent, Priority: 5,
		CorrelationId: "correlation-123", ReplyTo: "replies", Expiration: "60000", MessageId: "message-456",
		Timestamp: time.Unix(1609459200, 0), Type: "test", AppId: "interop",
		Headers: amqp.Table{
			"text": "value", "int": int32(-5), "long": int64(1 << 40), "float": 1.5, "truth": true, "void": nil,
			"bytes": []byte{0, 255}, "time": time.Unix(1609459200, 0), "decimal": amqp.Decimal{Scale: 2, Value: 314},
			"list": []any{"a", int32(1)}, "table": amqp.Table{"inner": "x"},
		},
		Body: bytes.Repeat([]byte("0123456789abcdef"), 20_000),
	}
}

func TestMessagesPassUnchangedAndAreShown(t *testing.T) {
	for name, prepare := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			target := prepare(t)
			p := startTap(t, target.address, "--json", "--body", "16")
			connection := dial(t, p, target)
			queue := exchangeMessages(t, connection)
			if err := connection.Close(); err != nil {
				t.Error(err)
			}
			checkShown(t, p.stop(t), queue)
		})
	}
}

// exchangeMessages declares a queue, and publishes and consumes a message and many small ones.
func exchangeMessages(t *testing.T, connection *amqp.Connection) (queue string) {
	t.Helper()
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	queue = fmt.Sprintf("amqptap-%d", time.Now().UnixNano())
	if _, err := channel.QueueDeclare(queue, false, true, true, false, amqp.Table{"made-for": "amqptap"}); err != nil {
		t.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := channel.Consume(queue, "consumer", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const small = 500
	large := publishing()
	for i := range 1 + small {
		next := large
		if i > 0 {
			next = amqp.Publishing{Body: fmt.Append(nil, i)}
		}
		confirmation, err := channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, next)
		if err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 && !confirmation.Wait() {
			t.Fatal("a publish was refused")
		}
	}
	for i := range 1 + small {
		select {
		case delivery := <-deliveries:
			want := fmt.Append(nil, i)
			if i == 0 {
				want = large.Body
				checkDelivery(t, delivery, large)
			}
			if !bytes.Equal(delivery.Body, want) {
				t.Fatalf("delivery %d has %d bytes", i, len(delivery.Body))
			}
		case <-ctx.Done():
			t.Fatalf("delivery %d does not come", i)
		}
	}
	return queue
}

func checkDelivery(t *testing.T, delivery amqp.Delivery, want amqp.Publishing) {
	t.Helper()
	got := amqp.Publishing{
		ContentType: delivery.ContentType, ContentEncoding: delivery.ContentEncoding, DeliveryMode: delivery.DeliveryMode,
		Priority: delivery.Priority, CorrelationId: delivery.CorrelationId, ReplyTo: delivery.ReplyTo,
		Expiration: delivery.Expiration, MessageId: delivery.MessageId, Timestamp: delivery.Timestamp, Type: delivery.Type,
		AppId: delivery.AppId, Headers: delivery.Headers, Body: delivery.Body,
	}
	if !got.Timestamp.Equal(want.Timestamp) {
		t.Errorf("timestamp %v", got.Timestamp)
	}
	got.Timestamp, want.Timestamp = time.Time{}, time.Time{}
	if moment, _ := got.Headers["time"].(time.Time); !moment.Equal(want.Headers["time"].(time.Time)) {
		t.Errorf("time %v", got.Headers["time"])
	}
	got.Headers["time"] = want.Headers["time"]
	if !reflect.DeepEqual(got, want) {
		t.Errorf("published:\n%.500v\ndelivered:\n%.500v", want, got)
	}
}

// checkShown looks for the conversation in what amqptap showed.
func checkShown(t *testing.T, output, queue string) {
	t.Helper()
	seen := map[string]int{}
	var header map[string]any
	for line := range strings.Lines(output) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if object["error"] != nil || object["event"] == "not-decoded" || object["event"] == "not-shown" {
			t.Errorf("%s", line)
		}
		kind := fmt.Sprint(object["from"], " ", object["frame"])
		if method, ok := object["method"].(string); ok {
			kind = fmt.Sprint(object["from"], " ", method)
		}
		seen[kind]++
		if kind == "client queue.declare" && object["fields"].(map[string]any)["queue"] != queue {
			t.Errorf("%s", line)
		}
		if kind == "client header" && header == nil {
			header = object["properties"].(map[string]any)
		}
	}
	for kind, want := range map[string]int{
		"client connection.start-ok": 1, "broker connection.tune": 1, "client queue.declare": 1, "broker queue.declare-ok": 1,
		"client basic.publish": 501, "client header": 501, "broker basic.deliver": 501, "broker header": 501,
		"client body": 503, "client connection.close": 1, "broker connection.close-ok": 1,
	} {
		if seen[kind] != want {
			t.Errorf("%d times %s instead of %d", seen[kind], kind, want)
		}
	}
	want := map[string]any{
		"content-type": "application/json", "content-encoding": "utf-8", "delivery-mode": 2.0, "priority": 5.0,
		"correlation-id": "correlation-123", "reply-to": "replies", "expiration": "60000", "message-id": "message-456",
		"timestamp": 1609459200.0, "type": "test", "app-id": "interop",
		"headers": map[string]any{
			"text": "value", "int": -5.0, "long": float64(1 << 40), "float": 1.5, "truth": true, "void": nil,
			"bytes": map[string]any{"base64": "AP8="}, "time": 1609459200.0, "decimal": 3.14,
			"list": []any{"a", 1.0}, "table": map[string]any{"inner": "x"},
		},
	}
	if !reflect.DeepEqual(header, want) {
		t.Errorf("the header is shown as %v instead of %v", header, want)
	}
	if strings.Contains(output, `"response":"`) {
		t.Error("the password is shown")
	}
}

func TestABrokersRefusalIsShown(t *testing.T) {
	for name, prepare := range brokers(t) {
		t.Run(name, func(t *testing.T) { showRefusal(t, prepare(t)) })
	}
}

func showRefusal(t *testing.T, b broker) {
	t.Helper()
	p := startTap(t, b.address)
	connection := dial(t, p, b)
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	_, err = channel.QueueDeclarePassive("amqptap-no-such-queue", false, false, false, false, nil)
	if refusal, ok := err.(*amqp.Error); !ok || refusal.Code != amqp.NotFound {
		t.Errorf("%v", err)
	}
	_ = connection.Close()
	output := p.stop(t)
	for _, text := range []string{
		`-> ch1 queue.declare queue="amqptap-no-such-queue" passive arguments={}`,
		`<- ch1 channel.close reply-code=404 NOT_FOUND reply-text="NOT_FOUND`,
		`-> ch1 channel.close-ok`,
	} {
		if !strings.Contains(output, text) {
			t.Errorf("%q is missing in:\n%s", text, output)
		}
	}
}
