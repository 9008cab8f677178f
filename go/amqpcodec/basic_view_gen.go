// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// BasicConsumeView is basic.consume as a view: its strings and tables alias the payload; see [BasicConsume].
type BasicConsumeView struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue []byte
	// Name of the consumer; empty asks the server to make one up.
	ConsumerTag []byte
	// Leave out what was published on this same connection.
	NoLocal bool
	// Deliveries count as acknowledged when they are sent.
	NoAck bool
	// No other consumer on this queue.
	Exclusive bool
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments TableView
}

// ID returns [BasicConsumeID].
func (*BasicConsumeView) ID() MethodID { return BasicConsumeID }

func (m *BasicConsumeView) size() int {
	return 13 + len(m.Queue) + len(m.ConsumerTag) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicConsumeView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicConsumeView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("basic.consume", "queue")
	}
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.consume", "consumer-tag")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("basic.consume", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 20, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	dst = append(dst, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	dst = append(dst, bit(m.NoLocal)|bit(m.NoAck)<<1|bit(m.Exclusive)<<2|bit(m.NoWait)<<3)
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicConsumeView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicConsumeView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicConsumeID)
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
	if m.ConsumerTag, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.NoLocal = b[0]&1 != 0
	m.NoAck = b[0]&2 != 0
	m.Exclusive = b[0]&4 != 0
	m.NoWait = b[0]&8 != 0
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
func (m *BasicConsumeView) Owned() (BasicConsume, error) {
	var owned BasicConsume
	owned.NoLocal = m.NoLocal
	owned.NoAck = m.NoAck
	owned.Exclusive = m.Exclusive
	owned.NoWait = m.NoWait
	text := ownedText(
		m.Queue,
		m.ConsumerTag,
	)
	owned.Queue, text = text[:len(m.Queue)], text[len(m.Queue):]
	owned.ConsumerTag = text
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return BasicConsume{}, shifted(err, 13+len(m.Queue)+len(m.ConsumerTag))
	}
	return owned, nil
}

// BasicConsumeOkView is basic.consume-ok as a view: its strings and tables alias the payload; see [BasicConsumeOk].
type BasicConsumeOkView struct {
	// Name of the consumer, also when the server made it up.
	ConsumerTag []byte
}

// ID returns [BasicConsumeOkID].
func (*BasicConsumeOkView) ID() MethodID { return BasicConsumeOkID }

func (m *BasicConsumeOkView) size() int {
	return 5 + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicConsumeOkView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicConsumeOkView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.consume-ok", "consumer-tag")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 21, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicConsumeOkView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicConsumeOkView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicConsumeOkID)
	if err != nil {
		return err
	}
	var ok bool
	if m.ConsumerTag, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *BasicConsumeOkView) Owned() BasicConsumeOk {
	var owned BasicConsumeOk
	owned.ConsumerTag = string(m.ConsumerTag)
	return owned
}

// BasicCancelView is basic.cancel as a view: its strings and tables alias the payload; see [BasicCancel].
type BasicCancelView struct {
	// Name of a consumer, unique within its channel.
	ConsumerTag []byte
	// Send no reply.
	NoWait bool
}

// ID returns [BasicCancelID].
func (*BasicCancelView) ID() MethodID { return BasicCancelID }

func (m *BasicCancelView) size() int {
	return 6 + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicCancelView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicCancelView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.cancel", "consumer-tag")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 30, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	return append(dst, bit(m.NoWait)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicCancelView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicCancelView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicCancelID)
	if err != nil {
		return err
	}
	var ok bool
	if m.ConsumerTag, b, ok = CutShortString(b); !ok {
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
func (m *BasicCancelView) Owned() BasicCancel {
	var owned BasicCancel
	owned.NoWait = m.NoWait
	owned.ConsumerTag = string(m.ConsumerTag)
	return owned
}

// BasicCancelOkView is basic.cancel-ok as a view: its strings and tables alias the payload; see [BasicCancelOk].
type BasicCancelOkView struct {
	// Name of a consumer, unique within its channel.
	ConsumerTag []byte
}

// ID returns [BasicCancelOkID].
func (*BasicCancelOkView) ID() MethodID { return BasicCancelOkID }

func (m *BasicCancelOkView) size() int {
	return 5 + len(m.ConsumerTag)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicCancelOkView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicCancelOkView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ConsumerTag) > maxShortLen {
		return dst, tooLong("basic.cancel-ok", "consumer-tag")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 31, byte(len(m.ConsumerTag)))
	dst = append(dst, m.ConsumerTag...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicCancelOkView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicCancelOkView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicCancelOkID)
	if err != nil {
		return err
	}
	var ok bool
	if m.ConsumerTag, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *BasicCancelOkView) Owned() BasicCancelOk {
	var owned BasicCancelOk
	owned.ConsumerTag = string(m.ConsumerTag)
	return owned
}

// BasicPublishView is basic.publish as a view: its strings and tables alias the payload; see [BasicPublish].
type BasicPublishView struct {
	// Name of an exchange; empty is the default exchange.
	Exchange []byte
	// What the exchange routes by.
	RoutingKey []byte
	// Return the message when no queue takes it.
	Mandatory bool
	// Return the message when no consumer takes it at once.
	Immediate bool
}

// ID returns [BasicPublishID].
func (*BasicPublishView) ID() MethodID { return BasicPublishID }

func (m *BasicPublishView) size() int {
	return 9 + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicPublishView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicPublishView) AppendBinary(dst []byte) ([]byte, error) {
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
func (m *BasicPublishView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicPublishView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicPublishID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Exchange, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.RoutingKey, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Mandatory = b[0]&1 != 0
	m.Immediate = b[0]&2 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *BasicPublishView) Owned() BasicPublish {
	var owned BasicPublish
	owned.Mandatory = m.Mandatory
	owned.Immediate = m.Immediate
	text := ownedText(
		m.Exchange,
		m.RoutingKey,
	)
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.RoutingKey = text
	return owned
}

// BasicReturnView is basic.return as a view: its strings and tables alias the payload; see [BasicReturn].
type BasicReturnView struct {
	// One of the reply codes.
	ReplyCode ReplyCode
	// The reason, for people.
	ReplyText []byte
	// Name of an exchange; empty is the default exchange.
	Exchange []byte
	// What the exchange routes by.
	RoutingKey []byte
}

// ID returns [BasicReturnID].
func (*BasicReturnView) ID() MethodID { return BasicReturnID }

func (m *BasicReturnView) size() int {
	return 9 + len(m.ReplyText) + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicReturnView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicReturnView) AppendBinary(dst []byte) ([]byte, error) {
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
func (m *BasicReturnView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicReturnView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicReturnID)
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
	if m.Exchange, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.RoutingKey, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *BasicReturnView) Owned() BasicReturn {
	var owned BasicReturn
	owned.ReplyCode = m.ReplyCode
	text := ownedText(
		m.ReplyText,
		m.Exchange,
		m.RoutingKey,
	)
	owned.ReplyText, text = text[:len(m.ReplyText)], text[len(m.ReplyText):]
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.RoutingKey = text
	return owned
}

// BasicDeliverView is basic.deliver as a view: its strings and tables alias the payload; see [BasicDeliver].
type BasicDeliverView struct {
	// Name of a consumer, unique within its channel.
	ConsumerTag []byte
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// The message may have been delivered before.
	Redelivered bool
	// The exchange that the message was published to.
	Exchange []byte
	// The routing key that the message was published with.
	RoutingKey []byte
}

// ID returns [BasicDeliverID].
func (*BasicDeliverView) ID() MethodID { return BasicDeliverID }

func (m *BasicDeliverView) size() int {
	return 16 + len(m.ConsumerTag) + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicDeliverView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicDeliverView) AppendBinary(dst []byte) ([]byte, error) {
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
func (m *BasicDeliverView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicDeliverView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicDeliverID)
	if err != nil {
		return err
	}
	var ok bool
	if m.ConsumerTag, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 9 {
		return truncatedIn(payload, b, 8, 1)
	}
	m.DeliveryTag = binary.BigEndian.Uint64(b)
	m.Redelivered = b[8]&1 != 0
	b = b[9:]
	if m.Exchange, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.RoutingKey, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *BasicDeliverView) Owned() BasicDeliver {
	var owned BasicDeliver
	owned.DeliveryTag = m.DeliveryTag
	owned.Redelivered = m.Redelivered
	text := ownedText(
		m.ConsumerTag,
		m.Exchange,
		m.RoutingKey,
	)
	owned.ConsumerTag, text = text[:len(m.ConsumerTag)], text[len(m.ConsumerTag):]
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.RoutingKey = text
	return owned
}

// BasicGetView is basic.get as a view: its strings and tables alias the payload; see [BasicGet].
type BasicGetView struct {
	// Name of a queue; empty is the one that this channel declared last.
	Queue []byte
	// Deliveries count as acknowledged when they are sent.
	NoAck bool
}

// ID returns [BasicGetID].
func (*BasicGetView) ID() MethodID { return BasicGetID }

func (m *BasicGetView) size() int {
	return 8 + len(m.Queue)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicGetView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicGetView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Queue) > maxShortLen {
		return dst, tooLong("basic.get", "queue")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 60, 0, 70, 0, 0, byte(len(m.Queue)))
	dst = append(dst, m.Queue...)
	return append(dst, bit(m.NoAck)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *BasicGetView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicGetView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicGetID)
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
	m.NoAck = b[0]&1 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *BasicGetView) Owned() BasicGet {
	var owned BasicGet
	owned.NoAck = m.NoAck
	owned.Queue = string(m.Queue)
	return owned
}

// BasicGetOkView is basic.get-ok as a view: its strings and tables alias the payload; see [BasicGetOk].
type BasicGetOkView struct {
	// Number of a delivery (or of a confirmed publish) within its channel, from 1.
	DeliveryTag uint64
	// The message may have been delivered before.
	Redelivered bool
	// The exchange that the message was published to.
	Exchange []byte
	// The routing key that the message was published with.
	RoutingKey []byte
	// Number of messages left in the queue.
	MessageCount uint32
}

// ID returns [BasicGetOkID].
func (*BasicGetOkView) ID() MethodID { return BasicGetOkID }

func (m *BasicGetOkView) size() int {
	return 19 + len(m.Exchange) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *BasicGetOkView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *BasicGetOkView) AppendBinary(dst []byte) ([]byte, error) {
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
func (m *BasicGetOkView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *BasicGetOkView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, BasicGetOkID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 9 {
		return truncatedIn(payload, b, 8, 1)
	}
	m.DeliveryTag = binary.BigEndian.Uint64(b)
	m.Redelivered = b[8]&1 != 0
	b = b[9:]
	if m.Exchange, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.RoutingKey, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
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

// Owned returns the owned form.
func (m *BasicGetOkView) Owned() BasicGetOk {
	var owned BasicGetOk
	owned.DeliveryTag = m.DeliveryTag
	owned.Redelivered = m.Redelivered
	owned.MessageCount = m.MessageCount
	text := ownedText(
		m.Exchange,
		m.RoutingKey,
	)
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.RoutingKey = text
	return owned
}
