package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"courser/amqpcodec"
)

// talk plays a conversation through amqptap, and ends it.
func talk(t *testing.T, client, broker *net.TCPConn) {
	t.Helper()
	up := func(data []byte) { t.Helper(); pass(t, client, broker, data) }
	down := func(data []byte) { t.Helper(); pass(t, broker, client, data) }
	up([]byte(amqpcodec.ProtocolHeader))
	down(method(t, 0, &amqpcodec.ConnectionStart{
		VersionMinor: 9, ServerProperties: map[string]any{"product": "test"}, Mechanisms: "PLAIN", Locales: "en_US",
	}))
	up(method(t, 0, &amqpcodec.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00sesame", Locale: "en_US"}))
	up(method(t, 1, &amqpcodec.QueueDeclare{Queue: "jobs", Durable: true, NoWait: true}))
	up(content(t, 1, &amqpcodec.BasicPublish{RoutingKey: "jobs", Mandatory: true}, amqpcodec.Properties{
		ContentType: "text/plain", Headers: map[string]any{"attempt": 3}, DeliveryMode: 2, Timestamp: time.Unix(1609459200, 0),
	}, "hello\n"))
	down(method(t, 1, &amqpcodec.BasicAck{DeliveryTag: 1}))
	down(amqpcodec.AppendHeartbeat(nil))
	down(method(t, 1, &amqpcodec.ChannelClose{ReplyCode: amqpcodec.CodeNotFound, ReplyText: "NOT_FOUND - no queue"}))
	end(t, client, broker)
}

// end closes a connection from the client's side.
func end(t *testing.T, client, broker *net.TCPConn) {
	t.Helper()
	_ = client.Close()
	if _, err := broker.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the broker reads %v", err)
	}
	_ = broker.Close()
}

const conversation = `#1 opened, HOST to HOST
#1 -> protocol header AMQP 0-9-1
#1 <- ch0 connection.start version-major=0 version-minor=9 server-properties={product="test"} mechanisms="PLAIN" locales="en_US"
#1 -> ch0 connection.start-ok client-properties={} mechanism="PLAIN" response=<user "guest", password hidden> locale="en_US" (after TIME)
#1 -> ch1 queue.declare queue="jobs" durable nowait arguments={}
#1 -> ch1 basic.publish exchange="" routing-key="jobs" mandatory
#1 -> ch1 header of 6 B content-type="text/plain" headers={attempt=3} delivery-mode=2 timestamp=2021-01-01T00:00:00Z
#1 -> ch1 body 6 B "hello\n"
#1 <- ch1 basic.ack delivery-tag=1
#1 <- ch0 heartbeat
#1 <- ch1 channel.close reply-code=404 NOT_FOUND reply-text="NOT_FOUND - no queue" class-id=0 method-id=0
#1 closed; client: 5 frames, 175 bytes; broker: 4 frames, 121 bytes
`

func TestAConversationIsShownFrameByFrame(t *testing.T) {
	listener := listen(t)
	running := start(t, listener.Addr().String())
	client, broker := connect(t, running, listener)
	talk(t, client, broker)
	eventually(t, "the connection is closed", func() bool { return strings.Contains(running.stdout.String(), "closed;") })
	if status := running.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	if got := untimed(running.stdout.String()); got != conversation {
		t.Errorf("shown:\n%s\ninstead of:\n%s", got, conversation)
	}
	summary := "amqptap: 1 connections; from clients 5 frames in 175 bytes, from the broker 4 frames in 121 bytes\n"
	got := running.stderr.String()
	if !strings.Contains(got, summary) || !regexp.MustCompile(`(?m)^connection\.start +0 +1 +1 +\d+\.\d{3} `).MatchString(got) ||
		!regexp.MustCompile(`(?m)^basic\.publish +1 +0$`).MatchString(got) {
		t.Errorf("%s", got)
	}
}

func TestOptionsSayWhatIsShown(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments []string
		shown     []string
		hidden    []string
	}{
		{"patterns", []string{"--only", "queue.*,basic.ack"}, []string{"queue.declare", "basic.ack"}, []string{"publish", "header of"}},
		{"header frames", []string{"--only", "header"}, []string{"header of 6 B"}, []string{"basic.publish", "body"}},
		{"a queue", []string{"--queue", "j*s"}, []string{"queue.declare", "basic.publish", "header of 6 B", "body 6 B"},
			[]string{"connection.start", "heartbeat", "basic.ack", "channel.close"}},
		{"another queue", []string{"--queue", "jobs.*"}, nil, []string{"queue.declare", "basic.publish", "header of", "body"}},
		{"an exchange", []string{"--exchange", "amq.default"}, []string{"basic.publish", "body 6 B"}, []string{"queue.declare"}},
		{"a key", []string{"--key", "jobs"}, []string{"basic.publish", "body 6 B"}, []string{"queue.declare"}},
		{"key and exchange", []string{"--key", "jobs", "--exchange", "other"}, nil, []string{"basic.publish", "body 6 B"}},
		{"channel", []string{"--channel", "1"}, []string{"basic.ack"}, []string{"heartbeat", "connection.start"}},
		{"no body", []string{"--body", "0"}, []string{"body 6 B\n"}, []string{"hello"}},
		{"no body frames", []string{"--body", "-1"}, []string{"basic.ack"}, []string{"body 6"}},
		{"some body", []string{"--body", "2"}, []string{`body 6 B "he"+4 B`}, nil},
		{"secrets", []string{"--secrets"}, []string{`response="\x00guest\x00sesame"`}, nil},
		{"colours", []string{"--color", "always"}, []string{"\x1b[1mbasic.publish\x1b[0m"}, nil},
		{"no colours", nil, []string{"basic.publish"}, []string{"\x1b", "sesame"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener := listen(t)
			running := start(t, listener.Addr().String(), c.arguments...)
			client, broker := connect(t, running, listener)
			talk(t, client, broker)
			running.stop()
			output := running.stdout.String()
			for _, text := range c.shown {
				if !strings.Contains(output, text) {
					t.Errorf("%q is missing in:\n%s", text, output)
				}
			}
			for _, text := range c.hidden {
				if strings.Contains(output, text) {
					t.Errorf("%q is in:\n%s", text, output)
				}
			}
		})
	}
}

func TestARecordingShowsTheSameConversation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recording.pcap")
	// One that others can read is there already.
	if err := os.WriteFile(file, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	running := start(t, listener.Addr().String(), "--write", file)
	client, broker := connect(t, running, listener)
	talk(t, client, broker)
	running.stop()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	for _, c := range []struct {
		arguments []string
		shown     string
	}{
		{nil, conversation},
		{[]string{"--only", "body", "--queue", "jobs"}, "#1 opened, HOST to HOST\n#1 -> protocol header AMQP 0-9-1\n#1 -> ch1 body 6 B \"hello\\n\"\n" +
			"#1 closed; client: 5 frames, 175 bytes; broker: 4 frames, 121 bytes\n"},
	} {
		var stdout, stderr buffer
		arguments := append([]string{"--read", file, "--broker", listener.Addr().String()}, c.arguments...)
		if status := run(context.Background(), arguments, &stdout, &stderr); status != 0 {
			t.Errorf("status %d: %s", status, stderr.String())
		}
		if got := untimed(stdout.String()); got != c.shown {
			t.Errorf("%v:\n%s", c.arguments, got)
		}
		if !strings.HasPrefix(stderr.String(), "amqptap: 1 connections; from clients 5 frames in 175 bytes") {
			t.Errorf("%s", stderr.String())
		}
	}
	var stdout, stderr buffer
	if status := run(context.Background(), []string{"--read", file, "--listen", "127.0.0.1:0"}, &stdout, &stderr); status != 2 ||
		!strings.Contains(stderr.String(), "--read relays nothing: it does not go with --listen") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

func TestWhatIsNotUnderstoodIsSaidAndRelayed(t *testing.T) {
	ack := method(t, 1, &amqpcodec.BasicAck{DeliveryTag: 9})
	unknown := (&amqpcodec.Frame{Type: amqpcodec.FrameMethod, Channel: 2, Payload: []byte("\x00\x3c\x00\xc8rest")}).AppendTo(nil)
	short := (&amqpcodec.Frame{Type: amqpcodec.FrameMethod, Channel: 2, Payload: []byte("\x00\x3c\x00\x28\x00\x00\x05abc")}).AppendTo(nil)
	header := (&amqpcodec.Frame{Type: amqpcodec.FrameHeader, Channel: 2, Payload: []byte("\x00\x3c\x00\x01")}).AppendTo(nil)
	table := method(t, 1, &amqpcodec.QueueDeclareView{Queue: []byte("q"), Arguments: amqpcodec.TableView("\x01kq")})
	secret := (&amqpcodec.Frame{Type: amqpcodec.FrameMethod, Payload: []byte("\x00\x0a\x00\x15\x00\x00\x00\x64hunter2")}).AppendTo(nil)
	badEnd := append(append([]byte{}, ack[:len(ack)-1]...), 0)
	for _, c := range []struct {
		name string
		data [][]byte
		said string
		// followed is set when the frames after it are shown.
		followed bool
	}{
		{"unknown method", [][]byte{unknown}, "ch2 method not understood (amqpcodec: unknown method (200 of class 60) at offset 2) in 8 bytes: 003c00c872657374", true},
		{"fields cut short", [][]byte{short}, "ch2 basic.publish fields not understood (amqpcodec: input ends within a value at offset 6) in 10 bytes", true},
		{"secret", [][]byte{secret}, "ch0 connection.secure-ok fields not understood (amqpcodec: input ends within a value at offset 4) in 15 bytes\n", true},
		{"header", [][]byte{header}, "ch2 header not understood (amqpcodec: input ends within a value at offset 4) in 4 bytes", true},
		{"table", [][]byte{table}, "arguments=<amqpcodec: unknown field type ('q') at offset 2>", true},
		{"end of a frame", [][]byte{ack, badEnd}, "cannot follow the client's bytes from offset 21 on: the frame that began there ends with 0x00 instead of 0xce; they are relayed all the same", false},
		{"frame type", [][]byte{ack, []byte("GET / HTTP/1.1\r\n")}, "from offset 21 on: no frame: it begins with 0x47", false},
		{"size", [][]byte{[]byte("\x03\x00\x01\xff\xff\xff\xff")}, "from offset 0 on: no frame: its size is given as 4294967295 bytes", false},
		{"TLS", [][]byte{[]byte("\x16\x03\x01\x02\x00\x01")}, "from offset 0 on: no frame: it begins with 0x16, which looks like TLS", false},
		{"no AMQP", [][]byte{[]byte("ABCDEFGHIJ")}, "from offset 0 on: no AMQP: it begins with \\\"ABCDEFGH\\\"", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener := listen(t)
			running := start(t, listener.Addr().String())
			client, broker := connect(t, running, listener)
			for _, data := range c.data {
				pass(t, client, broker, data)
			}
			pass(t, client, broker, ack)
			pass(t, broker, client, ack)
			end(t, client, broker)
			running.stop()
			output := untimed(running.stdout.String())
			if !strings.Contains(output, c.said) {
				t.Errorf("%q is missing in:\n%s", c.said, output)
			}
			if strings.Contains(output, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("a secret is shown in:\n%s", output)
			}
			if !strings.Contains(output, "#1 <- ch1 basic.ack delivery-tag=9") {
				t.Errorf("the other direction is missing in:\n%s", output)
			}
			if got := strings.Count(output, "#1 -> ch1 basic.ack"); (got > 1) && !c.followed || got < 1 && c.followed {
				t.Errorf("%d times the frame behind it in:\n%s", got, output)
			}
		})
	}
}

func TestAnyBytesPassUnchanged(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	noise := func(size int) []byte {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		return data
	}
	frames := content(t, 5, &amqpcodec.BasicPublish{RoutingKey: "k"}, amqpcodec.Properties{}, string(noise(300_000)))
	listener := listen(t)
	running := start(t, listener.Addr().String())
	for _, data := range [][]byte{frames, noise(1), noise(100_000), append(append([]byte{}, frames...), noise(100_000)...)} {
		client, broker := connect(t, running, listener)
		pass(t, client, broker, data)
		pass(t, broker, client, data)
		for at := 0; at < min(len(data), 3000); at += 700 {
			pass(t, client, broker, data[at:min(len(data), at+700)])
		}
		end(t, client, broker)
	}
}

func TestADirectionEndsAlone(t *testing.T) {
	listener := listen(t)
	running := start(t, listener.Addr().String())
	client, broker := connect(t, running, listener)
	pass(t, client, broker, []byte(amqpcodec.ProtocolHeader))
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the broker reads %v", err)
	}
	pass(t, broker, client, method(t, 0, &amqpcodec.ConnectionCloseOk{}))
	_ = broker.Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client reads %v", err)
	}
	eventually(t, "the connection is closed", func() bool { return strings.Contains(running.stdout.String(), "closed;") })
}

func TestABrokerThatIsNotThereIsSaid(t *testing.T) {
	listener := listen(t)
	_ = listener.Close()
	running := start(t, listener.Addr().String())
	client, err := net.Dial("tcp", running.address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client reads %v", err)
	}
	eventually(t, "the failure is said", func() bool {
		return strings.Contains(running.stdout.String(), "#1 no connection to the broker: dial tcp ")
	})
}

func TestNoMoreThanSoManyConnectionsAreRelayedAtOnce(t *testing.T) {
	listener := listen(t)
	running := start(t, listener.Addr().String(), "--max-connections", "1")
	client, broker := connect(t, running, listener)
	waiting, err := net.Dial("tcp", running.address)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	_ = listener.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if second, err := listener.Accept(); err == nil {
		t.Errorf("%v is relayed too", second.RemoteAddr())
	}
	_ = listener.SetDeadline(time.Time{})
	end(t, client, broker)
	if _, err := listener.Accept(); err != nil {
		t.Error(err)
	}
}

func TestTheEndClosesAllConnections(t *testing.T) {
	listener := listen(t)
	running := start(t, listener.Addr().String())
	client, broker := connect(t, running, listener)
	pass(t, client, broker, []byte(amqpcodec.ProtocolHeader))
	if status := running.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	for name, end := range map[string]net.Conn{"client": client, "broker": broker} {
		if _, err := end.Read(make([]byte, 1)); err == nil {
			t.Errorf("the %s reads", name)
		}
	}
}

func TestTheCommandLineIsExplainedAndChecked(t *testing.T) {
	var stdout, stderr buffer
	if status := run(context.Background(), []string{"--help"}, &stdout, &stderr); status != 0 || stdout.String() != usage {
		t.Errorf("status %d, %q", status, stdout.String())
	}
	for _, c := range []struct{ arguments, said string }{
		{"--nonsense", "not defined: -nonsense"},
		{"surplus", `unexpected argument "surplus"`},
		{"--color=pink", "auto, always or never"},
		{"--broker=nowhere", "missing port in address"},
		{"--broker=http://nowhere", "amqp:// or amqps://"},
		{"--broker=amqp://", "no address of a broker"},
		{"--only=[", "no pattern"},
		{"--only=nosuch.method", `no method is called "nosuch.method"`},
		{"--body=100000", "at most 65536"},
		{"--body=-5", "at least -1"},
		{"--broker=localhost:1x", "--broker: lookup tcp/1x"},
		{"--max-connections=0", "at least 1"},
		{"--listen=256.0.0.1:1", "listen tcp"},
		{"--queue=[", "--queue: \"[\" is no pattern"},
		{"--read=/nowhere/at/all", "no such file"},
	} {
		var stdout, stderr buffer
		if status := run(context.Background(), []string{c.arguments}, &stdout, &stderr); status == 0 {
			t.Errorf("%s: status %d", c.arguments, status)
		}
		if !strings.Contains(stderr.String(), c.said) || !strings.HasPrefix(stderr.String(), "amqptap: ") {
			t.Errorf("%s: %q", c.arguments, stderr.String())
		}
	}
}
