// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// ConnectionStart is connection.start: offers the server's protocol version, properties, login mechanisms and locales.
//
// Servers send it.
type ConnectionStart struct {
	// Major number of the protocol version: 0.
	VersionMajor uint8
	// Minor number of the protocol version: 9.
	VersionMinor uint8
	// What a peer says of itself: product, version, capabilities.
	ServerProperties map[string]any
	// Login mechanisms, separated by spaces.
	Mechanisms string
	// Locales for texts, separated by spaces.
	Locales string
}

// ID returns [ConnectionStartID].
func (*ConnectionStart) ID() MethodID { return ConnectionStartID }

func (m *ConnectionStart) size() int {
	return 18 + len(m.Mechanisms) + len(m.Locales)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionStart) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionStart) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.Mechanisms)) {
		return dst, tooLong("connection.start", "mechanisms")
	}
	if !fitsLong(len(m.Locales)) {
		return dst, tooLong("connection.start", "locales")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.ServerProperties))
	dst = append(dst, 0, 10, 0, 10, m.VersionMajor, m.VersionMinor)
	var err error
	if dst, err = appendMap(dst, m.ServerProperties, 0); err != nil {
		return dst[:start], within("connection.start", within("server-properties", err))
	}
	dst = appendLong(dst, m.Mechanisms)
	dst = appendLong(dst, m.Locales)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionStart) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.ServerProperties)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionStart) UnmarshalBinary(payload []byte) error {
	var view ConnectionStartView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// ConnectionStartOk is connection.start-ok: picks a login mechanism and a locale, and begins the login.
//
// Clients send it.
type ConnectionStartOk struct {
	// What a peer says of itself: product, version, capabilities.
	ClientProperties map[string]any
	// The login mechanism that the client picked.
	Mechanism string
	// The mechanism's first response; its form is the mechanism's own.
	Response string
	// The locale that the client picked.
	Locale string
}

// ID returns [ConnectionStartOkID].
func (*ConnectionStartOk) ID() MethodID { return ConnectionStartOkID }

func (m *ConnectionStartOk) size() int {
	return 14 + len(m.Mechanism) + len(m.Response) + len(m.Locale)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionStartOk) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionStartOk) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Mechanism) > maxShortLen {
		return dst, tooLong("connection.start-ok", "mechanism")
	}
	if !fitsLong(len(m.Response)) {
		return dst, tooLong("connection.start-ok", "response")
	}
	if len(m.Locale) > maxShortLen {
		return dst, tooLong("connection.start-ok", "locale")
	}
	start := len(dst)
	dst = withRoom(dst, m.size(), guess(m.ClientProperties))
	dst = append(dst, 0, 10, 0, 11)
	var err error
	if dst, err = appendMap(dst, m.ClientProperties, 0); err != nil {
		return dst[:start], within("connection.start-ok", within("client-properties", err))
	}
	dst = append(dst, byte(len(m.Mechanism)))
	dst = append(dst, m.Mechanism...)
	dst = appendLong(dst, m.Response)
	dst = append(dst, byte(len(m.Locale)))
	dst = append(dst, m.Locale...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionStartOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), guess(m.ClientProperties)), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionStartOk) UnmarshalBinary(payload []byte) error {
	var view ConnectionStartOkView
	if err := view.Parse(payload); err != nil {
		return err
	}
	owned, err := view.Owned()
	if err == nil {
		*m = owned
	}
	return err
}

// ConnectionSecure is connection.secure: asks for one more round of the login mechanism.
//
// Servers send it.
type ConnectionSecure struct {
	// The mechanism's challenge.
	Challenge string
}

// ID returns [ConnectionSecureID].
func (*ConnectionSecure) ID() MethodID { return ConnectionSecureID }

func (m *ConnectionSecure) size() int {
	return 8 + len(m.Challenge)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionSecure) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionSecure) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.Challenge)) {
		return dst, tooLong("connection.secure", "challenge")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 20)
	dst = appendLong(dst, m.Challenge)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionSecure) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionSecure) UnmarshalBinary(payload []byte) error {
	var view ConnectionSecureView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ConnectionSecureOk is connection.secure-ok: answers a round of the login mechanism.
//
// Clients send it.
type ConnectionSecureOk struct {
	// The mechanism's response.
	Response string
}

// ID returns [ConnectionSecureOkID].
func (*ConnectionSecureOk) ID() MethodID { return ConnectionSecureOkID }

func (m *ConnectionSecureOk) size() int {
	return 8 + len(m.Response)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionSecureOk) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionSecureOk) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.Response)) {
		return dst, tooLong("connection.secure-ok", "response")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 21)
	dst = appendLong(dst, m.Response)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionSecureOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionSecureOk) UnmarshalBinary(payload []byte) error {
	var view ConnectionSecureOkView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ConnectionTune is connection.tune: proposes limits for the connection.
//
// Servers send it.
type ConnectionTune struct {
	// Highest channel number; 0 is no limit.
	ChannelMax uint16
	// Largest frame in bytes, header and end included; 0 is no limit.
	FrameMax uint32
	// Interval of heartbeats in seconds; 0 is none.
	Heartbeat uint16
}

// ID returns [ConnectionTuneID].
func (*ConnectionTune) ID() MethodID { return ConnectionTuneID }

func (m *ConnectionTune) size() int {
	return 12
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionTune) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 30, byte(m.ChannelMax>>8), byte(m.ChannelMax))
	dst = binary.BigEndian.AppendUint32(dst, m.FrameMax)
	return append(dst, byte(m.Heartbeat>>8), byte(m.Heartbeat))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionTune) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionTune) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionTune) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionTuneID)
	if err != nil {
		return err
	}
	if len(b) < 8 {
		return truncatedIn(payload, b, 2, 4, 2)
	}
	m.ChannelMax = binary.BigEndian.Uint16(b)
	m.FrameMax = binary.BigEndian.Uint32(b[2:])
	m.Heartbeat = binary.BigEndian.Uint16(b[6:])
	b = b[8:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConnectionTune) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ConnectionTuneOk is connection.tune-ok: settles the limits, none above what the server proposed.
//
// Clients send it.
type ConnectionTuneOk struct {
	// Highest channel number.
	ChannelMax uint16
	// Largest frame in bytes, header and end included.
	FrameMax uint32
	// Interval of heartbeats in seconds; 0 is none.
	Heartbeat uint16
}

// ID returns [ConnectionTuneOkID].
func (*ConnectionTuneOk) ID() MethodID { return ConnectionTuneOkID }

func (m *ConnectionTuneOk) size() int {
	return 12
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionTuneOk) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 31, byte(m.ChannelMax>>8), byte(m.ChannelMax))
	dst = binary.BigEndian.AppendUint32(dst, m.FrameMax)
	return append(dst, byte(m.Heartbeat>>8), byte(m.Heartbeat))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionTuneOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionTuneOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionTuneOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionTuneOkID)
	if err != nil {
		return err
	}
	if len(b) < 8 {
		return truncatedIn(payload, b, 2, 4, 2)
	}
	m.ChannelMax = binary.BigEndian.Uint16(b)
	m.FrameMax = binary.BigEndian.Uint32(b[2:])
	m.Heartbeat = binary.BigEndian.Uint16(b[6:])
	b = b[8:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConnectionTuneOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ConnectionOpen is connection.open: enters a virtual host.
//
// Clients send it.
type ConnectionOpen struct {
	// Name of a virtual host.
	VirtualHost string
}

// ID returns [ConnectionOpenID].
func (*ConnectionOpen) ID() MethodID { return ConnectionOpenID }

func (m *ConnectionOpen) size() int {
	return 7 + len(m.VirtualHost)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionOpen) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionOpen) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.VirtualHost) > maxShortLen {
		return dst, tooLong("connection.open", "virtual-host")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 40, byte(len(m.VirtualHost)))
	dst = append(dst, m.VirtualHost...)
	return append(dst, 0, 0), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionOpen) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionOpen) UnmarshalBinary(payload []byte) error {
	var view ConnectionOpenView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ConnectionOpenOk is connection.open-ok: the connection is ready for use.
//
// Servers send it.
type ConnectionOpenOk struct{}

// ID returns [ConnectionOpenOkID].
func (*ConnectionOpenOk) ID() MethodID { return ConnectionOpenOkID }

func (m *ConnectionOpenOk) size() int {
	return 5
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionOpenOk) AppendTo(dst []byte) []byte {
	dst = withRoom(dst, m.size(), 0)
	return append(dst, 0, 10, 0, 41, 0)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionOpenOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionOpenOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ConnectionOpenOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionOpenOkID)
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
func (m *ConnectionOpenOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ConnectionClose is connection.close: ends the connection and says why; the sender takes nothing but the reply from then on.
//
// Both sides send it.
type ConnectionClose struct {
	// One of the reply codes.
	ReplyCode ReplyCode
	// The reason, for people.
	ReplyText string
	// Class of the method that the message is about, 0 when there is none.
	ClassID uint16
	// Method that the message is about, 0 when there is none.
	MethodID uint16
}

// ID returns [ConnectionCloseID].
func (*ConnectionClose) ID() MethodID { return ConnectionCloseID }

func (m *ConnectionClose) size() int {
	return 11 + len(m.ReplyText)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionClose) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionClose) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ReplyText) > maxShortLen {
		return dst, tooLong("connection.close", "reply-text")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 50, byte(m.ReplyCode>>8), byte(m.ReplyCode), byte(len(m.ReplyText)))
	dst = append(dst, m.ReplyText...)
	return append(dst, byte(m.ClassID>>8), byte(m.ClassID), byte(m.MethodID>>8), byte(m.MethodID)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionClose) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionClose) UnmarshalBinary(payload []byte) error {
	var view ConnectionCloseView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ConnectionCloseOk is connection.close-ok: the last method on a connection.
//
// Both sides send it.
type ConnectionCloseOk struct{}

// ID returns [ConnectionCloseOkID].
func (*ConnectionCloseOk) ID() MethodID { return ConnectionCloseOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ConnectionCloseOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 10, 0, 51)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionCloseOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionCloseOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ConnectionCloseOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionCloseOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConnectionCloseOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ConnectionBlocked is connection.blocked: the server reads no publishes from this connection until further notice.
//
// Servers send it. It is RabbitMQ's addition.
type ConnectionBlocked struct {
	// The resource that is short, for people.
	Reason string
}

// ID returns [ConnectionBlockedID].
func (*ConnectionBlocked) ID() MethodID { return ConnectionBlockedID }

func (m *ConnectionBlocked) size() int {
	return 5 + len(m.Reason)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionBlocked) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionBlocked) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Reason) > maxShortLen {
		return dst, tooLong("connection.blocked", "reason")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 60, byte(len(m.Reason)))
	dst = append(dst, m.Reason...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionBlocked) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionBlocked) UnmarshalBinary(payload []byte) error {
	var view ConnectionBlockedView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ConnectionUnblocked is connection.unblocked: the server reads publishes again.
//
// Servers send it. It is RabbitMQ's addition.
type ConnectionUnblocked struct{}

// ID returns [ConnectionUnblockedID].
func (*ConnectionUnblocked) ID() MethodID { return ConnectionUnblockedID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ConnectionUnblocked) AppendTo(dst []byte) []byte {
	return append(dst, 0, 10, 0, 61)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionUnblocked) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionUnblocked) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ConnectionUnblocked) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionUnblockedID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConnectionUnblocked) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}

// ConnectionUpdateSecret is connection.update-secret: replaces a secret that expires, such as a token, on a running connection.
//
// Clients send it. It is RabbitMQ's addition.
type ConnectionUpdateSecret struct {
	// The secret from now on.
	NewSecret string
	// Why it changes, for people.
	Reason string
}

// ID returns [ConnectionUpdateSecretID].
func (*ConnectionUpdateSecret) ID() MethodID { return ConnectionUpdateSecretID }

func (m *ConnectionUpdateSecret) size() int {
	return 9 + len(m.NewSecret) + len(m.Reason)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionUpdateSecret) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionUpdateSecret) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.NewSecret)) {
		return dst, tooLong("connection.update-secret", "new-secret")
	}
	if len(m.Reason) > maxShortLen {
		return dst, tooLong("connection.update-secret", "reason")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 70)
	dst = appendLong(dst, m.NewSecret)
	dst = append(dst, byte(len(m.Reason)))
	dst = append(dst, m.Reason...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionUpdateSecret) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].
func (m *ConnectionUpdateSecret) UnmarshalBinary(payload []byte) error {
	var view ConnectionUpdateSecretView
	if err := view.Parse(payload); err != nil {
		return err
	}
	*m = view.Owned()
	return nil
}

// ConnectionUpdateSecretOk is connection.update-secret-ok: the new secret was taken.
//
// Servers send it. It is RabbitMQ's addition.
type ConnectionUpdateSecretOk struct{}

// ID returns [ConnectionUpdateSecretOkID].
func (*ConnectionUpdateSecretOk) ID() MethodID { return ConnectionUpdateSecretOkID }

// AppendTo appends the payload of the method's frame; see [Method].
func (*ConnectionUpdateSecretOk) AppendTo(dst []byte) []byte {
	return append(dst, 0, 10, 0, 71)
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionUpdateSecretOk) AppendBinary(dst []byte) ([]byte, error) {
	return m.AppendTo(dst), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionUpdateSecretOk) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(dst, FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (*ConnectionUpdateSecretOk) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionUpdateSecretOkID)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// UnmarshalBinary is Parse: the method has nothing that a view could alias.
func (m *ConnectionUpdateSecretOk) UnmarshalBinary(payload []byte) error {
	return m.Parse(payload)
}
