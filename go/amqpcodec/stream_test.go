package amqpcodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/iotest"

	amqp "courser/amqpcodec"
)

// body is bytes in which a shift by one shows.
func body(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i) ^ byte(i>>8)
	}
	return data
}

// conversation is frames of many sizes, encoded, and what they hold.
func conversation() (stream []byte, payloads [][]byte) {
	for _, size := range []int{0, 1, 7, 8, 100, 4096, 0, 33000, 131064, 5} {
		frame := amqp.Frame{Type: amqp.FrameBody, Channel: uint16(size), Payload: body(size)}
		stream = frame.AppendTo(stream)
		payloads = append(payloads, frame.Payload)
	}
	return stream, payloads
}

func TestAReaderFindsTheSameFramesHoweverTheStreamIsCut(t *testing.T) {
	stream, payloads := conversation()
	sources := map[string]func() io.Reader{
		"whole":         func() io.Reader { return bytes.NewReader(stream) },
		"byte by byte":  func() io.Reader { return iotest.OneByteReader(bytes.NewReader(stream)) },
		"halves":        func() io.Reader { return iotest.HalfReader(bytes.NewReader(stream)) },
		"end with data": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(stream)) },
		"at random":     func() io.Reader { return &randomReader{bytes.NewReader(stream), rand.New(rand.NewPCG(1, 2))} },
	}
	for name, source := range sources {
		for _, size := range []int{0, 5000, 1 << 20} {
			reader := amqp.NewReaderSize(source(), size)
			at, offset := 0, int64(0)
			for frame, err := range reader.All() {
				if err != nil {
					t.Fatalf("%s, %d: frame %d: %v", name, size, at, err)
				}
				if int(frame.Channel) != len(payloads[at])&0xFFFF || !bytes.Equal(frame.Payload, payloads[at]) {
					t.Errorf("%s, %d: frame %d differs", name, size, at)
				}
				at++
				if offset += int64(frame.Size()); reader.Offset() != offset {
					t.Errorf("%s, %d: at %d instead of %d", name, size, reader.Offset(), offset)
				}
			}
			if _, err := reader.Next(); at != len(payloads) || err != io.EOF || reader.Buffered() != 0 {
				t.Errorf("%s, %d: %d frames, then %v", name, size, at, err)
			}
		}
	}
}

type randomReader struct {
	source io.Reader
	random *rand.Rand
}

func (r *randomReader) Read(p []byte) (int, error) {
	return r.source.Read(p[:r.random.IntN(min(len(p), 3000)+1)])
}

func TestAReaderSaysWhyItEnded(t *testing.T) {
	frame := amqp.Frame{Type: amqp.FrameBody, Channel: 1, Payload: body(10)}
	whole := frame.AppendTo(nil)
	broken := errors.New("the wire is cut")
	cases := []struct {
		name   string
		source io.Reader
		want   error
	}{
		{"between frames", bytes.NewReader(whole), io.EOF},
		{"within a header", bytes.NewReader(append(whole[:len(whole):len(whole)], 1, 0)), io.ErrUnexpectedEOF},
		{"within a payload", bytes.NewReader(append(whole[:len(whole):len(whole)], whole[:12]...)), io.ErrUnexpectedEOF},
		{"no frame", bytes.NewReader(append(whole[:len(whole):len(whole)], 'G')), amqp.ErrUnknownFrameType},
		{"too large", bytes.NewReader(append(whole[:len(whole):len(whole)], 3, 0, 1, 0, 2, 0, 1)), amqp.ErrFrameTooLarge},
		{"error", io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(broken)), broken},
		{"nothing ever", io.MultiReader(bytes.NewReader(whole), silent{}), io.ErrNoProgress},
	}
	for _, c := range cases {
		reader := amqp.NewReader(c.source)
		if _, err := reader.Next(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for range 2 {
			if _, err := reader.Next(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v instead of %v", c.name, err, c.want)
			}
		}
		single := amqp.Frame{}
		source := bytes.NewReader(whole)
		if err := amqp.ReadFrame(source, &single, 0); err != nil || !bytes.Equal(single.Payload, frame.Payload) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestALargeSizeAloneAllocatesNothing(t *testing.T) {
	claim := []byte{3, 0, 1, 0xFF, 0xFF, 0xFF, 0xF0, 1, 2, 3}
	reader := amqp.NewReader(bytes.NewReader(claim))
	reader.SetFrameMax(0)
	used := allocated(func() {
		if _, err := reader.Next(); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
		var frame amqp.Frame
		if err := amqp.ReadFrame(bytes.NewReader(claim), &frame, 0); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
	})
	if used > 1<<20 {
		t.Errorf("%d bytes", used)
	}
}

// allocated is how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestReadFrameTakesNotAByteMore(t *testing.T) {
	stream, payloads := conversation()
	source := bytes.NewReader(stream)
	var frame amqp.Frame
	for i, payload := range payloads {
		if err := amqp.ReadFrame(source, &frame, amqp.DefaultFrameMax); err != nil || !bytes.Equal(frame.Payload, payload) {
			t.Fatalf("frame %d: %d bytes, %v", i, len(frame.Payload), err)
		}
	}
	if err := amqp.ReadFrame(source, &frame, 0); err != io.EOF {
		t.Error(err)
	}
	for _, bad := range []struct {
		data string
		want error
	}{
		{"\x03\x00\x01\x00\x00\x00\x01x\xcd", amqp.ErrBadFrameEnd},
		{"\x04\x00\x01\x00\x00\x00\x01x\xce", amqp.ErrUnknownFrameType},
		{"\x03\x00\x01\x00\x02\x00\x00x\xce", amqp.ErrFrameTooLarge},
		{"\x03\x00\x01\x00\x00\x00\x02x", io.ErrUnexpectedEOF},
		{"\x03\x00", io.ErrUnexpectedEOF},
	} {
		err := amqp.ReadFrame(bytes.NewReader([]byte(bad.data)), &frame, amqp.DefaultFrameMax)
		if !errors.Is(err, bad.want) {
			t.Errorf("%q: %v instead of %v", bad.data, err, bad.want)
		}
	}
}

func TestAProtocolHeaderComesBeforeTheFrames(t *testing.T) {
	var wire bytes.Buffer
	writer := amqp.NewWriter(&wire)
	if _, err := io.WriteString(writer, amqp.ProtocolHeader); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writer.WriteMethod(0, &amqp.ConnectionCloseOk{}), writer.Flush()); err != nil {
		t.Fatal(err)
	}
	reader := amqp.NewReader(iotest.OneByteReader(&wire))
	header, err := reader.ReadProtocolHeader()
	if err != nil || string(header[:]) != amqp.ProtocolHeader {
		t.Fatalf("%q, %v", header, err)
	}
	if frame, err := reader.Next(); err != nil || frame.Type != amqp.FrameMethod || reader.Offset() != 20 {
		t.Errorf("%v, %v, at %d", frame, err, reader.Offset())
	}
	if _, err := reader.ReadProtocolHeader(); err != io.EOF {
		t.Error(err)
	}
}

// pipes gives both ends of connections of several kinds.
func pipes(t *testing.T) map[string][2]net.Conn {
	t.Helper()
	near, far := net.Pipe()
	all := map[string][2]net.Conn{"pipe": {near, far}}
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.TempDir() + "/socket"} {
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		dialled, err := net.Dial(network, listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		all[network] = [2]net.Conn{dialled, accepted}
		_ = listener.Close()
	}
	return all
}

func TestWhatAWriterWritesIsTheSameOnAnyConnection(t *testing.T) {
	for name, ends := range pipes(t) {
		t.Run(name, func(t *testing.T) {
			failure := make(chan error, 1)
			go func() {
				failure <- writeMany(ends[0])
				_ = ends[0].Close()
			}()
			got, err := io.ReadAll(ends[1])
			if err := errors.Join(err, <-failure, ends[1].Close()); err != nil {
				t.Fatal(err)
			}
			if want := many(); !bytes.Equal(got, want) {
				t.Errorf("%d bytes instead of %d, or others", len(got), len(want))
			}
		})
	}
}

var (
	bodySizes = []int{0, 1, 4000, 4096, 4097, 40000, 131064, 131065, 300000, 3, 1 << 20}
	frameMaxs = []uint32{131072, 4096, 0, 20000}
	publish   = amqp.BasicPublish{Exchange: "e", RoutingKey: "k"}
)

// writeMany writes messages of many sizes with many limits through one writer.
func writeMany(target io.Writer) error {
	writer := amqp.NewWriterSize(target, 0)
	var failures []error
	for _, frameMax := range frameMaxs {
		writer.SetFrameMax(frameMax)
		for channel, size := range bodySizes {
			properties := amqp.Properties{MessageID: fmt.Sprint(size)}
			failures = append(failures, writer.WriteContent(uint16(channel), &publish, &properties, body(size)))
		}
		failures = append(failures, writer.WriteFrame(amqp.Frame{Type: amqp.FrameHeartbeat}))
		failures = append(failures, writer.WriteFrame(amqp.Frame{Type: amqp.FrameBody, Channel: 3, Payload: body(4090)}))
		failures = append(failures, writer.WriteFrame(amqp.Frame{Type: amqp.FrameBody, Channel: 3, Payload: body(4000)}))
	}
	return errors.Join(append(failures, writer.Flush())...)
}

// many is what writeMany writes, put together by hand.
func many() (stream []byte) {
	for _, frameMax := range frameMaxs {
		for channel, size := range bodySizes {
			properties := amqp.Properties{MessageID: fmt.Sprint(size)}
			header := amqp.ContentHeader{ClassID: amqp.ClassBasic, BodySize: uint64(size), Properties: properties}
			stream, _ = publish.AppendFrame(stream, uint16(channel))
			stream, _ = header.AppendFrame(stream, uint16(channel))
			for rest := body(size); len(rest) > 0; {
				piece := rest
				if frameMax > 0 {
					piece = rest[:min(len(rest), int(frameMax)-8)]
				}
				frame := amqp.Frame{Type: amqp.FrameBody, Channel: uint16(channel), Payload: piece}
				stream, rest = frame.AppendTo(stream), rest[len(piece):]
			}
		}
		stream = amqp.AppendHeartbeat(stream)
		for _, size := range []int{4090, 4000} {
			frame := amqp.Frame{Type: amqp.FrameBody, Channel: 3, Payload: body(size)}
			stream = frame.AppendTo(stream)
		}
	}
	return stream
}

func TestAppendBodySplitsAsAWriterDoes(t *testing.T) {
	for _, frameMax := range []uint32{0, 1, 8, 9, 4096, 131072} {
		var wire bytes.Buffer
		writer := amqp.NewWriter(&wire)
		writer.SetFrameMax(frameMax)
		if err := errors.Join(writer.WriteBody(5, body(10000)), writer.Flush()); err != nil {
			t.Fatal(err)
		}
		if got := amqp.AppendBody(nil, 5, body(10000), frameMax); !bytes.Equal(got, wire.Bytes()) {
			t.Errorf("frame_max %d: %d bytes instead of %d", frameMax, len(got), wire.Len())
		}
	}
}

func TestAWritersErrorStaysAndAValuesDoesNot(t *testing.T) {
	var wire bytes.Buffer
	writer := amqp.NewWriter(&wire)
	long := amqp.BasicPublish{RoutingKey: string(body(256))}
	if err := writer.WriteMethod(1, &long); !errors.Is(err, amqp.ErrTooLong) {
		t.Error(err)
	}
	bad := amqp.Properties{Headers: map[string]any{"k": make(chan int)}}
	if err := writer.WriteContent(1, &publish, &bad, nil); !errors.Is(err, amqp.ErrUnsupportedType) {
		t.Error(err)
	}
	if err := errors.Join(writer.WriteMethod(1, &amqp.TxSelect{}), writer.Flush()); err != nil || wire.Len() != 12 {
		t.Errorf("%v, %d bytes", err, wire.Len())
	}

	failing := amqp.NewWriter(brokenPipe{})
	if err := errors.Join(failing.WriteMethod(1, &amqp.TxSelect{})); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		failing.Flush(), failing.Flush(), failing.WriteMethod(1, &amqp.TxSelect{}), failing.WriteBody(1, body(9)),
		failing.WriteBody(1, body(1<<20)), failing.WriteFrame(amqp.Frame{Type: amqp.FrameBody}),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	}
	failing.Reset(&wire)
	if err := errors.Join(failing.WriteMethod(1, &amqp.TxSelect{}), failing.Flush()); err != nil {
		t.Error(err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
