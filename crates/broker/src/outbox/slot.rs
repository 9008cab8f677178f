//! What a channel knows of a queue that it takes from.

use crate::queue::Queue;
use courser_codec::ShortString;
use std::sync::Arc;

/// So many tags of deliveries that are settled are not worth sweeping.
const OLD_TAGS: usize = 64;

/// A queue that this channel takes from: one for each consumer, and one for each queue polled.
#[derive(Debug)]
pub(crate) struct Slot {
    pub queue: Arc<Queue>,
    /// The tag of the consumer; none for `basic.get`.
    pub consumer_tag: Option<ShortString>,
    /// Key of the consumer in its queue, once it has been added there.
    pub consumer_key: u32,
    /// The offset that it gets next, if the queue is a stream.
    pub stream_offset: u64,
    /// The number of the reader that reads for it then.
    pub stream_reader: Option<u64>,
    /// Its queue is done with a message when that is handed out.
    pub(super) no_ack: bool,
    pub(super) prefetch: u32,
    pub(super) in_flight: u32,
    /// The tags of deliveries that wait for an acknowledgement, ascending, and of some that no longer do; there if they may be
    /// taken away.
    pub(super) tags: Option<Vec<u64>>,
    /// The consumer has kept messages for too long: they are taken away.
    pub(super) is_overdue: bool,
    /// The consumer is gone; the slot stays for the deliveries not yet acknowledged.
    pub(super) ended: bool,
}

impl Slot {
    /// Whether it has as much unacknowledged as it may by its own limit.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.prefetch != 0 && self.in_flight >= self.prefetch
    }

    /// Deliveries that wait for an acknowledgement.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether most of the tags are of deliveries that are settled.
    #[inline]
    pub(super) fn has_old_tags(&self) -> bool {
        let most = 2 * self.in_flight as usize + OLD_TAGS;
        self.tags.as_ref().is_some_and(|tags| tags.len() > most)
    }

    /// Deliveries that may wait for one, 0 for any number.
    pub(crate) fn prefetch(&self) -> u32 {
        self.prefetch
    }
}
