// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// BasicQos is basic.qos: limits how much is delivered ahead of acknowledgements.
//
// Clients send it.
type BasicQos struct {
	// Limit in bytes; 0 is none.
	PrefetchSize uint32
	// Limit in messages; 0 is none.
	PrefetchCount uint16
	// One limit for the channel (true) or one for each consumer made from now on (false).
	Global bool
}

// ID returns [BasicQosID].
func (*BasicQos) ID() MethodID { return BasicQosID }

func (m *BasicQos) size() int {
	return 11
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicQos) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 10)
	dst = binary.BigEndian.AppendUint32(dst, m.PrefetchSize)
	return append(dst, byte(m.PrefetchCount>>8), byte(m.PrefetchCount), bit(m.Global))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicQos) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicQos) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicQos) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicQosID)
	if err != nil {
		return err
	}
	if len(b) < 7 {
		return truncatedIn(payload, b, 4, 2, 1)
	}
	m.PrefetchSize = binary.BigEndian.Uint32(b)
	m.PrefetchCount = binary.BigEndian.Uint16(b[4:])
	m.Global = b[6]&1 != 0
	b = b[7:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicQos) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicQosOk is basic.qos-ok: the limits hold.
//
// Servers send it.
type BasicQosOk struct{}

// ID returns [BasicQosOkID].
func (*BasicQosOk) ID() MethodID { return BasicQosOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*BasicQosOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 60, 0, 11)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicQosOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicQosOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*BasicQosOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicQosOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicQosOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicConsume is basic.consume: starts a consumer on a queue.
//
// Clients send it.
type BasicConsume struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue string
	// Name of the consumer; empty asks the server to make one up.
	ConsumerTag string
	// Leave out what was published on this same connection.
	NoLocal bool
	// Deliveries count as acknowledged when they are sent.
	NoAck bool
	// No other consumer on this queue.
	Exclusive bool
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [BasicConsumeID].
func (*BasicConsume) ID() MethodID { return BasicConsumeID }

func (m *BasicConsume) size() int {
	return 13 + len(m.Queue) + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicConsume) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicConsume) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("basic.consume", "queue")
	}
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.consume", "consumer-tag")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 60, 0, 20, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	dst = append(dst, bit(m.NoLocal)|bit(m.NoAck)<<1|bit(m.Exclusive)<<2|bit(m.NoWait)<<3)
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("basic.consume", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicConsume) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicConsume) UnmarshalBinary(payload []byte) error {
	var view BasicConsumeView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// BasicConsumeOk is basic.consume-ok: the consumer runs.
//
// Servers send it.
type BasicConsumeOk struct {
	// Name of the consumer, also when the server made it up.
	ConsumerTag string
}

// ID returns [BasicConsumeOkID].
func (*BasicConsumeOk) ID() MethodID { return BasicConsumeOkID }

func (m *BasicConsumeOk) size() int {
	return 5 + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicConsumeOk) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicConsumeOk) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.consume-ok", "consumer-tag")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 21, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicConsumeOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicConsumeOk) UnmarshalBinary(payload []byte) error {
	var view BasicConsumeOkView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicCancel is basic.cancel: ends a consumer; from the server: its queue is gone.
//
// Both sides send it.
type BasicCancel struct {
	// Name of a consumer, unique within its channel.
	ConsumerTag string
	// Send no reply.
	NoWait bool
}

// ID returns [BasicCancelID].
func (*BasicCancel) ID() MethodID { return BasicCancelID }

func (m *BasicCancel) size() int {
	return 6 + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicCancel) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicCancel) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.cancel", "consumer-tag")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 30, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	return append(dst, bit(m.NoWait)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicCancel) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicCancel) UnmarshalBinary(payload []byte) error {
	var view BasicCancelView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicCancelOk is basic.cancel-ok: the consumer has ended.
//
// Both sides send it.
type BasicCancelOk struct {
	// Name of a consumer, unique within its channel.
	ConsumerTag string
}

// ID returns [BasicCancelOkID].
func (*BasicCancelOk) ID() MethodID { return BasicCancelOkID }

func (m *BasicCancelOk) size() int {
	return 5 + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicCancelOk) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicCancelOk) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.cancel-ok", "consumer-tag")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 31, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicCancelOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicCancelOk) UnmarshalBinary(payload []byte) error {
	var view BasicCancelOkView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicPublish is basic.publish: sends a message to an exchange.
//
// Clients send it; a content header and body frames follow.
type BasicPublish struct {
	// Name of an exchange; empty is the default exchange.
	Exchange string
	// What the exchange routes by.
	RoutingKey string
	// Return the message when no queue takes it.
	Mandatory bool
	// Return the message when no consumer takes it at once.
	Immediate bool
}

// ID returns [BasicPublishID].
func (*BasicPublish) ID() MethodID { return BasicPublishID }

func (m *BasicPublish) size() int {
	return 9 + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicPublish) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicPublish) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("basic.publish", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("basic.publish", "routing-key")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 40, 0, 0, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	return append(dst, bit(m.Mandatory)|bit(m.Immediate)<<1), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicPublish) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicPublish) UnmarshalBinary(payload []byte) error {
	var view BasicPublishView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicReturn is basic.return: gives back a message that could not be routed.
//
// Servers send it; a content header and body frames follow.
type BasicReturn struct {
	// One of the reply codes.
	ReplyCode ReplyCode
	// The reason, for people.
	ReplyText string
	// Name of an exchange; empty is the default exchange.
	Exchange string
	// What the exchange routes by.
	RoutingKey string
}

// ID returns [BasicReturnID].
func (*BasicReturn) ID() MethodID { return BasicReturnID }

func (m *BasicReturn) size() int {
	return 9 + len(m.ReplyText) + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicReturn) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicReturn) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ReplyText) > maxShortLen {
		return dst, tooLong("basic.return", "reply-text")
	}
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("basic.return", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("basic.return", "routing-key")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 50, byte(m.ReplyCode>>8), byte(m.ReplyCode), byte(len(m.ReplyText)))
	dst = append(dst, m.ReplyText...)
	dst = append(dst, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicReturn) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicReturn) UnmarshalBinary(payload []byte) error {
	var view BasicReturnView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicDeliver is basic.deliver: brings a message to a consumer.
//
// Servers send it; a content header and body frames follow.
type BasicDeliver struct {
	// Name of a consumer, unique within its channel.
	ConsumerTag string
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// The message may have been delivered before.
	Redelivered bool
	// The exchange that the message was published to.
	Exchange string
	// The routing key that the message was published with.
	RoutingKey string
}

// ID returns [BasicDeliverID].
func (*BasicDeliver) ID() MethodID { return BasicDeliverID }

func (m *BasicDeliver) size() int {
	return 16 + len(m.ConsumerTag) + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicDeliver) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicDeliver) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.deliver", "consumer-tag")
	}
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("basic.deliver", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("basic.deliver", "routing-key")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 60, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Redelivered), byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicDeliver) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicDeliver) UnmarshalBinary(payload []byte) error {
	var view BasicDeliverView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicGet is basic.get: asks for one message of a queue.
//
// Clients send it.
type BasicGet struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue string
	// Deliveries count as acknowledged when they are sent.
	NoAck bool
}

// ID returns [BasicGetID].
func (*BasicGet) ID() MethodID { return BasicGetID }

func (m *BasicGet) size() int {
	return 8 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicGet) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicGet) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("basic.get", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 70, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	return append(dst, bit(m.NoAck)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicGet) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicGet) UnmarshalBinary(payload []byte) error {
	var view BasicGetView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicGetOk is basic.get-ok: brings the message that was asked for.
//
// Servers send it; a content header and body frames follow.
type BasicGetOk struct {
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// The message may have been delivered before.
	Redelivered bool
	// The exchange that the message was published to.
	Exchange string
	// The routing key that the message was published with.
	RoutingKey string
	// Number of messages left in the queue.
	MessageCount uint32
}

// ID returns [BasicGetOkID].
func (*BasicGetOk) ID() MethodID { return BasicGetOkID }

func (m *BasicGetOk) size() int {
	return 19 + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicGetOk) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicGetOk) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("basic.get-ok", "exchange")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("basic.get-ok", "routing-key")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 71)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Redelivered), byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicGetOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *BasicGetOk) UnmarshalBinary(payload []byte) error {
	var view BasicGetOkView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// BasicGetEmpty is basic.get-empty: the queue has no message.
//
// Servers send it.
type BasicGetEmpty struct{}

// ID returns [BasicGetEmptyID].
func (*BasicGetEmpty) ID() MethodID { return BasicGetEmptyID }

func (m *BasicGetEmpty) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicGetEmpty) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 60, 0, 72, 0)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicGetEmpty) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicGetEmpty) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*BasicGetEmpty) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicGetEmptyID)
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
func (m *BasicGetEmpty) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicAck is basic.ack: acknowledges deliveries; from the server: confirms publishes.
//
// Both sides send it.
type BasicAck struct {
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// All up to and with this tag; with tag 0 all there are.
	Multiple bool
}

// ID returns [BasicAckID].
func (*BasicAck) ID() MethodID { return BasicAckID }

func (m *BasicAck) size() int {
	return 13
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicAck) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 80)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	return append(dst, bit(m.Multiple))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicAck) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicAck) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicAck) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicAckID)
	if err != nil {
		return err
	}
	if len(b) < 9 {
		return truncatedIn(payload, b, 8, 1)
	}
	m.DeliveryTag = binary.BigEndian.Uint64(b)
	m.Multiple = b[8]&1 != 0
	b = b[9:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicAck) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicReject is basic.reject: refuses a delivery.
//
// Clients send it.
type BasicReject struct {
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// Put the message back into its queue.
	Requeue bool
}

// ID returns [BasicRejectID].
func (*BasicReject) ID() MethodID { return BasicRejectID }

func (m *BasicReject) size() int {
	return 13
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicReject) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 90)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	return append(dst, bit(m.Requeue))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicReject) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicReject) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicReject) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicRejectID)
	if err != nil {
		return err
	}
	if len(b) < 9 {
		return truncatedIn(payload, b, 8, 1)
	}
	m.DeliveryTag = binary.BigEndian.Uint64(b)
	m.Requeue = b[8]&1 != 0
	b = b[9:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicReject) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicRecoverAsync is basic.recover-async: asks for all unacknowledged messages again, without a reply.
//
// Clients send it.
type BasicRecoverAsync struct {
	// Put the messages back into their queues.
	Requeue bool
}

// ID returns [BasicRecoverAsyncID].
func (*BasicRecoverAsync) ID() MethodID { return BasicRecoverAsyncID }

func (m *BasicRecoverAsync) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicRecoverAsync) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 60, 0, 100, bit(m.Requeue))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicRecoverAsync) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicRecoverAsync) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicRecoverAsync) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicRecoverAsyncID)
	if err != nil {
		return err
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Requeue = b[0]&1 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicRecoverAsync) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicRecover is basic.recover: asks for all unacknowledged messages again.
//
// Clients send it.
type BasicRecover struct {
	// Put the messages back into their queues.
	Requeue bool
}

// ID returns [BasicRecoverID].
func (*BasicRecover) ID() MethodID { return BasicRecoverID }

func (m *BasicRecover) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicRecover) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 60, 0, 110, bit(m.Requeue))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicRecover) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicRecover) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicRecover) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicRecoverID)
	if err != nil {
		return err
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Requeue = b[0]&1 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicRecover) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicRecoverOk is basic.recover-ok: the messages are on their way.
//
// Servers send it.
type BasicRecoverOk struct{}

// ID returns [BasicRecoverOkID].
func (*BasicRecoverOk) ID() MethodID { return BasicRecoverOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*BasicRecoverOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 60, 0, 111)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicRecoverOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicRecoverOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*BasicRecoverOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicRecoverOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicRecoverOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// BasicNack is basic.nack: refuses deliveries; from the server: publishes that it could not take.
//
// Both sides send it. It is RabbitMQ's addition.
type BasicNack struct {
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// All up to and with this tag; with tag 0 all there are.
	Multiple bool
	// Put the messages back into their queues.
	Requeue bool
}

// ID returns [BasicNackID].
func (*BasicNack) ID() MethodID { return BasicNackID }

func (m *BasicNack) size() int {
	return 13
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicNack) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 120)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	return append(dst, bit(m.Multiple)|bit(m.Requeue)<<1)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicNack) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicNack) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicNack) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicNackID)
	if err != nil {
		return err
	}
	if len(b) < 9 {
		return truncatedIn(payload, b, 8, 1)
	}
	m.DeliveryTag = binary.BigEndian.Uint64(b)
	m.Multiple = b[8]&1 != 0
	m.Requeue = b[8]&2 != 0
	b = b[9:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *BasicNack) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
