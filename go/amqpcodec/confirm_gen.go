// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

// ConfirmSelect is confirm.select: asks the server to confirm every publish from now on.
//
// Clients send it. It is RabbitMQ's addition.
type ConfirmSelect struct {
	// Send no reply.
	NoWait bool
}

// ID returns [ConfirmSelectID].
func (*ConfirmSelect) ID() MethodID { return ConfirmSelectID }

func (m *ConfirmSelect) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConfirmSelect) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 85, 0, 10, bit(m.NoWait))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConfirmSelect) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConfirmSelect) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConfirmSelect) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConfirmSelectID)
	if err != nil {
		return err
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.NoWait = b[0]&1 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConfirmSelect) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ConfirmSelectOk is confirm.select-ok: publishes are confirmed from now on, numbered from 1.
//
// Servers send it. It is RabbitMQ's addition.
type ConfirmSelectOk struct{}

// ID returns [ConfirmSelectOkID].
func (*ConfirmSelectOk) ID() MethodID { return ConfirmSelectOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ConfirmSelectOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 85, 0, 11)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConfirmSelectOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConfirmSelectOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ConfirmSelectOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConfirmSelectOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConfirmSelectOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
