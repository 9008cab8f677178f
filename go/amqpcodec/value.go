package amqpcodec

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
)

// MaxNesting is how deep tables and arrays may be nested: a table that holds no other is 1 deep. The protocol has no
// limit; this one keeps every recursion within a known stack, far above what any client sends.
const MaxNesting = 64

// A Decimal is Digits with the decimal point Scale places from the right.
type Decimal struct {
	// Scale is the number of decimal places.
	Scale uint8
	// Digits are read unsigned by RabbitMQ, and as two's complement by some clients; the bytes are the same.
	Digits uint32
}

// String returns the number in decimal notation, such as "3.14".
func (d Decimal) String() string {
	digits := fmt.Sprintf("%0*d", int(d.Scale)+1, d.Digits)
	point := len(digits) - int(d.Scale)
	return strings.TrimSuffix(digits[:point]+"."+digits[point:], ".")
}

// A Value is one value of a field table, as a view of the bytes it was read from. The zero Value is no value at all;
// its tag is 0. The accessors return false when the value is of another type.
type Value struct {
	data []byte
	tag  Tag
}

// Tag returns the tag that stands before the value on the wire; L, which some write for [TagInt64], is returned as that.
func (v Value) Tag() Tag { return v.tag }

// Bytes returns the bytes behind the tag: of a long string and of [TagBytes] the content, of a table or an array the
// encoded entries or elements, of everything else the value as it is encoded. It aliases the input.
func (v Value) Bytes() []byte { return v.data }

// Bool returns the truth value. Any byte but zero is true.
func (v Value) Bool() (value, ok bool) {
	if v.tag != TagBool {
		return false, false
	}
	return v.data[0] != 0, true
}

// Int64 returns the number of an integer of any width. Timestamps are none.
func (v Value) Int64() (int64, bool) {
	switch v.tag {
	case TagInt8:
		return int64(int8(v.data[0])), true
	case TagUint8:
		return int64(v.data[0]), true
	case TagInt16:
		return int64(int16(binary.BigEndian.Uint16(v.data))), true
	case TagUint16:
		return int64(binary.BigEndian.Uint16(v.data)), true
	case TagInt32:
		return int64(int32(binary.BigEndian.Uint32(v.data))), true
	case TagUint32:
		return int64(binary.BigEndian.Uint32(v.data)), true
	case TagInt64:
		return int64(binary.BigEndian.Uint64(v.data)), true
	default:
		return 0, false
	}
}

// Float64 returns the number of a float of either width.
func (v Value) Float64() (float64, bool) {
	switch v.tag {
	case TagFloat32:
		return float64(v.float32()), true
	case TagFloat64:
		return v.float64(), true
	default:
		return 0, false
	}
}

func (v Value) float32() float32 { return math.Float32frombits(binary.BigEndian.Uint32(v.data)) }
func (v Value) float64() float64 { return math.Float64frombits(binary.BigEndian.Uint64(v.data)) }

// Decimal returns the decimal number.
func (v Value) Decimal() (Decimal, bool) {
	if v.tag != TagDecimal {
		return Decimal{}, false
	}
	return Decimal{Scale: v.data[0], Digits: binary.BigEndian.Uint32(v.data[1:])}, true
}

// LongString returns the bytes of a long string: text by convention, anything in fact. They alias the input.
func (v Value) LongString() ([]byte, bool) { return v.data, v.tag == TagLongString }

// Timestamp returns the seconds since 1970.
func (v Value) Timestamp() (uint64, bool) {
	if v.tag != TagTimestamp {
		return 0, false
	}
	return binary.BigEndian.Uint64(v.data), true
}

// Table returns the table in the table, as a view.
func (v Value) Table() (TableView, bool) {
	if v.tag != TagTable {
		return nil, false
	}
	return TableView(v.data), true
}

// Array returns the array, as a view.
func (v Value) Array() (ArrayView, bool) {
	if v.tag != TagArray {
		return nil, false
	}
	return ArrayView(v.data), true
}

// AppendTo appends the tag and the value. It panics for the zero Value.
func (v Value) AppendTo(dst []byte) []byte {
	form, ok := valueForm(v.tag)
	if !ok {
		panic(&EncodeError{Path: []string{"value"}, Cause: ErrUnknownFieldType})
	}
	dst = append(dst, byte(v.tag))
	if form == lengthPrefixed {
		return appendLong(dst, v.data)
	}
	return append(dst, v.data...)
}

// Any returns the owned form: the Go type that [TableView.Map] would have for it. The error is that of a malformed table
// or array in it.
func (v Value) Any() (any, error) {
	owner := newOwner(v.data)
	return owner.value(v.tag, 0, len(v.data), 0)
}

// lengthPrefixed is the form of a value behind four bytes of length; other forms are the size in bytes.
const lengthPrefixed = 0xFE

// valueForms says by tag how a value lies on the wire, plus 1, so that 0 is for the tags that there are not.
var valueForms = [256]uint8{
	TagVoid: 1,
	TagBool: 2, TagInt8: 2, TagUint8: 2,
	TagInt16: 3, TagUint16: 3,
	TagInt32: 5, TagUint32: 5, TagFloat32: 5,
	TagDecimal: 6,
	TagInt64:   9, tagInt64AlsoRead: 9, TagFloat64: 9, TagTimestamp: 9,
	TagLongString: lengthPrefixed + 1, TagBytes: lengthPrefixed + 1,
	TagTable: lengthPrefixed + 1, TagArray: lengthPrefixed + 1,
}

// valueForm returns a value's size in bytes or lengthPrefixed.
func valueForm(tag Tag) (form uint8, ok bool) { return valueForms[tag] - 1, valueForms[tag] != 0 }

// locate finds the value whose tag is at b[at]: its content is b[start:end]. On an error, start is where it is wrong.
func locate(b []byte, at int) (start, end int, cause error) {
	if at >= len(b) {
		return at, at, ErrTruncated
	}
	form, ok := valueForm(Tag(b[at]))
	if !ok {
		return at, at, ErrUnknownFieldType
	}
	start = at + 1
	size := int(form)
	if form == lengthPrefixed {
		length := b[start:]
		if len(length) < 4 || uint64(len(length)-4) < uint64(binary.BigEndian.Uint32(length)) {
			return start, start, ErrTruncated
		}
		size = int(binary.BigEndian.Uint32(length))
		start += 4
	}
	if end = start + size; end > len(b) {
		return scalarCut(b, at), at, ErrTruncated
	}
	return start, end, nil
}

// scalarCut is where a number that is not all there begins to be missing: behind the tag, and a decimal's digits behind
// its scale.
func scalarCut(b []byte, at int) int {
	if Tag(b[at]) == TagDecimal && len(b) > at+1 {
		return at + 2
	}
	return at + 1
}

// viewOf is the value whose tag is at b[at] and whose content was located.
func viewOf(b []byte, at, start, end int) Value {
	tag := Tag(b[at])
	if tag == tagInt64AlsoRead {
		tag = TagInt64
	}
	return Value{b[start:end:end], tag}
}

// unixTime is a timestamp of the wire as a time. Its 64 bits are unsigned; what is beyond int64 wraps around, and back
// again when it is written.
func unixTime(seconds uint64) time.Time { return time.Unix(int64(seconds), 0).UTC() }
