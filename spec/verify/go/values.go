package main

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func into[T any](raw json.RawMessage) (value T) {
	must(0, json.Unmarshal(raw, &value))
	return value
}

// wantedField is a field of a method or a property as the package's type for it.
func wantedField(raw json.RawMessage, kind reflect.Type) any {
	switch {
	case kind == reflect.TypeFor[amqp.Table]():
		return wantedTable(raw)
	case kind == reflect.TypeFor[time.Time]():
		return time.Unix(int64(into[uint64](raw)), 0)
	case kind.Kind() == reflect.String:
		return text(raw)
	case kind.Kind() == reflect.Bool:
		return into[bool](raw)
	default:
		return reflect.ValueOf(into[uint64](raw)).Convert(kind).Interface()
	}
}

func text(raw json.RawMessage) string {
	if raw[0] == '"' {
		return into[string](raw)
	}
	return string(fromHex(into[map[string]string](raw)["hex"]))
}

func wantedTable(raw json.RawMessage) amqp.Table {
	table := amqp.Table{}
	for _, entry := range into[[][2]json.RawMessage](raw) {
		table[text(entry[0])] = wantedValue(entry[1])
	}
	return table
}

func wantedValue(raw json.RawMessage) any {
	for tag, content := range into[map[string]json.RawMessage](raw) {
		switch tag {
		case "t":
			return into[bool](content)
		case "b":
			return into[int8](content)
		case "B":
			return into[uint8](content)
		case "s":
			return into[int16](content)
		case "u":
			return into[uint16](content)
		case "I":
			return into[int32](content)
		case "i":
			return into[uint32](content)
		case "l":
			return into[int64](content)
		case "T":
			return time.Unix(int64(into[uint64](content)), 0)
		case "f":
			return math.Float32frombits(uint32(must(strconv.ParseUint(into[string](content), 16, 32))))
		case "d":
			return math.Float64frombits(must(strconv.ParseUint(into[string](content), 16, 64)))
		case "D":
			digits := into[struct {
				Scale  uint8
				Digits uint32
			}](content)
			return amqp.Decimal{Scale: digits.Scale, Value: int32(digits.Digits)}
		case "S":
			return text(content)
		case "x":
			return fromHex(into[string](content))
		case "F":
			return wantedTable(content)
		case "A":
			values := []any{}
			for _, element := range into[[]json.RawMessage](content) {
				values = append(values, wantedValue(element))
			}
			return values
		case "V":
			return nil
		}
		panic(fmt.Sprintf("unknown tag %q", tag))
	}
	panic("no value")
}

// same compares values of tables; floats by their bits, since NaNs differ from themselves.
func same(found, wanted any) bool {
	switch wanted := wanted.(type) {
	case float32:
		found, ok := found.(float32)
		return ok && math.Float32bits(found) == math.Float32bits(wanted)
	case float64:
		found, ok := found.(float64)
		return ok && math.Float64bits(found) == math.Float64bits(wanted)
	case amqp.Table:
		found, ok := found.(amqp.Table)
		if !ok || len(found) != len(wanted) {
			return false
		}
		for key, value := range wanted {
			if other, there := found[key]; !there || !same(other, value) {
				return false
			}
		}
		return true
	case []any:
		found, ok := found.([]any)
		if !ok || len(found) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !same(found[i], wanted[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(found, wanted)
	}
}
