package amqpcodec_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	amqp "courser/amqpcodec"
)

var (
	_ encoding.BinaryAppender    = (*amqp.Frame)(nil)
	_ encoding.BinaryMarshaler   = (*amqp.Frame)(nil)
	_ encoding.BinaryUnmarshaler = (*amqp.Frame)(nil)
	_ encoding.BinaryAppender    = (*amqp.ContentHeader)(nil)
	_ encoding.BinaryUnmarshaler = (*amqp.ContentHeader)(nil)
	_ encoding.BinaryAppender    = (*amqp.ContentHeaderView)(nil)
	_ encoding.BinaryAppender    = (amqp.Method)(nil)
	_ encoding.BinaryUnmarshaler = (amqp.OwnedMethod)(nil)
	_ amqp.MethodView            = (*amqp.BasicAck)(nil)
	_ amqp.OwnedMethod           = (*amqp.BasicAck)(nil)
)

// named types such as other packages have.
type (
	otherTable map[string]any
	otherList  []any
)

func TestMapsOfAllTypesComeBack(t *testing.T) {
	when := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	view, _ := amqp.TableView("\x01kV").Map()
	given := map[string]any{
		"bool": true, "int8": int8(-8), "uint8": uint8(8), "int16": int16(-16), "uint16": uint16(16),
		"int32": int32(-32), "uint32": uint32(32), "int64": int64(-64), "float32": float32(1.5), "float64": -2.5,
		"decimal": amqp.Decimal{Scale: 2, Digits: 314}, "string": "text", "bytes": []byte{0, 255}, "time": when,
		"list": []any{"a", int32(1), []any{}, map[string]any{}}, "table": map[string]any{"inner": nil}, "void": nil,
	}
	data, err := amqp.AppendMap([]byte("kept"), given)
	if err != nil || string(data[:4]) != "kept" {
		t.Fatal(err)
	}
	table, n, err := amqp.ParseTable(data[4:])
	if err != nil || n != len(data)-4 {
		t.Fatal(n, err)
	}
	if back := mustMap(t, table); canonical(back) != canonical(given) {
		t.Errorf("%v instead of %v", back, given)
	}

	value, _, _ := table.Get("list")
	others := map[string]any{
		"int": 5, "uint": uint(6), "uint64": uint64(math.MaxInt64), "strings": []string{"a", "b"},
		"otherTable": otherTable{"k": otherList{int32(7)}}, "view": amqp.TableView("\x01kV"),
		"array": amqp.ArrayView("V"), "value": value,
	}
	want := map[string]any{
		"int": int64(5), "uint": int64(6), "uint64": int64(math.MaxInt64), "strings": []any{"a", "b"},
		"otherTable": map[string]any{"k": []any{int32(7)}}, "view": view,
		"array": []any{nil}, "value": given["list"],
	}
	data, err = amqp.AppendMap(nil, others)
	if err != nil {
		t.Fatal(err)
	}
	if back := mustMap(t, data[4:]); canonical(back) != canonical(want) {
		t.Errorf("%v instead of %v", back, want)
	}
}

func TestTypedMapsAndSlicesAreWritten(t *testing.T) {
	type key string
	type level int16
	type part byte
	type digest [2]part
	given := map[string]any{
		"labels": map[string]string{"a": "b"}, "named": map[key]level{"k": -1}, "numbers": []int32{1, -2},
		"floats": [2]float64{0.5, 2}, "tables": []map[string]bool{{"t": true}}, "digest": digest{1, 255},
		"levels": []level{7}, "raw": json.RawMessage("{}"), "times": []time.Time{time.Unix(5, 0).UTC()}, "none": []int(nil),
	}
	want := map[string]any{
		"labels": map[string]any{"a": "b"}, "named": map[string]any{"k": int16(-1)}, "numbers": []any{int32(1), int32(-2)},
		"floats": []any{0.5, 2.0}, "tables": []any{map[string]any{"t": true}}, "digest": []byte{1, 255},
		"levels": []any{int16(7)}, "raw": []byte("{}"), "times": []any{time.Unix(5, 0).UTC()}, "none": []any{},
	}
	data, err := amqp.AppendMap(nil, given)
	if err != nil {
		t.Fatal(err)
	}
	if back := mustMap(t, data[4:]); canonical(back) != canonical(want) {
		t.Errorf("%v instead of %v", back, want)
	}
	for name, value := range map[string]any{
		"map[int]string": map[int]string{1: "a"}, "chan int": make(chan int), "*int": new(int), "complex128": []complex128{1i},
	} {
		if _, err := amqp.AppendMap(nil, map[string]any{"x": value}); err == nil || !strings.HasSuffix(err.Error(), "for the type "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeWrittenIsRefusedWithItsPath(t *testing.T) {
	long := strings.Repeat("k", 256)
	itself := map[string]any{}
	itself["x"] = []any{itself}
	cases := []struct {
		name  string
		value encoding.BinaryAppender
		cause error
		text  string
	}{
		{"short string", &amqp.BasicPublish{RoutingKey: long}, amqp.ErrTooLong, "basic.publish: routing-key: too long"},
		{"view", &amqp.BasicPublishView{Exchange: []byte(long)}, amqp.ErrTooLong, "basic.publish: exchange: too long"},
		{"type", &amqp.QueueDeclare{Arguments: map[string]any{"x": map[string]any{"y": 1i}}}, amqp.ErrUnsupportedType,
			"queue.declare: arguments: x: y: no field-table form for the type complex128"},
		{"key", &amqp.QueueDeclare{Arguments: map[string]any{long: 1}}, amqp.ErrTooLong, "arguments: " + long[:255] + ": too long"},
		{"number", &amqp.QueueDeclare{Arguments: map[string]any{"n": uint64(1 << 63)}}, amqp.ErrOutOfRange, "n: out of range"},
		{"itself", &amqp.QueueDeclare{Arguments: itself}, amqp.ErrTooDeep, "x: x: x: "},
		{"bad view", &amqp.QueueDeclare{Arguments: map[string]any{"v": amqp.TableView("\x01kq")}}, amqp.ErrUnknownFieldType, "v: "},
		{"no value", &amqp.QueueDeclare{Arguments: map[string]any{"v": amqp.Value{}}}, amqp.ErrUnsupportedType, "v: "},
		{"property", &amqp.Properties{AppID: long}, amqp.ErrTooLong, "properties: app-id: too long"},
		{"property view", &amqp.PropertiesView{AppID: []byte(long)}, amqp.ErrTooLong, "properties: app-id: too long"},
		{"headers", &amqp.ContentHeader{Properties: amqp.Properties{Headers: map[string]any{"h": struct{}{}}}},
			amqp.ErrUnsupportedType, "properties: headers: h: no field-table form for the type struct {}"},
	}
	for _, c := range cases {
		lent := []byte("kept")
		back, err := c.value.AppendBinary(lent)
		var failure *amqp.EncodeError
		if !errors.Is(err, c.cause) || !errors.As(err, &failure) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if string(back) != "kept" {
			t.Errorf("%s: the buffer came back as %q", c.name, back)
		}
		if framed, ok := c.value.(amqp.Method); ok {
			if back, err := framed.AppendFrame(lent, 1); !errors.Is(err, c.cause) || string(back) != "kept" {
				t.Errorf("%s: frame %q, %v", c.name, back, err)
			}
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, c.cause) {
						t.Errorf("%s: AppendTo did not panic but with %v", c.name, err)
					}
				}()
				framed.AppendTo(nil)
			}()
		}
	}
}

func TestNestingIsBoundedWhenWriting(t *testing.T) {
	nested := func(levels int) map[string]any {
		table := map[string]any{}
		for range levels - 1 {
			table = map[string]any{"k": table}
		}
		return table
	}
	data, err := amqp.AppendMap(nil, nested(amqp.MaxNesting))
	if err != nil || amqp.TableView(data[4:]).Validate() != nil {
		t.Error(err, amqp.TableView(data[4:]).Validate())
	}
	if _, err := amqp.AppendMap(nil, nested(amqp.MaxNesting+1)); !errors.Is(err, amqp.ErrTooDeep) {
		t.Error(err)
	}
	view := amqp.TableView(data[4:])
	if _, err := amqp.AppendMap(nil, map[string]any{"k": view}); !errors.Is(err, amqp.ErrTooDeep) {
		t.Error(err)
	}
	lists := []any{}
	for range amqp.MaxNesting - 2 {
		lists = []any{lists}
	}
	if _, err := amqp.AppendMap(nil, map[string]any{"k": lists}); err != nil {
		t.Error(err)
	}
	if _, err := amqp.AppendMap(nil, map[string]any{"k": []any{lists}}); !errors.Is(err, amqp.ErrTooDeep) {
		t.Error(err)
	}
}

func TestATableWriterWritesWhatAMapWould(t *testing.T) {
	when := time.Unix(1609459200, 0)
	writer := amqp.NewTableWriter([]byte("kept"))
	writer.PutString("string", "text")
	writer.PutBytes("bytes", []byte{1, 2})
	writer.PutBool("bool", true)
	writer.BeginTable("table")
	writer.PutInt32("int32", -1)
	writer.BeginTable("inner")
	writer.EndTable()
	writer.PutInt64("int64", 1<<40)
	writer.EndTable()
	writer.PutFloat64("float64", 0.5)
	writer.PutTime("time", when)
	writer.PutTable("view", amqp.TableView("\x01kV"))
	writer.PutArray("array", amqp.ArrayView("VV"))
	writer.Put("any", []any{"a", uint16(1)})
	table, err := writer.Table()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"string": "text", "bytes": []byte{1, 2}, "bool": true, "float64": 0.5, "time": when.UTC(),
		"table": map[string]any{"int32": int32(-1), "inner": map[string]any{}, "int64": int64(1 << 40)},
		"view":  map[string]any{"k": nil}, "array": []any{nil, nil}, "any": []any{"a", uint16(1)},
	}
	if got := mustMap(t, table); canonical(got) != canonical(want) {
		t.Errorf("%v instead of %v", got, want)
	}
}

func TestAnEncodeErrorSaysWhatCannotBeWrittenAndWhy(t *testing.T) {
	for want, failure := range map[string]*amqp.EncodeError{
		"amqpcodec: cannot write: tables begun and ended do not match": {Cause: amqp.ErrUnbalancedTable},
		"amqpcodec: cannot write a: b: too long":                       {Path: []string{"a", "b"}, Cause: amqp.ErrTooLong},
		"amqpcodec: cannot write k: no field-table form for the type complex128": {
			Path: []string{"k"}, Cause: amqp.ErrUnsupportedType, Type: "complex128",
		},
	} {
		if failure.Error() != want {
			t.Errorf("%q instead of %q", failure.Error(), want)
		}
	}
}

func TestATableWriterKeepsItsFirstError(t *testing.T) {
	long := strings.Repeat("k", 256)
	cases := map[string]struct {
		fill func(w *amqp.TableWriter)
		want error
	}{
		"key":   {func(w *amqp.TableWriter) { w.PutBool(long, true) }, amqp.ErrTooLong},
		"value": {func(w *amqp.TableWriter) { w.Put("k", 1i) }, amqp.ErrUnsupportedType},
		"open":  {func(w *amqp.TableWriter) { w.BeginTable("k") }, amqp.ErrUnbalancedTable},
		"ended": {func(w *amqp.TableWriter) { w.EndTable() }, amqp.ErrUnbalancedTable},
		"depth": {func(w *amqp.TableWriter) {
			for range amqp.MaxNesting {
				w.BeginTable("k")
			}
		}, amqp.ErrTooDeep},
		"deep value": {func(w *amqp.TableWriter) {
			for range amqp.MaxNesting - 1 {
				w.BeginTable("k")
			}
			w.Put("k", map[string]any{})
		}, amqp.ErrTooDeep},
	}
	for name, c := range cases {
		var writer amqp.TableWriter
		c.fill(&writer)
		writer.PutInt32("later", 1)
		writer.BeginTable("later")
		writer.EndTable()
		if table, err := writer.Table(); !errors.Is(err, c.want) || table != nil {
			t.Errorf("%s: %x, %v", name, table, err)
		}
		writer.Reset(nil)
		writer.PutInt32("k", 1)
		if table, err := writer.Table(); err != nil || len(table) != 7 {
			t.Errorf("%s: after a reset %x, %v", name, table, err)
		}
	}
}

func TestOwnedValuesOutliveTheirInputAndViewsDoNot(t *testing.T) {
	declare := amqp.QueueDeclare{Queue: "orders", Arguments: map[string]any{"x": "value", "b": []byte("bytes")}}
	payload := declare.AppendTo(nil)
	var view amqp.QueueDeclareView
	if err := view.Parse(payload); err != nil {
		t.Fatal(err)
	}
	owned, err := view.Owned()
	if err != nil {
		t.Fatal(err)
	}
	// A view cannot be appended to over what follows it.
	_ = append(view.Queue, '!')
	if err := view.Parse(payload); err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		payload[i] = 'z'
	}
	if owned.Queue != "orders" || canonical(owned.Arguments) != canonical(declare.Arguments) {
		t.Errorf("%v", owned)
	}
	if !bytes.Equal(view.Queue, []byte("zzzzzz")) {
		t.Errorf("%q", view.Queue)
	}
}

func TestAMapThatIsLentKeepsItsEntries(t *testing.T) {
	table := amqp.TableView("\x01aI\x00\x00\x00\x01\x01bI\x00\x00\x00\x02\x01bI\x00\x00\x00\x03")
	lent := map[string]any{"a": "mine"}
	if err := table.MapInto(lent); err != nil || lent["a"] != "mine" || lent["b"] != int32(2) {
		t.Errorf("%v, %v", lent, err)
	}
}
