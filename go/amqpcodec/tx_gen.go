// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

// TxSelect is tx.select: makes the channel transactional.
//
// Clients send it.
type TxSelect struct{}

// ID returns [TxSelectID].
func (*TxSelect) ID() MethodID { return TxSelectID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*TxSelect) AppendTo(dst []byte) []byte {
	return append(dst, 0, 90, 0, 10)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *TxSelect) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *TxSelect) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*TxSelect) Parse(payload []byte) error {
	b, err := fieldsOf(payload, TxSelectID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *TxSelect) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// TxSelectOk is tx.select-ok: the channel is transactional.
//
// Servers send it.
type TxSelectOk struct{}

// ID returns [TxSelectOkID].
func (*TxSelectOk) ID() MethodID { return TxSelectOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*TxSelectOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 90, 0, 11)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *TxSelectOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *TxSelectOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*TxSelectOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, TxSelectOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *TxSelectOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// TxCommit is tx.commit: carries out what was collected, and begins anew.
//
// Clients send it.
type TxCommit struct{}

// ID returns [TxCommitID].
func (*TxCommit) ID() MethodID { return TxCommitID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*TxCommit) AppendTo(dst []byte) []byte {
	return append(dst, 0, 90, 0, 20)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *TxCommit) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *TxCommit) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*TxCommit) Parse(payload []byte) error {
	b, err := fieldsOf(payload, TxCommitID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *TxCommit) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// TxCommitOk is tx.commit-ok: the transaction was carried out.
//
// Servers send it.
type TxCommitOk struct{}

// ID returns [TxCommitOkID].
func (*TxCommitOk) ID() MethodID { return TxCommitOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*TxCommitOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 90, 0, 21)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *TxCommitOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *TxCommitOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*TxCommitOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, TxCommitOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *TxCommitOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// TxRollback is tx.rollback: forgets what was collected, and begins anew.
//
// Clients send it.
type TxRollback struct{}

// ID returns [TxRollbackID].
func (*TxRollback) ID() MethodID { return TxRollbackID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*TxRollback) AppendTo(dst []byte) []byte {
	return append(dst, 0, 90, 0, 30)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *TxRollback) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *TxRollback) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*TxRollback) Parse(payload []byte) error {
	b, err := fieldsOf(payload, TxRollbackID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *TxRollback) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// TxRollbackOk is tx.rollback-ok: the transaction was forgotten.
//
// Servers send it.
type TxRollbackOk struct{}

// ID returns [TxRollbackOkID].
func (*TxRollbackOk) ID() MethodID { return TxRollbackOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*TxRollbackOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 90, 0, 31)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *TxRollbackOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *TxRollbackOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*TxRollbackOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, TxRollbackOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *TxRollbackOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
