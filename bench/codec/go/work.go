// Package codec does in Go what the Rust rows do, on the same inputs, with fresh buffers as Go codecs of this protocol do.
//
// amqp091-go keeps its reader and writer to itself. Of it there are the public types: amqp.Table and amqp.Publishing.
// Everything else is the standard library, written as one would without a thought of benchmarks: encoding/binary's
// functions on slices (not its reflection), bytes.Buffer, io.ReadFull.
package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errShort = errors.New("truncated")

const frameEnd = 0xCE

// Frame is a frame with a payload of its own.
type Frame struct {
	Type    byte
	Channel uint16
	Payload []byte
}

// Marshal gives the frame's bytes.
func (f *Frame) Marshal() []byte {
	out := make([]byte, 8+len(f.Payload))
	out[0] = f.Type
	binary.BigEndian.PutUint16(out[1:], f.Channel)
	binary.BigEndian.PutUint32(out[3:], uint32(len(f.Payload)))
	copy(out[7:], f.Payload)
	out[len(out)-1] = frameEnd
	return out
}

// Unmarshal takes a frame out of bytes, with a copy of its payload.
func (f *Frame) Unmarshal(raw []byte) error {
	if len(raw) < 8 {
		return errShort
	}
	size := int(binary.BigEndian.Uint32(raw[3:]))
	if len(raw) < 8+size || raw[7+size] != frameEnd {
		return errShort
	}
	f.Type = raw[0]
	f.Channel = binary.BigEndian.Uint16(raw[1:])
	f.Payload = make([]byte, size)
	copy(f.Payload, raw[7:])
	return nil
}

// ReadFrame takes a frame from a reader.
func ReadFrame(r io.Reader) (*Frame, error) {
	header := make([]byte, 7)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(header[3:]))
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, err
	}
	end := make([]byte, 1)
	if _, err := io.ReadFull(r, end); err != nil {
		return nil, err
	}
	if end[0] != frameEnd {
		return nil, errShort
	}
	return &Frame{Type: header[0], Channel: binary.BigEndian.Uint16(header[1:]), Payload: payload}, nil
}

// WriteFrame writes a frame to a writer, in place, without a buffer in between.
func WriteFrame(w *bytes.Buffer, f *Frame) {
	room := w.AvailableBuffer()
	room = append(room, f.Type)
	room = binary.BigEndian.AppendUint16(room, f.Channel)
	room = binary.BigEndian.AppendUint32(room, uint32(len(f.Payload)))
	room = append(append(room, f.Payload...), frameEnd)
	w.Write(room)
}

func writeShort(w *bytes.Buffer, text string) {
	w.WriteByte(byte(len(text)))
	w.WriteString(text)
}

func writeLong(w *bytes.Buffer, text string) {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(text)))
	w.Write(size[:])
	w.WriteString(text)
}

// EncodeTable gives a table with the length before it.
func EncodeTable(table amqp.Table) []byte {
	var entries bytes.Buffer
	for key, value := range table {
		writeShort(&entries, key)
		writeValue(&entries, value)
	}
	out := make([]byte, 4+entries.Len())
	binary.BigEndian.PutUint32(out, uint32(entries.Len()))
	copy(out[4:], entries.Bytes())
	return out
}

func writeValue(w *bytes.Buffer, value any) {
	var number [9]byte
	switch v := value.(type) {
	case bool:
		number[0] = 't'
		if v {
			number[1] = 1
		}
		w.Write(number[:2])
	case int32:
		number[0] = 'I'
		binary.BigEndian.PutUint32(number[1:], uint32(v))
		w.Write(number[:5])
	case string:
		w.WriteByte('S')
		writeLong(w, v)
	case amqp.Table:
		w.WriteByte('F')
		w.Write(EncodeTable(v))
	}
}

// DecodeTable gives the entries behind the length.
func DecodeTable(raw []byte) (amqp.Table, error) {
	if len(raw) < 4 || len(raw) != 4+int(binary.BigEndian.Uint32(raw)) {
		return nil, errShort
	}
	table, at := amqp.Table{}, 4
	for at < len(raw) {
		key, next, err := DecodeShort(raw, at)
		if err != nil || next >= len(raw) {
			return nil, errShort
		}
		tag := raw[next]
		at = next + 1
		switch tag {
		case 't':
			if at >= len(raw) {
				return nil, errShort
			}
			table[key] = raw[at] != 0
			at++
		case 'I':
			if at+4 > len(raw) {
				return nil, errShort
			}
			table[key] = int32(binary.BigEndian.Uint32(raw[at:]))
			at += 4
		case 'S':
			var text string
			if text, at, err = DecodeLong(raw, at); err != nil {
				return nil, err
			}
			table[key] = text
		default:
			return nil, errShort
		}
	}
	return table, nil
}

// DecodeShort copies a short string out of bytes.
func DecodeShort(raw []byte, at int) (string, int, error) {
	if at >= len(raw) || at+1+int(raw[at]) > len(raw) {
		return "", at, errShort
	}
	end := at + 1 + int(raw[at])
	return string(raw[at+1 : end]), end, nil
}

// DecodeLong copies a long string out of bytes.
func DecodeLong(raw []byte, at int) (string, int, error) {
	if at+4 > len(raw) {
		return "", at, errShort
	}
	end := at + 4 + int(binary.BigEndian.Uint32(raw[at:]))
	if end > len(raw) {
		return "", at, errShort
	}
	return string(raw[at+4 : end]), end, nil
}

// EncodeShort appends a short string to a buffer that is lent.
func EncodeShort(out []byte, text string) []byte {
	return append(append(out, byte(len(text))), text...)
}

// EncodeLong gives a long string.
func EncodeLong(text string) []byte {
	out := make([]byte, 4+len(text))
	binary.BigEndian.PutUint32(out, uint32(len(text)))
	copy(out[4:], text)
	return out
}

// Start gives the arguments of connection.start.
func Start(major, minor byte, properties amqp.Table, mechanisms, locales string) []byte {
	var out bytes.Buffer
	out.WriteByte(major)
	out.WriteByte(minor)
	out.Write(EncodeTable(properties))
	writeLong(&out, mechanisms)
	writeLong(&out, locales)
	return out.Bytes()
}

// StartOk gives the arguments of connection.start-ok.
func StartOk(properties amqp.Table, mechanism, response, locale string) []byte {
	var out bytes.Buffer
	out.Write(EncodeTable(properties))
	writeShort(&out, mechanism)
	writeLong(&out, response)
	writeShort(&out, locale)
	return out.Bytes()
}

// Publish gives the arguments of basic.publish.
func Publish(exchange, key string, mandatory, immediate bool) []byte {
	var out bytes.Buffer
	out.Write([]byte{0, 0})
	writeShort(&out, exchange)
	writeShort(&out, key)
	out.WriteByte(bits(mandatory, immediate))
	return out.Bytes()
}

// Deliver gives the arguments of basic.deliver.
func Deliver(consumer string, tag uint64, redelivered bool, exchange, key string) []byte {
	out := make([]byte, 0, 12+len(consumer)+len(exchange)+len(key))
	out = EncodeShort(out, consumer)
	out = binary.BigEndian.AppendUint64(out, tag)
	out = append(out, bits(redelivered))
	out = EncodeShort(out, exchange)
	return EncodeShort(out, key)
}

func bits(values ...bool) (octet byte) {
	for i, value := range values {
		if value {
			octet |= 1 << i
		}
	}
	return octet
}

// EncodeHeader gives the payload of a header frame.
func EncodeHeader(size uint64, p *amqp.Publishing) []byte {
	var flags uint16
	var values bytes.Buffer
	short := func(bit int, text string) {
		if text != "" {
			flags |= 1 << bit
			writeShort(&values, text)
		}
	}
	octet := func(bit int, value uint8) {
		if value != 0 {
			flags |= 1 << bit
			values.WriteByte(value)
		}
	}
	short(15, p.ContentType)
	short(14, p.ContentEncoding)
	if len(p.Headers) > 0 {
		flags |= 1 << 13
		values.Write(EncodeTable(p.Headers))
	}
	octet(12, p.DeliveryMode)
	octet(11, p.Priority)
	short(10, p.CorrelationId)
	short(9, p.ReplyTo)
	short(8, p.Expiration)
	short(7, p.MessageId)
	if !p.Timestamp.IsZero() {
		flags |= 1 << 6
		var seconds [8]byte
		binary.BigEndian.PutUint64(seconds[:], uint64(p.Timestamp.Unix()))
		values.Write(seconds[:])
	}
	short(5, p.Type)
	short(4, p.UserId)
	short(3, p.AppId)
	out := make([]byte, 14+values.Len())
	binary.BigEndian.PutUint16(out, 60)
	binary.BigEndian.PutUint64(out[4:], size)
	binary.BigEndian.PutUint16(out[12:], flags)
	copy(out[14:], values.Bytes())
	return out
}

// DecodeHeader reads the payload of a header frame, of the properties those that come before the headers and the mode.
func DecodeHeader(raw []byte) (uint64, *amqp.Publishing, error) {
	if len(raw) < 14 {
		return 0, nil, errShort
	}
	size, flags := binary.BigEndian.Uint64(raw[4:]), binary.BigEndian.Uint16(raw[12:])
	p, at := &amqp.Publishing{}, 14
	var err error
	short := func(bit int, field *string) {
		if err == nil && flags>>bit&1 == 1 {
			*field, at, err = DecodeShort(raw, at)
		}
	}
	octet := func(bit int, field *uint8) {
		if err != nil || flags>>bit&1 == 0 {
			return
		}
		if at >= len(raw) {
			err = errShort
			return
		}
		*field, at = raw[at], at+1
	}
	short(15, &p.ContentType)
	short(14, &p.ContentEncoding)
	if err == nil && flags>>13&1 == 1 {
		return 0, nil, errors.New("no headers in this comparison")
	}
	octet(12, &p.DeliveryMode)
	octet(11, &p.Priority)
	short(10, &p.CorrelationId)
	short(9, &p.ReplyTo)
	short(8, &p.Expiration)
	short(7, &p.MessageId)
	if err == nil && flags>>6&1 == 1 && at+8 <= len(raw) {
		p.Timestamp, at = time.Unix(int64(binary.BigEndian.Uint64(raw[at:])), 0), at+8
	}
	short(5, &p.Type)
	short(4, &p.UserId)
	short(3, &p.AppId)
	return size, p, err
}
