package amqpcodec

import (
	"bytes"
	"encoding/binary"
)

// smallTable is a table in bytes that is not worth the counting of its entries.
const smallTable = 128

// An owner turns what is encoded in one slice into owned values. The strings that it gives out are parts of one copy of
// the slice. All places are offsets in it.
type owner struct {
	input []byte
	text  string
}

func newOwner(input []byte) owner { return owner{input, string(input)} }

// table returns the owned form of the entries in input[at:end], which lie within level tables and arrays.
func (o *owner) table(at, end, level int) (map[string]any, error) {
	entries := 0
	if end-at > smallTable {
		entries = countEntries(o.input[at:end])
	}
	table := make(map[string]any, entries)
	if err := o.fill(table, at, end, level); err != nil {
		return nil, err
	}
	return table, nil
}

// fill puts the entries in input[at:end], which lie within level tables and arrays, into a map.
func (o *owner) fill(table map[string]any, at, end, level int) error {
	if level == MaxNesting {
		return &DecodeError{Offset: at, Cause: ErrTooDeep}
	}
	seen := keyFilter{all: len(table) > 0}
	b := o.input[:end]
	for at < end {
		tagAt, start, next, cause := locateEntry(b, at)
		if cause != nil {
			return entryError(b, start, cause)
		}
		value, err := o.value(Tag(b[tagAt]), start, next, level+1)
		if err != nil {
			return err
		}
		if key := o.text[at+1 : tagAt]; !seen.perhaps(key) || !has(table, key) {
			table[key] = value
		}
		at = next
	}
	return nil
}

// array returns the owned form of the elements in input[at:end], which lie within level tables and arrays.
func (o *owner) array(at, end, level int) ([]any, error) {
	if level == MaxNesting {
		return nil, &DecodeError{Offset: at, Cause: ErrTooDeep}
	}
	array := []any{}
	b := o.input[:end]
	for at < end {
		start, next, cause := locate(b, at)
		if cause != nil {
			return nil, entryError(b, start, cause)
		}
		value, err := o.value(Tag(b[at]), start, next, level+1)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
		at = next
	}
	return array, nil
}

// value returns the owned form of a value whose content is input[start:end], within level tables and arrays.
func (o *owner) value(tag Tag, start, end, level int) (any, error) {
	data := o.input[start:end]
	switch tag {
	case TagLongString:
		return o.text[start:end], nil
	case TagBool:
		return data[0] != 0, nil
	case TagInt8:
		return int8(data[0]), nil
	case TagUint8:
		return data[0], nil
	case TagInt16:
		return int16(binary.BigEndian.Uint16(data)), nil
	case TagUint16:
		return binary.BigEndian.Uint16(data), nil
	case TagInt32:
		return int32(binary.BigEndian.Uint32(data)), nil
	case TagUint32:
		return binary.BigEndian.Uint32(data), nil
	case TagInt64, tagInt64AlsoRead:
		return int64(binary.BigEndian.Uint64(data)), nil
	case TagFloat32:
		return Value{data, tag}.float32(), nil
	case TagFloat64:
		return Value{data, tag}.float64(), nil
	case TagDecimal:
		return Decimal{Scale: data[0], Digits: binary.BigEndian.Uint32(data[1:])}, nil
	case TagTimestamp:
		return unixTime(binary.BigEndian.Uint64(data)), nil
	case TagBytes:
		return bytes.Clone(data), nil
	case TagArray:
		return o.array(start, end, level)
	case TagTable:
		return o.table(start, end, level)
	default:
		// TagVoid, and the zero Value.
		return nil, nil
	}
}

// countEntries is how many entries there are up to the first malformed one.
func countEntries(entries []byte) int {
	count := 0
	for at := 0; at < len(entries); count++ {
		_, _, end, cause := locateEntry(entries, at)
		if cause != nil {
			break
		}
		at = end
	}
	return count
}

// A keyFilter tells most keys from those that came before, at less cost than a look into the map.
type keyFilter struct {
	sums uint64
	// all is set when there are keys that it does not know.
	all bool
}

// perhaps reports whether the key may be there already, and remembers it.
func (f *keyFilter) perhaps(key string) bool {
	sum := len(key)
	if sum > 0 {
		sum += int(key[0])<<2 ^ int(key[sum-1])
	}
	bit := uint64(1) << (sum & 63)
	there := f.sums&bit != 0
	f.sums |= bit
	return there || f.all
}

func has(table map[string]any, key string) bool {
	_, there := table[key]
	return there
}
