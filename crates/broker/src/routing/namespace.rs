//! What is needed of a vhost by those who are in it.

use super::Route;
use crate::exchange::{Envelope, Exchange};
use crate::queue::Queue;
use crate::shard::Shard;
use crate::trace::WaitingCopies;
use crate::wakes::Wakes;
use std::sync::Arc;

/// The vhost of a queue or an exchange, as they know it: they find other queues by it, and it takes
/// them away.
pub(crate) trait Namespace: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether nothing is to come of timers in it for now.
    fn is_still(&self) -> bool;

    /// The shard that it is on.
    fn shard(&self) -> &Arc<Shard>;

    /// Copies of its messages that are to be posted.
    fn copies(&self) -> &Arc<WaitingCopies>;

    /// The route of a message that the broker itself publishes, also through an internal exchange, without
    /// the exchanges of the numbers in `without`; none if the exchange is missing.
    fn route_internally(
        &self,
        exchange: &[u8],
        envelope: &Envelope<'_>,
        without: &[u64],
    ) -> Option<Route>;

    /// The route of a message from an exchange on; likewise.
    fn route_through(
        &self,
        exchange: &Arc<Exchange>,
        envelope: &Envelope<'_>,
        without: &[u64],
    ) -> Option<Route>;

    /// Whether it takes long to delete a queue.
    fn takes_long_to_delete(&self, queue: &Queue) -> bool;

    /// Deletes a queue that has not been used for as long as its `x-expires` allows.
    fn delete_unused_queue(&self, queue: &Arc<Queue>, wakes: &mut Wakes);
}
