//! What an operator lets a vhost have at most, and the count of its connections.

use super::Vhost;
use crate::fault::Fault;
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
}

impl Admission {
    /// The vhost that the connection is in.
    pub(crate) fn vhost(&self) -> &Arc<Vhost> {
        &self.vhost
    }
}

/// Counts a connection whatever the limit says.
impl From<Arc<Vhost>> for Admission {
    fn from(vhost: Arc<Vhost>) -> Self {
        vhost.connections.fetch_add(1, Ordering::Relaxed);
        Admission { vhost }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.vhost.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Vhost {
    /// Counts one more connection, or refuses it (530) when the vhost has as many as it may have.
    pub fn admit(self: &Arc<Self>, user: &str) -> Result<Admission, Fault> {
        // Counted first: of two that come at the same moment one finds the other there.
        let admission = Admission::from(Arc::clone(self));
        let now = self.connections();
        match self.limits().and_then(|limits| limits.connections_max) {
            Some(most) if now > most => Err(Fault::not_allowed(format_args!(
                "access to vhost '{}' refused for user '{user}': vhost connection limit ({most}) \
                 is reached",
                self.name
            ))),
            _ => Ok(admission),
        }
    }

    /// Connections that are open in it.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// What an operator has said, if anything.
    pub fn limits(&self) -> Option<VhostLimits> {
        *self.limits.lock()
    }

    /// Has other limits from now on. What is there already stays.
    pub(crate) fn set_limits(&self, limits: VhostLimits) {
        *self.limits.lock() = Some(limits);
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
