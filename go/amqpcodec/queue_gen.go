// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// QueueDeclare is queue.declare: makes a queue, or checks that it is there as described.
//
// Clients send it.
type QueueDeclare struct {
	// Name of the queue; empty asks the server to make one up.
	Queue string
	// Only check that the queue exists.
	Passive bool
	// The queue survives a restart of the server.
	Durable bool
	// The queue belongs to this connection and goes with it.
	Exclusive bool
	// The queue goes when its last consumer has gone.
	AutoDelete bool
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [QueueDeclareID].
func (*QueueDeclare) ID() MethodID { return QueueDeclareID }

func (m *QueueDeclare) size() int {
	return 12 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDeclare) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDeclare) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.declare", "queue")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 50, 0, 10, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, bit(m.Passive)|bit(m.Durable)<<1|bit(m.Exclusive)<<2|bit(m.AutoDelete)<<3|bit(m.NoWait)<<4)
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("queue.declare", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueDeclare) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *QueueDeclare) UnmarshalBinary(payload []byte) error {
	var view QueueDeclareView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// QueueDeclareOk is queue.declare-ok: the queue is there.
//
// Servers send it.
type QueueDeclareOk struct {
	// Name of the queue, also when the server made it up.
	Queue string
	// Number of messages ready in the queue.
	MessageCount uint32
	// Number of the queue's consumers.
	ConsumerCount uint32
}

// ID returns [QueueDeclareOkID].
func (*QueueDeclareOk) ID() MethodID { return QueueDeclareOkID }

func (m *QueueDeclareOk) size() int {
	return 13 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDeclareOk) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDeclareOk) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.declare-ok", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 11, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	dst = binary.BigEndian.AppendUint32(dst, m.ConsumerCount)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueDeclareOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *QueueDeclareOk) UnmarshalBinary(payload []byte) error {
	var view QueueDeclareOkView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// QueueBind is queue.bind: binds a queue to an exchange.
//
// Clients send it.
type QueueBind struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue string
	// Name of an exchange; empty is the default exchange.
	Exchange string
	// What the exchange routes by.
	RoutingKey string
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [QueueBindID].
func (*QueueBind) ID() MethodID { return QueueBindID }

func (m *QueueBind) size() int {
	return 14 + len(m.Queue) + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueBind) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueBind) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.bind", "queue")
	}
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("queue.bind", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("queue.bind", "routing-key")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 50, 0, 20, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = append(dst, bit(m.NoWait))
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("queue.bind", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueBind) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *QueueBind) UnmarshalBinary(payload []byte) error {
	var view QueueBindView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// QueueBindOk is queue.bind-ok: the queue is bound.
//
// Servers send it.
type QueueBindOk struct{}

// ID returns [QueueBindOkID].
func (*QueueBindOk) ID() MethodID { return QueueBindOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*QueueBindOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 50, 0, 21)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueBindOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueBindOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*QueueBindOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueBindOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *QueueBindOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// QueuePurge is queue.purge: removes all messages that are ready in a queue.
//
// Clients send it.
type QueuePurge struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue string
	// Send no reply.
	NoWait bool
}

// ID returns [QueuePurgeID].
func (*QueuePurge) ID() MethodID { return QueuePurgeID }

func (m *QueuePurge) size() int {
	return 8 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueuePurge) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueuePurge) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.purge", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 30, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	return append(dst, bit(m.NoWait)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueuePurge) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *QueuePurge) UnmarshalBinary(payload []byte) error {
	var view QueuePurgeView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// QueuePurgeOk is queue.purge-ok: the messages are gone.
//
// Servers send it.
type QueuePurgeOk struct {
	// Number of messages that were removed.
	MessageCount uint32
}

// ID returns [QueuePurgeOkID].
func (*QueuePurgeOk) ID() MethodID { return QueuePurgeOkID }

func (m *QueuePurgeOk) size() int {
	return 8
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueuePurgeOk) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 31)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return dst
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueuePurgeOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueuePurgeOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueuePurgeOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueuePurgeOkID)
	if err != nil {
		return err
	}
	if len(b) < 4 {
		return truncated(payload, b)
	}
	m.MessageCount = binary.BigEndian.Uint32(b)
	b = b[4:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *QueuePurgeOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// QueueDelete is queue.delete: deletes a queue with its messages, bindings and consumers.
//
// Clients send it.
type QueueDelete struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue string
	// Only when it has no consumers.
	IfUnused bool
	// Only when it has no messages.
	IfEmpty bool
	// Send no reply.
	NoWait bool
}

// ID returns [QueueDeleteID].
func (*QueueDelete) ID() MethodID { return QueueDeleteID }

func (m *QueueDelete) size() int {
	return 8 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDelete) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDelete) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.delete", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 40, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	return append(dst, bit(m.IfUnused)|bit(m.IfEmpty)<<1|bit(m.NoWait)<<2), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueDelete) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *QueueDelete) UnmarshalBinary(payload []byte) error {
	var view QueueDeleteView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// QueueDeleteOk is queue.delete-ok: the queue is gone.
//
// Servers send it.
type QueueDeleteOk struct {
	// Number of messages that went with it.
	MessageCount uint32
}

// ID returns [QueueDeleteOkID].
func (*QueueDeleteOk) ID() MethodID { return QueueDeleteOkID }

func (m *QueueDeleteOk) size() int {
	return 8
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDeleteOk) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 41)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return dst
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDeleteOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueDeleteOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueueDeleteOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueDeleteOkID)
	if err != nil {
		return err
	}
	if len(b) < 4 {
		return truncated(payload, b)
	}
	m.MessageCount = binary.BigEndian.Uint32(b)
	b = b[4:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *QueueDeleteOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// QueueUnbind is queue.unbind: takes a queue's binding away.
//
// Clients send it.
type QueueUnbind struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue string
	// Name of an exchange; empty is the default exchange.
	Exchange string
	// What the exchange routes by.
	RoutingKey string
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [QueueUnbindID].
func (*QueueUnbind) ID() MethodID { return QueueUnbindID }

func (m *QueueUnbind) size() int {
	return 13 + len(m.Queue) + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueUnbind) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueUnbind) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.unbind", "queue")
	}
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("queue.unbind", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("queue.unbind", "routing-key")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 50, 0, 50, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("queue.unbind", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueUnbind) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *QueueUnbind) UnmarshalBinary(payload []byte) error {
	var view QueueUnbindView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// QueueUnbindOk is queue.unbind-ok: the binding is gone.
//
// Servers send it.
type QueueUnbindOk struct{}

// ID returns [QueueUnbindOkID].
func (*QueueUnbindOk) ID() MethodID { return QueueUnbindOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*QueueUnbindOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 50, 0, 51)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueUnbindOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueUnbindOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*QueueUnbindOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueUnbindOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *QueueUnbindOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
