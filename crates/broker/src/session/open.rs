//! The beginning of a session.

use super::Session;
use crate::broker::{Broker, Identity};
use crate::fault::Fault;
use crate::memory::Use;
use crate::monitor::{Connection, ConnectionDetails};
use crate::outbox::Outbox;
use crate::vhost::Admission;
use std::sync::Arc;

impl Broker {
    /// Begins the session of a connection whose `connection.open` has been accepted.
    pub fn open_session(
        self: &Arc<Self>,
        admission: impl Into<Admission>,
        identity: Identity,
        frame_max: usize,
    ) -> Session {
        self.open_connection(admission, identity, frame_max, ConnectionDetails::default())
    }

    /// The same for a connection of which there is something to be known.
    pub fn open_connection(
        self: &Arc<Self>,
        admission: impl Into<Admission>,
        identity: Identity,
        frame_max: usize,
        details: ConnectionDetails,
    ) -> Session {
        let mut admission = admission.into();
        let is_granted = admission.access.is_granted();
        let id = self.next_connection_id();
        let (vhost, user) = (Arc::clone(&admission.vhost().label), identity.user.clone());
        let interned = &self.monitor.properties;
        let connection = Connection::new(id, vhost, user, details, self.now_ms(), interned);
        let high_bytes = self.limits.outbox_high_bytes;
        let charge = self.memory.charge(Use::Outboxes, 0);
        let outbox = Outbox::new(frame_max, high_bytes, identity.cancel_notify, connection, charge);
        let outbox = self.monitor.register(outbox, self.now_ms());
        if let Some(member) = &mut admission.member {
            member.attach(id, &outbox);
            let user = member.user();
            if !is_granted && self.accounts.directory().account_number(user) != member.account() {
                // Deleted before it could be found.
                outbox.fail_connection(Fault::new(320, format_args!("user '{user}' was deleted")));
            }
        }
        Session::new(Arc::clone(self), admission, identity, id, outbox)
    }
}
