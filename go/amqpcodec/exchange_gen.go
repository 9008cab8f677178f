// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

// ExchangeDeclare is exchange.declare: makes an exchange, or checks that it is there as described.
//
// Clients send it.
type ExchangeDeclare struct {
	// Name of an exchange; empty is the default exchange.
	Exchange string
	// Type of the exchange: direct, fanout, topic, headers or one that a server adds.
	Type string
	// Only check that the exchange exists.
	Passive bool
	// The exchange survives a restart of the server.
	Durable bool
	// The exchange goes when its last binding has gone.
	AutoDelete bool
	// Clients cannot publish to it, only other exchanges can.
	Internal bool
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [ExchangeDeclareID].
func (*ExchangeDeclare) ID() MethodID { return ExchangeDeclareID }

func (m *ExchangeDeclare) size() int {
	return 13 + len(m.Exchange) + len(m.Type)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeDeclare) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeDeclare) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("exchange.declare", "exchange")
	}
	if len(m.Type) > maxShortLen {
		return dst, tooLong("exchange.declare", "type")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 40, 0, 10, 0, 0, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.Type)))
	dst = append(dst, m.Type...)
	dst = append(dst, bit(m.Passive)|bit(m.Durable)<<1|bit(m.AutoDelete)<<2|bit(m.Internal)<<3|bit(m.NoWait)<<4)
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("exchange.declare", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeDeclare) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ExchangeDeclare) UnmarshalBinary(payload []byte) error {
	var view ExchangeDeclareView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// ExchangeDeclareOk is exchange.declare-ok: the exchange is there.
//
// Servers send it.
type ExchangeDeclareOk struct{}

// ID returns [ExchangeDeclareOkID].
func (*ExchangeDeclareOk) ID() MethodID { return ExchangeDeclareOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ExchangeDeclareOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 40, 0, 11)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeDeclareOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeDeclareOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ExchangeDeclareOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeDeclareOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ExchangeDeclareOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ExchangeDelete is exchange.delete: deletes an exchange with its bindings.
//
// Clients send it.
type ExchangeDelete struct {
	// Name of an exchange; empty is the default exchange.
	Exchange string
	// Only when nothing is bound to it.
	IfUnused bool
	// Send no reply.
	NoWait bool
}

// ID returns [ExchangeDeleteID].
func (*ExchangeDelete) ID() MethodID { return ExchangeDeleteID }

func (m *ExchangeDelete) size() int {
	return 8 + len(m.Exchange)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeDelete) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeDelete) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("exchange.delete", "exchange")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 40, 0, 20, 0, 0, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	return append(dst, bit(m.IfUnused)|bit(m.NoWait)<<1), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeDelete) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ExchangeDelete) UnmarshalBinary(payload []byte) error {
	var view ExchangeDeleteView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ExchangeDeleteOk is exchange.delete-ok: the exchange is gone.
//
// Servers send it.
type ExchangeDeleteOk struct{}

// ID returns [ExchangeDeleteOkID].
func (*ExchangeDeleteOk) ID() MethodID { return ExchangeDeleteOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ExchangeDeleteOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 40, 0, 21)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeDeleteOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeDeleteOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ExchangeDeleteOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeDeleteOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ExchangeDeleteOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ExchangeBind is exchange.bind: binds an exchange to an exchange.
//
// Clients send it. It is RabbitMQ's addition.
type ExchangeBind struct {
	// The exchange that receives.
	Destination string
	// The exchange that messages come from.
	Source string
	// What the exchange routes by.
	RoutingKey string
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [ExchangeBindID].
func (*ExchangeBind) ID() MethodID { return ExchangeBindID }

func (m *ExchangeBind) size() int {
	return 14 + len(m.Destination) + len(m.Source) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeBind) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeBind) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Destination) > maxShortLen {
		return dst, tooLong("exchange.bind", "destination")
	}
	if len(m.Source) > maxShortLen {
		return dst, tooLong("exchange.bind", "source")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("exchange.bind", "routing-key")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 40, 0, 30, 0, 0, byte(len(m.Destination)))
	dst = append(dst, m.Destination...)
	dst = append(dst, byte(len(m.Source)))
	dst = append(dst, m.Source...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = append(dst, bit(m.NoWait))
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("exchange.bind", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeBind) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ExchangeBind) UnmarshalBinary(payload []byte) error {
	var view ExchangeBindView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// ExchangeBindOk is exchange.bind-ok: the exchanges are bound.
//
// Servers send it. It is RabbitMQ's addition.
type ExchangeBindOk struct{}

// ID returns [ExchangeBindOkID].
func (*ExchangeBindOk) ID() MethodID { return ExchangeBindOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ExchangeBindOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 40, 0, 31)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeBindOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeBindOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ExchangeBindOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeBindOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ExchangeBindOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ExchangeUnbind is exchange.unbind: takes a binding between exchanges away.
//
// Clients send it. It is RabbitMQ's addition.
type ExchangeUnbind struct {
	// The exchange that receives.
	Destination string
	// The exchange that messages come from.
	Source string
	// What the exchange routes by.
	RoutingKey string
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments map[string]any
}

// ID returns [ExchangeUnbindID].
func (*ExchangeUnbind) ID() MethodID { return ExchangeUnbindID }

func (m *ExchangeUnbind) size() int {
	return 14 + len(m.Destination) + len(m.Source) + len(m.RoutingKey)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeUnbind) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeUnbind) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Destination) > maxShortLen {
		return dst, tooLong("exchange.unbind", "destination")
	}
	if len(m.Source) > maxShortLen {
		return dst, tooLong("exchange.unbind", "source")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("exchange.unbind", "routing-key")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.Arguments))
	dst = append(dst, 0, 40, 0, 40, 0, 0, byte(len(m.Destination)))
	dst = append(dst, m.Destination...)
	dst = append(dst, byte(len(m.Source)))
	dst = append(dst, m.Source...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = append(dst, bit(m.NoWait))
	var err error
	if dst, err = appendMap(dst, m.Arguments, 0); err != nil {
		return dst[:start], within("exchange.unbind", within("arguments", err))
	}
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeUnbind) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.Arguments)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ExchangeUnbind) UnmarshalBinary(payload []byte) error {
	var view ExchangeUnbindView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// ExchangeUnbindOk is exchange.unbind-ok: the binding is gone.
//
// Servers send it. It is RabbitMQ's addition.
type ExchangeUnbindOk struct{}

// ID returns [ExchangeUnbindOkID].
func (*ExchangeUnbindOk) ID() MethodID { return ExchangeUnbindOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ExchangeUnbindOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 40, 0, 51)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeUnbindOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeUnbindOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ExchangeUnbindOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeUnbindOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ExchangeUnbindOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
