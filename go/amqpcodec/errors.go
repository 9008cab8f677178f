package amqpcodec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What can be wrong with bytes that came in: the causes of a [DecodeError].
var (
	// ErrTruncated: the input ends before the value does, or a length says more than there is.
	ErrTruncated = errors.New("input ends within a value")
	// ErrTrailingBytes: bytes are left behind the last field.
	ErrTrailingBytes = errors.New("bytes behind the last field")
	// ErrUnknownClass: no class has this number.
	ErrUnknownClass = errors.New("unknown class")
	// ErrUnknownMethod: the class is known, and has no method with this number.
	ErrUnknownMethod = errors.New("unknown method")
	// ErrOtherMethod: the payload holds another method than the one it was to be read as.
	ErrOtherMethod = errors.New("payload of another method")
	// ErrUnknownFieldType: no field-table value has this tag.
	ErrUnknownFieldType = errors.New("unknown field type")
	// ErrUnknownPropertyFlags: flags are set that no property has.
	ErrUnknownPropertyFlags = errors.New("unknown property flags")
	// ErrNonZeroWeight: a content header's weight is not 0.
	ErrNonZeroWeight = errors.New("content weight is not 0")
	// ErrUnknownFrameType: the first byte is none of the frame types.
	ErrUnknownFrameType = errors.New("unknown frame type")
	// ErrFrameTooLarge: the frame is larger than the connection allows.
	ErrFrameTooLarge = errors.New("frame is larger than frame_max")
	// ErrBadFrameEnd: something else stands where the byte behind a frame should be.
	ErrBadFrameEnd = errors.New("frame does not end with 0xce")
)

// ErrTooDeep is the cause when tables and arrays are nested deeper than [MaxNesting], in bytes or in a value to be written.
var ErrTooDeep = errors.New("tables nested deeper than " + strconv.Itoa(MaxNesting))

// What can be wrong with a value that is to be written: the causes of an [EncodeError], beside [ErrTooDeep].
var (
	// ErrTooLong: more bytes than the length before them can say: 255 for a short string and a key, else 4 GiB.
	ErrTooLong = errors.New("too long")
	// ErrUnsupportedType: a Go type that field tables have no form for.
	ErrUnsupportedType = errors.New("no field-table form for the type")
	// ErrOutOfRange: a number that fits none of the integers that field tables have.
	ErrOutOfRange = errors.New("out of range")
	// ErrUnbalancedTable: a [TableWriter] began a table that it did not end, or ended one that it did not begin.
	ErrUnbalancedTable = errors.New("tables begun and ended do not match")
)

// A DecodeError says where bytes are not what they should be, and why.
type DecodeError struct {
	// Offset in bytes from the start of the slice that was to be read; in a [Reader], from the start of the frame.
	Offset int
	// Cause is one of this package's errors, for [errors.Is].
	Cause error
	// Found is what stands there instead: the number of a class, a method (the class in its upper 16 bits), a frame
	// type, a tag, the flags, the weight, the frame's size. 0 where the cause says it all.
	Found uint64
}

// Error says cause, finding and offset.
func (e *DecodeError) Error() string {
	var found string
	switch e.Cause {
	case ErrUnknownClass, ErrNonZeroWeight, ErrUnknownFrameType, ErrFrameTooLarge:
		found = fmt.Sprintf(" (%d)", e.Found)
	case ErrUnknownMethod:
		found = fmt.Sprintf(" (%d of class %d)", e.Found&0xFFFF, e.Found>>16)
	case ErrOtherMethod:
		found = fmt.Sprintf(" (%v)", MethodID(e.Found))
	case ErrUnknownFieldType:
		found = fmt.Sprintf(" (%q)", byte(e.Found))
	case ErrUnknownPropertyFlags, ErrBadFrameEnd:
		found = fmt.Sprintf(" (%#x)", e.Found)
	}
	return fmt.Sprintf("amqpcodec: %v%s at offset %d", e.Cause, found, e.Offset)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Cause }

// An EncodeError says which part of a value cannot be written, and why.
type EncodeError struct {
	// Path leads to the part: the method or "properties", the field, the keys of nested tables.
	Path []string
	// Cause is one of this package's errors, for [errors.Is].
	Cause error
	// Type is the Go type in question, when the cause is [ErrUnsupportedType].
	Type string
}

// Error says path and cause.
func (e *EncodeError) Error() string {
	text := "amqpcodec: cannot write"
	if len(e.Path) > 0 {
		text += " " + strings.Join(e.Path, ": ")
	}
	text += ": " + e.Cause.Error()
	if e.Type != "" {
		text += " " + e.Type
	}
	return text
}

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Cause }

// within puts a part of the path in front of an error's own.
func within(part string, err error) error {
	var encode *EncodeError
	if !errors.As(err, &encode) {
		return err
	}
	encode.Path = append([]string{part}, encode.Path...)
	return encode
}

// tooLong is the error for a field that has more bytes than its length can say.
func tooLong(path ...string) error { return &EncodeError{Path: path, Cause: ErrTooLong} }

// must is how an AppendTo reports what its AppendBinary returns as an error.
func must(dst []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return dst
}

// truncated is the error for an input that ends within the value at the front of rest, its own tail.
func truncated(input, rest []byte) error {
	return &DecodeError{Offset: len(input) - len(rest), Cause: ErrTruncated}
}

// truncatedIn is truncated for several values of known sizes at the front of rest: the first that is not all there.
func truncatedIn(input, rest []byte, sizes ...int) error {
	for _, size := range sizes {
		if len(rest) < size {
			break
		}
		rest = rest[size:]
	}
	return truncated(input, rest)
}

// trailing is the error for bytes that are left when everything is read.
func trailing(input, rest []byte) error {
	return &DecodeError{Offset: len(input) - len(rest), Cause: ErrTrailingBytes}
}

// shifted moves an error's offset, for a reader of the bytes around those that it counts in.
func shifted(err error, n int) error {
	var decode *DecodeError
	if !errors.As(err, &decode) {
		return err
	}
	return &DecodeError{Offset: decode.Offset + n, Cause: decode.Cause, Found: decode.Found}
}
