// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

// ExchangeDeclareView is exchange.declare as a view: its strings and tables alias the payload; see [ExchangeDeclare].
type ExchangeDeclareView struct {
	// Name of an exchange; empty is the default exchange.
	Exchange []byte
	// Type of the exchange: direct, fanout, topic, headers or one that a server adds.
	Type []byte
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
	Arguments TableView
}

// ID returns [ExchangeDeclareID].
func (*ExchangeDeclareView) ID() MethodID { return ExchangeDeclareID }

func (m *ExchangeDeclareView) size() int {
	return 13 + len(m.Exchange) + len(m.Type) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeDeclareView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeDeclareView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("exchange.declare", "exchange")
	}
	if len(m.Type) > maxShortLen {
		return dst, tooLong("exchange.declare", "type")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("exchange.declare", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 40, 0, 10, 0, 0, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	dst = append(dst, byte(len(m.Type)))
	dst = append(dst, m.Type...)
	dst = append(dst, bit(m.Passive)|bit(m.Durable)<<1|bit(m.AutoDelete)<<2|bit(m.Internal)<<3|bit(m.NoWait)<<4)
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeDeclareView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ExchangeDeclareView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeDeclareID)
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
	if m.Type, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.Passive = b[0]&1 != 0
	m.Durable = b[0]&2 != 0
	m.AutoDelete = b[0]&4 != 0
	m.Internal = b[0]&8 != 0
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
func (m *ExchangeDeclareView) Owned() (ExchangeDeclare, error) {
	var owned ExchangeDeclare
	owned.Passive = m.Passive
	owned.Durable = m.Durable
	owned.AutoDelete = m.AutoDelete
	owned.Internal = m.Internal
	owned.NoWait = m.NoWait
	text := ownedText(
		m.Exchange,
		m.Type,
	)
	owned.Exchange, text = text[:len(m.Exchange)], text[len(m.Exchange):]
	owned.Type = text
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return ExchangeDeclare{}, shifted(err, 13+len(m.Exchange)+len(m.Type))
	}
	return owned, nil
}

// ExchangeDeleteView is exchange.delete as a view: its strings and tables alias the payload; see [ExchangeDelete].
type ExchangeDeleteView struct {
	// Name of an exchange; empty is the default exchange.
	Exchange []byte
	// Only when nothing is bound to it.
	IfUnused bool
	// Send no reply.
	NoWait bool
}

// ID returns [ExchangeDeleteID].
func (*ExchangeDeleteView) ID() MethodID { return ExchangeDeleteID }

func (m *ExchangeDeleteView) size() int {
	return 8 + len(m.Exchange)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeDeleteView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeDeleteView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Exchange) > maxShortLen {
		return dst, tooLong("exchange.delete", "exchange")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 40, 0, 20, 0, 0, byte(len(m.Exchange)))
	dst = append(dst, m.Exchange...)
	return append(dst, bit(m.IfUnused)|bit(m.NoWait)<<1), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeDeleteView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ExchangeDeleteView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeDeleteID)
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
	if len(b) < 1 {
		return truncated(payload, b)
	}
	m.IfUnused = b[0]&1 != 0
	m.NoWait = b[0]&2 != 0
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ExchangeDeleteView) Owned() ExchangeDelete {
	var owned ExchangeDelete
	owned.IfUnused = m.IfUnused
	owned.NoWait = m.NoWait
	owned.Exchange = string(m.Exchange)
	return owned
}

// ExchangeBindView is exchange.bind as a view: its strings and tables alias the payload; see [ExchangeBind].
type ExchangeBindView struct {
	// The exchange that receives.
	Destination []byte
	// The exchange that messages come from.
	Source []byte
	// What the exchange routes by.
	RoutingKey []byte
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments TableView
}

// ID returns [ExchangeBindID].
func (*ExchangeBindView) ID() MethodID { return ExchangeBindID }

func (m *ExchangeBindView) size() int {
	return 14 + len(m.Destination) + len(m.Source) + len(m.RoutingKey) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeBindView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeBindView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Destination) > maxShortLen {
		return dst, tooLong("exchange.bind", "destination")
	}
	if len(m.Source) > maxShortLen {
		return dst, tooLong("exchange.bind", "source")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("exchange.bind", "routing-key")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("exchange.bind", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 40, 0, 30, 0, 0, byte(len(m.Destination)))
	dst = append(dst, m.Destination...)
	dst = append(dst, byte(len(m.Source)))
	dst = append(dst, m.Source...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = append(dst, bit(m.NoWait))
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeBindView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ExchangeBindView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeBindID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Destination, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.Source, b, ok = CutShortString(b); !ok {
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
func (m *ExchangeBindView) Owned() (ExchangeBind, error) {
	var owned ExchangeBind
	owned.NoWait = m.NoWait
	text := ownedText(
		m.Destination,
		m.Source,
		m.RoutingKey,
	)
	owned.Destination, text = text[:len(m.Destination)], text[len(m.Destination):]
	owned.Source, text = text[:len(m.Source)], text[len(m.Source):]
	owned.RoutingKey = text
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return ExchangeBind{}, shifted(err, 14+len(m.Destination)+len(m.Source)+len(m.RoutingKey))
	}
	return owned, nil
}

// ExchangeUnbindView is exchange.unbind as a view: its strings and tables alias the payload; see [ExchangeUnbind].
type ExchangeUnbindView struct {
	// The exchange that receives.
	Destination []byte
	// The exchange that messages come from.
	Source []byte
	// What the exchange routes by.
	RoutingKey []byte
	// Send no reply.
	NoWait bool
	// Further arguments, by name.
	Arguments TableView
}

// ID returns [ExchangeUnbindID].
func (*ExchangeUnbindView) ID() MethodID { return ExchangeUnbindID }

func (m *ExchangeUnbindView) size() int {
	return 14 + len(m.Destination) + len(m.Source) + len(m.RoutingKey) + len(m.Arguments)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ExchangeUnbindView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ExchangeUnbindView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Destination) > maxShortLen {
		return dst, tooLong("exchange.unbind", "destination")
	}
	if len(m.Source) > maxShortLen {
		return dst, tooLong("exchange.unbind", "source")
	}
	if len(m.RoutingKey) > maxShortLen {
		return dst, tooLong("exchange.unbind", "routing-key")
	}
	if !fitsLong(len(m.Arguments)) {
		return dst, tooLong("exchange.unbind", "arguments")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 40, 0, 40, 0, 0, byte(len(m.Destination)))
	dst = append(dst, m.Destination...)
	dst = append(dst, byte(len(m.Source)))
	dst = append(dst, m.Source...)
	dst = append(dst, byte(len(m.RoutingKey)))
	dst = append(dst, m.RoutingKey...)
	dst = append(dst, bit(m.NoWait))
	dst = appendLong(dst, m.Arguments)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ExchangeUnbindView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ExchangeUnbindView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ExchangeUnbindID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncated(payload, b)
	}
	b = b[2:]
	if m.Destination, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.Source, b, ok = CutShortString(b); !ok {
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
func (m *ExchangeUnbindView) Owned() (ExchangeUnbind, error) {
	var owned ExchangeUnbind
	owned.NoWait = m.NoWait
	text := ownedText(
		m.Destination,
		m.Source,
		m.RoutingKey,
	)
	owned.Destination, text = text[:len(m.Destination)], text[len(m.Destination):]
	owned.Source, text = text[:len(m.Source)], text[len(m.Source):]
	owned.RoutingKey = text
	var err error
	if owned.Arguments, err = m.Arguments.Map(); err != nil {
		return ExchangeUnbind{}, shifted(err, 14+len(m.Destination)+len(m.Source)+len(m.RoutingKey))
	}
	return owned, nil
}
