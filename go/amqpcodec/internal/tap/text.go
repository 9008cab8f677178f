package tap

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"courser/amqpcodec"
)

// textMax is how many bytes of a string are shown.
const textMax = 256

// colours are the marks that terminals take for colours; empty ones leave the text as it is.
type colours struct {
	client, broker, name, field, value, note, problem, off string
}

func coloursOf(wanted bool) colours {
	if !wanted {
		return colours{}
	}
	return colours{
		client: "\x1b[36m", broker: "\x1b[35m", name: "\x1b[1m", field: "\x1b[2m", value: "\x1b[32m",
		note: "\x1b[2m", problem: "\x1b[1;31m", off: "\x1b[0m",
	}
}

// textFormat shows a record as a line for people:
//
//	15:04:05.123456 #1 -> ch1 basic.publish exchange="" routing-key="jobs" mandatory
type textFormat struct {
	options *Options
	colours colours
}

func (f *textFormat) missed(dst []byte, frames int64) []byte {
	text := fmt.Sprintf("... %d frames not shown: the output could not keep up", frames)
	return append(f.coloured(dst, f.colours.problem, text), '\n')
}

func (f *textFormat) coloured(dst []byte, colour, text string) []byte {
	dst = append(dst, colour...)
	dst = append(dst, text...)
	if colour != "" {
		dst = append(dst, f.colours.off...)
	}
	return dst
}

func (f *textFormat) record(dst []byte, r *record, data []byte) []byte {
	dst = append(dst, f.colours.note...)
	dst = r.time.AppendFormat(dst, "15:04:05.000000")
	if f.colours.note != "" {
		dst = append(dst, f.colours.off...)
	}
	dst = append(dst, " #"...)
	dst = strconv.AppendUint(dst, r.connection, 10)
	dst = append(dst, ' ')
	switch r.event {
	case eventFrame:
		dst = f.frame(dst, r, data)
		if r.after > 0 {
			dst = f.coloured(dst, f.colours.note, " (after "+milliseconds(r.after)+" ms)")
		}
	case eventGap:
		dst = f.arrow(dst, r.from)
		dst = f.coloured(dst, f.colours.problem, printable(r.text))
	case eventProtocolHeader:
		dst = f.arrow(dst, r.from)
		dst = f.coloured(dst, f.colours.name, "protocol header ")
		dst = append(dst, protocolVersion(data)...)
	case eventLost:
		dst = f.arrow(dst, r.from)
		text := fmt.Sprintf("cannot follow the %v's bytes from offset %d on: %s", r.from, r.offset, printable(r.text))
		if !f.options.replay {
			text += "; they are relayed all the same"
		}
		dst = f.coloured(dst, f.colours.problem, text)
	case eventUnreachable:
		dst = f.coloured(dst, f.colours.problem, "no connection to the broker: "+printable(r.text))
	case eventOpen:
		dst = f.coloured(dst, f.colours.note, "opened, "+r.text)
	case eventClose:
		dst = f.coloured(dst, f.colours.note, fmt.Sprintf("closed; client: %d frames, %d bytes; broker: %d frames, %d bytes",
			r.totals.frames[client], r.totals.bytes[client], r.totals.frames[broker], r.totals.bytes[broker]))
	}
	return append(dst, '\n')
}

// arrow points from the client to the broker, or back.
func (f *textFormat) arrow(dst []byte, from side) []byte {
	if from == client {
		return append(f.coloured(dst, f.colours.client, "->"), ' ')
	}
	return append(f.coloured(dst, f.colours.broker, "<-"), ' ')
}

func (f *textFormat) frame(dst []byte, r *record, data []byte) []byte {
	dst = f.arrow(dst, r.from)
	dst = append(dst, "ch"...)
	dst = strconv.AppendUint(dst, uint64(r.channel), 10)
	dst = append(dst, ' ')
	switch r.kind {
	case amqpcodec.FrameMethod:
		return f.method(dst, r, data)
	case amqpcodec.FrameHeader:
		return f.header(dst, r, data)
	case amqpcodec.FrameBody:
		dst = f.coloured(dst, f.colours.name, "body")
		dst = f.size(dst, uint64(r.size))
		if f.options.BodyMax > 0 && r.size > 0 {
			dst = append(dst, ' ')
			dst = f.data(dst, data, int(r.size), f.options.BodyMax)
		}
		return dst
	default:
		dst = f.coloured(dst, f.colours.note, "heartbeat")
		if r.size > 0 {
			dst = f.size(dst, uint64(r.size))
		}
		return dst
	}
}

func (f *textFormat) size(dst []byte, data uint64) []byte {
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, data, 10)
	return append(dst, " B"...)
}

func (f *textFormat) method(dst []byte, r *record, data []byte) []byte {
	id, err := amqpcodec.ParseMethodID(data)
	if err != nil {
		return f.malformed(dst, "method", r, data, err)
	}
	dst = f.coloured(dst, f.colours.name, id.String())
	if len(data) < int(r.size) {
		return append(f.size(dst, uint64(r.size)), ", too large to be shown"...)
	}
	for field, err := range amqpcodec.ParseFields(data) {
		if err != nil {
			if carriesSecret(id) && !f.options.Secrets {
				data = nil
			}
			return f.malformed(append(dst, ' '), "fields", r, data, err)
		}
		if field.Kind == amqpcodec.KindBit && !field.Bool() {
			continue
		}
		dst = append(dst, ' ')
		if hidden, ok := secretOf(id, field, f.options.Secrets); ok {
			dst = f.coloured(dst, f.colours.field, field.Name+"=")
			dst = append(dst, hidden.String()...)
			continue
		}
		dst = f.field(dst, field)
	}
	return dst
}

// malformed says what is wrong with a payload, and shows how it begins, if there are data to be shown.
func (f *textFormat) malformed(dst []byte, what string, r *record, data []byte, err error) []byte {
	text := fmt.Sprintf("%s not understood (%v) in %d bytes", what, err, r.size)
	if len(data) > 0 {
		text += fmt.Sprintf(": %x", data[:min(len(data), 32)])
	}
	return f.coloured(dst, f.colours.problem, text)
}

func (f *textFormat) header(dst []byte, r *record, data []byte) []byte {
	var header amqpcodec.ContentHeaderView
	if len(data) < int(r.size) {
		dst = f.coloured(dst, f.colours.name, "header")
		return append(f.size(dst, uint64(r.size)), ", too large to be shown"...)
	}
	if err := header.Parse(data); err != nil {
		return f.malformed(dst, "header", r, data, err)
	}
	dst = f.coloured(dst, f.colours.name, "header")
	if header.ClassID != amqpcodec.ClassBasic {
		dst = fmt.Appendf(dst, " class=%d", header.ClassID)
	}
	dst = append(dst, " of"...)
	dst = f.size(dst, header.BodySize)
	for property := range header.Properties.Fields() {
		dst = append(dst, ' ')
		dst = f.field(dst, property)
	}
	return dst
}

// field appends a method's field or a property: name and value, of a bit that is set only the name.
func (f *textFormat) field(dst []byte, field amqpcodec.Field) []byte {
	if field.Kind == amqpcodec.KindBit {
		return f.coloured(dst, f.colours.value, field.Name)
	}
	dst = f.coloured(dst, f.colours.field, field.Name+"=")
	dst = append(dst, f.colours.value...)
	switch field.Kind {
	case amqpcodec.KindShortString, amqpcodec.KindLongString:
		dst = f.data(dst, field.Bytes(), len(field.Bytes()), textMax)
	case amqpcodec.KindTable:
		if err := field.Table().Validate(); err != nil {
			dst = f.coloured(dst, f.colours.problem, "<"+err.Error()+">")
		} else {
			dst = f.table(dst, field.Table())
		}
	case amqpcodec.KindTimestamp:
		dst = appendTime(dst, field.Uint64())
	default:
		dst = strconv.AppendUint(dst, field.Uint64(), 10)
		if field.Name == "reply-code" {
			dst = append(append(dst, ' '), amqpcodec.ReplyCode(field.Uint64()).String()...)
		}
	}
	return append(dst, f.colours.off...)
}

// bytes appends a string of size bytes, of which these are the first, limit of them at most: quoted when it is text,
// else in hexadecimal.
func (f *textFormat) data(dst, data []byte, size, limit int) []byte {
	if len(data) > limit {
		data = data[:limit]
	}
	text := data
	if len(data) < size {
		text = wholeRunes(data)
	}
	if utf8.Valid(text) {
		dst = strconv.AppendQuote(dst, string(text))
	} else {
		text = data
		dst = append(dst, "0x"...)
		dst = hex.AppendEncode(dst, data)
	}
	if more := size - len(text); more > 0 {
		dst = fmt.Appendf(dst, "+%d B", more)
	}
	return dst
}

// wholeRunes is text without the rune at its end that was cut.
func wholeRunes(text []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if tail := text[len(text)-cut:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return text[:len(text)-cut]
			}
			break
		}
	}
	return text
}

// table appends entries that are known to be well-formed.
func (f *textFormat) table(dst []byte, table amqpcodec.TableView) []byte {
	dst = append(dst, '{')
	separator := ""
	for entry, err := range table.All() {
		if err != nil {
			break
		}
		dst = append(dst, separator...)
		separator = ", "
		dst = appendKey(dst, entry.Key)
		dst = append(dst, '=')
		dst = f.value(dst, entry.Value)
	}
	return append(dst, '}')
}

// appendKey appends a key as it is when it is one word, else quoted.
func appendKey(dst, key []byte) []byte {
	plain := len(key) > 0
	for _, letter := range key {
		plain = plain && letter > ' ' && letter < 0x7F && letter != '"' && letter != '=' && letter != ','
	}
	if plain {
		return append(dst, key...)
	}
	return strconv.AppendQuote(dst, string(key))
}

func (f *textFormat) value(dst []byte, value amqpcodec.Value) []byte {
	switch value.Tag() {
	case amqpcodec.TagBool:
		truth, _ := value.Bool()
		return strconv.AppendBool(dst, truth)
	case amqpcodec.TagFloat32, amqpcodec.TagFloat64:
		number, _ := value.Float64()
		return strconv.AppendFloat(dst, number, 'g', -1, 64)
	case amqpcodec.TagDecimal:
		number, _ := value.Decimal()
		return append(dst, number.String()...)
	case amqpcodec.TagLongString:
		return f.data(dst, value.Bytes(), len(value.Bytes()), textMax)
	case amqpcodec.TagBytes:
		data := value.Bytes()
		dst = append(dst, "0x"...)
		dst = hex.AppendEncode(dst, data[:min(len(data), textMax)])
		if more := len(data) - textMax; more > 0 {
			dst = fmt.Appendf(dst, "+%d B", more)
		}
		return dst
	case amqpcodec.TagTimestamp:
		seconds, _ := value.Timestamp()
		return appendTime(dst, seconds)
	case amqpcodec.TagTable:
		table, _ := value.Table()
		return f.table(dst, table)
	case amqpcodec.TagArray:
		array, _ := value.Array()
		return f.array(dst, array)
	case amqpcodec.TagVoid:
		return append(dst, "void"...)
	default:
		number, _ := value.Int64()
		return strconv.AppendInt(dst, number, 10)
	}
}

func (f *textFormat) array(dst []byte, array amqpcodec.ArrayView) []byte {
	dst = append(dst, '[')
	separator := ""
	for element, err := range array.All() {
		if err != nil {
			break
		}
		dst = append(dst, separator...)
		separator = ", "
		dst = f.value(dst, element)
	}
	return append(dst, ']')
}

// lastYear is the end of the times that are shown as dates.
const lastYear = 253402300800

func appendTime(dst []byte, seconds uint64) []byte {
	if seconds >= lastYear {
		return append(strconv.AppendUint(dst, seconds, 10), 's')
	}
	return time.Unix(int64(seconds), 0).UTC().AppendFormat(dst, time.RFC3339)
}

// protocolVersion is what a protocol header says: "AMQP 0-9-1".
func protocolVersion(header []byte) string {
	if len(header) < protocolHeaderSize {
		return ""
	}
	return fmt.Sprintf("%s %d-%d-%d", header[:4], header[5], header[6], header[7])
}

// printable is text without what would steer a terminal.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
