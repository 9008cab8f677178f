// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// QueueDeclareView is queue.declare as a view: its strings and tables alias the payload; see [QueueDeclare].
type QueueDeclareView struct {
	// Name of the queue; empty asks the server to make one up.
	Queue []byte
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
	Arguments TableView
}

// ID returns [QueueDeclareID].
func (*QueueDeclareView) ID() MethodID { return QueueDeclareID }

func (m *QueueDeclareView) size() int {
	return 12 + len(m.Queue) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDeclareView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDeclareView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.declare", "queue")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("queue.declare", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 10, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, bit(m.Passive)|bit(m.Durable)<<1|bit(m.Exclusive)<<2|bit(m.AutoDelete)<<3|bit(m.NoWait)<<4)
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueDeclareView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueueDeclareView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueDeclareID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Queue, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Passive = b[0]&1 != 0
	m.Durable = b[0]&2 != 0
	m.Exclusive = b[0]&4 != 0
	m.AutoDelete = b[0]&8 != 0
	m.NoWait = b[0]&16 != 0
	b = b[1:]
	if m.Arguments, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form. The error is that of a malformed table; its offset counts in the payload.
func (m *QueueDeclareView) Owned() (QueueDeclare, error) {
	var owned QueueDeclare
	owned.Passive = m.Passive
	owned.Durable = m.Durable
	owned.Exclusive = m.Exclusive
	owned.AutoDelete = m.AutoDelete
	owned.NoWait = m.NoWait
	owned.Queue = string(m.Queue)
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return QueueDeclare{}, shifted(err, 12+len(m.Queue))
	}
	return owned, nil
}

// QueueDeclareOkView is queue.declare-ok as a view: its strings and tables alias the payload; see [QueueDeclareOk].
type QueueDeclareOkView struct {
	// Name of the queue, also when the server made it up.
	Queue []byte
	// Number of messages ready in the queue.
	MessageCount uint32
	// Number of the queue's consumers.
	ConsumerCount uint32
}

// ID returns [QueueDeclareOkID].
func (*QueueDeclareOkView) ID() MethodID { return QueueDeclareOkID }

func (m *QueueDeclareOkView) size() int {
	return 13 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDeclareOkView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDeclareOkView) AppendBinary(dst []byte) ([]byte, error) {
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
func (m *QueueDeclareOkView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueueDeclareOkView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueDeclareOkID)
	if err != nil {
		return err
	}
	var ok bool
	if m.Queue, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 8 {
		return truncatedIn(payload, b, 4, 4)
	}
	m.MessageCount = binary.BigEndian.Uint32(b)
	m.ConsumerCount = binary.BigEndian.Uint32(b[4:])
	b = b[8:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *QueueDeclareOkView) Owned() QueueDeclareOk {
	var owned QueueDeclareOk
	owned.MessageCount = m.MessageCount
	owned.ConsumerCount = m.ConsumerCount
	owned.Queue = string(m.Queue)
	return owned
}

// QueueBindView is queue.bind as a view: its strings and tables alias the payload; see [QueueBind].
type QueueBindView struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue []byte
	// Name of an exchange; empty is the default exchange.
	Exchange []byte
	// What the exchange routes by.
	RoutingKey []byte
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments TableView
}

// ID returns [QueueBindID].
func (*QueueBindView) ID() MethodID { return QueueBindID }

func (m *QueueBindView) size() int {
	return 14 + len(m.Queue) + len(m.Exchange) + len(m.RoutingKey) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueBindView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueBindView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.bind", "queue")
	}
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("queue.bind", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("queue.bind", "routing-key")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("queue.bind", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 20, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = append(dst, bit(m.NoWait))
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueBindView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueueBindView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueBindID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Queue, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.Exchange, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.RoutingKey, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.NoWait = b[0]&1 != 0
	b = b[1:]
	if m.Arguments, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form. The error is that of a malformed table; its offset counts in the payload.
func (m *QueueBindView) Owned() (QueueBind, error) {
	var owned QueueBind
	owned.NoWait = m.NoWait
	text := ownedText(
		m.Queue,
		m.Exchange,
		m.RoutingKey,
	)
	owned.Queue, text = text[:len(m.Queue)], text[len(m.Queue):]
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.RoutingKey = text
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return QueueBind{}, shifted(err, 14+len(m.Queue)+len(m.Exchange)+len(m.RoutingKey))
	}
	return owned, nil
}

// QueuePurgeView is queue.purge as a view: its strings and tables alias the payload; see [QueuePurge].
type QueuePurgeView struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue []byte
	// Send no reply.
	NoWait bool
}

// ID returns [QueuePurgeID].
func (*QueuePurgeView) ID() MethodID { return QueuePurgeID }

func (m *QueuePurgeView) size() int {
	return 8 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueuePurgeView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueuePurgeView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.purge", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 30, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	return append(dst, bit(m.NoWait)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueuePurgeView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueuePurgeView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueuePurgeID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Queue, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
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

// Owned returns the owned form.
func (m *QueuePurgeView) Owned() QueuePurge {
	var owned QueuePurge
	owned.NoWait = m.NoWait
	owned.Queue = string(m.Queue)
	return owned
}

// QueueDeleteView is queue.delete as a view: its strings and tables alias the payload; see [QueueDelete].
type QueueDeleteView struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue []byte
	// Only when it has no consumers.
	IfUnused bool
	// Only when it has no messages.
	IfEmpty bool
	// Send no reply.
	NoWait bool
}

// ID returns [QueueDeleteID].
func (*QueueDeleteView) ID() MethodID { return QueueDeleteID }

func (m *QueueDeleteView) size() int {
	return 8 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueDeleteView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueDeleteView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.delete", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 40, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	return append(dst, bit(m.IfUnused)|bit(m.IfEmpty)<<1|bit(m.NoWait)<<2), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueDeleteView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueueDeleteView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueDeleteID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Queue, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.IfUnused = b[0]&1 != 0
	m.IfEmpty = b[0]&2 != 0
	m.NoWait = b[0]&4 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *QueueDeleteView) Owned() QueueDelete {
	var owned QueueDelete
	owned.IfUnused = m.IfUnused
	owned.IfEmpty = m.IfEmpty
	owned.NoWait = m.NoWait
	owned.Queue = string(m.Queue)
	return owned
}

// QueueUnbindView is queue.unbind as a view: its strings and tables alias the payload; see [QueueUnbind].
type QueueUnbindView struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue []byte
	// Name of an exchange; empty is the default exchange.
	Exchange []byte
	// What the exchange routes by.
	RoutingKey []byte
	// Further arguments, by name.
	Arguments TableView
}

// ID returns [QueueUnbindID].
func (*QueueUnbindView) ID() MethodID { return QueueUnbindID }

func (m *QueueUnbindView) size() int {
	return 13 + len(m.Queue) + len(m.Exchange) + len(m.RoutingKey) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *QueueUnbindView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *QueueUnbindView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("queue.unbind", "queue")
	}
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("queue.unbind", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("queue.unbind", "routing-key")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("queue.unbind", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 50, 0, 50, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *QueueUnbindView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *QueueUnbindView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, QueueUnbindID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Queue, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.Exchange, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.RoutingKey, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.Arguments, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form. The error is that of a malformed table; its offset counts in the payload.
func (m *QueueUnbindView) Owned() (QueueUnbind, error) {
	var owned QueueUnbind
	text := ownedText(
		m.Queue,
		m.Exchange,
		m.RoutingKey,
	)
	owned.Queue, text = text[:len(m.Queue)], text[len(m.Queue):]
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.RoutingKey = text
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return QueueUnbind{}, shifted(err, 13+len(m.Queue)+len(m.Exchange)+len(m.RoutingKey))
	}
	return owned, nil
}
