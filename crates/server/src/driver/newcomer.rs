//! A client until its session begins: it may be anyone, and there may be as many as there are places.

use courser_broker::Broker;
use courser_broker::admin::{ClientProperties, ConnectionDetails, Held};
use courser_codec::Table;
use courser_connection::Credentials;
use std::sync::Arc;

/// Bytes asked for in one read: the handshake waits for answers after each frame, so that what is read ahead would only be kept.
pub(super) const READ_BYTES: usize = 4096;

/// What is known of it, counted.
pub(super) struct Newcomer {
    /// What the operator can see of it when its session has begun.
    pub details: ConnectionDetails,
    /// Bytes of the credentials that are being checked.
    credentials_bytes: usize,
    held: Held,
}

impl Newcomer {
    pub fn new(broker: &Arc<Broker>, details: ConnectionDetails) -> Self {
        Newcomer { details, credentials_bytes: 0, held: broker.admin().hold_for_newcomer() }
    }

    /// It wants to log in.
    pub fn introduce(&mut self, said: Table<'_>, credentials: &Credentials) {
        self.details.client_properties = ClientProperties::of(said);
        self.details.mechanism = credentials.mechanism().name();
        self.credentials_bytes = match credentials {
            Credentials::Plain { user, password } | Credentials::AmqPlain { user, password } => {
                user.len() + password.len()
            }
            Credentials::External | Credentials::Anonymous => 0,
        };
    }

    /// Counts what is kept of it, and `carried` bytes that it has sent and that are still to be looked at. Returns how many
    /// bytes that are.
    pub fn count(&mut self, carried: usize) -> usize {
        let known = self.details.client_properties.as_bytes().len() + self.credentials_bytes;
        self.held.set(known + carried);
        known + carried
    }
}
