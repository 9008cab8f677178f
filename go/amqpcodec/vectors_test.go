package amqpcodec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "courser/amqpcodec"
)

func TestFramesReadAndWriteAsTheVectorsSay(t *testing.T) {
	for _, v := range vectors(t, "frames.json") {
		frame, n, err := amqp.ParseFrame(v.Bytes, 4096)
		if err != nil || n != len(v.Bytes) {
			t.Fatalf("%s: %d bytes, %v", v.Name, n, err)
		}
		if frame.Type.String() != v.Kind || frame.Channel != v.Channel || !bytes.Equal(frame.Payload, v.Payload) {
			t.Errorf("%s: read as %v", v.Name, frame)
		}
		if back := frame.AppendTo([]byte("kept")); string(back) != "kept"+string(v.Bytes) {
			t.Errorf("%s: written as %x", v.Name, back)
		}
		var owned amqp.Frame
		if err := owned.UnmarshalBinary(v.Bytes); err != nil || !reflect.DeepEqual(normal(owned), normal(frame)) {
			t.Errorf("%s: owned is %v, %v", v.Name, owned, err)
		}
		for end := range v.Bytes {
			if _, n, err := amqp.ParseFrame(v.Bytes[:end], 4096); n != 0 || err != nil {
				t.Errorf("%s, first %d bytes: %d, %v", v.Name, end, n, err)
			}
		}
	}
}

// normal makes an empty payload the same however it came to be.
func normal(frame amqp.Frame) amqp.Frame {
	frame.Payload = append([]byte{}, frame.Payload...)
	return frame
}

func TestMethodsReadAndWriteAsTheVectorsSay(t *testing.T) {
	var parser amqp.MethodParser
	for _, v := range vectors(t, "methods.json") {
		id, err := amqp.ParseMethodID(v.Bytes)
		if err != nil || id.String() != v.Method || id.ClassID() != v.ClassID || id.MethodID() != v.MethodID {
			t.Fatalf("%s: read as %v, %v", v.Name, id, err)
		}
		view, err := parser.Parse(v.Bytes)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		owned, err := amqp.UnmarshalMethod(v.Bytes)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		checkFields(t, v.Name, v.Fields, reflect.ValueOf(view).Elem())
		checkFields(t, v.Name, v.Fields, reflect.ValueOf(owned).Elem())
		checkGenericFields(t, &v)
		checkWritten(t, &v, view)
		checkWrittenInAnyOrder(t, &v, owned)
		for end := range v.Bytes {
			_, err := parser.Parse(v.Bytes[:end])
			wantTruncated(t, v.Name, end, err)
		}
	}
}

// checkFields compares the fields of a struct with values by name.
func checkFields(t *testing.T, name string, want map[string]json.RawMessage, got reflect.Value) {
	t.Helper()
	fields := 0
	for i := range got.NumField() {
		if got.Type().Field(i).Name != "Flags" {
			fields++
		}
	}
	if _, properties := got.Interface().(amqp.PropertiesView); !properties && fields != len(want) {
		t.Errorf("%s: %d fields instead of %d", name, fields, len(want))
	}
	for key, encoded := range want {
		field := got.FieldByName(goName(key))
		if !field.IsValid() {
			t.Errorf("%s: %v has no field for %s", name, got.Type(), key)
			continue
		}
		checkField(t, name+": "+key, encoded, field.Interface())
	}
}

// goName is how the package spells a name of the protocol.
func goName(name string) string {
	var spelled strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		switch word {
		case "id":
			word = "ID"
		case "nowait":
			word = "NoWait"
		}
		spelled.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return spelled.String()
}

func checkField(t *testing.T, name string, encoded json.RawMessage, got any) {
	t.Helper()
	fine := false
	switch got := got.(type) {
	case bool:
		fine = got == decoded[bool](t, encoded)
	case uint8:
		fine = got == decoded[uint8](t, encoded)
	case uint16:
		fine = got == decoded[uint16](t, encoded)
	case amqp.ReplyCode:
		fine = uint16(got) == decoded[uint16](t, encoded)
	case uint32:
		fine = got == decoded[uint32](t, encoded)
	case uint64:
		fine = got == decoded[uint64](t, encoded)
	case time.Time:
		fine = uint64(got.Unix()) == decoded[uint64](t, encoded)
	case string:
		fine = got == string(decoded[text](t, encoded))
	case []byte:
		fine = string(got) == string(decoded[text](t, encoded))
	case amqp.TableView:
		fine = bytes.Equal(got, tableEntries(t, encoded))
	case map[string]any:
		fine = canonical(got) == canonical(ownedTable(t, encoded))
	}
	if !fine {
		t.Errorf("%s: %T %v instead of %.100s", name, got, got, encoded)
	}
}

func decoded[T any](t *testing.T, encoded json.RawMessage) (value T) {
	t.Helper()
	if err := json.Unmarshal(encoded, &value); err != nil {
		t.Fatalf("%v in %.100s", err, encoded)
	}
	return value
}

func checkGenericFields(t *testing.T, v *vector) {
	t.Helper()
	seen := 0
	for field, err := range amqp.ParseFields(v.Bytes) {
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			return
		}
		seen++
		checkGenericField(t, v.Name, v.Fields[field.Name], field)
	}
	if seen != len(v.Fields) {
		t.Errorf("%s: %d fields instead of %d", v.Name, seen, len(v.Fields))
	}
}

func checkGenericField(t *testing.T, name string, encoded json.RawMessage, field amqp.Field) {
	t.Helper()
	var got any = field.Uint64()
	switch field.Kind {
	case amqp.KindBit:
		got = field.Bool()
	case amqp.KindShortString, amqp.KindLongString:
		got = field.Bytes()
	case amqp.KindTable:
		got = field.Table()
	}
	checkField(t, name+": "+field.Name, encoded, got)
}

// checkWritten holds what a method is written as against the vector, in all ways of writing it.
func checkWritten(t *testing.T, v *vector, method amqp.Method) {
	t.Helper()
	if got := method.AppendTo([]byte("kept")); string(got) != "kept"+string(v.written()) {
		t.Errorf("%s: %T written as %x", v.Name, method, got)
	}
	if got, err := method.AppendBinary(nil); err != nil || !bytes.Equal(got, v.written()) {
		t.Errorf("%s: %T written as %x, %v", v.Name, method, got, err)
	}
	want := amqp.Frame{Type: amqp.FrameMethod, Channel: 9, Payload: v.written()}
	if got, err := method.AppendFrame(nil, 9); err != nil || !bytes.Equal(got, want.AppendTo(nil)) {
		t.Errorf("%s: %T written as the frame %x, %v", v.Name, method, got, err)
	}
}

// checkWrittenInAnyOrder is checkWritten for owned methods, whose maps come in any order and without a key twice.
func checkWrittenInAnyOrder(t *testing.T, v *vector, method amqp.OwnedMethod) {
	t.Helper()
	for _, encoded := range v.Fields {
		if bytes.HasPrefix(encoded, []byte("[[")) {
			back := reflect.New(reflect.TypeOf(method).Elem()).Interface().(amqp.OwnedMethod)
			if err := back.UnmarshalBinary(method.AppendTo(nil)); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
			checkFields(t, v.Name, v.Fields, reflect.ValueOf(back).Elem())
			return
		}
	}
	checkWritten(t, v, method)
}

func wantTruncated(t *testing.T, name string, end int, err error) {
	t.Helper()
	var failure *amqp.DecodeError
	if !errors.Is(err, amqp.ErrTruncated) || !errors.As(err, &failure) || failure.Offset > end {
		t.Errorf("%s, first %d bytes: %v", name, end, err)
	}
}

func TestContentHeadersReadAndWriteAsTheVectorsSay(t *testing.T) {
	for _, v := range vectors(t, "headers.json") {
		var header amqp.ContentHeaderView
		if err := header.Parse(v.Bytes); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if header.ClassID != v.ClassID || header.BodySize != v.BodySize || header.Properties.Validate() != nil {
			t.Errorf("%s: read as %v, %v", v.Name, header, header.Properties.Validate())
		}
		var view amqp.PropertiesView
		if err := view.Parse(header.Properties); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		checkFields(t, v.Name, v.Properties, reflect.ValueOf(view))
		checkProperties(t, &v, header.Properties)
		checkHeaderWritten(t, &v, &header, &view)
		for end := range v.Bytes {
			wantTruncated(t, v.Name, end, header.Parse(v.Bytes[:end]))
		}
	}
}

// checkProperties reads single properties, those that are there and those that are not.
func checkProperties(t *testing.T, v *vector, raw amqp.RawProperties) {
	t.Helper()
	for i := range reflect.TypeFor[amqp.Properties]().NumField() {
		name := reflect.TypeFor[amqp.Properties]().Field(i).Name
		accessor := reflect.ValueOf(raw).MethodByName(name)
		if name == "Flags" {
			continue
		}
		results := accessor.Call(nil)
		there := false
		for key, encoded := range v.Properties {
			if goName(key) == name {
				there = true
				checkField(t, v.Name+": "+key, encoded, results[0].Interface())
			}
		}
		if results[1].Bool() != there || (!there && !results[0].IsZero()) {
			t.Errorf("%s: %s is %v, %v", v.Name, name, results[0], results[1])
		}
	}
	seen := 0
	for field := range raw.Fields() {
		seen++
		checkGenericField(t, v.Name, v.Properties[field.Name], field)
	}
	if seen != len(v.Properties) {
		t.Errorf("%s: %d properties instead of %d", v.Name, seen, len(v.Properties))
	}
}

func checkHeaderWritten(t *testing.T, v *vector, header *amqp.ContentHeaderView, view *amqp.PropertiesView) {
	t.Helper()
	if got := header.AppendTo([]byte("kept")); string(got) != "kept"+string(v.Bytes) {
		t.Errorf("%s: written as %x", v.Name, got)
	}
	if got := view.AppendTo([]byte("kept")); string(got) != "kept"+string(v.Bytes[12:]) {
		t.Errorf("%s: properties written as %x", v.Name, got)
	}
	frame := amqp.Frame{Type: amqp.FrameHeader, Channel: 9, Payload: v.Bytes}
	if got, err := header.AppendFrame(nil, 9); err != nil || !bytes.Equal(got, frame.AppendTo(nil)) {
		t.Errorf("%s: written as the frame %x, %v", v.Name, got, err)
	}
	var owned, again amqp.ContentHeader
	if err := owned.UnmarshalBinary(v.Bytes); err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	back := owned.AppendTo(nil)
	if err := again.UnmarshalBinary(back); err != nil || len(back) > len(v.Bytes) || again.BodySize != v.BodySize {
		t.Errorf("%s: owned written as %x, read with %v", v.Name, back, err)
	}
	if again.Properties.Flags != view.Flags {
		t.Errorf("%s: flags %x instead of %x", v.Name, again.Properties.Flags, view.Flags)
	}
	for key, encoded := range v.Properties {
		checkField(t, v.Name+": "+key, encoded, reflect.ValueOf(again.Properties).FieldByName(goName(key)).Interface())
	}
}

func TestTablesReadAndWriteAsTheVectorsSay(t *testing.T) {
	for _, v := range vectors(t, "tables.json") {
		table, n, err := amqp.ParseTable(v.Bytes)
		if err != nil || n != len(v.Bytes) || table.Validate() != nil {
			t.Fatalf("%s: %d bytes, %v, %v", v.Name, n, err, table.Validate())
		}
		if want := tableEntries(t, v.Table); !bytes.Equal(want, v.written()[4:]) {
			t.Errorf("%s: the vector's value is written as %x", v.Name, want)
		}
		if got := table.AppendTo([]byte("kept")); string(got) != "kept"+string(v.Bytes) {
			t.Errorf("%s: written as %x", v.Name, got)
		}
		checkField(t, v.Name, v.Table, mustMap(t, table))
		checkEntries(t, &v, table)
		for end := range min(len(v.Bytes), 2000) {
			wantTruncated(t, v.Name, end, readTable(v.Bytes[:end]))
		}
	}
}

func mustMap(t *testing.T, table amqp.TableView) map[string]any {
	t.Helper()
	owned, err := table.Map()
	if err != nil {
		t.Fatal(err)
	}
	return owned
}

// checkEntries writes a table's entries one by one, as views.
func checkEntries(t *testing.T, v *vector, table amqp.TableView) {
	t.Helper()
	var back []byte
	for entry, err := range table.All() {
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		back = append(append(back, byte(len(entry.Key))), entry.Key...)
		back = entry.Value.AppendTo(back)
		value, ok, err := table.Get(string(entry.Key))
		if !ok || err != nil || !reflect.DeepEqual(value, firstOf(table, entry.Key)) {
			t.Errorf("%s: %q is %v, %v, %v", v.Name, entry.Key, value, ok, err)
		}
	}
	// Views keep a truth value's byte; the tag L becomes l.
	if got := bytes.ReplaceAll(v.Bytes[4:], []byte("\x01kL"), []byte("\x01kl")); !bytes.Equal(got, back) {
		t.Errorf("%s: entries written as %x", v.Name, back)
	}
}

func firstOf(table amqp.TableView, key []byte) amqp.Value {
	for entry := range table.All() {
		if bytes.Equal(entry.Key, key) {
			return entry.Value
		}
	}
	return amqp.Value{}
}

// readTable reads all of a table that has its length before it, both as a view and as an owned value.
func readTable(b []byte) error {
	table, _, err := amqp.ParseTable(b)
	if err != nil {
		return err
	}
	err = table.Validate()
	_, ownedErr := table.Map()
	if !reflect.DeepEqual(err, ownedErr) {
		return errors.Join(errors.New("both ways of reading all of a table agree"), err, ownedErr)
	}
	var failure *amqp.DecodeError
	if errors.As(err, &failure) {
		return &amqp.DecodeError{Offset: failure.Offset + 4, Cause: failure.Cause, Found: failure.Found}
	}
	return err
}
