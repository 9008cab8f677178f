package amqpcodec

import (
	"encoding/binary"
	"math"
	"time"
)

// A TableWriter appends the entries of a field table to a buffer that its caller lends: a table without a map. Its
// first error stays, and ends the writing; [TableWriter.Table] returns it.
//
// The zero value writes to a buffer of its own.
type TableWriter struct {
	buf []byte
	// start is where the entries of the whole table begin, open where the length of the innermost table does that is
	// being written, 0 when there is none. Until a table is closed, its length holds the open of the one around it.
	start, open, level int
	err                error
}

// NewTableWriter returns a writer that appends to dst.
func NewTableWriter(dst []byte) TableWriter { return TableWriter{buf: dst, start: len(dst)} }

// Reset begins a new table in dst.
func (w *TableWriter) Reset(dst []byte) { *w = NewTableWriter(dst) }

// Table returns the entries that were written. They lie behind what the lent buffer held, until [TableWriter.Reset]
// or another use of it.
func (w *TableWriter) Table() (TableView, error) {
	if w.err == nil && w.open != 0 {
		w.err = &EncodeError{Cause: ErrUnbalancedTable}
	}
	if w.err != nil {
		return nil, w.err
	}
	return TableView(w.buf[w.start:len(w.buf):len(w.buf)]), nil
}

// key appends a key and the tag behind it, and reports whether the value may follow.
func (w *TableWriter) key(key string, tag Tag) bool {
	if w.err != nil {
		return false
	}
	if len(key) > maxShortLen {
		w.err = tooLong(key[:maxShortLen])
		return false
	}
	w.buf = append(w.buf, byte(len(key)))
	w.buf = append(w.buf, key...)
	w.buf = append(w.buf, byte(tag))
	return true
}

// Put appends an entry of any type that [AppendMap] takes. The other methods cost less.
func (w *TableWriter) Put(key string, value any) {
	if !w.key(key, 0) {
		return
	}
	// Without the tag, which comes with the value.
	written, err := appendAny(w.buf[:len(w.buf)-1], value, w.level+1)
	if err != nil {
		w.err = within(key, err)
		return
	}
	w.buf = written
}

// PutString appends a long string.
func (w *TableWriter) PutString(key, value string) {
	if w.key(key, TagLongString) {
		w.long(key, len(value))
		w.buf = append(w.buf, value...)
	}
}

// PutBytes appends bytes that are no text ([TagBytes]).
func (w *TableWriter) PutBytes(key string, value []byte) {
	if w.key(key, TagBytes) {
		w.long(key, len(value))
		w.buf = append(w.buf, value...)
	}
}

// PutTable appends a table that is encoded already. It is not looked into.
func (w *TableWriter) PutTable(key string, value TableView) {
	if w.key(key, TagTable) {
		w.long(key, len(value))
		w.buf = append(w.buf, value...)
	}
}

// PutArray appends an array that is encoded already. It is not looked into.
func (w *TableWriter) PutArray(key string, value ArrayView) {
	if w.key(key, TagArray) {
		w.long(key, len(value))
		w.buf = append(w.buf, value...)
	}
}

func (w *TableWriter) long(key string, size int) {
	if !fitsLong(size) {
		w.err = tooLong(key)
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(size))
}

// PutBool appends a truth value.
func (w *TableWriter) PutBool(key string, value bool) {
	if w.key(key, TagBool) {
		w.buf = append(w.buf, bit(value))
	}
}

// PutInt32 appends a signed integer of 32 bits.
func (w *TableWriter) PutInt32(key string, value int32) {
	if w.key(key, TagInt32) {
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(value))
	}
}

// PutInt64 appends a signed integer of 64 bits.
func (w *TableWriter) PutInt64(key string, value int64) {
	if w.key(key, TagInt64) {
		w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(value))
	}
}

// PutFloat64 appends a floating-point number of 64 bits.
func (w *TableWriter) PutFloat64(key string, value float64) {
	if w.key(key, TagFloat64) {
		w.buf = binary.BigEndian.AppendUint64(w.buf, math.Float64bits(value))
	}
}

// PutTime appends a time in whole seconds.
func (w *TableWriter) PutTime(key string, value time.Time) {
	if w.key(key, TagTimestamp) {
		w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(value.Unix()))
	}
}

// BeginTable appends a table whose entries are those written until [TableWriter.EndTable].
func (w *TableWriter) BeginTable(key string) {
	if !w.key(key, TagTable) {
		return
	}
	if w.level++; w.level == MaxNesting {
		w.err = &EncodeError{Path: []string{key}, Cause: ErrTooDeep}
		return
	}
	around := w.open
	if w.open = len(w.buf); !fitsLong(w.open) {
		w.err = tooLong(key)
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(around))
}

// EndTable ends the table that was begun last and is not ended yet.
func (w *TableWriter) EndTable() {
	if w.err != nil {
		return
	}
	if w.open == 0 {
		w.err = &EncodeError{Cause: ErrUnbalancedTable}
		return
	}
	around := int(binary.BigEndian.Uint32(w.buf[w.open:]))
	if w.buf, w.err = patchLength(w.buf, w.open); w.err == nil {
		w.open = around
		w.level--
	}
}
