//! What a client wants of a connection, and what it puts up with.

use std::time::Duration;

use courser_codec::{FieldTable, ShortString};

use crate::sasl::Credentials;

/// Settings of the client's side of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// What to log in with; says the mechanism too.
    pub credentials: Credentials,
    /// The virtual host to enter.
    pub virtual_host: ShortString,
    /// `client-properties` of `connection.start-ok`. [`capabilities`] belongs into it, and `connection_name` helps
    /// operators.
    pub client_properties: FieldTable,
    /// Highest channel number wanted; 0 takes what the server proposes.
    pub channel_max: u16,
    /// Largest frame wanted, in bytes, header and end marker included; 0 takes what the server proposes. Less than
    /// 4096 counts as 4096.
    pub frame_max: u32,
    /// Interval of heartbeats wanted, in seconds; 0 is none. The smaller one of this and the server's counts.
    pub heartbeat_s: u16,
    /// Time for the server to let the client in.
    pub handshake_timeout: Duration,
    /// Time for the server to answer a `connection.close`.
    pub close_timeout: Duration,
    /// Largest body of a message, in bytes.
    pub max_message_bytes: u64,
    /// Memory for messages that have come in part, over all channels, in bytes. It is checked when a buffer has
    /// grown, so it can be exceeded by one message.
    pub max_incomplete_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            credentials: Credentials::Plain {
                user: b"guest".to_vec(),
                password: b"guest".to_vec(),
            },
            virtual_host: ShortString::from(courser_codec::ShortStr::from_static("/")),
            client_properties: FieldTable::new().with("capabilities", capabilities()),
            channel_max: 2047,
            frame_max: 131_072,
            heartbeat_s: 60,
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(10),
            max_message_bytes: 512 * 1024 * 1024,
            max_incomplete_bytes: 1024 * 1024 * 1024,
        }
    }
}

/// The capabilities that this client has, for its `client-properties`.
#[must_use]
pub fn capabilities() -> FieldTable {
    const NAMES: [&str; 6] = [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "authentication_failure_close",
    ];
    NAMES.into_iter().fold(FieldTable::new(), |table, name| table.with(name, true))
}
