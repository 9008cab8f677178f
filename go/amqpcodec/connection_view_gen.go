// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "encoding/binary"

// ConnectionStartView is connection.start as a view: its strings and tables alias the payload; see [ConnectionStart].
type ConnectionStartView struct {
	// Major number of the protocol version: 0.
	VersionMajor uint8
	// Minor number of the protocol version: 9.
	VersionMinor uint8
	// What a peer says of itself: product, version, capabilities.
	ServerProperties TableView
	// Login mechanisms, separated by spaces.
	Mechanisms []byte
	// Locales for texts, separated by spaces.
	Locales []byte
}

// ID returns [ConnectionStartID].
func (*ConnectionStartView) ID() MethodID { return ConnectionStartID }

func (m *ConnectionStartView) size() int {
	return 18 + len(m.ServerProperties) + len(m.Mechanisms) + len(m.Locales)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionStartView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionStartView) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.ServerProperties)) {
		return dst, tooLong("connection.start", "server-properties")
	}
	if !fitsLong(len(m.Mechanisms)) {
		return dst, tooLong("connection.start", "mechanisms")
	}
	if !fitsLong(len(m.Locales)) {
		return dst, tooLong("connection.start", "locales")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 10, m.VersionMajor, m.VersionMinor)
	dst = appendLong(dst, m.ServerProperties)
	dst = appendLong(dst, m.Mechanisms)
	dst = appendLong(dst, m.Locales)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionStartView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionStartView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionStartID)
	if err != nil {
		return err
	}
	var ok bool
	if len(b) < 2 {
		return truncatedIn(payload, b, 1, 1)
	}
	m.VersionMajor = b[0]
	m.VersionMinor = b[1]
	b = b[2:]
	if m.ServerProperties, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if m.Mechanisms, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if m.Locales, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form. The error is that of a malformed table; its offset counts in the payload.
func (m *ConnectionStartView) Owned() (ConnectionStart, error) {
	var owned ConnectionStart
	owned.VersionMajor = m.VersionMajor
	owned.VersionMinor = m.VersionMinor
	text := ownedText(
		m.Mechanisms,
		m.Locales,
	)
	owned.Mechanisms, text = text[:len(m.Mechanisms)], text[len(m.Mechanisms):]
	owned.Locales = text
	var err error
	if owned.ServerProperties, err = m.ServerProperties.Map(); err != nil {
		return ConnectionStart{}, shifted(err, 10)
	}
	return owned, nil
}

// ConnectionStartOkView is connection.start-ok as a view: its strings and tables alias the payload; see [ConnectionStartOk].
type ConnectionStartOkView struct {
	// What a peer says of itself: product, version, capabilities.
	ClientProperties TableView
	// The login mechanism that the client picked.
	Mechanism []byte
	// The mechanism's first response; its form is the mechanism's own.
	Response []byte
	// The locale that the client picked.
	Locale []byte
}

// ID returns [ConnectionStartOkID].
func (*ConnectionStartOkView) ID() MethodID { return ConnectionStartOkID }

func (m *ConnectionStartOkView) size() int {
	return 14 + len(m.ClientProperties) + len(m.Mechanism) + len(m.Response) + len(m.Locale)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionStartOkView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionStartOkView) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.ClientProperties)) {
		return dst, tooLong("connection.start-ok", "client-properties")
	}
	if len(m.Mechanism) > maxShortLen {
		return dst, tooLong("connection.start-ok", "mechanism")
	}
	if !fitsLong(len(m.Response)) {
		return dst, tooLong("connection.start-ok", "response")
	}
	if len(m.Locale) > maxShortLen {
		return dst, tooLong("connection.start-ok", "locale")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 11)
	dst = appendLong(dst, m.ClientProperties)
	dst = append(dst, byte(len(m.Mechanism)))
	dst = append(dst, m.Mechanism...)
	dst = appendLong(dst, m.Response)
	dst = append(dst, byte(len(m.Locale)))
	dst = append(dst, m.Locale...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionStartOkView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionStartOkView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionStartOkID)
	if err != nil {
		return err
	}
	var ok bool
	if m.ClientProperties, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if m.Mechanism, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if m.Response, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if m.Locale, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form. The error is that of a malformed table; its offset counts in the payload.
func (m *ConnectionStartOkView) Owned() (ConnectionStartOk, error) {
	var owned ConnectionStartOk
	text := ownedText(
		m.Mechanism,
		m.Response,
		m.Locale,
	)
	owned.Mechanism, text = text[:len(m.Mechanism)], text[len(m.Mechanism):]
	owned.Response, text = text[:len(m.Response)], text[len(m.Response):]
	owned.Locale = text
	var err error
	if owned.ClientProperties, err = m.ClientProperties.Map(); err != nil {
		return ConnectionStartOk{}, shifted(err, 8)
	}
	return owned, nil
}

// ConnectionSecureView is connection.secure as a view: its strings and tables alias the payload; see [ConnectionSecure].
type ConnectionSecureView struct {
	// The mechanism's challenge.
	Challenge []byte
}

// ID returns [ConnectionSecureID].
func (*ConnectionSecureView) ID() MethodID { return ConnectionSecureID }

func (m *ConnectionSecureView) size() int {
	return 8 + len(m.Challenge)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionSecureView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionSecureView) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.Challenge)) {
		return dst, tooLong("connection.secure", "challenge")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 20)
	dst = appendLong(dst, m.Challenge)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionSecureView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionSecureView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionSecureID)
	if err != nil {
		return err
	}
	var ok bool
	if m.Challenge, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ConnectionSecureView) Owned() ConnectionSecure {
	var owned ConnectionSecure
	owned.Challenge = string(m.Challenge)
	return owned
}

// ConnectionSecureOkView is connection.secure-ok as a view: its strings and tables alias the payload; see [ConnectionSecureOk].
type ConnectionSecureOkView struct {
	// The mechanism's response.
	Response []byte
}

// ID returns [ConnectionSecureOkID].
func (*ConnectionSecureOkView) ID() MethodID { return ConnectionSecureOkID }

func (m *ConnectionSecureOkView) size() int {
	return 8 + len(m.Response)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionSecureOkView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionSecureOkView) AppendBinary(dst []byte) ([]byte, error) {
	if !fitsLong(len(m.Response)) {
		return dst, tooLong("connection.secure-ok", "response")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 21)
	dst = appendLong(dst, m.Response)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionSecureOkView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionSecureOkView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionSecureOkID)
	if err != nil {
		return err
	}
	var ok bool
	if m.Response, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ConnectionSecureOkView) Owned() ConnectionSecureOk {
	var owned ConnectionSecureOk
	owned.Response = string(m.Response)
	return owned
}

// ConnectionOpenView is connection.open as a view: its strings and tables alias the payload; see [ConnectionOpen].
type ConnectionOpenView struct {
	// Name of a virtual host.
	VirtualHost []byte
}

// ID returns [ConnectionOpenID].
func (*ConnectionOpenView) ID() MethodID { return ConnectionOpenID }

func (m *ConnectionOpenView) size() int {
	return 7 + len(m.VirtualHost)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionOpenView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionOpenView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.VirtualHost) > maxShortLen {
		return dst, tooLong("connection.open", "virtual-host")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 40, byte(len(m.VirtualHost)))
	dst = append(dst, m.VirtualHost...)
	return append(dst, 0, 0), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionOpenView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionOpenView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionOpenID)
	if err != nil {
		return err
	}
	var ok bool
	if m.VirtualHost, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if _, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) < 1 {
		return truncated(payload, b)
	}
	b = b[1:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ConnectionOpenView) Owned() ConnectionOpen {
	var owned ConnectionOpen
	owned.VirtualHost = string(m.VirtualHost)
	return owned
}

// ConnectionCloseView is connection.close as a view: its strings and tables alias the payload; see [ConnectionClose].
type ConnectionCloseView struct {
	// One of the reply codes.
	ReplyCode ReplyCode
	// The reason, for people.
	ReplyText []byte
	// Class of the method that the message is about, 0 when there is none.
	ClassID uint16
	// Method that the message is about, 0 when there is none.
	MethodID uint16
}

// ID returns [ConnectionCloseID].
func (*ConnectionCloseView) ID() MethodID { return ConnectionCloseID }

func (m *ConnectionCloseView) size() int {
	return 11 + len(m.ReplyText)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionCloseView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionCloseView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.ReplyText) > maxShortLen {
		return dst, tooLong("connection.close", "reply-text")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 50, byte(m.ReplyCode>>8), byte(m.ReplyCode), byte(len(m.ReplyText)))
	dst = append(dst, m.ReplyText...)
	return append(dst, byte(m.ClassID>>8), byte(m.ClassID), byte(m.MethodID>>8), byte(m.MethodID)), nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionCloseView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionCloseView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionCloseID)
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
	if len(b) < 4 {
		return truncatedIn(payload, b, 2, 2)
	}
	m.ClassID = binary.BigEndian.Uint16(b)
	m.MethodID = binary.BigEndian.Uint16(b[2:])
	b = b[4:]
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ConnectionCloseView) Owned() ConnectionClose {
	var owned ConnectionClose
	owned.ReplyCode = m.ReplyCode
	owned.ClassID = m.ClassID
	owned.MethodID = m.MethodID
	owned.ReplyText = string(m.ReplyText)
	return owned
}

// ConnectionBlockedView is connection.blocked as a view: its strings and tables alias the payload; see [ConnectionBlocked].
type ConnectionBlockedView struct {
	// The resource that is short, for people.
	Reason []byte
}

// ID returns [ConnectionBlockedID].
func (*ConnectionBlockedView) ID() MethodID { return ConnectionBlockedID }

func (m *ConnectionBlockedView) size() int {
	return 5 + len(m.Reason)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionBlockedView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionBlockedView) AppendBinary(dst []byte) ([]byte, error) {
	if len(m.Reason) > maxShortLen {
		return dst, tooLong("connection.blocked", "reason")
	}
	dst = withRoom(dst, m.size(), 0)
	dst = append(dst, 0, 10, 0, 60, byte(len(m.Reason)))
	dst = append(dst, m.Reason...)
	return dst, nil
}

// AppendFrame appends a whole method frame; see [Method].
func (m *ConnectionBlockedView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionBlockedView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionBlockedID)
	if err != nil {
		return err
	}
	var ok bool
	if m.Reason, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ConnectionBlockedView) Owned() ConnectionBlocked {
	var owned ConnectionBlocked
	owned.Reason = string(m.Reason)
	return owned
}

// ConnectionUpdateSecretView is connection.update-secret as a view: its strings and tables alias the payload; see [ConnectionUpdateSecret].
type ConnectionUpdateSecretView struct {
	// The secret from now on.
	NewSecret []byte
	// Why it changes, for people.
	Reason []byte
}

// ID returns [ConnectionUpdateSecretID].
func (*ConnectionUpdateSecretView) ID() MethodID { return ConnectionUpdateSecretID }

func (m *ConnectionUpdateSecretView) size() int {
	return 9 + len(m.NewSecret) + len(m.Reason)
}

// AppendTo appends the payload of the method's frame; see [Method].
func (m *ConnectionUpdateSecretView) AppendTo(dst []byte) []byte {
	return must(m.AppendBinary(dst))
}

// AppendBinary appends the payload of the method's frame; see [Method].
func (m *ConnectionUpdateSecretView) AppendBinary(dst []byte) ([]byte, error) {
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
func (m *ConnectionUpdateSecretView) AppendFrame(dst []byte, channel uint16) ([]byte, error) {
	start := len(dst)
	dst, err := m.AppendBinary(beginFrame(withRoom(dst, FrameOverhead+m.size(), 0), FrameMethod, channel))
	return endFrame(dst, start, err)
}

// Parse reads the payload of the method's frame; see [MethodView].
func (m *ConnectionUpdateSecretView) Parse(payload []byte) error {
	b, err := fieldsOf(payload, ConnectionUpdateSecretID)
	if err != nil {
		return err
	}
	var ok bool
	if m.NewSecret, b, ok = CutLongString(b); !ok {
		return truncated(payload, b)
	}
	if m.Reason, b, ok = CutShortString(b); !ok {
		return truncated(payload, b)
	}
	if len(b) > 0 {
		return trailing(payload, b)
	}
	return nil
}

// Owned returns the owned form.
func (m *ConnectionUpdateSecretView) Owned() ConnectionUpdateSecret {
	var owned ConnectionUpdateSecret
	text := ownedText(
		m.NewSecret,
		m.Reason,
	)
	owned.NewSecret, text = text[:len(m.NewSecret)], text[len(m.NewSecret):]
	owned.Reason = text
	return owned
}
