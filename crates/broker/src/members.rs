//! Who is connected as which user: counted for the limits of users, and found when a user is deleted.

use crate::fault::Fault;
use crate::outbox::Outbox;
use crate::queue::ConnectionId;
use crate::shrink::shrink;
use courser_auth::UserLimits;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// The connections of each user.
#[derive(Default)]
pub(crate) struct Members(Mutex<FxHashMap<String, Membership>>);

#[derive(Default)]
struct Membership {
    connections: u32,
    channels: u32,
    outboxes: FxHashMap<ConnectionId, Weak<Outbox>>,
}

/// A connection that is counted for its user as long as this lives.
pub(crate) struct Member {
    members: Arc<Members>,
    user: String,
    /// The number of its account when it was let in.
    account: Option<u64>,
    connection: Option<ConnectionId>,
    channels: u32,
}

impl Members {
    /// Counts one more connection, or refuses it (530) when its user has as many as it may have.
    pub fn join(
        self: &Arc<Self>,
        user: &str,
        account: Option<u64>,
        limits: UserLimits,
    ) -> Result<Member, Fault> {
        let mut members = self.0.lock();
        let now = members.get(user).map_or(0, |membership| membership.connections);
        if let Some(most) = limits.max_connections
            && now >= most
        {
            return Err(Fault::not_allowed(UserLimits::connections_reached(user, most)));
        }
        members.entry(user.to_owned()).or_default().connections += 1;
        drop(members);
        let user = user.to_owned();
        Ok(Member { members: Arc::clone(self), user, account, connection: None, channels: 0 })
    }

    /// Has all connections of a user closed.
    pub fn close_all(&self, user: &str, fault: &Fault) {
        let outboxes: Vec<Arc<Outbox>> = match self.0.lock().get(user) {
            Some(membership) => membership.outboxes.values().filter_map(Weak::upgrade).collect(),
            None => return,
        };
        for outbox in outboxes {
            outbox.fail_connection(fault.clone());
        }
    }
}

impl Member {
    /// The user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The number of its account when it was let in; none if it had none.
    pub fn account(&self) -> Option<u64> {
        self.account
    }

    /// Makes the connection known, so that it can be closed.
    pub fn attach(&mut self, connection: ConnectionId, outbox: &Arc<Outbox>) {
        if let Some(membership) = self.members.0.lock().get_mut(&self.user) {
            membership.outboxes.insert(connection, Arc::downgrade(outbox));
            self.connection = Some(connection);
        }
    }

    /// Counts one more channel, or refuses it (530) when the user has as many as it may have.
    pub fn open_channel(&mut self, limits: UserLimits) -> Result<(), Fault> {
        let mut members = self.members.0.lock();
        let Some(membership) = members.get_mut(&self.user) else { return Ok(()) };
        if let Some(most) = limits.max_channels
            && membership.channels >= most
        {
            return Err(Fault::not_allowed(UserLimits::channels_reached(&self.user, most)));
        }
        membership.channels += 1;
        self.channels += 1;
        Ok(())
    }

    /// Counts one channel less.
    pub fn close_channel(&mut self) {
        if self.channels == 0 {
            return;
        }
        self.channels -= 1;
        if let Some(membership) = self.members.0.lock().get_mut(&self.user) {
            membership.channels = membership.channels.saturating_sub(1);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut members = self.members.0.lock();
        let Some(membership) = members.get_mut(&self.user) else { return };
        membership.connections = membership.connections.saturating_sub(1);
        membership.channels = membership.channels.saturating_sub(self.channels);
        if let Some(connection) = &self.connection {
            membership.outboxes.remove(connection);
            shrink(&mut membership.outboxes);
        }
        if membership.connections == 0 {
            members.remove(&self.user);
            shrink(&mut members);
        }
    }
}
