package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

var frameKinds = map[string]byte{"method": 1, "header": 2, "body": 3, "heartbeat": 8}

func framed(kind string, channel uint16, payload []byte) []byte {
	out := []byte{frameKinds[kind]}
	out = binary.BigEndian.AppendUint16(out, channel)
	out = binary.BigEndian.AppendUint32(out, uint32(len(payload)))
	return append(append(out, payload...), 0xCE)
}

// read calls the reader under test; a panic is an error like any other.
func read[T any](call func() (T, error)) (value T, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	return call()
}

func readFrame(raw []byte, limit uint32) (any, error) {
	return read(func() (any, error) { return amqp.ReadForVectors(raw, limit) })
}

func checkFrames(r *report) {
	for _, v := range load("frames.json") {
		// The reader takes methods and headers apart, which has a file of its own.
		if v.Kind == "method" || v.Kind == "header" {
			continue
		}
		frame, err := readFrame(v.wire(), 0)
		fine := err == nil && field(frame, "ChannelId").Uint() == uint64(v.Channel)
		if fine && v.Kind == "body" {
			fine = bytes.Equal(field(frame, "Body").Bytes(), fromHex(v.Payload))
		}
		r.note(&v, "read", fine, err)
		if err == nil {
			out, err := amqp.WriteForVectors(frame)
			r.note(&v, "write", err == nil && bytes.Equal(out, v.wire()), out)
		}
	}
}

func checkMethods(r *report) {
	for _, v := range load("methods.json") {
		frame, err := readFrame(framed("method", 1, v.wire()), 0)
		if err != nil {
			r.note(&v, "read", false, err)
			continue
		}
		method := field(frame, "Method").Elem()
		found := mismatch(method.Interface(), v.Fields)
		wanted := []uint64{uint64(v.ClassID), uint64(v.MethodID)}
		ids := []uint64{field(frame, "ClassId").Uint(), field(frame, "MethodId").Uint()}
		r.note(&v, "read", found == "" && slices.Equal(ids, wanted), found)
		out, err := amqp.WriteForVectors(frame)
		r.note(&v, "write", err == nil && sameBytes(out, framed("method", 1, v.written())), out)
	}
}

func checkHeaders(r *report) {
	for _, v := range load("headers.json") {
		frame, err := readFrame(framed("header", 1, v.wire()), 0)
		if err != nil {
			r.note(&v, "read", false, err)
			continue
		}
		found := mismatch(field(frame, "Properties").Addr().Interface(), v.Properties)
		r.note(&v, "read", found == "" && field(frame, "Size").Uint() == v.BodySize, found)
		out, err := amqp.WriteForVectors(frame)
		r.note(&v, "write", err == nil && sameBytes(out, framed("header", 1, v.written())), out)
	}
}

func checkTables(r *report) {
	for _, v := range load("tables.json") {
		table, err := read(func() (amqp.Table, error) { return amqp.ReadTableForVectors(v.wire()) })
		if err != nil {
			r.note(&v, "read", false, err)
			continue
		}
		r.note(&v, "read", same(table, wantedTable(v.Table)), table)
		out, err := amqp.WriteTableForVectors(table)
		r.note(&v, "write", err == nil && sameBytes(out, v.written()), out)
	}
}

func checkMalformed(r *report) {
	for _, v := range load("malformed.json") {
		var err error
		var found any
		switch v.What {
		case "frame":
			found, err = readFrame(v.wire(), v.FrameMax)
		case "table":
			found, err = read(func() (amqp.Table, error) { return amqp.ReadTableForVectors(v.wire()) })
		default:
			found, err = readFrame(framed(v.What, 1, v.wire()), 0)
		}
		r.note(&v, "refuse", err != nil && !strings.HasPrefix(err.Error(), "panic"), found)
	}
}

// field gives a field of a struct behind a pointer by its Go name.
func field(holder any, name string) reflect.Value {
	return reflect.Indirect(reflect.ValueOf(holder)).FieldByName(name)
}

// mismatch names the first field that does not have its value.
func mismatch(holder any, wanted map[string]json.RawMessage) string {
	for name, raw := range wanted {
		value := field(holder, goName(name))
		if !value.IsValid() {
			if name != "cluster-id" {
				return name + " is missing"
			}
			continue
		}
		if !same(value.Interface(), wantedField(raw, value.Type())) {
			return fmt.Sprintf("%s is %.100v", name, value.Interface())
		}
	}
	return ""
}

// goName spells `nowait` as the package does.
func goName(name string) string {
	if name == "nowait" {
		return "NoWait"
	}
	var out strings.Builder
	for _, word := range strings.Split(name, "-") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

func sorted(raw []byte) []byte {
	out := slices.Clone(raw)
	slices.Sort(out)
	return out
}
