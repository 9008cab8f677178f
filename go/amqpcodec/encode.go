package amqpcodec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
)

// AppendMap appends a map as a field table, its length before it. Besides the types that [TableView.Map] gives, it takes
// int and uint, uint64 (all as 64 signed bits), [Value], [TableView], [ArrayView], maps from strings to any of these and
// slices and arrays of them (of bytes: as bytes), and named types of all. The order of the entries is the map's, that is,
// none.
//
// An error is an [EncodeError]: a type without a form, a key of more than 255 bytes, a number that does not fit, or
// nesting deeper than [MaxNesting], which a map that contains itself has. dst is then returned as it was.
func AppendMap(dst []byte, table map[string]any) ([]byte, error) {
	written, err := appendMap(withRoom(dst, 4, guess(table)), table, 0)
	if err != nil {
		return dst, err
	}
	return written, nil
}

// appendMap appends a table that lies within level tables and arrays. What it returns on an error is of no use.
func appendMap(dst []byte, table map[string]any, level int) ([]byte, error) {
	if level == MaxNesting {
		return dst, &EncodeError{Cause: ErrTooDeep}
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for key, value := range table {
		if len(key) > maxShortLen {
			return dst, tooLong(key[:maxShortLen])
		}
		dst = append(dst, byte(len(key)))
		dst = append(dst, key...)
		var err error
		if dst, err = appendAny(dst, value, level+1); err != nil {
			return dst, within(key, err)
		}
	}
	return patchLength(dst, start)
}

// appendArray appends an array that lies within level tables and arrays.
func appendArray(dst []byte, elements []any, level int) ([]byte, error) {
	if level == MaxNesting {
		return dst, &EncodeError{Cause: ErrTooDeep}
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, element := range elements {
		var err error
		if dst, err = appendAny(dst, element, level+1); err != nil {
			return dst, err
		}
	}
	return patchLength(dst, start)
}

// patchLength fills in the four bytes at start with how many follow them.
func patchLength(dst []byte, start int) ([]byte, error) {
	size := len(dst) - start - 4
	if !fitsLong(size) {
		return dst, tooLong()
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	return dst, nil
}

// appendAny appends the tag and the value of what lies within level tables and arrays.
func appendAny(dst []byte, value any, level int) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return appendTagged(dst, TagLongString, v)
	case int32:
		return append(dst, byte(TagInt32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v)), nil
	case bool:
		return append(dst, byte(TagBool), bit(v)), nil
	case int:
		return appendInt64(dst, int64(v)), nil
	case int64:
		return appendInt64(dst, v), nil
	case map[string]any:
		return appendMap(append(dst, byte(TagTable)), v, level)
	case []any:
		return appendArray(append(dst, byte(TagArray)), v, level)
	case nil:
		return append(dst, byte(TagVoid)), nil
	default:
		return appendRare(dst, value, level)
	}
}

// appendRare appends the types that are seldom in tables.
func appendRare(dst []byte, value any, level int) ([]byte, error) {
	switch v := value.(type) {
	case int8:
		return append(dst, byte(TagInt8), byte(v)), nil
	case uint8:
		return append(dst, byte(TagUint8), v), nil
	case int16:
		return append(dst, byte(TagInt16), byte(v>>8), byte(v)), nil
	case uint16:
		return append(dst, byte(TagUint16), byte(v>>8), byte(v)), nil
	case uint32:
		return binary.BigEndian.AppendUint32(append(dst, byte(TagUint32)), v), nil
	case uint64:
		return appendUint64(dst, v)
	case uint:
		return appendUint64(dst, uint64(v))
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, byte(TagFloat32)), math.Float32bits(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, byte(TagFloat64)), math.Float64bits(v)), nil
	case Decimal:
		return binary.BigEndian.AppendUint32(append(dst, byte(TagDecimal), v.Scale), v.Digits), nil
	case time.Time:
		return binary.BigEndian.AppendUint64(append(dst, byte(TagTimestamp)), uint64(v.Unix())), nil
	case []byte:
		return appendTagged(dst, TagBytes, v)
	case []string:
		return appendStrings(dst, v, level)
	case Value:
		return appendView(dst, v, level)
	case TableView:
		return appendView(dst, Value{v, TagTable}, level)
	case ArrayView:
		return appendView(dst, Value{v, TagArray}, level)
	default:
		return appendNamed(dst, value, level)
	}
}

// appendTagged appends a tag, a length, and what it counts.
func appendTagged[T ~string | ~[]byte](dst []byte, tag Tag, value T) ([]byte, error) {
	size := len(value)
	if !fitsLong(size) {
		return dst, tooLong()
	}
	dst = append(dst, byte(tag), byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	return append(dst, value...), nil
}

func appendInt64(dst []byte, value int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, byte(TagInt64)), uint64(value))
}

// appendUint64 appends an unsigned number as the signed one that tables have.
func appendUint64(dst []byte, value uint64) ([]byte, error) {
	if value > math.MaxInt64 {
		return dst, &EncodeError{Cause: ErrOutOfRange}
	}
	return appendInt64(dst, int64(value)), nil
}

func appendStrings(dst []byte, texts []string, level int) ([]byte, error) {
	if level == MaxNesting {
		return dst, &EncodeError{Cause: ErrTooDeep}
	}
	dst = append(dst, byte(TagArray))
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, text := range texts {
		var err error
		if dst, err = appendTagged(dst, TagLongString, text); err != nil {
			return dst, err
		}
	}
	return patchLength(dst, start)
}

// appendView appends a value that is encoded already, once it is known to be readable at this level.
func appendView(dst []byte, v Value, level int) ([]byte, error) {
	if v.tag == TagTable || v.tag == TagArray {
		if level == MaxNesting {
			return dst, &EncodeError{Cause: ErrTooDeep}
		}
		if err := validate(v.data, v.tag == TagTable, level+1); err != nil {
			return dst, &EncodeError{Cause: err}
		}
	}
	if v.tag == 0 {
		return dst, &EncodeError{Cause: ErrUnsupportedType, Type: "Value without a value"}
	}
	if !fitsLong(len(v.data)) {
		return dst, tooLong()
	}
	return v.AppendTo(dst), nil
}

// basics are the types that a named one may have underneath it.
var basics = map[reflect.Kind]reflect.Type{
	reflect.String: reflect.TypeFor[string](), reflect.Bool: reflect.TypeFor[bool](),
	reflect.Int: reflect.TypeFor[int](), reflect.Int8: reflect.TypeFor[int8](), reflect.Int16: reflect.TypeFor[int16](),
	reflect.Int32: reflect.TypeFor[int32](), reflect.Int64: reflect.TypeFor[int64](),
	reflect.Uint: reflect.TypeFor[uint](), reflect.Uint8: reflect.TypeFor[uint8](), reflect.Uint16: reflect.TypeFor[uint16](),
	reflect.Uint32: reflect.TypeFor[uint32](), reflect.Uint64: reflect.TypeFor[uint64](),
	reflect.Float32: reflect.TypeFor[float32](), reflect.Float64: reflect.TypeFor[float64](),
}

// appendNamed appends maps from strings, slices and arrays of any type, and named types of what has a form.
func appendNamed(dst []byte, value any, level int) ([]byte, error) {
	reflected := reflect.ValueOf(value)
	switch kind := reflected.Kind(); kind {
	case reflect.Map:
		if reflected.Type().Key().Kind() == reflect.String {
			return appendAnyMap(dst, reflected, level)
		}
	case reflect.Slice, reflect.Array:
		if reflected.Type().Elem().Kind() != reflect.Uint8 {
			return appendAnySlice(dst, reflected, level)
		}
		if kind == reflect.Slice {
			return appendTagged(dst, TagBytes, reflected.Bytes())
		}
		bytes := make([]byte, reflected.Len())
		for i := range bytes {
			bytes[i] = byte(reflected.Index(i).Uint())
		}
		return appendTagged(dst, TagBytes, bytes)
	default:
		if basic, found := basics[kind]; found {
			return appendAny(dst, reflected.Convert(basic).Interface(), level)
		}
	}
	return dst, &EncodeError{Cause: ErrUnsupportedType, Type: fmt.Sprintf("%T", value)}
}

// appendAnyMap appends a map whose keys are strings.
func appendAnyMap(dst []byte, table reflect.Value, level int) ([]byte, error) {
	entries := make(map[string]any, table.Len())
	for entry := table.MapRange(); entry.Next(); {
		entries[entry.Key().String()] = entry.Value().Interface()
	}
	return appendMap(append(dst, byte(TagTable)), entries, level)
}

// appendAnySlice appends a slice or an array.
func appendAnySlice(dst []byte, list reflect.Value, level int) ([]byte, error) {
	elements := make([]any, list.Len())
	for i := range elements {
		elements[i] = list.Index(i).Interface()
	}
	return appendArray(append(dst, byte(TagArray)), elements, level)
}
