package amqpcodec_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "courser/amqpcodec"
)

// The values of the vectors' tables: their bytes, written by an encoder that shares nothing with the package, and their
// owned form.

// pair is an entry of a table: its key and an object with one member, named after the tag.
type pair struct {
	key   text
	value json.RawMessage
}

func (p *pair) UnmarshalJSON(encoded []byte) error {
	return json.Unmarshal(encoded, &[]any{&p.key, &p.value})
}

// tableEntries is the bytes of a vector's table, without the length before them.
func tableEntries(t *testing.T, encoded json.RawMessage) []byte {
	t.Helper()
	entries := []byte{}
	for _, entry := range decoded[[]pair](t, encoded) {
		entries = append(entries, byte(len(entry.key)))
		entries = append(entries, entry.key...)
		entries = append(entries, valueBytes(t, entry.value)...)
	}
	return entries
}

func tagged(t *testing.T, encoded json.RawMessage) (tag string, content json.RawMessage) {
	t.Helper()
	members := decoded[map[string]json.RawMessage](t, encoded)
	if len(members) != 1 {
		t.Fatalf("%d tags in %.100s", len(members), encoded)
	}
	for tag, content := range members {
		return tag, content
	}
	return "", nil
}

func valueBytes(t *testing.T, encoded json.RawMessage) []byte {
	t.Helper()
	tag, content := tagged(t, encoded)
	order := binary.BigEndian
	out := []byte(tag)
	switch tag {
	case "t":
		if decoded[bool](t, content) {
			return append(out, 1)
		}
		return append(out, 0)
	case "b", "B":
		return append(out, byte(integer(t, content)))
	case "s", "u":
		return order.AppendUint16(out, uint16(integer(t, content)))
	case "I", "i":
		return order.AppendUint32(out, uint32(integer(t, content)))
	case "l", "T":
		return order.AppendUint64(out, integer(t, content))
	case "f", "d", "x":
		data := decoded[hexBytes](t, content)
		if tag == "x" {
			out = order.AppendUint32(out, uint32(len(data)))
		}
		return append(out, data...)
	case "D":
		value := decoded[amqp.Decimal](t, content)
		return order.AppendUint32(append(out, value.Scale), value.Digits)
	case "S":
		value := decoded[text](t, content)
		return append(order.AppendUint32(out, uint32(len(value))), value...)
	case "A":
		var elements []byte
		for _, element := range decoded[[]json.RawMessage](t, content) {
			elements = append(elements, valueBytes(t, element)...)
		}
		return append(order.AppendUint32(out, uint32(len(elements))), elements...)
	case "F":
		entries := tableEntries(t, content)
		return append(order.AppendUint32(out, uint32(len(entries))), entries...)
	case "V":
		return out
	}
	t.Fatalf("unknown tag %q", tag)
	return nil
}

// integer reads one of up to 64 bits, signed or not, as its bytes are.
func integer(t *testing.T, encoded json.RawMessage) uint64 {
	t.Helper()
	if signed, err := strconv.ParseInt(string(encoded), 10, 64); err == nil {
		return uint64(signed)
	}
	return decoded[uint64](t, encoded)
}

// ownedTable is what a table should be read as: of a key that comes twice, the first one.
func ownedTable(t *testing.T, encoded json.RawMessage) map[string]any {
	t.Helper()
	table := map[string]any{}
	for _, entry := range decoded[[]pair](t, encoded) {
		if _, there := table[string(entry.key)]; !there {
			table[string(entry.key)] = ownedValue(t, entry.value)
		}
	}
	return table
}

func ownedValue(t *testing.T, encoded json.RawMessage) any {
	t.Helper()
	tag, content := tagged(t, encoded)
	switch tag {
	case "t":
		return decoded[bool](t, content)
	case "b":
		return int8(integer(t, content))
	case "B":
		return uint8(integer(t, content))
	case "s":
		return int16(integer(t, content))
	case "u":
		return uint16(integer(t, content))
	case "I":
		return int32(integer(t, content))
	case "i":
		return uint32(integer(t, content))
	case "l":
		return int64(integer(t, content))
	case "f":
		return math.Float32frombits(binary.BigEndian.Uint32(decoded[hexBytes](t, content)))
	case "d":
		return math.Float64frombits(binary.BigEndian.Uint64(decoded[hexBytes](t, content)))
	case "D":
		return decoded[amqp.Decimal](t, content)
	case "S":
		return string(decoded[text](t, content))
	case "x":
		return []byte(decoded[hexBytes](t, content))
	case "T":
		return time.Unix(int64(integer(t, content)), 0).UTC()
	case "A":
		elements := []any{}
		for _, element := range decoded[[]json.RawMessage](t, content) {
			elements = append(elements, ownedValue(t, element))
		}
		return elements
	case "F":
		return ownedTable(t, content)
	}
	return nil
}

// canonical is the same text for the same value: with types, keys in order, and floats by their bits, since no NaN
// equals another.
func canonical(value any) string {
	switch value := value.(type) {
	case map[string]any:
		var entries strings.Builder
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fmt.Fprintf(&entries, "%q:%s,", key, canonical(value[key]))
		}
		return "{" + entries.String() + "}"
	case []any:
		var elements strings.Builder
		for _, element := range value {
			elements.WriteString(canonical(element) + ",")
		}
		return "[" + elements.String() + "]"
	case float32:
		return fmt.Sprintf("float32:%x", math.Float32bits(value))
	case float64:
		return fmt.Sprintf("float64:%x", math.Float64bits(value))
	default:
		return fmt.Sprintf("%T:%q", value, fmt.Sprint(value))
	}
}
