//! What an operator lets a vhost have at most, and the count of its connections.

use super::Vhost;
use crate::fault::Fault;
use crate::members::Member;
use courser_auth::{Access, UserLimits};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The limits of one vhost. Those of the broker hold besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VhostLimits {
    /// Connections at the same time.
    pub connections_max: Option<u64>,
    /// Queues at the same time.
    pub queues_max: Option<u64>,
}

/// A connection that is counted in its vhost as long as this lives.
pub struct Admission {
    vhost: Arc<Vhost>,
    /// What it may do there.
    pub(crate) access: Access,
    /// Its user counts it too, if it is one of the accounts.
    pub(crate) member: Option<Member>,
}

impl Admission {
    /// The vhost that the connection is in.
    pub(crate) fn vhost(&self) -> &Arc<Vhost> {
        &self.vhost
    }

    /// The same, for a user who may do only so much.
    pub(crate) fn of_member(mut self, member: Member, access: Access) -> Self {
        self.member = Some(member);
        self.access = access;
        self
    }

    /// Counts one more channel, within the limits of the user.
    pub(crate) fn open_channel(
        &mut self,
        limits_of: impl FnOnce(&str) -> UserLimits,
    ) -> Result<(), Fault> {
        match &mut self.member {
            Some(member) => {
                let limits = limits_of(member.user());
                member.open_channel(limits)
            }
            None => Ok(()),
        }
    }

    /// Counts one channel less.
    pub(crate) fn close_channel(&mut self) {
        if let Some(member) = &mut self.member {
            member.close_channel();
        }
    }
}

/// Counts a connection whatever the limit says; it may do everything.
impl From<Arc<Vhost>> for Admission {
    fn from(vhost: Arc<Vhost>) -> Self {
        vhost.connections.fetch_add(1, Ordering::SeqCst);
        let access = Access::unrestricted("", &vhost.name);
        Admission { vhost, access, member: None }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.vhost.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Vhost {
    /// Counts one more connection, or refuses it: when the vhost has as many as it may have (530), or
    /// stands still (320).
    pub fn admit(self: &Arc<Self>, user: &str) -> Result<Admission, Fault> {
        // Counted first: of two that come at the same moment one finds the other there.
        let admission = Admission::from(Arc::clone(self));
        self.refuse_if_still()?;
        let now = self.connections();
        match self.limits().and_then(|limits| limits.connections_max) {
            Some(most) if now > most => Err(Fault::not_allowed(format_args!(
                "access to vhost '{}' refused for user '{user}': connection limit ({most}) is \
                 reached",
                self.name
            ))),
            _ => Ok(admission),
        }
    }

    /// Connections that are open in it.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Refuses one more queue where there are as many as there may be.
    pub(super) fn admit_queue(&self, name: &impl std::fmt::Display) -> Result<(), Fault> {
        let queues = self.names.load().queues.len();
        if let Some(most) = self.limits().and_then(|limits| limits.queues_max)
            && queues as u64 >= most
        {
            return Err(Fault::precondition_failed(format_args!(
                "cannot declare queue '{name}': queue limit in vhost '{}' ({most}) is reached",
                self.name
            )));
        }
        if queues >= self.queues_max {
            return Err(self.too_many("queues", self.queues_max));
        }
        Ok(())
    }
}
