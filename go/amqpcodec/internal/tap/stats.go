package tap

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"courser/amqpcodec"
)

const (
	// finenessBits is how finely durations are told apart: to an eighth.
	finenessBits = 3
	// durationBits is that of the longest duration in nanoseconds that is told from longer ones: a day and more.
	durationBits = 47
)

// A histogram counts durations.
type histogram struct {
	counts [(durationBits + 1) << finenessBits]uint64
	count  uint64
	max    time.Duration
}

// bucket is where a duration is counted; lowest is the shortest one that is counted there.
func bucket(d time.Duration) int {
	ns := uint64(max(d, 0))
	if ns < 1<<finenessBits {
		return int(ns)
	}
	power := min(bits.Len64(ns)-1, durationBits)
	within := ns >> (power - finenessBits) & (1<<finenessBits - 1)
	return min((power-finenessBits+1)<<finenessBits+int(within), (durationBits+1)<<finenessBits-1)
}

func lowest(bucket int) time.Duration {
	if bucket < 1<<finenessBits {
		return time.Duration(bucket)
	}
	power, within := bucket>>finenessBits-1, bucket&(1<<finenessBits-1)
	return time.Duration((1<<finenessBits + within)) << power
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)]++
	h.count++
	h.max = max(h.max, d)
}

// quantile is the duration that a share of all do not exceed, to an eighth of it.
func (h *histogram) quantile(share float64) time.Duration {
	rank, seen := uint64(share*float64(h.count)), uint64(0)
	for i, count := range h.counts {
		if seen += count; count > 0 && seen > rank {
			return min(lowest(i+1), h.max)
		}
	}
	return h.max
}

// stats are what was seen of each method.
type stats struct {
	passed  map[amqpcodec.MethodID]*[2]uint64
	answers map[amqpcodec.MethodID]*histogram
}

func (s *stats) saw(id amqpcodec.MethodID, from side) {
	if s.passed == nil {
		s.passed = map[amqpcodec.MethodID]*[2]uint64{}
	}
	counts := s.passed[id]
	if counts == nil {
		counts = new([2]uint64)
		s.passed[id] = counts
	}
	counts[from]++
}

func (s *stats) answered(id amqpcodec.MethodID, after time.Duration) {
	if s.answers == nil {
		s.answers = map[amqpcodec.MethodID]*histogram{}
	}
	h := s.answers[id]
	if h == nil {
		h = new(histogram)
		s.answers[id] = h
	}
	h.add(after)
}

// table is a line for each method that passed: how often, and how long its answers took.
func (s *stats) table() string {
	if len(s.passed) == 0 {
		return ""
	}
	ids := make([]amqpcodec.MethodID, 0, len(s.passed))
	for id := range s.passed {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b amqpcodec.MethodID) int { return cmp.Compare(a, b) })
	var text strings.Builder
	fmt.Fprintf(&text, "%-28s %10s %10s %10s %12s %12s %12s\n", "method", "client", "broker", "answered", "median ms", "99 % ms", "max ms")
	for _, id := range ids {
		fmt.Fprintf(&text, "%-28s %10d %10d", id, s.passed[id][client], s.passed[id][broker])
		if h := s.answers[id]; h != nil {
			fmt.Fprintf(&text, " %10d %12s %12s %12s", h.count, milliseconds(h.quantile(0.5)), milliseconds(h.quantile(0.99)), milliseconds(h.max))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// milliseconds is a duration in milliseconds, to the microsecond.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond))
}
