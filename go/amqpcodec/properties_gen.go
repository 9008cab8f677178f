// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import (
	"encoding/binary"
	"time"
)

// The flags of the properties.
const (
	// FlagContentType is the flag of content-type.
	FlagContentType PropertyFlags = 1 << 15
	// FlagContentEncoding is the flag of content-encoding.
	FlagContentEncoding PropertyFlags = 1 << 14
	// FlagHeaders is the flag of headers.
	FlagHeaders PropertyFlags = 1 << 13
	// FlagDeliveryMode is the flag of delivery-mode.
	FlagDeliveryMode PropertyFlags = 1 << 12
	// FlagPriority is the flag of priority.
	FlagPriority PropertyFlags = 1 << 11
	// FlagCorrelationID is the flag of correlation-id.
	FlagCorrelationID PropertyFlags = 1 << 10
	// FlagReplyTo is the flag of reply-to.
	FlagReplyTo PropertyFlags = 1 << 9
	// FlagExpiration is the flag of expiration.
	FlagExpiration PropertyFlags = 1 << 8
	// FlagMessageID is the flag of message-id.
	FlagMessageID PropertyFlags = 1 << 7
	// FlagTimestamp is the flag of timestamp.
	FlagTimestamp PropertyFlags = 1 << 6
	// FlagType is the flag of type.
	FlagType PropertyFlags = 1 << 5
	// FlagUserID is the flag of user-id.
	FlagUserID PropertyFlags = 1 << 4
	// FlagAppID is the flag of app-id.
	FlagAppID PropertyFlags = 1 << 3
	// FlagClusterID is the flag of cluster-id.
	FlagClusterID PropertyFlags = 1 << 2
)

// knownPropertyFlags are those that a property has.
const knownPropertyFlags PropertyFlags = 0xfffc

// propertyInfos has the properties by the number of flags above their own; it is never written to.
var propertyInfos = [...]fieldInfo{
	{name: "content-type", kind: KindShortString},
	{name: "content-encoding", kind: KindShortString},
	{name: "headers", kind: KindTable},
	{name: "delivery-mode", kind: KindOctet},
	{name: "priority", kind: KindOctet},
	{name: "correlation-id", kind: KindShortString},
	{name: "reply-to", kind: KindShortString},
	{name: "expiration", kind: KindShortString},
	{name: "message-id", kind: KindShortString},
	{name: "timestamp", kind: KindTimestamp},
	{name: "type", kind: KindShortString},
	{name: "user-id", kind: KindShortString},
	{name: "app-id", kind: KindShortString},
	{name: "cluster-id", kind: KindShortString},
}

// Properties say what a message is. A property is there when it is not zero or its flag is set.
type Properties struct {
	// Which properties are there although they are zero. Reading sets the flags of all that are there; writing
	// needs none of them for a value that is not zero.
	Flags PropertyFlags
	// MIME type of the body.
	ContentType string
	// MIME encoding of the body.
	ContentEncoding string
	// The application's own headers.
	Headers map[string]any
	// 1 is transient, 2 is persistent.
	DeliveryMode uint8
	// Priority of the message, higher is more urgent.
	Priority uint8
	// What this message answers.
	CorrelationID string
	// Where answers go, usually a queue.
	ReplyTo string
	// Time to live in milliseconds, as text.
	Expiration string
	// The application's name for the message.
	MessageID string
	// When the message was made, in seconds since 1970.
	Timestamp time.Time
	// The application's kind of message.
	Type string
	// The user who published it; the server checks it.
	UserID string
	// The application that published it.
	AppID string
	// Of no use any more; kept for old clients.
	ClusterID string
}

// Present returns the flags of the properties that are there.
func (p *Properties) Present() PropertyFlags {
	flags := p.Flags & knownPropertyFlags
	if len(p.ContentType) > 0 {
		flags |= FlagContentType
	}
	if len(p.ContentEncoding) > 0 {
		flags |= FlagContentEncoding
	}
	if len(p.Headers) > 0 {
		flags |= FlagHeaders
	}
	if p.DeliveryMode != 0 {
		flags |= FlagDeliveryMode
	}
	if p.Priority != 0 {
		flags |= FlagPriority
	}
	if len(p.CorrelationID) > 0 {
		flags |= FlagCorrelationID
	}
	if len(p.ReplyTo) > 0 {
		flags |= FlagReplyTo
	}
	if len(p.Expiration) > 0 {
		flags |= FlagExpiration
	}
	if len(p.MessageID) > 0 {
		flags |= FlagMessageID
	}
	if !p.Timestamp.IsZero() {
		flags |= FlagTimestamp
	}
	if len(p.Type) > 0 {
		flags |= FlagType
	}
	if len(p.UserID) > 0 {
		flags |= FlagUserID
	}
	if len(p.AppID) > 0 {
		flags |= FlagAppID
	}
	if len(p.ClusterID) > 0 {
		flags |= FlagClusterID
	}
	return flags
}

// size is room enough for all properties, but for the entries of a map, which are guessed.
func (p *Properties) size() int {
	size := 26
	size += len(p.ContentType)
	size += len(p.ContentEncoding)
	size += guess(p.Headers)
	size += len(p.CorrelationID)
	size += len(p.ReplyTo)
	size += len(p.Expiration)
	size += len(p.MessageID)
	size += len(p.Type)
	size += len(p.UserID)
	size += len(p.AppID)
	size += len(p.ClusterID)
	return size
}

// AppendTo appends the flags and the values behind them. It panics where AppendBinary fails.
func (p *Properties) AppendTo(dst []byte) []byte {
	return must(p.AppendBinary(dst))
}

// AppendBinary appends the flags and the values behind them. The error, an [EncodeError], is that of a property that
// cannot be written.
func (p *Properties) AppendBinary(dst []byte) ([]byte, error) {
	start, flags := len(dst), p.Present()
	if cap(dst) == 0 {
		dst = make([]byte, 0, p.size())
	}
	dst = append(dst, byte(flags>>8), byte(flags))
	if flags&FlagContentType != 0 {
		if len(p.ContentType) > maxShortLen {
			return dst[:start], tooLong("properties", "content-type")
		}
		dst = append(dst, byte(len(p.ContentType)))
		dst = append(dst, p.ContentType...)
	}
	if flags&FlagContentEncoding != 0 {
		if len(p.ContentEncoding) > maxShortLen {
			return dst[:start], tooLong("properties", "content-encoding")
		}
		dst = append(dst, byte(len(p.ContentEncoding)))
		dst = append(dst, p.ContentEncoding...)
	}
	if flags&FlagHeaders != 0 {
		var err error
		if dst, err = appendMap(dst, p.Headers, 0); err != nil {
			return dst[:start], within("properties", within("headers", err))
		}
	}
	if flags&FlagDeliveryMode != 0 {
		dst = append(dst, p.DeliveryMode)
	}
	if flags&FlagPriority != 0 {
		dst = append(dst, p.Priority)
	}
	if flags&FlagCorrelationID != 0 {
		if len(p.CorrelationID) > maxShortLen {
			return dst[:start], tooLong("properties", "correlation-id")
		}
		dst = append(dst, byte(len(p.CorrelationID)))
		dst = append(dst, p.CorrelationID...)
	}
	if flags&FlagReplyTo != 0 {
		if len(p.ReplyTo) > maxShortLen {
			return dst[:start], tooLong("properties", "reply-to")
		}
		dst = append(dst, byte(len(p.ReplyTo)))
		dst = append(dst, p.ReplyTo...)
	}
	if flags&FlagExpiration != 0 {
		if len(p.Expiration) > maxShortLen {
			return dst[:start], tooLong("properties", "expiration")
		}
		dst = append(dst, byte(len(p.Expiration)))
		dst = append(dst, p.Expiration...)
	}
	if flags&FlagMessageID != 0 {
		if len(p.MessageID) > maxShortLen {
			return dst[:start], tooLong("properties", "message-id")
		}
		dst = append(dst, byte(len(p.MessageID)))
		dst = append(dst, p.MessageID...)
	}
	if flags&FlagTimestamp != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.Timestamp.Unix()))
	}
	if flags&FlagType != 0 {
		if len(p.Type) > maxShortLen {
			return dst[:start], tooLong("properties", "type")
		}
		dst = append(dst, byte(len(p.Type)))
		dst = append(dst, p.Type...)
	}
	if flags&FlagUserID != 0 {
		if len(p.UserID) > maxShortLen {
			return dst[:start], tooLong("properties", "user-id")
		}
		dst = append(dst, byte(len(p.UserID)))
		dst = append(dst, p.UserID...)
	}
	if flags&FlagAppID != 0 {
		if len(p.AppID) > maxShortLen {
			return dst[:start], tooLong("properties", "app-id")
		}
		dst = append(dst, byte(len(p.AppID)))
		dst = append(dst, p.AppID...)
	}
	if flags&FlagClusterID != 0 {
		if len(p.ClusterID) > maxShortLen {
			return dst[:start], tooLong("properties", "cluster-id")
		}
		dst = append(dst, byte(len(p.ClusterID)))
		dst = append(dst, p.ClusterID...)
	}
	return dst, nil
}

// PropertiesView is the properties of a message as views: strings and headers alias what they were read from. A
// property is there when it is not zero or its flag is set.
type PropertiesView struct {
	// Which properties are there although they are zero. Reading sets the flags of all that are there; writing
	// needs none of them for a value that is not zero.
	Flags PropertyFlags
	// MIME type of the body.
	ContentType []byte
	// MIME encoding of the body.
	ContentEncoding []byte
	// The application's own headers.
	Headers TableView
	// 1 is transient, 2 is persistent.
	DeliveryMode uint8
	// Priority of the message, higher is more urgent.
	Priority uint8
	// What this message answers.
	CorrelationID []byte
	// Where answers go, usually a queue.
	ReplyTo []byte
	// Time to live in milliseconds, as text.
	Expiration []byte
	// The application's name for the message.
	MessageID []byte
	// When the message was made, in seconds since 1970.
	Timestamp uint64
	// The application's kind of message.
	Type []byte
	// The user who published it; the server checks it.
	UserID []byte
	// The application that published it.
	AppID []byte
	// Of no use any more; kept for old clients.
	ClusterID []byte
}

// Present returns the flags of the properties that are there.
func (p *PropertiesView) Present() PropertyFlags {
	flags := p.Flags & knownPropertyFlags
	if len(p.ContentType) > 0 {
		flags |= FlagContentType
	}
	if len(p.ContentEncoding) > 0 {
		flags |= FlagContentEncoding
	}
	if len(p.Headers) > 0 {
		flags |= FlagHeaders
	}
	if p.DeliveryMode != 0 {
		flags |= FlagDeliveryMode
	}
	if p.Priority != 0 {
		flags |= FlagPriority
	}
	if len(p.CorrelationID) > 0 {
		flags |= FlagCorrelationID
	}
	if len(p.ReplyTo) > 0 {
		flags |= FlagReplyTo
	}
	if len(p.Expiration) > 0 {
		flags |= FlagExpiration
	}
	if len(p.MessageID) > 0 {
		flags |= FlagMessageID
	}
	if p.Timestamp != 0 {
		flags |= FlagTimestamp
	}
	if len(p.Type) > 0 {
		flags |= FlagType
	}
	if len(p.UserID) > 0 {
		flags |= FlagUserID
	}
	if len(p.AppID) > 0 {
		flags |= FlagAppID
	}
	if len(p.ClusterID) > 0 {
		flags |= FlagClusterID
	}
	return flags
}

// size is room enough for all properties, but for the entries of a map, which are guessed.
func (p *PropertiesView) size() int {
	size := 26
	size += len(p.ContentType)
	size += len(p.ContentEncoding)
	size += len(p.Headers)
	size += len(p.CorrelationID)
	size += len(p.ReplyTo)
	size += len(p.Expiration)
	size += len(p.MessageID)
	size += len(p.Type)
	size += len(p.UserID)
	size += len(p.AppID)
	size += len(p.ClusterID)
	return size
}

// AppendTo appends the flags and the values behind them. It panics where AppendBinary fails.
func (p *PropertiesView) AppendTo(dst []byte) []byte {
	return must(p.AppendBinary(dst))
}

// AppendBinary appends the flags and the values behind them. The error, an [EncodeError], is that of a property that
// cannot be written.
func (p *PropertiesView) AppendBinary(dst []byte) ([]byte, error) {
	start, flags := len(dst), p.Present()
	if cap(dst) == 0 {
		dst = make([]byte, 0, p.size())
	}
	dst = append(dst, byte(flags>>8), byte(flags))
	if flags&FlagContentType != 0 {
		if len(p.ContentType) > maxShortLen {
			return dst[:start], tooLong("properties", "content-type")
		}
		dst = append(dst, byte(len(p.ContentType)))
		dst = append(dst, p.ContentType...)
	}
	if flags&FlagContentEncoding != 0 {
		if len(p.ContentEncoding) > maxShortLen {
			return dst[:start], tooLong("properties", "content-encoding")
		}
		dst = append(dst, byte(len(p.ContentEncoding)))
		dst = append(dst, p.ContentEncoding...)
	}
	if flags&FlagHeaders != 0 {
		if !fitsLong(len(p.Headers)) {
			return dst[:start], tooLong("properties", "headers")
		}
		dst = appendLong(dst, p.Headers)
	}
	if flags&FlagDeliveryMode != 0 {
		dst = append(dst, p.DeliveryMode)
	}
	if flags&FlagPriority != 0 {
		dst = append(dst, p.Priority)
	}
	if flags&FlagCorrelationID != 0 {
		if len(p.CorrelationID) > maxShortLen {
			return dst[:start], tooLong("properties", "correlation-id")
		}
		dst = append(dst, byte(len(p.CorrelationID)))
		dst = append(dst, p.CorrelationID...)
	}
	if flags&FlagReplyTo != 0 {
		if len(p.ReplyTo) > maxShortLen {
			return dst[:start], tooLong("properties", "reply-to")
		}
		dst = append(dst, byte(len(p.ReplyTo)))
		dst = append(dst, p.ReplyTo...)
	}
	if flags&FlagExpiration != 0 {
		if len(p.Expiration) > maxShortLen {
			return dst[:start], tooLong("properties", "expiration")
		}
		dst = append(dst, byte(len(p.Expiration)))
		dst = append(dst, p.Expiration...)
	}
	if flags&FlagMessageID != 0 {
		if len(p.MessageID) > maxShortLen {
			return dst[:start], tooLong("properties", "message-id")
		}
		dst = append(dst, byte(len(p.MessageID)))
		dst = append(dst, p.MessageID...)
	}
	if flags&FlagTimestamp != 0 {
		dst = binary.BigEndian.AppendUint64(dst, p.Timestamp)
	}
	if flags&FlagType != 0 {
		if len(p.Type) > maxShortLen {
			return dst[:start], tooLong("properties", "type")
		}
		dst = append(dst, byte(len(p.Type)))
		dst = append(dst, p.Type...)
	}
	if flags&FlagUserID != 0 {
		if len(p.UserID) > maxShortLen {
			return dst[:start], tooLong("properties", "user-id")
		}
		dst = append(dst, byte(len(p.UserID)))
		dst = append(dst, p.UserID...)
	}
	if flags&FlagAppID != 0 {
		if len(p.AppID) > maxShortLen {
			return dst[:start], tooLong("properties", "app-id")
		}
		dst = append(dst, byte(len(p.AppID)))
		dst = append(dst, p.AppID...)
	}
	if flags&FlagClusterID != 0 {
		if len(p.ClusterID) > maxShortLen {
			return dst[:start], tooLong("properties", "cluster-id")
		}
		dst = append(dst, byte(len(p.ClusterID)))
		dst = append(dst, p.ClusterID...)
	}
	return dst, nil
}

// Parse reads encoded properties, such as [RawProperties] are. The error, a [DecodeError], is that of flags without a
// meaning, a value cut short, or bytes behind the last one. Headers are not looked into.
func (p *PropertiesView) Parse(src []byte) error {
	if len(src) < 2 {
		return truncated(src, src)
	}
	flags := PropertyFlags(binary.BigEndian.Uint16(src))
	if flags&^knownPropertyFlags != 0 {
		return unknownFlags(flags)
	}
	*p = PropertiesView{Flags: flags}
	b, ok := src[2:], true
	if flags&FlagContentType != 0 {
		if p.ContentType, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagContentEncoding != 0 {
		if p.ContentEncoding, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagHeaders != 0 {
		if p.Headers, b, ok = CutLongString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagDeliveryMode != 0 {
		if p.DeliveryMode, b, ok = cutOctet(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagPriority != 0 {
		if p.Priority, b, ok = cutOctet(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagCorrelationID != 0 {
		if p.CorrelationID, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagReplyTo != 0 {
		if p.ReplyTo, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagExpiration != 0 {
		if p.Expiration, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagMessageID != 0 {
		if p.MessageID, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagTimestamp != 0 {
		if p.Timestamp, b, ok = cutTimestamp(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagType != 0 {
		if p.Type, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagUserID != 0 {
		if p.UserID, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagAppID != 0 {
		if p.AppID, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if flags&FlagClusterID != 0 {
		if p.ClusterID, b, ok = CutShortString(b); !ok {
			return truncated(src, b)
		}
	}
	if len(b) > 0 {
		return trailing(src, b)
	}
	return nil
}

// Owned returns the owned form. The error is that of malformed headers; its offset counts in the encoded properties.
func (p *PropertiesView) Owned() (Properties, error) {
	var owned Properties
	if err := p.own(&owned); err != nil {
		return Properties{}, err
	}
	return owned, nil
}

// own sets the owned form.
func (p *PropertiesView) own(owned *Properties) error {
	flags := p.Present()
	*owned = Properties{Flags: p.Flags}
	text := ownedText(
		p.ContentType,
		p.ContentEncoding,
		p.CorrelationID,
		p.ReplyTo,
		p.Expiration,
		p.MessageID,
		p.Type,
		p.UserID,
		p.AppID,
		p.ClusterID,
	)
	owned.ContentType, text = text[:len(p.ContentType)], text[len(p.ContentType):]
	owned.ContentEncoding, text = text[:len(p.ContentEncoding)], text[len(p.ContentEncoding):]
	owned.CorrelationID, text = text[:len(p.CorrelationID)], text[len(p.CorrelationID):]
	owned.ReplyTo, text = text[:len(p.ReplyTo)], text[len(p.ReplyTo):]
	owned.Expiration, text = text[:len(p.Expiration)], text[len(p.Expiration):]
	owned.MessageID, text = text[:len(p.MessageID)], text[len(p.MessageID):]
	owned.Type, text = text[:len(p.Type)], text[len(p.Type):]
	owned.UserID, text = text[:len(p.UserID)], text[len(p.UserID):]
	owned.AppID, text = text[:len(p.AppID)], text[len(p.AppID):]
	owned.ClusterID = text
	if flags&FlagHeaders != 0 {
		var err error
		if owned.Headers, err = p.Headers.Map(); err != nil {
			offset := 2 + 4
			if flags&FlagContentType != 0 {
				offset += 1 + len(p.ContentType)
			}
			if flags&FlagContentEncoding != 0 {
				offset += 1 + len(p.ContentEncoding)
			}
			return shifted(err, offset)
		}
	}
	owned.DeliveryMode = p.DeliveryMode
	owned.Priority = p.Priority
	if flags&FlagTimestamp != 0 {
		owned.Timestamp = unixTime(p.Timestamp)
	}
	return nil
}

// ContentType returns the property content-type, and whether it is there.
func (p RawProperties) ContentType() ([]byte, bool) {
	return p.shortString(FlagContentType)
}

// ContentEncoding returns the property content-encoding, and whether it is there.
func (p RawProperties) ContentEncoding() ([]byte, bool) {
	return p.shortString(FlagContentEncoding)
}

// Headers returns the property headers, and whether it is there.
func (p RawProperties) Headers() (TableView, bool) {
	return p.table(FlagHeaders)
}

// DeliveryMode returns the property delivery-mode, and whether it is there.
func (p RawProperties) DeliveryMode() (uint8, bool) {
	return p.octet(FlagDeliveryMode)
}

// Priority returns the property priority, and whether it is there.
func (p RawProperties) Priority() (uint8, bool) {
	return p.octet(FlagPriority)
}

// CorrelationID returns the property correlation-id, and whether it is there.
func (p RawProperties) CorrelationID() ([]byte, bool) {
	return p.shortString(FlagCorrelationID)
}

// ReplyTo returns the property reply-to, and whether it is there.
func (p RawProperties) ReplyTo() ([]byte, bool) {
	return p.shortString(FlagReplyTo)
}

// Expiration returns the property expiration, and whether it is there.
func (p RawProperties) Expiration() ([]byte, bool) {
	return p.shortString(FlagExpiration)
}

// MessageID returns the property message-id, and whether it is there.
func (p RawProperties) MessageID() ([]byte, bool) {
	return p.shortString(FlagMessageID)
}

// Timestamp returns the property timestamp, and whether it is there.
func (p RawProperties) Timestamp() (uint64, bool) {
	return p.timestamp(FlagTimestamp)
}

// Type returns the property type, and whether it is there.
func (p RawProperties) Type() ([]byte, bool) {
	return p.shortString(FlagType)
}

// UserID returns the property user-id, and whether it is there.
func (p RawProperties) UserID() ([]byte, bool) {
	return p.shortString(FlagUserID)
}

// AppID returns the property app-id, and whether it is there.
func (p RawProperties) AppID() ([]byte, bool) {
	return p.shortString(FlagAppID)
}

// ClusterID returns the property cluster-id, and whether it is there.
func (p RawProperties) ClusterID() ([]byte, bool) {
	return p.shortString(FlagClusterID)
}
