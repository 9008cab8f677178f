package amqpcodec

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// PropertyFlags say which properties a content header has: one bit for each, the first the highest.
type PropertyFlags uint16

// RawProperties are encoded properties: the flags, and behind them the values of those that are set. [ParseProperties]
// makes them and sees to it that all is there, so that the accessors cannot fail. nil is no properties.
//
// The accessors walk over the values before the wanted one; who wants many takes [PropertiesView.Parse].
type RawProperties []byte

// ParseProperties checks that src is encoded properties and nothing else, and returns it as such. Headers are not
// looked into; [RawProperties.Validate] does that.
func ParseProperties(src []byte) (RawProperties, error) {
	if len(src) < 2 {
		return nil, truncated(src, src)
	}
	flags := PropertyFlags(binary.BigEndian.Uint16(src))
	if flags&^knownPropertyFlags != 0 {
		return nil, unknownFlags(flags)
	}
	rest := src[2:]
	for flags != 0 {
		index := bits.LeadingZeros16(uint16(flags))
		flags &^= 1 << (15 - index)
		size, ok := propertySize(propertyInfos[index].kind, rest)
		if !ok {
			return nil, truncated(src, rest)
		}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, trailing(src, rest)
	}
	return RawProperties(src[:len(src):len(src)]), nil
}

// unknownFlags is the error for flags of which some have no meaning.
func unknownFlags(flags PropertyFlags) error {
	return &DecodeError{Cause: ErrUnknownPropertyFlags, Found: uint64(flags &^ knownPropertyFlags)}
}

// propertySize is how many bytes the value has that b begins with, and whether they are all there.
func propertySize(kind FieldKind, b []byte) (size int, ok bool) {
	switch kind {
	case KindShortString:
		if len(b) == 0 {
			return 0, false
		}
		size = 1 + int(b[0])
	case KindTable:
		entries, _, ok := CutLongString(b)
		return 4 + len(entries), ok
	default:
		size = int(fieldSizes[kind])
	}
	return size, len(b) >= size
}

// Flags returns which properties are there.
func (p RawProperties) Flags() PropertyFlags {
	if len(p) < 2 {
		return 0
	}
	return PropertyFlags(binary.BigEndian.Uint16(p))
}

// AppendTo appends the flags and the values as they are; for nil, flags of no property.
func (p RawProperties) AppendTo(dst []byte) []byte {
	if len(p) < 2 {
		return append(dst, 0, 0)
	}
	return append(dst, p...)
}

// Validate reads the entries of the headers, if there are any; see [TableView.Validate].
func (p RawProperties) Validate() error {
	headers, offset := p.find(FlagHeaders)
	if offset == 0 {
		return nil
	}
	entries, _, _ := CutLongString(headers)
	if err := TableView(entries).Validate(); err != nil {
		return shifted(err, offset+4)
	}
	return nil
}

// find returns the bytes from a property's value on, and its offset, 0 when the property is not there.
func (p RawProperties) find(flag PropertyFlags) (rest []byte, offset int) {
	flags := p.Flags()
	if flags&flag == 0 {
		return nil, 0
	}
	// The flags above the wanted one.
	before := flags & knownPropertyFlags &^ (flag<<1 - 1)
	rest = p[2:]
	for before != 0 {
		index := bits.LeadingZeros16(uint16(before))
		before &^= 1 << (15 - index)
		size, ok := propertySize(propertyInfos[index].kind, rest)
		if !ok {
			return nil, 0
		}
		rest = rest[size:]
	}
	return rest, len(p) - len(rest)
}

func (p RawProperties) shortString(flag PropertyFlags) (value []byte, ok bool) {
	rest, _ := p.find(flag)
	value, _, ok = CutShortString(rest)
	return value, ok
}

func (p RawProperties) table(flag PropertyFlags) (value TableView, ok bool) {
	rest, _ := p.find(flag)
	entries, _, ok := CutLongString(rest)
	return entries, ok
}

func (p RawProperties) octet(flag PropertyFlags) (value uint8, ok bool) {
	rest, _ := p.find(flag)
	if len(rest) == 0 {
		return 0, false
	}
	return rest[0], true
}

func (p RawProperties) timestamp(flag PropertyFlags) (seconds uint64, ok bool) {
	rest, _ := p.find(flag)
	if len(rest) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(rest), true
}

// Fields iterates over the properties that are there, for programs that treat all of them alike.
func (p RawProperties) Fields() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		flags := p.Flags() & knownPropertyFlags
		rest := []byte(p)
		if flags != 0 {
			rest = rest[2:]
		}
		for flags != 0 {
			index := bits.LeadingZeros16(uint16(flags))
			flags &^= 1 << (15 - index)
			field, next, ok := cutField(&propertyInfos[index], rest, 0)
			if !ok || !yield(field) {
				return
			}
			rest = next
		}
	}
}
