package amqpcodec

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// maxShortLen is how many bytes a short string holds.
const maxShortLen = 255

var errShortTooLong = tooLong("short string")

// CutShortString takes a short string off the front of b: up to 255 bytes behind one byte of length. It returns a view
// of them, which cannot be appended to in place, and what is left; or b as it was and false when not all of it is there.
func CutShortString(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || len(b) <= int(b[0]) {
		return nil, b, false
	}
	end := int(b[0]) + 1
	return b[1:end:end], b[end:], true
}

// CutLongString takes what lies behind four bytes of length off the front of b, a long string or the entries of a
// table; otherwise it is like [CutShortString].
func CutLongString(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
		return nil, b, false
	}
	end := int(binary.BigEndian.Uint32(b)) + 4
	return b[4:end:end], b[end:], true
}

// AppendShortString appends a short string. The error is that of more than 255 bytes; dst is then returned as it was.
func AppendShortString[T ~string | ~[]byte](dst []byte, value T) ([]byte, error) {
	// Without a call, so that the compiler puts it in line: room is made by append.
	if len(value) > maxShortLen {
		return dst, errShortTooLong
	}
	if len(value) >= cap(dst)-len(dst) {
		dst = append(dst, make([]byte, 1+len(value))...)[:len(dst)]
	}
	return append(append(dst, byte(len(value))), value...), nil
}

// AppendLongString appends a long string. The error is that of more than 4 GiB; dst is then returned as it was.
func AppendLongString[T ~string | ~[]byte](dst []byte, value T) ([]byte, error) {
	if !fitsLong(len(value)) {
		return dst, tooLong("long string")
	}
	return appendLong(withRoom(dst, 4+len(value), 0), value), nil
}

// withRoom returns dst with room for need bytes more. When it has less, it gets room for further extra ones, which are a
// guess: a buffer that is large enough is never given up for a guess.
func withRoom(dst []byte, need, extra int) []byte {
	if cap(dst)-len(dst) >= need {
		return dst
	}
	return grown(dst, need+extra)
}

func grown(dst []byte, more int) []byte {
	if cap(dst) == 0 {
		return make([]byte, 0, more)
	}
	return slices.Grow(dst, more)
}

// guess is about how many bytes the entries of a map take.
func guess(table map[string]any) int { return 24 * len(table) }

// cutOctet takes a number of 8 bits.
func cutOctet(b []byte) (value uint8, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, b, false
	}
	return b[0], b[1:], true
}

// cutTimestamp takes seconds in 64 bits.
func cutTimestamp(b []byte) (seconds uint64, rest []byte, ok bool) {
	if len(b) < 8 {
		return 0, b, false
	}
	return binary.BigEndian.Uint64(b), b[8:], true
}

// fitsLong reports whether four bytes can say this length.
func fitsLong(length int) bool { return uint64(length) <= math.MaxUint32 }

// bit is a truth value as the lowest bit of a byte.
func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// appendLong appends four bytes of length and what they count; the caller has seen to it that it fits.
func appendLong[T ~string | ~[]byte](dst []byte, value T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// ownedText copies the parts into one string: the strings of a method or of properties cost one allocation together.
func ownedText(parts ...[]byte) string {
	size := 0
	for i := range parts {
		size += len(parts[i])
	}
	if size == 0 {
		return ""
	}
	var text strings.Builder
	text.Grow(size)
	for i := range parts {
		if len(parts[i]) > 0 {
			text.Write(parts[i])
		}
	}
	return text.String()
}
