// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// ChannelCloseView is channel.close as a view: its strings and tables alias the payload; see [ChannelClose].
type ChannelCloseView struct {
	// One of the reply codes.
	ReplyCode ReplyCode
	// The reason, for people.
	ReplyText []byte
	// Class of the method that the message is about, 0 when there is none.
	ClassID uint16
	// Method that the message is about, 0 when there is none.
	MethodID uint16
}

// ID returns [ChannelCloseID].
func (*ChannelCloseView) ID() MethodID { return ChannelCloseID }

func (m *ChannelCloseView) size() int {
	return 11 + len(m.ReplyText)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ChannelCloseView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelCloseView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ReplyText) > maxShortLen {
		return dst, tooLong("channel.close", "reply-text")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 20, 0, 40, byte(m.ReplyCode>>8), byte(m.ReplyCode), byte(len(m.ReplyText)))
	dst = append(dst, m.ReplyText...)
	return append(dst, byte(m.ClassID>>8), byte(m.ClassID), byte(m.MethodID>>8), byte(m.MethodID)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelCloseView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ChannelCloseView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ChannelCloseID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	m.ReplyCode = ReplyCode(binary.BigEndian.Uint16(b))
	b = b[2:]
	if m.ReplyText, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 4 {
		return truncatedIn(payload, b, 2, 2)
	}
	m.ClassID = binary.BigEndian.Uint16(b)
	m.MethodID = binary.BigEndian.Uint16(b[2:])
	b = b[4:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ChannelCloseView) Owned() ChannelClose {
	var owned ChannelClose
	owned.ReplyCode = m.ReplyCode
	owned.ClassID = m.ClassID
	owned.MethodID = m.MethodID
	owned.ReplyText = string(m.ReplyText)
	return owned
}
