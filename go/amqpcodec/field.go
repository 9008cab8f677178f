package amqpcodec

import "iter"

// A FieldKind is how a method's field or a property lies on the wire.
type FieldKind uint8

// The kinds of fields.
const (
	// KindBit is a truth value; consecutive ones share a byte.
	KindBit FieldKind = iota + 1
	// KindOctet is a number of 8 bits.
	KindOctet
	// KindShort is a number of 16 bits.
	KindShort
	// KindLong is a number of 32 bits.
	KindLong
	// KindLongLong is a number of 64 bits.
	KindLongLong
	// KindShortString is up to 255 bytes.
	KindShortString
	// KindLongString is up to 4 GiB.
	KindLongString
	// KindTable is a field table.
	KindTable
	// KindTimestamp is seconds since 1970 in 64 bits.
	KindTimestamp
)

// fieldSizes has the bytes of numbers by kind.
var fieldSizes = [...]uint8{KindBit: 1, KindOctet: 1, KindShort: 2, KindLong: 4, KindLongLong: 8, KindTimestamp: 8}

// A Field is a field of a method, or a property, for programs that treat all of them alike: what it is called, and its
// value as a view.
type Field struct {
	// Name as the protocol has it: "delivery-tag".
	Name string
	// Kind says which accessor has the value.
	Kind   FieldKind
	number uint64
	data   []byte
}

// Uint64 returns the number of every kind that is one; a bit is 0 or 1.
func (f Field) Uint64() uint64 { return f.number }

// Bool returns the value of a bit.
func (f Field) Bool() bool { return f.number != 0 }

// Bytes returns the bytes of a string of either kind, or the encoded entries of a table. They alias the input.
func (f Field) Bytes() []byte { return f.data }

// Table returns the value of a table.
func (f Field) Table() TableView { return TableView(f.data) }

// fieldInfo is what the description says of a field.
type fieldInfo struct {
	name     string
	kind     FieldKind
	reserved bool
	// bit is the place of a bit in its byte; that in place 0 begins a byte.
	bit uint8
}

// ParseFields iterates over the fields of any method, given the payload of its frame, without those that are reserved.
// An error comes with a zero field and is the last thing that comes; it is what the method's own Parse would return.
func ParseFields(payload []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		id, err := ParseMethodID(payload)
		if err != nil {
			yield(Field{}, err)
			return
		}
		fields := id.info().fields
		rest, bits := payload[4:], uint64(0)
		for i := range fields {
			field, next, ok := cutField(&fields[i], rest, bits)
			if !ok {
				yield(Field{}, truncated(payload, next))
				return
			}
			if rest = next; field.Kind == KindBit {
				bits = field.number
				field.number = bits >> fields[i].bit & 1
			}
			if !fields[i].reserved && !yield(field, nil) {
				return
			}
		}
		if len(rest) > 0 {
			yield(Field{}, trailing(payload, rest))
		}
	}
}

// cutField takes a field off the front of b. Of a bit it returns the whole byte, which is bits for all but the first.
func cutField(info *fieldInfo, b []byte, bits uint64) (field Field, rest []byte, ok bool) {
	field = Field{Name: info.name, Kind: info.kind}
	switch {
	case info.kind == KindShortString:
		field.data, rest, ok = CutShortString(b)
		return field, rest, ok
	case info.kind == KindLongString || info.kind == KindTable:
		field.data, rest, ok = CutLongString(b)
		return field, rest, ok
	case info.kind == KindBit && info.bit > 0:
		field.number = bits
		return field, b, true
	}
	size := int(fieldSizes[info.kind])
	if len(b) < size {
		return field, b, false
	}
	for _, next := range b[:size] {
		field.number = field.number<<8 | uint64(next)
	}
	return field, b[size:], true
}
