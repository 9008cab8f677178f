package tap

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"courser/amqpcodec"
)

// capturing is a connection of which the packets can be taken one by one.
type capturing struct {
	t      *testing.T
	output bytes.Buffer
	rec    *recorder
	c      *recorded
}

const brokerPort = 5672

func captured(t *testing.T, clientHost string) *capturing {
	c := &capturing{t: t}
	c.rec = newRecorder(&c.output, func(problem string) { t.Error(problem) })
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(clientHost), Port: port} }
	c.c = c.rec.connection(at(40000), at(brokerPort))
	return c
}

// end gives the capture's header and its packets.
func (c *capturing) end() (header []byte, packets [][]byte) {
	c.c.end(client)
	c.c.end(broker)
	c.rec.close()
	data := c.output.Bytes()
	header, data = data[:pcapHeaderSize], data[pcapHeaderSize:]
	for len(data) > 0 {
		size := packetHeader + int(binary.LittleEndian.Uint32(data[8:]))
		packets, data = append(packets, data[:size]), data[size:]
	}
	return header, packets
}

func (c *capturing) say(from side, data []byte) { c.c.data(from, data, time.Unix(5, 678)) }

// shownOf gives what a replay shows of packets, without the times.
func shownOf(t *testing.T, header []byte, packets ...[]byte) string {
	t.Helper()
	var output bytes.Buffer
	options := Options{Output: &output, BodyMax: 8, Channel: -1, Warn: func(problem string) { t.Error(problem) }}
	if _, err := Replay(options, bytes.NewReader(bytes.Join(append([][]byte{header}, packets...), nil)), brokerPort); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(output.String()) {
		lines = append(lines, line[len("15:04:05.000000 "):])
	}
	return strings.Join(lines, "")
}

func ack(tag uint64) []byte {
	frame, err := (&amqpcodec.BasicAck{DeliveryTag: tag}).AppendFrame(nil, 1)
	if err != nil {
		panic(err)
	}
	return frame
}

func TestARecordingIsReadBackAsItPassed(t *testing.T) {
	for _, host := range []string{"192.0.2.1", "2001:db8::1"} {
		c := captured(t, host)
		c.say(client, []byte(amqpcodec.ProtocolHeader))
		c.say(broker, ack(1))
		c.say(client, amqpcodec.AppendBody(nil, 1, bytes.Repeat([]byte("b"), 100_000), 0))
		c.say(broker, ack(2)[:5])
		c.say(broker, ack(2)[5:])
		header, packets := c.end()
		ends := net.JoinHostPort(host, "40000") + " to " + net.JoinHostPort(host, "5672")
		want := "#1 opened, " + ends + "\n" +
			"#1 -> protocol header AMQP 0-9-1\n#1 <- ch1 basic.ack delivery-tag=1\n" +
			"#1 -> ch1 body 100000 B \"bbbbbbbb\"+99992 B\n#1 <- ch1 basic.ack delivery-tag=2\n" +
			"#1 closed; client: 1 frames, 100016 bytes; broker: 2 frames, 42 bytes\n"
		if got := shownOf(t, header, packets...); got != want {
			t.Errorf("%s\ninstead of\n%s", got, want)
		}
	}
}

func TestPacketsMayComeTwiceOrOutOfTurnOrNotAtAll(t *testing.T) {
	c := captured(t, "192.0.2.1")
	c.say(client, []byte(amqpcodec.ProtocolHeader))
	for tag := range uint64(4) {
		c.say(client, ack(tag+1))
	}
	header, packets := c.end()
	opening, name, acks, ending := packets[:3], packets[3], packets[4:8], packets[8:]
	all := func(middle ...[]byte) string {
		return shownOf(t, header, append(append(append([][]byte{}, opening...), middle...), ending...)...)
	}
	inOrder := all(name, acks[0], acks[1], acks[2], acks[3])
	if strings.Count(inOrder, "basic.ack") != 4 {
		t.Fatal(inOrder)
	}
	for what, got := range map[string]string{
		"twice":       all(name, acks[0], acks[0], acks[1], acks[2], acks[1], acks[3]),
		"out of turn": all(acks[2], name, acks[3], acks[1], acks[0]),
	} {
		if got != inOrder {
			t.Errorf("%s:\n%s", what, got)
		}
	}
	gap := all(name, acks[0], acks[2], acks[3])
	for _, text := range []string{"#1 -> 21 bytes are not in the capture\n", "delivery-tag=1\n", "delivery-tag=3\n", "delivery-tag=4\n"} {
		if !strings.Contains(gap, text) {
			t.Errorf("%q is missing in\n%s", text, gap)
		}
	}
	// A capture that began later, in the middle of a frame.
	late := shownOf(t, header, append([][]byte{acks[1], acks[2]}, ending...)...)
	if !strings.Contains(late, "5672, before the capture began\n#1 -> ch1 basic.ack delivery-tag=2\n#1 -> ch1 basic.ack delivery-tag=3\n#1 closed") {
		t.Errorf("%s", late)
	}
}

func TestAPacketThatWasCutLeavesAGap(t *testing.T) {
	c := captured(t, "192.0.2.1")
	c.say(client, ack(1))
	c.say(client, ack(2))
	header, packets := c.end()
	cut := bytes.Clone(packets[3][:len(packets[3])-6])
	binary.LittleEndian.PutUint32(cut[8:], uint32(len(cut)-packetHeader))
	got := shownOf(t, header, packets[0], packets[1], packets[2], cut, packets[4], packets[5], packets[6])
	if !strings.Contains(got, "6 bytes are not in the capture\n#1 -> ch1 basic.ack delivery-tag=2\n") {
		t.Errorf("%s", got)
	}
}

func TestCapturesOfOtherLinksAndOrdersAreRead(t *testing.T) {
	c := captured(t, "192.0.2.1")
	c.say(client, ack(1))
	header, packets := c.end()
	for link, before := range map[uint32]string{
		linkEthernet: "\x01\x02\x03\x04\x05\x06\x01\x02\x03\x04\x05\x06\x08\x00",
		linkNull:     "\x02\x00\x00\x00",
		linkCooked:   "\x00\x00\x03\x04\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00",
		linkCooked2:  strings.Repeat("\x00", 20),
	} {
		// In the other order of bytes, and with microseconds.
		data := binary.BigEndian.AppendUint32(nil, pcapMagicMicros)
		data = append(data, make([]byte, 16)...)
		data = binary.BigEndian.AppendUint32(data, link)
		for _, packet := range packets {
			content := before + string(packet[packetHeader:]) + "padding"
			data = append(data, make([]byte, 8)...)
			data = binary.BigEndian.AppendUint32(data, uint32(len(content)))
			data = binary.BigEndian.AppendUint32(data, uint32(len(content)))
			data = append(data, content...)
		}
		if got := shownOf(t, data); got != shownOf(t, header, packets...) {
			t.Errorf("link %d:\n%s", link, got)
		}
	}
}

func TestWhatIsNoCaptureIsRefused(t *testing.T) {
	for data, said := range map[string]string{
		"":                      "less than 24 bytes",
		strings.Repeat("x", 30): "it begins with 78787878",
		"\x0a\x0d\x0d\x0a" + strings.Repeat("\x00", 30):                                                   "editcap -F pcap",
		"\xd4\xc3\xb2\xa1" + strings.Repeat("\x00", 16) + "\x7f\x00\x00\x00":                              "a kind of link that is not known here (127)",
		"\xd4\xc3\xb2\xa1" + strings.Repeat("\x00", 16) + "\x65\x00\x00\x00" + strings.Repeat("\xff", 16): "a packet of 4294967295 bytes",
	} {
		_, err := Replay(Options{Output: &bytes.Buffer{}, Channel: -1}, strings.NewReader(data), brokerPort)
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// A full disk: it takes a little, and then no more.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func TestARecordingThatFailsIsSaidOnce(t *testing.T) {
	var problems []string
	r := newRecorder(&full{100}, func(problem string) { problems = append(problems, problem) })
	c := r.connection(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2})
	for range 100 {
		c.data(client, make([]byte, 100_000), time.Now())
		time.Sleep(time.Millisecond)
	}
	r.close()
	if len(problems) == 0 || !strings.HasPrefix(problems[0], "nothing more is recorded (") || len(problems) > 2 {
		t.Errorf("%q", problems)
	}
}

func FuzzReplay(f *testing.F) {
	c := captured(&testing.T{}, "192.0.2.1")
	c.say(client, []byte(amqpcodec.ProtocolHeader))
	c.say(client, ack(1))
	c.say(broker, ack(2))
	header, packets := c.end()
	f.Add(bytes.Join(append([][]byte{header}, packets...), nil))
	f.Add(bytes.Join([][]byte{header, packets[4], packets[3], packets[5]}, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		var output bytes.Buffer
		stuck := time.AfterFunc(10*time.Second, func() { panic("it does not end") })
		defer stuck.Stop()
		_, _ = Replay(Options{Output: &output, BodyMax: 8, Channel: -1, Warn: func(string) {}}, bytes.NewReader(data), brokerPort)
	})
}
