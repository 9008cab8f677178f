//! What a server offers to its clients, and what it puts up with.

use std::time::Duration;

use courser_codec::FieldTable;

use crate::sasl::Mechanisms;

/// Settings of the server's side of connections; one is shared by all connections of a listener.
#[derive(Clone, Debug)]
pub struct Config {
    /// `server-properties` of `connection.start`. [`capabilities`] belongs into it.
    pub server_properties: FieldTable,
    /// Login mechanisms that are offered and accepted.
    pub mechanisms: Mechanisms,
    /// How many channels a connection may have at once; 0 stands for 65535.
    pub channel_max: u16,
    /// Largest frame in bytes, header and end marker included. Less than 4096 counts as 4096.
    pub frame_max: u32,
    /// Largest frame before the login, in bytes. Less than 4096 counts as 4096, which is what every client may send;
    /// tokens in the place of passwords are longer.
    pub login_frame_max: u32,
    /// Proposed interval of heartbeats in seconds; 0 proposes none. The client's answer counts.
    pub heartbeat_s: u16,
    /// Time from the first byte's chance to come until `connection.open`.
    pub handshake_timeout: Duration,
    /// Time for the client to answer a `connection.close`.
    pub close_timeout: Duration,
    /// Time for the client to close the socket after a `connection.close-ok`, or after an error behind which its input
    /// cannot be understood.
    pub linger_timeout: Duration,
    /// Largest body of a message, in bytes.
    pub max_message_bytes: u64,
    /// Memory for messages that have come in part, over all channels of a connection, in bytes. It is checked when a
    /// buffer has grown, so it can be exceeded by one message.
    pub max_incomplete_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server_properties: FieldTable::new().with("capabilities", capabilities()),
            mechanisms: Mechanisms::PASSWORD,
            channel_max: 2047,
            frame_max: 131_072,
            login_frame_max: 0,
            heartbeat_s: 60,
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(10),
            linger_timeout: Duration::from_secs(1),
            max_message_bytes: 16 * 1024 * 1024,
            max_incomplete_bytes: 256 * 1024 * 1024,
        }
    }
}

/// The capabilities that a server announces in its `server-properties`; all of them are honoured.
#[must_use]
pub fn capabilities() -> FieldTable {
    const NAMES: [&str; 9] = [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ];
    NAMES.into_iter().fold(FieldTable::new(), |table, name| table.with(name, true))
}
