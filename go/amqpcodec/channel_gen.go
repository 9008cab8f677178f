// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

// ChannelOpen is channel.open: opens the channel that the frame names.
//
// Clients send it.
type ChannelOpen struct{}

// ID returns [ChannelOpenID].
func (*ChannelOpen) ID() MethodID { return ChannelOpenID }

func (m *ChannelOpen) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ChannelOpen) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 20, 0, 10, 0)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelOpen) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelOpen) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ChannelOpen) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ChannelOpenID)
	if err != nil {
		return err
	}
	var ok bool
	if _, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ChannelOpen) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ChannelOpenOk is channel.open-ok: the channel is ready for use.
//
// Servers send it.
type ChannelOpenOk struct{}

// ID returns [ChannelOpenOkID].
func (*ChannelOpenOk) ID() MethodID { return ChannelOpenOkID }

func (m *ChannelOpenOk) size() int {
	return 8
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ChannelOpenOk) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 20, 0, 11, 0, 0, 0, 0)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelOpenOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelOpenOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ChannelOpenOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ChannelOpenOkID)
	if err != nil {
		return err
	}
	var ok bool
	if _, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ChannelOpenOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ChannelFlow is channel.flow: asks the peer to stop or go on sending contents.
//
// Both sides send it.
type ChannelFlow struct {
	// Send contents (true) or hold them back (false).
	Active bool
}

// ID returns [ChannelFlowID].
func (*ChannelFlow) ID() MethodID { return ChannelFlowID }

func (m *ChannelFlow) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ChannelFlow) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 20, 0, 20, bit(m.Active))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelFlow) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelFlow) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ChannelFlow) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ChannelFlowID)
	if err != nil {
		return err
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Active = b[0]&1 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ChannelFlow) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ChannelFlowOk is channel.flow-ok: says that the wish about the flow was received.
//
// Both sides send it.
type ChannelFlowOk struct {
	// The wish as it was received.
	Active bool
}

// ID returns [ChannelFlowOkID].
func (*ChannelFlowOk) ID() MethodID { return ChannelFlowOkID }

func (m *ChannelFlowOk) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ChannelFlowOk) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 20, 0, 21, bit(m.Active))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelFlowOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelFlowOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ChannelFlowOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ChannelFlowOkID)
	if err != nil {
		return err
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Active = b[0]&1 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ChannelFlowOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ChannelClose is channel.close: ends the channel and says why; the sender takes nothing but the reply on it from then on.
//
// Both sides send it.
type ChannelClose struct {
	// One of the reply codes.
	ReplyCode ReplyCode
	// The reason, for people.
	ReplyText string
	// Class of the method that the message is about, 0 when there is none.
	ClassID uint16
	// Method that the message is about, 0 when there is none.
	MethodID uint16
}

// ID returns [ChannelCloseID].
func (*ChannelClose) ID() MethodID { return ChannelCloseID }

func (m *ChannelClose) size() int {
	return 11 + len(m.ReplyText)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ChannelClose) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelClose) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ReplyText) > maxShortLen {
		return dst, tooLong("channel.close", "reply-text")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 20, 0, 40, byte(m.ReplyCode>>8), byte(m.ReplyCode), byte(len(m.ReplyText)))
	dst = append(dst, m.ReplyText...)
	return append(dst, byte(m.ClassID>>8), byte(m.ClassID), byte(m.MethodID>>8), byte(m.MethodID)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelClose) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ChannelClose) UnmarshalBinary(payload []byte) error {
	var view ChannelCloseView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ChannelCloseOk is channel.close-ok: the last method on a channel.
//
// Both sides send it.
type ChannelCloseOk struct{}

// ID returns [ChannelCloseOkID].
func (*ChannelCloseOk) ID() MethodID { return ChannelCloseOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ChannelCloseOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 20, 0, 41)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ChannelCloseOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ChannelCloseOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ChannelCloseOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ChannelCloseOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ChannelCloseOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
