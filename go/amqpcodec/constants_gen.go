// Code generated from spec/amqp-0-9-1.toml by cargo run -p courser-codegen. DO NOT EDIT.

package amqpcodec

import "strconv"

// What the protocol is and where it is found.
const (
	// ProtocolHeader is what a client sends first: the name and the version of the protocol.
	ProtocolHeader = "AMQP\x00\x00\x09\x01"
	// VersionMajor is the major version of the protocol.
	VersionMajor = 0
	// VersionMinor is the minor version of the protocol.
	VersionMinor = 9
	// Port is the TCP port of a server.
	Port = 5672
	// TLSPort is the TCP port of a server that speaks TLS.
	TLSPort = 5671
	// FrameMinSize is the frame size in bytes that every peer takes, also before limits are settled.
	FrameMinSize = 4096
	// FrameEnd is the byte behind every frame.
	FrameEnd = 0xCE
)

// The classes by number.
const (
	// ClassConnection is the number of the class connection: Opening, tuning and closing a connection; always on channel 0.
	ClassConnection uint16 = 10
	// ClassChannel is the number of the class channel: Opening and closing the channels of a connection.
	ClassChannel uint16 = 20
	// ClassExchange is the number of the class exchange: Making, binding and deleting exchanges.
	ClassExchange uint16 = 40
	// ClassQueue is the number of the class queue: Making, binding, purging and deleting queues.
	ClassQueue uint16 = 50
	// ClassBasic is the number of the class basic: Publishing, consuming and acknowledging messages.
	ClassBasic uint16 = 60
	// ClassTx is the number of the class tx: Transactions of publishes and acknowledgements on a channel.
	ClassTx uint16 = 90
	// ClassConfirm is the number of the class confirm: Confirms of publishes on a channel.
	ClassConfirm uint16 = 85
)

// A FrameType says what the payload of a frame is.
type FrameType uint8

// The frame types.
const (
	// FrameMethod: A method: class id, method id, arguments.
	FrameMethod FrameType = 1
	// FrameHeader: A content header: class id, weight, body size, properties.
	FrameHeader FrameType = 2
	// FrameBody: A piece of a content's body.
	FrameBody FrameType = 3
	// FrameHeartbeat: A sign of life on channel 0, without a payload.
	FrameHeartbeat FrameType = 8
)

// name returns the type's name, nothing when the protocol lacks it.
func (t FrameType) name() string {
	switch t {
	case FrameMethod:
		return "method"
	case FrameHeader:
		return "header"
	case FrameBody:
		return "body"
	case FrameHeartbeat:
		return "heartbeat"
	default:
		return ""
	}
}

// A ReplyCode says why a channel or a connection is closed, or a message comes back.
type ReplyCode uint16

// The reply codes.
const (
	// CodeReplySuccess: Everything went well; used when a connection or channel is closed on purpose.
	CodeReplySuccess ReplyCode = 200
	// CodeContentTooLarge: The content is larger than the receiver takes at this time. Closes the channel.
	CodeContentTooLarge ReplyCode = 311
	// CodeNoRoute: A mandatory message reached no queue; comes with basic.return. Closes the channel.
	CodeNoRoute ReplyCode = 312
	// CodeNoConsumers: An immediate message could not be delivered at once; comes with basic.return. Closes the channel.
	CodeNoConsumers ReplyCode = 313
	// CodeConnectionForced: An operator or a shutdown closed the connection. Closes the connection.
	CodeConnectionForced ReplyCode = 320
	// CodeInvalidPath: The virtual host is unknown. Closes the connection.
	CodeInvalidPath ReplyCode = 402
	// CodeAccessRefused: The user may not do this. Closes the channel.
	CodeAccessRefused ReplyCode = 403
	// CodeNotFound: The named queue or exchange does not exist. Closes the channel.
	CodeNotFound ReplyCode = 404
	// CodeResourceLocked: The resource belongs to another connection. Closes the channel.
	CodeResourceLocked ReplyCode = 405
	// CodePreconditionFailed: What was asked for does not fit what there is. Closes the channel.
	CodePreconditionFailed ReplyCode = 406
	// CodeFrameError: A frame cannot be decoded. Closes the connection.
	CodeFrameError ReplyCode = 501
	// CodeSyntaxError: A frame holds values that are not allowed. Closes the connection.
	CodeSyntaxError ReplyCode = 502
	// CodeCommandInvalid: A method is unknown or not allowed in this state. Closes the connection.
	CodeCommandInvalid ReplyCode = 503
	// CodeChannelError: The channel is not open, or was opened before. Closes the connection.
	CodeChannelError ReplyCode = 504
	// CodeUnexpectedFrame: A frame came where another kind was due. Closes the connection.
	CodeUnexpectedFrame ReplyCode = 505
	// CodeResourceError: The server has not enough resources left. Closes the connection.
	CodeResourceError ReplyCode = 506
	// CodeNotAllowed: The request breaks a rule of the server. Closes the connection.
	CodeNotAllowed ReplyCode = 530
	// CodeNotImplemented: The server does not do this. Closes the connection.
	CodeNotImplemented ReplyCode = 540
	// CodeInternalError: The server failed by its own fault. Closes the connection.
	CodeInternalError ReplyCode = 541
)

// ClosesConnection reports whether an error with this code ends the connection, and not only the channel.
func (c ReplyCode) ClosesConnection() bool {
	switch c {
	case CodeConnectionForced:
		return true
	case CodeInvalidPath:
		return true
	case CodeFrameError:
		return true
	case CodeSyntaxError:
		return true
	case CodeCommandInvalid:
		return true
	case CodeChannelError:
		return true
	case CodeUnexpectedFrame:
		return true
	case CodeResourceError:
		return true
	case CodeNotAllowed:
		return true
	case CodeNotImplemented:
		return true
	case CodeInternalError:
		return true
	default:
		return false
	}
}

// String returns the name that reply texts begin with, such as NOT_FOUND, or the number.
func (c ReplyCode) String() string {
	switch c {
	case CodeReplySuccess:
		return "REPLY_SUCCESS"
	case CodeContentTooLarge:
		return "CONTENT_TOO_LARGE"
	case CodeNoRoute:
		return "NO_ROUTE"
	case CodeNoConsumers:
		return "NO_CONSUMERS"
	case CodeConnectionForced:
		return "CONNECTION_FORCED"
	case CodeInvalidPath:
		return "INVALID_PATH"
	case CodeAccessRefused:
		return "ACCESS_REFUSED"
	case CodeNotFound:
		return "NOT_FOUND"
	case CodeResourceLocked:
		return "RESOURCE_LOCKED"
	case CodePreconditionFailed:
		return "PRECONDITION_FAILED"
	case CodeFrameError:
		return "FRAME_ERROR"
	case CodeSyntaxError:
		return "SYNTAX_ERROR"
	case CodeCommandInvalid:
		return "COMMAND_INVALID"
	case CodeChannelError:
		return "CHANNEL_ERROR"
	case CodeUnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case CodeResourceError:
		return "RESOURCE_ERROR"
	case CodeNotAllowed:
		return "NOT_ALLOWED"
	case CodeNotImplemented:
		return "NOT_IMPLEMENTED"
	case CodeInternalError:
		return "INTERNAL_ERROR"
	default:
		return strconv.Itoa(int(c))
	}
}

// A Tag is the letter before a value of a field table, and says its type.
type Tag byte

// The tags.
const (
	// TagBool: A truth value: a byte, zero is false.
	TagBool Tag = 't'
	// TagInt8: A signed integer of 8 bits.
	TagInt8 Tag = 'b'
	// TagUint8: An unsigned integer of 8 bits.
	TagUint8 Tag = 'B'
	// TagInt16: A signed integer of 16 bits.
	TagInt16 Tag = 's'
	// TagUint16: An unsigned integer of 16 bits.
	TagUint16 Tag = 'u'
	// TagInt32: A signed integer of 32 bits.
	TagInt32 Tag = 'I'
	// TagUint32: An unsigned integer of 32 bits.
	TagUint32 Tag = 'i'
	// TagInt64: A signed integer of 64 bits; read with either tag, written with the first.
	TagInt64 Tag = 'l'
	// TagFloat32: An IEEE 754 number of 32 bits.
	TagFloat32 Tag = 'f'
	// TagFloat64: An IEEE 754 number of 64 bits.
	TagFloat64 Tag = 'd'
	// TagDecimal: A decimal number: a byte with the number of decimal places, then 32 unsigned bits of digits.
	TagDecimal Tag = 'D'
	// TagLongString: Bytes, by convention UTF-8 text, behind 32 bits of length.
	TagLongString Tag = 'S'
	// TagArray: Values one behind the other, behind 32 bits of length in bytes.
	TagArray Tag = 'A'
	// TagTimestamp: Seconds since 1970 in 64 unsigned bits.
	TagTimestamp Tag = 'T'
	// TagTable: A table in the table, behind 32 bits of length in bytes.
	TagTable Tag = 'F'
	// TagVoid: No value; nothing follows the tag.
	TagVoid Tag = 'V'
	// TagBytes: Bytes that are no text, behind 32 bits of length.
	TagBytes Tag = 'x'
	// Read as TagInt64, never written.
	tagInt64AlsoRead Tag = 'L'
)

// String returns RabbitMQ's name of the type, as its error texts use it.
func (t Tag) String() string {
	switch t {
	case TagBool:
		return "bool"
	case TagInt8:
		return "byte"
	case TagUint8:
		return "unsignedbyte"
	case TagInt16:
		return "short"
	case TagUint16:
		return "unsignedshort"
	case TagInt32:
		return "signedint"
	case TagUint32:
		return "unsignedint"
	case TagInt64, tagInt64AlsoRead:
		return "long"
	case TagFloat32:
		return "float"
	case TagFloat64:
		return "double"
	case TagDecimal:
		return "decimal"
	case TagLongString:
		return "longstr"
	case TagArray:
		return "array"
	case TagTimestamp:
		return "timestamp"
	case TagTable:
		return "table"
	case TagVoid:
		return "void"
	case TagBytes:
		return "binary"
	default:
		return "unknown"
	}
}
