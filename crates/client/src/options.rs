//! What a connection should be like.

use std::time::Duration;

use courser_codec::{FieldTable, ShortString};
use courser_connection::Credentials;
use courser_connection::client::{Config, capabilities};

/// Settings of a connection. [`Options::default`] logs in as guest at the virtual host `/`; a [`Uri`](crate::Uri) has
/// its own in [`Uri::options`](crate::Uri::options).
#[derive(Clone, Debug)]
pub struct Options {
    /// What to log in with; says the mechanism too.
    pub credentials: Credentials,
    /// The virtual host to enter.
    pub virtual_host: ShortString,
    /// A name for people who look at the server's list of connections.
    pub connection_name: Option<String>,
    /// More to tell the server about this client, beside what this crate says of itself.
    pub client_properties: FieldTable,
    /// Highest channel number wanted; 0 takes what the server proposes.
    pub channel_max: u16,
    /// Largest frame wanted, in bytes; 0 takes what the server proposes.
    pub frame_max: u32,
    /// Interval of heartbeats wanted, in seconds; 0 is none. The smaller one of this and the server's counts.
    pub heartbeat_s: u16,
    /// Time to connect, and then again for the server to let this client in.
    pub connect_timeout: Duration,
    /// Time for confirms under way, and then again for the server to answer, when the connection is closed.
    pub close_timeout: Duration,
    /// Largest message that is accepted from the server, in bytes.
    pub max_message_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        let config = Config::default();
        Self {
            credentials: config.credentials,
            virtual_host: config.virtual_host,
            connection_name: None,
            client_properties: FieldTable::new(),
            channel_max: config.channel_max,
            frame_max: config.frame_max,
            heartbeat_s: config.heartbeat_s,
            connect_timeout: config.handshake_timeout,
            close_timeout: config.close_timeout,
            max_message_bytes: config.max_message_bytes,
        }
    }
}

impl Options {
    /// The same with this name of the connection.
    #[must_use]
    pub fn with_name(mut self, connection_name: impl Into<String>) -> Self {
        self.connection_name = Some(connection_name.into());
        self
    }

    pub(crate) fn into_config(self) -> Config {
        let mut properties = FieldTable::new()
            .with("product", "Courser")
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("platform", "Rust")
            .with("capabilities", capabilities());
        if let Some(connection_name) = self.connection_name {
            properties = properties.with("connection_name", connection_name);
        }
        properties.extend(self.client_properties);
        Config {
            credentials: self.credentials,
            virtual_host: self.virtual_host,
            client_properties: properties,
            channel_max: self.channel_max,
            frame_max: self.frame_max,
            heartbeat_s: self.heartbeat_s,
            handshake_timeout: self.connect_timeout,
            close_timeout: self.close_timeout,
            max_message_bytes: self.max_message_bytes,
            ..Config::default()
        }
    }
}
