package amqpcodec

import (
	"encoding/binary"
	"io"
	"iter"
)

const (
	// DefaultFrameMax is the largest frame in bytes that a [Reader] takes and a [Writer] makes until SetFrameMax says
	// what the peers settled on: what RabbitMQ and most clients propose.
	DefaultFrameMax = 131072

	defaultBufferSize = 32 * 1024
	// emptyReadsMax is how many reads in a row may bring nothing before the reader gives up.
	emptyReadsMax = 100
)

// A Reader reads frames from a stream through a buffer. The buffer grows, up to the largest frame allowed, when a frame
// needs it and its bytes have come; a size alone allocates nothing.
type Reader struct {
	source   io.Reader
	buf      []byte
	start    int
	end      int
	frameMax uint32
	offset   int64
	err      error
}

// NewReader returns a Reader with a buffer of the default size, 32 KiB.
func NewReader(source io.Reader) *Reader { return NewReaderSize(source, defaultBufferSize) }

// NewReaderSize returns a Reader with a buffer of the given size in bytes, at least [FrameMinSize].
func NewReaderSize(source io.Reader, size int) *Reader {
	return &Reader{source: source, buf: make([]byte, max(size, FrameMinSize)), frameMax: DefaultFrameMax}
}

// Reset makes the reader read from another stream, from its beginning. The buffer stays, what was in it is dropped.
func (r *Reader) Reset(source io.Reader) {
	*r = Reader{source: source, buf: r.buf, frameMax: DefaultFrameMax}
}

// SetFrameMax sets the largest frame in bytes that is taken, overhead included; 0 is no limit.
func (r *Reader) SetFrameMax(frameMax uint32) { r.frameMax = frameMax }

// Next returns the next frame. Its payload lies in the reader's buffer and is good until the next call.
//
// The error is [io.EOF] when the stream ends between frames, [io.ErrUnexpectedEOF] when it ends in one, a [DecodeError]
// when what comes is no frame, or the stream's own. It stays: a stream that was lost once cannot be found again.
func (r *Reader) Next() (Frame, error) {
	for r.err == nil {
		frame, n, err := ParseFrame(r.buf[r.start:r.end], r.frameMax)
		if n > 0 {
			r.start += n
			r.offset += int64(n)
			return frame, nil
		}
		if err != nil {
			r.err = err
			break
		}
		r.fill()
	}
	return Frame{}, r.err
}

// All iterates over the frames up to the end of the stream; see [Reader.Next]. An error comes with a zero frame and is
// the last thing that comes; the end of the stream is none.
func (r *Reader) All() iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for {
			frame, err := r.Next()
			if err == io.EOF || !yield(frame, err) || err != nil {
				return
			}
		}
	}
}

// ReadProtocolHeader reads the 8 bytes that a client sends first, and a server that does not know that version. The
// error is as for [Reader.Next]; what the bytes say is the caller's to look at: see [ProtocolHeader].
func (r *Reader) ReadProtocolHeader() (header [8]byte, err error) {
	for r.err == nil {
		if r.end-r.start >= len(header) {
			r.start += copy(header[:], r.buf[r.start:r.end])
			r.offset += int64(len(header))
			return header, nil
		}
		r.fill()
	}
	return header, r.err
}

// Buffered returns how many bytes were read from the stream and not returned yet.
func (r *Reader) Buffered() int { return r.end - r.start }

// Offset returns where in the stream the next frame begins, in bytes.
func (r *Reader) Offset() int64 { return r.offset }

// fill reads more bytes behind those that are there, or sets the error.
func (r *Reader) fill() {
	switch {
	case r.start == r.end:
		r.start, r.end = 0, 0
	case r.end == len(r.buf) && r.start > 0:
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	case r.end == len(r.buf):
		// The frame at the front is larger than the buffer, and allowed. Twice as large is room enough for now.
		larger := make([]byte, min(2*uint64(len(r.buf)), r.frameSize()))
		copy(larger, r.buf)
		r.buf = larger
	}
	for range emptyReadsMax {
		n, err := r.source.Read(r.buf[r.end:])
		if n < 0 || n > len(r.buf)-r.end {
			panic("amqpcodec: a reader that says it read more than it could")
		}
		r.end += n
		if err == io.EOF && r.end > r.start && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if n > 0 {
			// The error, if there is one, comes again.
			return
		}
		if err != nil {
			r.err = err
			return
		}
	}
	r.err = io.ErrNoProgress
}

// frameSize is the size of the frame at the front, whose header is there.
func (r *Reader) frameSize() uint64 {
	return uint64(binary.BigEndian.Uint32(r.buf[r.start+3:])) + FrameOverhead
}

// ReadFrame reads one frame from a stream and not a byte more. The payload goes into the frame's present payload slice
// as far as that has room. frameMax and the errors are as for [ParseFrame] and [Reader.Next]. A [Reader] needs far
// fewer reads.
func ReadFrame(source io.Reader, frame *Frame, frameMax uint32) error {
	buf := frame.Payload[:0]
	if cap(buf) < FrameHeaderSize {
		buf = make([]byte, 0, 64)
	}
	header := buf[:FrameHeaderSize]
	if _, err := io.ReadFull(source, header); err != nil {
		return err
	}
	size := uint64(binary.BigEndian.Uint32(header[3:])) + FrameOverhead
	if !FrameType(header[0]).known() || (frameMax != 0 && size > uint64(frameMax)) {
		return refuseFrame(header, size)
	}
	frame.Type, frame.Channel = FrameType(header[0]), binary.BigEndian.Uint16(header[1:])
	payload, err := readPayload(source, buf, size-FrameHeaderSize)
	if err != nil {
		return err
	}
	end := len(payload) - 1
	if payload[end] != FrameEnd {
		return &DecodeError{Offset: int(size) - 1, Cause: ErrBadFrameEnd, Found: uint64(payload[end])}
	}
	frame.Payload = payload[:end]
	return nil
}

// readPayload reads size bytes, into buf as far as that has room. What is missing grows as the bytes come.
func readPayload(source io.Reader, buf []byte, size uint64) ([]byte, error) {
	const step = 64 * 1024
	for uint64(len(buf)) < size {
		have := len(buf)
		need := min(size, max(uint64(cap(buf)), 2*uint64(have), step))
		if uint64(cap(buf)) < need {
			buf = append(make([]byte, 0, need), buf...)
		}
		buf = buf[:need]
		if _, err := io.ReadFull(source, buf[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}
