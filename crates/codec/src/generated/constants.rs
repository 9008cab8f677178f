//! Numbers of the protocol: frame types, sizes, reply codes, tags of field-table values.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

/// What a client sends first: the name and the version of the protocol.
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";
/// Major version of the protocol.
pub const VERSION_MAJOR: u8 = 0;
/// Minor version of the protocol.
pub const VERSION_MINOR: u8 = 9;
/// TCP port of a server.
pub const PORT: u16 = 5672;
/// TCP port of a server that speaks TLS.
pub const TLS_PORT: u16 = 5671;
/// Frame size in bytes that every peer takes, also before limits are settled.
pub const FRAME_MIN_SIZE: u32 = 4096;
/// The byte behind every frame.
pub const FRAME_END: u8 = 0xCE;
/// A method: class id, method id, arguments.
pub const FRAME_METHOD: u8 = 1;
/// A content header: class id, weight, body size, properties.
pub const FRAME_HEADER: u8 = 2;
/// A piece of a content's body.
pub const FRAME_BODY: u8 = 3;
/// A sign of life on channel 0, without a payload.
pub const FRAME_HEARTBEAT: u8 = 8;

/// Reply codes: why a channel or a connection is closed, or a message comes back.
pub mod reply_code {
    /// Everything went well; used when a connection or channel is closed on purpose.
    pub const REPLY_SUCCESS: u16 = 200;
    /// The content is larger than the receiver takes at this time. Closes the channel.
    pub const CONTENT_TOO_LARGE: u16 = 311;
    /// A mandatory message reached no queue; comes with basic.return. Closes the channel.
    pub const NO_ROUTE: u16 = 312;
    /// An immediate message could not be delivered at once; comes with basic.return. Closes the channel.
    pub const NO_CONSUMERS: u16 = 313;
    /// An operator or a shutdown closed the connection. Closes the connection.
    pub const CONNECTION_FORCED: u16 = 320;
    /// The virtual host is unknown. Closes the connection.
    pub const INVALID_PATH: u16 = 402;
    /// The user may not do this. Closes the channel.
    pub const ACCESS_REFUSED: u16 = 403;
    /// The named queue or exchange does not exist. Closes the channel.
    pub const NOT_FOUND: u16 = 404;
    /// The resource belongs to another connection. Closes the channel.
    pub const RESOURCE_LOCKED: u16 = 405;
    /// What was asked for does not fit what there is. Closes the channel.
    pub const PRECONDITION_FAILED: u16 = 406;
    /// A frame cannot be decoded. Closes the connection.
    pub const FRAME_ERROR: u16 = 501;
    /// A frame holds values that are not allowed. Closes the connection.
    pub const SYNTAX_ERROR: u16 = 502;
    /// A method is unknown or not allowed in this state. Closes the connection.
    pub const COMMAND_INVALID: u16 = 503;
    /// The channel is not open, or was opened before. Closes the connection.
    pub const CHANNEL_ERROR: u16 = 504;
    /// A frame came where another kind was due. Closes the connection.
    pub const UNEXPECTED_FRAME: u16 = 505;
    /// The server has not enough resources left. Closes the connection.
    pub const RESOURCE_ERROR: u16 = 506;
    /// The request breaks a rule of the server. Closes the connection.
    pub const NOT_ALLOWED: u16 = 530;
    /// The server does not do this. Closes the connection.
    pub const NOT_IMPLEMENTED: u16 = 540;
    /// The server failed by its own fault. Closes the connection.
    pub const INTERNAL_ERROR: u16 = 541;

    /// Whether an error with this code ends the connection, and not only the channel.
    #[must_use]
    pub const fn closes_connection(code: u16) -> bool {
        matches!(
            code,
            CONNECTION_FORCED
                | INVALID_PATH
                | FRAME_ERROR
                | SYNTAX_ERROR
                | COMMAND_INVALID
                | CHANNEL_ERROR
                | UNEXPECTED_FRAME
                | RESOURCE_ERROR
                | NOT_ALLOWED
                | NOT_IMPLEMENTED
                | INTERNAL_ERROR
        )
    }

    /// The name that reply texts begin with.
    #[must_use]
    pub const fn name(code: u16) -> Option<&'static str> {
        Some(match code {
            REPLY_SUCCESS => "REPLY_SUCCESS",
            CONTENT_TOO_LARGE => "CONTENT_TOO_LARGE",
            NO_ROUTE => "NO_ROUTE",
            NO_CONSUMERS => "NO_CONSUMERS",
            CONNECTION_FORCED => "CONNECTION_FORCED",
            INVALID_PATH => "INVALID_PATH",
            ACCESS_REFUSED => "ACCESS_REFUSED",
            NOT_FOUND => "NOT_FOUND",
            RESOURCE_LOCKED => "RESOURCE_LOCKED",
            PRECONDITION_FAILED => "PRECONDITION_FAILED",
            FRAME_ERROR => "FRAME_ERROR",
            SYNTAX_ERROR => "SYNTAX_ERROR",
            COMMAND_INVALID => "COMMAND_INVALID",
            CHANNEL_ERROR => "CHANNEL_ERROR",
            UNEXPECTED_FRAME => "UNEXPECTED_FRAME",
            RESOURCE_ERROR => "RESOURCE_ERROR",
            NOT_ALLOWED => "NOT_ALLOWED",
            NOT_IMPLEMENTED => "NOT_IMPLEMENTED",
            INTERNAL_ERROR => "INTERNAL_ERROR",
            _ => return None,
        })
    }
}

/// Tags of field-table values.
pub mod field_type {
    /// A truth value: a byte, zero is false.
    pub const BOOL: u8 = b't';
    /// A signed integer of 8 bits.
    pub const I8: u8 = b'b';
    /// An unsigned integer of 8 bits.
    pub const U8: u8 = b'B';
    /// A signed integer of 16 bits.
    pub const I16: u8 = b's';
    /// An unsigned integer of 16 bits.
    pub const U16: u8 = b'u';
    /// A signed integer of 32 bits.
    pub const I32: u8 = b'I';
    /// An unsigned integer of 32 bits.
    pub const U32: u8 = b'i';
    /// A signed integer of 64 bits; read with either tag, written with the first.
    pub const I64: u8 = b'l';
    /// Read as [`I64`], never written.
    pub const I64_ALSO_READ: u8 = b'L';
    /// An IEEE 754 number of 32 bits.
    pub const F32: u8 = b'f';
    /// An IEEE 754 number of 64 bits.
    pub const F64: u8 = b'd';
    /// A decimal number: a byte with the number of decimal places, then 32 unsigned bits of digits.
    pub const DECIMAL: u8 = b'D';
    /// Bytes, by convention UTF-8 text, behind 32 bits of length.
    pub const LONG_STR: u8 = b'S';
    /// Values one behind the other, behind 32 bits of length in bytes.
    pub const ARRAY: u8 = b'A';
    /// Seconds since 1970 in 64 unsigned bits.
    pub const TIMESTAMP: u8 = b'T';
    /// A table in the table, behind 32 bits of length in bytes.
    pub const TABLE: u8 = b'F';
    /// No value; nothing follows the tag.
    pub const VOID: u8 = b'V';
    /// Bytes that are no text, behind 32 bits of length.
    pub const BYTES: u8 = b'x';

    /// RabbitMQ's name of the type with this tag, as its error texts use it.
    #[must_use]
    pub const fn rabbitmq_name(tag: u8) -> &'static str {
        match tag {
            BOOL => "bool",
            I8 => "byte",
            U8 => "unsignedbyte",
            I16 => "short",
            U16 => "unsignedshort",
            I32 => "signedint",
            U32 => "unsignedint",
            I64 | I64_ALSO_READ => "long",
            F32 => "float",
            F64 => "double",
            DECIMAL => "decimal",
            LONG_STR => "longstr",
            ARRAY => "array",
            TIMESTAMP => "timestamp",
            TABLE => "table",
            VOID => "void",
            BYTES => "binary",
            _ => "unknown",
        }
    }
}
