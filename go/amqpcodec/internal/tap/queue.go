package tap

import (
	"sync"
	"unsafe"
)

const (
	// queueMax is how many bytes of records wait for the printer at most, and as many again are being printed.
	queueMax = 4 << 20
	// recordSize is what a record costs beside its bytes.
	recordSize = int(unsafe.Sizeof(record{}))
)

// A batch is records in their order, with the bytes that go with them.
type batch struct {
	records []record
	data    []byte
	// missed is how many frames there was no room for; they came after the last one of the records.
	missed int64
}

// of returns the bytes of a record of the batch.
func (b *batch) of(r *record) []byte { return b.data[r.data.start:r.data.end] }

func (b *batch) size() int { return len(b.data) + len(b.records)*recordSize }

func (b *batch) clear() {
	clear(b.records)
	b.records, b.data, b.missed = b.records[:0], b.data[:0], 0
}

// A queue takes records from the relays, never waiting, and gives them to the printer in batches.
type queue struct {
	mutex   sync.Mutex
	filling batch
	max     int
	closed  bool
	// ready has a token when there is something to take.
	ready chan struct{}
}

func newQueue(maxBytes int) *queue {
	return &queue{max: maxBytes, ready: make(chan struct{}, 1)}
}

// put adds a record, or counts a frame as missed when there is no room. Events that are no frames are few, and get a
// share of their own.
func (q *queue) put(r record, data []byte) {
	q.mutex.Lock()
	room := q.max
	if r.event != eventFrame {
		room *= 2
	}
	switch {
	case q.closed:
	case q.filling.size()+recordSize+len(data) > room || (q.filling.missed > 0 && r.event == eventFrame):
		q.filling.missed++
	default:
		start := len(q.filling.data)
		q.filling.data = append(q.filling.data, data...)
		r.data = span{start, len(q.filling.data)}
		q.filling.records = append(q.filling.records, r)
	}
	q.mutex.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take waits for records and exchanges them for an empty batch. It returns false when the queue is closed and empty.
func (q *queue) take(taken *batch) bool {
	for range q.ready {
		taken.clear()
		q.mutex.Lock()
		q.filling, *taken = *taken, q.filling
		closed := q.closed
		q.mutex.Unlock()
		if len(taken.records) > 0 || taken.missed > 0 {
			if closed {
				q.wake()
			}
			return true
		}
		if closed {
			return false
		}
	}
	return false
}

// swap exchanges what is in the queue for an empty batch, without waiting.
func (q *queue) swap(taken *batch) {
	taken.clear()
	q.mutex.Lock()
	q.filling, *taken = *taken, q.filling
	q.mutex.Unlock()
}

// close ends the queue once what is in it is taken.
func (q *queue) close() {
	q.mutex.Lock()
	q.closed = true
	q.mutex.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
