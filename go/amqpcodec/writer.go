package amqpcodec

import (
	"io"
	"net"
)

const (
	// vectoredMin is the smallest body in bytes that goes out of the caller's own memory: below, the copy costs less.
	vectoredMin = 4 * 1024
	// vectorMax is how many pieces one vectored write takes.
	vectorMax = 64
)

// A Writer writes frames to a stream through a buffer; [Writer.Flush] has to be called when a piece of the conversation
// is complete. Large bodies are not copied: on TCP and Unix connections they go out of the caller's memory, together
// with the frames before them, in one vectored write.
//
// An error of the stream stays and is returned by every later call. One of a value that cannot be written does not:
// nothing of it was written.
type Writer struct {
	target   io.Writer
	buf      []byte
	frameMax uint32
	err      error
	// vectors is set when the stream takes many pieces at once. pieces is their memory, rest those left to write.
	vectors bool
	pieces  [vectorMax][]byte
	rest    net.Buffers
}

// NewWriter returns a Writer with a buffer of the default size, 32 KiB.
func NewWriter(target io.Writer) *Writer { return NewWriterSize(target, defaultBufferSize) }

// NewWriterSize returns a Writer with a buffer of the given size in bytes, at least [FrameMinSize].
func NewWriterSize(target io.Writer, size int) *Writer {
	w := &Writer{buf: make([]byte, 0, max(size, FrameMinSize))}
	w.Reset(target)
	return w
}

// Reset makes the writer write to another stream. The buffer stays, what was in it is dropped.
func (w *Writer) Reset(target io.Writer) {
	w.target, w.buf, w.err, w.frameMax = target, w.buf[:0], nil, DefaultFrameMax
	switch target.(type) {
	case *net.TCPConn, *net.UnixConn:
		w.vectors = true
	default:
		w.vectors = false
	}
}

// SetFrameMax sets the largest frame in bytes that bodies are split into, overhead included; 0 is no limit.
func (w *Writer) SetFrameMax(frameMax uint32) { w.frameMax = frameMax }

// Buffered returns how many bytes wait for [Writer.Flush].
func (w *Writer) Buffered() int { return len(w.buf) }

// AvailableBuffer returns the empty rest of the buffer, to be appended to and handed to [Writer.Write]:
//
//	frame, err := publish.AppendFrame(w.AvailableBuffer(), channel)
//	w.Write(frame)
//
// It is good until the next call of any method.
func (w *Writer) AvailableBuffer() []byte { return w.buf[len(w.buf):] }

// Write writes bytes that are frames already, or a [ProtocolHeader].
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if len(p) > cap(w.buf)-len(w.buf) {
		if w.Flush() != nil {
			return 0, w.err
		}
		if len(p) > cap(w.buf) {
			return w.send(p)
		}
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

// WriteFrame writes a frame, as it is and however large.
func (w *Writer) WriteFrame(frame Frame) error {
	size := FrameOverhead + len(frame.Payload)
	if size > cap(w.buf)-len(w.buf) {
		return w.writeLarge(frame)
	}
	if w.err == nil {
		w.buf = AppendFrameHeader(w.buf, frame.Type, frame.Channel, uint32(len(frame.Payload)))
		w.buf = append(w.buf, frame.Payload...)
		w.buf = append(w.buf, FrameEnd)
	}
	return w.err
}

// WriteMethod writes a method.
func (w *Writer) WriteMethod(channel uint16, method Method) error {
	frame, err := method.AppendFrame(w.AvailableBuffer(), channel)
	if err != nil {
		return err
	}
	_, err = w.Write(frame)
	return err
}

// WriteContent writes a method that has a content, and the content: header and body frames.
func (w *Writer) WriteContent(channel uint16, method Method, properties *Properties, body []byte) error {
	header := ContentHeader{ClassID: method.ID().ClassID(), BodySize: uint64(len(body)), Properties: *properties}
	frames, err := method.AppendFrame(w.AvailableBuffer(), channel)
	if err != nil {
		return err
	}
	if frames, err = header.AppendFrame(frames, channel); err != nil {
		return err
	}
	if _, err = w.Write(frames); err != nil {
		return err
	}
	return w.WriteBody(channel, body)
}

// WriteBody writes a message's body, split into frames as [Writer.SetFrameMax] says. It is not kept: when the call
// returns, the body has been copied or sent, and all before it.
func (w *Writer) WriteBody(channel uint16, body []byte) error {
	room := bodyRoom(w.frameMax)
	if w.vectors && len(body) >= vectoredMin {
		return w.writeVectored(channel, body, room)
	}
	for len(body) > 0 && w.err == nil {
		piece := body[:min(len(body), room)]
		_ = w.WriteFrame(Frame{FrameBody, channel, piece})
		body = body[len(piece):]
	}
	return w.err
}

// Flush sends what waits in the buffer.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, _ = w.send(w.buf)
		w.buf = w.buf[:0]
	}
	return w.err
}

// send hands bytes to the stream, and keeps its error.
func (w *Writer) send(p []byte) (int, error) {
	n, err := w.target.Write(p)
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	w.err = err
	return n, err
}

// writeLarge writes a frame for which the buffer has no room, the payload without a copy when it is larger than all of
// the buffer.
func (w *Writer) writeLarge(frame Frame) error {
	if !fitsLong(len(frame.Payload)) {
		return tooLong("payload")
	}
	if w.Flush() != nil {
		return w.err
	}
	w.buf = AppendFrameHeader(w.buf, frame.Type, frame.Channel, uint32(len(frame.Payload)))
	if FrameOverhead+len(frame.Payload) > cap(w.buf) {
		if w.Flush() == nil {
			_, _ = w.send(frame.Payload)
		}
	} else {
		w.buf = append(w.buf, frame.Payload...)
	}
	w.buf = append(w.buf, FrameEnd)
	return w.err
}

// writeVectored sends the buffer and a body behind it, in frames of room bytes of body: the headers and ends of the
// frames are put into the buffer, the pieces of the body lie where they are.
func (w *Writer) writeVectored(channel uint16, body []byte, room int) error {
	for len(body) > 0 && w.err == nil {
		if cap(w.buf)-len(w.buf) < FrameOverhead {
			_ = w.Flush()
			continue
		}
		pieces, mark := w.pieces[:0], 0
		for len(body) > 0 && len(pieces)+3 <= vectorMax && cap(w.buf)-len(w.buf) >= FrameOverhead {
			piece := body[:min(len(body), room)]
			w.buf = AppendFrameHeader(w.buf, FrameBody, channel, uint32(len(piece)))
			pieces = append(pieces, w.buf[mark:], piece)
			mark = len(w.buf)
			w.buf = append(w.buf, FrameEnd)
			body = body[len(piece):]
		}
		w.rest = append(pieces, w.buf[mark:])
		_, w.err = w.rest.WriteTo(w.target)
		// The body is the caller's again.
		clear(w.pieces[:])
		w.rest = nil
		w.buf = w.buf[:0]
	}
	return w.err
}
