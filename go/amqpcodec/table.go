package amqpcodec

import "iter"

// A TableView is the encoded entries of a field table, without the length before them. Taking it out of a method costs
// nothing: entries are read when they are asked for, and so a malformed entry is an error of [TableView.All], not of the
// method. nil is the table without entries. Keys may come more than once; the first one counts.
type TableView []byte

// An ArrayView is the encoded elements of an array, without the length before them; otherwise like [TableView].
type ArrayView []byte

// An Entry is a key of a table and its value, both views.
type Entry struct {
	// Key has 255 bytes at most: text by convention, anything in fact.
	Key []byte
	// Value is the value as it is encoded.
	Value Value
}

// ParseTable reads the table that src begins with, its length before it. It returns the view and how many bytes that
// was. Entries are not looked at.
func ParseTable(src []byte) (table TableView, n int, err error) {
	entries, rest, ok := CutLongString(src)
	if !ok {
		return nil, 0, truncated(src, src)
	}
	return entries, len(src) - len(rest), nil
}

// AppendTo appends the length and the entries. It panics when there are more than 4 GiB of them.
func (t TableView) AppendTo(dst []byte) []byte { return must(t.AppendBinary(dst)) }

// AppendBinary appends the length and the entries. The error is that of more than 4 GiB.
func (t TableView) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(t)) {
		return dst, tooLong("table")
	}
	return appendLong(dst, t), nil
}

// All iterates over the entries in their order. An error comes with a zero entry, and is the last thing that comes.
// Tables within stay encoded: who walks down into them minds the depth, or calls [TableView.Validate] before.
func (t TableView) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for at := 0; at < len(t); {
			tagAt, start, end, cause := locateEntry(t, at)
			if cause != nil {
				yield(Entry{}, entryError(t, start, cause))
				return
			}
			if !yield(Entry{t[at+1 : tagAt : tagAt], viewOf(t, tagAt, start, end)}, nil) {
				return
			}
			at = end
		}
	}
}

// Get returns the value of the first entry with this key, and whether there is one. The error is that of a malformed
// entry on the way there.
func (t TableView) Get(key string) (value Value, ok bool, err error) {
	for at := 0; at < len(t); {
		tagAt, start, end, cause := locateEntry(t, at)
		if cause != nil {
			return Value{}, false, entryError(t, start, cause)
		}
		if string(t[at+1:tagAt]) == key {
			return viewOf(t, tagAt, start, end), true, nil
		}
		at = end
	}
	return Value{}, false, nil
}

// Validate reads everything, also in nested tables and arrays, and allocates only for an error: that of a malformed
// entry, or of tables nested deeper than [MaxNesting].
func (t TableView) Validate() error { return validate(t, true, 1) }

// Map returns the owned form, with Go's natural types for the values:
//
//	t bool, b int8, B uint8, s int16, u uint16, I int32, i uint32, l (and L) int64, f float32, d float64,
//	D Decimal, S string, x []byte, T time.Time (UTC), A []any, F map[string]any, V nil
//
// The strings of a table share one allocation, and keep it alive together. An error is as for [TableView.Validate].
func (t TableView) Map() (map[string]any, error) {
	owner := newOwner(t)
	return owner.table(0, len(t), 0)
}

// MapInto is [TableView.Map] into a map that the caller lends, which saves most of the cost. Entries that it has already
// stay, and count as the first of their key. After an error it has some of the entries.
func (t TableView) MapInto(table map[string]any) error {
	owner := newOwner(t)
	return owner.fill(table, 0, len(t), 0)
}

// All iterates over the elements in their order; see [TableView.All].
func (a ArrayView) All() iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		for at := 0; at < len(a); {
			start, end, cause := locate(a, at)
			if cause != nil {
				yield(Value{}, entryError(a, start, cause))
				return
			}
			if !yield(viewOf(a, at, start, end), nil) {
				return
			}
			at = end
		}
	}
}

// Validate reads everything; see [TableView.Validate].
func (a ArrayView) Validate() error { return validate(a, false, 1) }

// Slice returns the owned form; see [TableView.Map].
func (a ArrayView) Slice() ([]any, error) {
	owner := newOwner(a)
	return owner.array(0, len(a), 0)
}

// locateEntry finds the entry that begins at b[at]: its key is b[at+1:tagAt], its value's content b[start:end]. On an
// error, start is where it is wrong.
func locateEntry(b []byte, at int) (tagAt, start, end int, cause error) {
	tagAt = at + 1 + int(b[at])
	if tagAt > len(b) {
		return at, at, at, ErrTruncated
	}
	start, end, cause = locate(b, tagAt)
	return tagAt, start, end, cause
}

// entryError is the error for what is wrong at b[at].
func entryError(b []byte, at int, cause error) error {
	failure := &DecodeError{Offset: at, Cause: cause}
	if cause == ErrUnknownFieldType {
		failure.Found = uint64(b[at])
	}
	return failure
}

// validate reads the entries of a table or the elements of an array, which are level deep.
func validate(b []byte, keys bool, level int) error {
	for at := 0; at < len(b); {
		tagAt, start, end, cause := at, 0, 0, error(nil)
		if keys {
			tagAt, start, end, cause = locateEntry(b, at)
		} else {
			start, end, cause = locate(b, at)
		}
		if cause != nil {
			return entryError(b, start, cause)
		}
		if tag := Tag(b[tagAt]); tag == TagTable || tag == TagArray {
			if level == MaxNesting {
				return &DecodeError{Offset: start, Cause: ErrTooDeep}
			}
			if err := validate(b[start:end], tag == TagTable, level+1); err != nil {
				return shifted(err, start)
			}
		}
		at = end
	}
	return nil
}
