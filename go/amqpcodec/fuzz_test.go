package amqpcodec_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	amqp "courser/amqpcodec"
)

// Any bytes must give a value or an error, never a panic; all ways of reading them must agree; and what was read must
// be read the same again when it is written. Beside the vectors, testdata/fuzz has what the fuzzer found worth keeping.

func FuzzFrames(f *testing.F) {
	for _, file := range []string{"frames.json", "malformed.json"} {
		for _, v := range vectors(f, file) {
			f.Add([]byte(v.Bytes), v.FrameMax)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, frameMax uint32) {
		if frameMax == 0 {
			frameMax = amqp.DefaultFrameMax
		}
		whole := readFrames(bytes.NewReader(stream), frameMax)
		cut := readFrames(iotest.OneByteReader(bytes.NewReader(stream)), frameMax)
		if !reflect.DeepEqual(whole, cut) {
			t.Fatalf("%+v and, byte by byte, %+v", whole, cut)
		}
		if !bytes.HasPrefix(stream, whole.written) {
			t.Fatalf("%x written as %x", stream, whole.written)
		}
		single, source := amqp.Frame{}, bytes.NewReader(stream)
		for range whole.frames {
			if err := amqp.ReadFrame(source, &single, frameMax); err != nil {
				t.Fatal(err)
			}
		}
		if err := amqp.ReadFrame(source, &single, frameMax); err == nil {
			t.Fatalf("one frame more than %d: %v", whole.frames, single)
		}
	})
}

// readResult is what a reader makes of a stream.
type readResult struct {
	frames  int
	written []byte
	failure string
}

func readFrames(source io.Reader, frameMax uint32) (result readResult) {
	reader := amqp.NewReaderSize(source, 0)
	reader.SetFrameMax(frameMax)
	for {
		frame, err := reader.Next()
		if err != nil {
			result.failure = err.Error()
			return result
		}
		result.frames++
		result.written = frame.AppendTo(result.written)
	}
}

func FuzzMethod(f *testing.F) {
	for _, file := range []string{"methods.json", "malformed.json"} {
		for _, v := range vectors(f, file) {
			f.Add([]byte(v.Bytes))
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var parser, again amqp.MethodParser
		view, err := parser.Parse(payload)
		var fieldsErr error
		for _, fieldsErr = range amqp.ParseFields(payload) {
		}
		if !reflect.DeepEqual(err, fieldsErr) {
			t.Fatalf("%v, but by its fields %v", err, fieldsErr)
		}
		owned, ownedErr := amqp.UnmarshalMethod(payload)
		if err != nil {
			if !reflect.DeepEqual(err, ownedErr) {
				t.Fatalf("%v, but owned %v", err, ownedErr)
			}
			return
		}
		written := view.AppendTo(nil)
		back, err := again.Parse(written)
		if err != nil || !reflect.DeepEqual(back, view) || len(written) > len(payload) {
			t.Fatalf("%+v written as %x, read as %+v, %v", view, written, back, err)
		}
		if ownedErr != nil {
			checkOffset(t, ownedErr, payload)
			return
		}
		ownedBack, err := amqp.UnmarshalMethod(owned.AppendTo(nil))
		if err != nil || !sameOwned(owned, ownedBack) {
			t.Fatalf("%+v read again as %+v, %v", owned, ownedBack, err)
		}
	})
}

// sameOwned compares the fields of two methods or properties, tables with NaNs in them too.
func sameOwned(first, second any) bool {
	one, two := reflect.Indirect(reflect.ValueOf(first)), reflect.Indirect(reflect.ValueOf(second))
	for i := range one.NumField() {
		if canonical(one.Field(i).Interface()) != canonical(two.Field(i).Interface()) {
			return false
		}
	}
	return one.Type() == two.Type()
}

func checkOffset(t *testing.T, err error, input []byte) {
	t.Helper()
	var failure *amqp.DecodeError
	if !errors.As(err, &failure) || failure.Offset < 0 || failure.Offset > len(input) || failure.Error() == "" {
		t.Fatalf("%v in %d bytes", err, len(input))
	}
}

func FuzzContentHeader(f *testing.F) {
	for _, file := range []string{"headers.json", "malformed.json"} {
		for _, v := range vectors(f, file) {
			f.Add([]byte(v.Bytes))
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var view amqp.ContentHeaderView
		var owned amqp.ContentHeader
		err, ownedErr := view.Parse(payload), owned.UnmarshalBinary(payload)
		if err == nil {
			err = readHeader(payload)
		}
		if !reflect.DeepEqual(err, ownedErr) {
			t.Fatalf("%v, but owned %v", err, ownedErr)
		}
		if err != nil {
			checkOffset(t, err, payload)
			return
		}
		if written := view.AppendTo(nil); !bytes.Equal(written, payload) {
			t.Fatalf("%x written as %x", payload, written)
		}
		var properties amqp.PropertiesView
		if err := properties.Parse(view.Properties); err != nil {
			t.Fatal(err)
		}
		if written := properties.AppendTo(nil); !bytes.Equal(written, payload[12:]) {
			t.Fatalf("%x written as %x", payload, written)
		}
		for field := range view.Properties.Fields() {
			if field.Name == "" {
				t.Fatal("a property without a name")
			}
		}
		var back amqp.ContentHeader
		if err := back.UnmarshalBinary(owned.AppendTo(nil)); err != nil || !sameOwned(owned.Properties, back.Properties) {
			t.Fatalf("%+v read again as %+v, %v", owned, back, err)
		}
	})
}

func FuzzTable(f *testing.F) {
	for _, file := range []string{"tables.json", "malformed.json"} {
		for _, v := range vectors(f, file) {
			f.Add([]byte(v.Bytes[min(4, len(v.Bytes)):]))
		}
	}
	f.Fuzz(func(t *testing.T, entries []byte) {
		table := amqp.TableView(entries)
		err := table.Validate()
		owned, ownedErr := table.Map()
		if !reflect.DeepEqual(err, ownedErr) {
			t.Fatalf("%v, but owned %v", err, ownedErr)
		}
		if err != nil {
			checkOffset(t, err, entries)
			return
		}
		var written []byte
		for entry, err := range table.All() {
			if err != nil {
				t.Fatal(err)
			}
			written, _ = amqp.AppendShortString(written, entry.Key)
			written = entry.Value.AppendTo(written)
			if _, err := entry.Value.Any(); err != nil {
				t.Fatal(err)
			}
		}
		if len(written) != len(entries) {
			t.Fatalf("%x written as %x", entries, written)
		}
		encoded, err := amqp.AppendMap(nil, owned)
		if err != nil {
			t.Fatal(err)
		}
		if back := mustMap(t, encoded[4:]); canonical(back) != canonical(owned) {
			t.Fatalf("%v read again as %v", owned, back)
		}
	})
}
