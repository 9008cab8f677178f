package amqpcodec

import (
	"encoding/binary"
	"fmt"
)

// A MethodID is a class and a method of it: the four bytes that a method frame's payload begins with, the class in the
// upper 16 bits.
type MethodID uint32

// ClassID returns the number of the class.
func (id MethodID) ClassID() uint16 { return uint16(id >> 16) }

// MethodID returns the number of the method in its class.
func (id MethodID) MethodID() uint16 { return uint16(id) }

// String returns class and method by name, such as "basic.publish", or the numbers of a method that the protocol lacks.
func (id MethodID) String() string {
	if info := id.info(); info != nil {
		return info.name
	}
	return fmt.Sprintf("method %d of class %d", id.MethodID(), id.ClassID())
}

// HasContent reports whether a content header and body frames follow the method.
func (id MethodID) HasContent() bool {
	info := id.info()
	return info != nil && info.content
}

// methodInfo is what the description says of a method.
type methodInfo struct {
	name    string
	content bool
	fields  []fieldInfo
}

// A Method is any method, as a view or as an owned value: a pointer to one of the types of this package that are named
// after methods.
type Method interface {
	// ID returns which method it is.
	ID() MethodID
	// AppendTo appends the payload of a method frame: class, method, fields. It panics where AppendBinary fails.
	AppendTo(dst []byte) []byte
	// AppendBinary appends the same. The error, an [EncodeError], is that of a field that cannot be written.
	AppendBinary(dst []byte) ([]byte, error)
	// AppendFrame appends a whole method frame. The error is as for AppendBinary.
	AppendFrame(dst []byte, channel uint16) ([]byte, error)
}

// A MethodView is a method that can be read as a view.
type MethodView interface {
	Method
	// Parse reads the payload of a method frame that holds this very method; strings and tables become views of it.
	// The error, a [DecodeError], is that of another method, of fields that are cut short, or of bytes behind them.
	// Tables are not looked into. After an error the fields have no meaning.
	Parse(payload []byte) error
}

// An OwnedMethod is a method that can be read to an owned value.
type OwnedMethod interface {
	Method
	// UnmarshalBinary reads the payload of a method frame that holds this very method; nothing of it is kept. The error
	// is as for [MethodView.Parse], or that of a malformed table. After an error the method is as it was.
	UnmarshalBinary(payload []byte) error
}

// UnmarshalMethod reads the payload of a method frame, whatever method it is, to an owned value. The error, a
// [DecodeError], is that of an unknown class or method, or as for [OwnedMethod].
func UnmarshalMethod(payload []byte) (OwnedMethod, error) {
	id, err := ParseMethodID(payload)
	if err != nil {
		return nil, err
	}
	method := NewMethod(id)
	if err := method.UnmarshalBinary(payload); err != nil {
		return nil, err
	}
	return method, nil
}

// A MethodParser reads methods of any kind as views without an allocation: it has one view of each, which it lends. It
// takes some 2 KiB.
type MethodParser struct{ views methodViews }

// Parse reads the payload of a method frame, whatever method it is. The method is good until the next one of the same
// kind, and as long as the payload. The error is as for [UnmarshalMethod], but tables are not looked into.
func (p *MethodParser) Parse(payload []byte) (MethodView, error) {
	if len(payload) < 4 {
		return nil, truncatedIn(payload, payload, 2, 2)
	}
	id := MethodID(binary.BigEndian.Uint32(payload))
	view := p.views.view(id)
	if view == nil {
		return nil, unknownMethod(id)
	}
	if err := view.Parse(payload); err != nil {
		return nil, err
	}
	return view, nil
}

// ParseMethodID returns which method the payload of a method frame holds. The error is that of a payload that is too
// short, or of a class or a method that the protocol lacks; an unknown method is returned all the same.
func ParseMethodID(payload []byte) (MethodID, error) {
	if len(payload) < 4 {
		return 0, truncatedIn(payload, payload, 2, 2)
	}
	id := MethodID(binary.BigEndian.Uint32(payload))
	if id.info() == nil {
		return id, unknownMethod(id)
	}
	return id, nil
}

func unknownMethod(id MethodID) error {
	if !knownClass(id.ClassID()) {
		return &DecodeError{Offset: 0, Cause: ErrUnknownClass, Found: uint64(id.ClassID())}
	}
	return &DecodeError{Offset: 2, Cause: ErrUnknownMethod, Found: uint64(id)}
}

// fieldsOf returns what lies behind class and method in a payload of this very method.
func fieldsOf(payload []byte, id MethodID) ([]byte, error) {
	if len(payload) < 4 || MethodID(binary.BigEndian.Uint32(payload)) != id {
		return nil, otherMethod(payload)
	}
	return payload[4:], nil
}

func otherMethod(payload []byte) error {
	id, err := ParseMethodID(payload)
	if err != nil {
		return err
	}
	return &DecodeError{Offset: 0, Cause: ErrOtherMethod, Found: uint64(id)}
}
