package amqpcodec

import "encoding/binary"

// contentHeaderSize is how many bytes of a content header stand before the property flags.
const contentHeaderSize = 12

// A ContentHeader goes before a message's body, as the payload of a header frame (section 4.2.6.1 of the specification).
type ContentHeader struct {
	// ClassID is the class of the method that the content belongs to; [ClassBasic] is the only one that has contents.
	ClassID uint16
	// BodySize is how many bytes all body frames hold together.
	BodySize uint64
	// Properties say what the message is.
	Properties Properties
}

// A ContentHeaderView is a content header whose properties stay encoded until they are asked for.
type ContentHeaderView struct {
	// ClassID is the class of the method that the content belongs to.
	ClassID uint16
	// BodySize is how many bytes all body frames hold together.
	BodySize uint64
	// Properties are the flags and the values behind them, as they lie in the payload.
	Properties RawProperties
}

// Parse reads the payload of a header frame. Properties are checked to be all there, but headers are not looked into.
// The error is a [DecodeError]: of a payload cut short, a weight, flags without a meaning, or bytes behind the last
// property.
func (h *ContentHeaderView) Parse(payload []byte) error {
	if err := checkContentHeader(payload); err != nil {
		return err
	}
	properties, err := ParseProperties(payload[contentHeaderSize:])
	if err != nil {
		return shifted(err, contentHeaderSize)
	}
	h.ClassID = binary.BigEndian.Uint16(payload)
	h.BodySize = binary.BigEndian.Uint64(payload[4:])
	h.Properties = properties
	return nil
}

// checkContentHeader sees to what comes before the properties.
func checkContentHeader(payload []byte) error {
	if len(payload) < contentHeaderSize {
		return truncatedIn(payload, payload, 2, 2, 8)
	}
	if weight := binary.BigEndian.Uint16(payload[2:]); weight != 0 {
		return &DecodeError{Offset: 2, Cause: ErrNonZeroWeight, Found: uint64(weight)}
	}
	return nil
}

// Owned returns the owned form. The error is that of malformed headers, or of headers nested too deep.
func (h *ContentHeaderView) Owned() (ContentHeader, error) {
	var view PropertiesView
	if len(h.Properties) > 0 {
		if err := view.Parse(h.Properties); err != nil {
			return ContentHeader{}, shifted(err, contentHeaderSize)
		}
	}
	properties, err := view.Owned()
	if err != nil {
		return ContentHeader{}, shifted(err, contentHeaderSize)
	}
	return ContentHeader{h.ClassID, h.BodySize, properties}, nil
}

// AppendTo appends the payload of a header frame. The zero RawProperties are written as none.
func (h *ContentHeaderView) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, contentHeaderSize+max(len(h.Properties), 2), 0)
	dst = appendContentHeader(dst, h.ClassID, h.BodySize)
	return h.Properties.AppendTo(dst)
}

// AppendBinary appends the same; the error is always nil.
func (h *ContentHeaderView) AppendBinary(dst []byte) ([]byte, error) { return h.AppendTo(dst), nil }

// AppendFrame appends a whole header frame. The error is that of a payload of more than 4 GiB.
func (h *ContentHeaderView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst = withRoom(dst, FrameOverhead+contentHeaderSize+max(len(h.Properties), 2), 0)
	dst = h.AppendTo(beginFrame(dst, FrameHeader, channel))
	return endFrame(dst, start, nil)
}

// UnmarshalBinary reads the payload of a header frame, to an owned value. The error is as for [ContentHeaderView.Parse],
// or that of malformed headers; after it the header has no meaning.
func (h *ContentHeader) UnmarshalBinary(payload []byte) error {
	if err := checkContentHeader(payload); err != nil {
		return err
	}
	var view PropertiesView
	err := view.Parse(payload[contentHeaderSize:])
	if err == nil {
		err = view.own(&h.Properties)
	}
	if err != nil {
		return shifted(err, contentHeaderSize)
	}
	h.ClassID = binary.BigEndian.Uint16(payload)
	h.BodySize = binary.BigEndian.Uint64(payload[4:])
	return nil
}

// AppendTo appends the payload of a header frame. It panics where AppendBinary fails.
func (h *ContentHeader) AppendTo(dst []byte) []byte { return must(h.AppendBinary(dst)) }

// AppendBinary appends the payload of a header frame. The error is that of a property that cannot be written.
func (h *ContentHeader) AppendBinary(dst []byte) ([]byte, error) {
	written := dst
	if cap(dst) == 0 {
		written = make([]byte, 0, contentHeaderSize+h.Properties.size())
	}
	written, err := h.Properties.AppendBinary(appendContentHeader(written, h.ClassID, h.BodySize))
	if err != nil {
		return dst, err
	}
	return written, nil
}

// AppendFrame appends a whole header frame. The error is as for AppendBinary.
func (h *ContentHeader) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	if cap(dst) == 0 {
		dst = make([]byte, 0, FrameOverhead+contentHeaderSize+h.Properties.size())
	}
	dst, err := h.AppendBinary(beginFrame(dst, FrameHeader, channel))
	return endFrame(dst, start, err)
}

// appendContentHeader appends class, weight and body size.
func appendContentHeader(dst []byte, classID uint16, bodySize uint64) []byte {
	dst = append(dst, byte(classID>>8), byte(classID), 0, 0)
	return binary.BigEndian.AppendUint64(dst, bodySize)
}
