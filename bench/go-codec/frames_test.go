package gocodec

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	amqp "courser/amqpcodec"
)

// frameOf is a method frame on channel 1 with zero bytes.
func frameOf(payload int) amqp.Frame {
	return amqp.Frame{Type: amqp.FrameMethod, Channel: 1, Payload: make([]byte, payload)}
}

func BenchmarkFrame(b *testing.B) {
	var rows []row
	for _, size := range []int{100, 1024} {
		rows = append(rows, marshal(size), unmarshal(size))
	}
	rows = append(rows, read(4), read(1024), write(4), readMany())
	for _, size := range []int{100, 1024, 4096, 16384} {
		rows = append(rows, roundTrip(size))
	}
	run(b, rows)
}

func marshal(size int) row {
	value := frameOf(size)
	return row{
		name: fmt.Sprint("marshal/", size),
		lent: func(b *testing.B) {
			lent := make([]byte, 0, value.Size())
			for b.Loop() {
				raw = value.AppendTo(lent)
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				var err error
				raw, err = value.MarshalBinary()
				check(b, err)
			}
		},
	}
}

func unmarshal(size int) row {
	value := frameOf(size)
	input := value.AppendTo(nil)
	return row{
		name: fmt.Sprint("unmarshal/", size),
		lent: func(b *testing.B) {
			for b.Loop() {
				var err error
				frame, _, err = amqp.ParseFrame(input, 0)
				check(b, err)
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				frame.Payload = nil
				check(b, frame.UnmarshalBinary(input))
			}
		},
	}
}

// read takes one frame from a stream.
func read(size int) row {
	value := frameOf(size)
	input, source := value.AppendTo(nil), bytes.NewReader(nil)
	return row{
		name: fmt.Sprint("read/", size),
		lent: func(b *testing.B) {
			for b.Loop() {
				source.Reset(input)
				check(b, amqp.ReadFrame(source, &frame, 0))
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				source.Reset(input)
				frame.Payload = nil
				check(b, amqp.ReadFrame(source, &frame, 0))
			}
		},
	}
}

// write hands one frame to a stream.
func write(size int) row {
	value := frameOf(size)
	var target bytes.Buffer
	writer := amqp.NewWriter(&target)
	return row{
		name: fmt.Sprint("write/", size),
		lent: func(b *testing.B) {
			for b.Loop() {
				target.Reset()
				check(b, writer.WriteFrame(value))
				check(b, writer.Flush())
			}
		},
	}
}

// readMany takes 256 frames of 64 bytes through a buffered reader.
func readMany() row {
	value := frameOf(64)
	input, source := bytes.Repeat(value.AppendTo(nil), 256), bytes.NewReader(nil)
	const buffer = 16 * 1024
	all := func(b *testing.B, reader *amqp.Reader, take func(amqp.Frame)) {
		for {
			one, err := reader.Next()
			if err == io.EOF {
				return
			}
			check(b, err)
			take(one)
		}
	}
	return row{
		name: "read-many/256x64",
		lent: func(b *testing.B) {
			reader := amqp.NewReaderSize(source, buffer)
			for b.Loop() {
				source.Reset(input)
				reader.Reset(source)
				all(b, reader, func(one amqp.Frame) { frame = one })
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				source.Reset(input)
				all(b, amqp.NewReaderSize(source, buffer), func(one amqp.Frame) {
					one.Payload = bytes.Clone(one.Payload)
					frame = one
				})
			}
		},
	}
}

func roundTrip(size int) row {
	value := frameOf(size)
	return row{
		name: fmt.Sprint("round-trip/", size),
		lent: func(b *testing.B) {
			lent := make([]byte, 0, value.Size())
			for b.Loop() {
				raw = value.AppendTo(lent)
				var err error
				frame, _, err = amqp.ParseFrame(raw, 0)
				check(b, err)
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				var err error
				raw, err = value.MarshalBinary()
				check(b, err)
				frame.Payload = nil
				check(b, frame.UnmarshalBinary(raw))
			}
		},
	}
}
