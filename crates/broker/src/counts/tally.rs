//! What a batch has counted of a whole vhost.

use super::{COUNTED_TYPES, DeliveryCounts, PublishCounts, VhostCounts};
use crate::dead_letter::Reason;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a batch has counted, until it is added to the numbers of its vhost.
#[derive(Default)]
pub(crate) struct Tally {
    vhost: Option<Arc<VhostCounts>>,
    publishes: PublishCounts,
    has_published: bool,
    routed: u64,
    deliveries: [DeliveryCounts; COUNTED_TYPES.len()],
    /// A bit for each of the types that there are deliveries of.
    delivered: u8,
}

impl Tally {
    /// What is counted from now on is this vhost's.
    #[inline]
    pub fn turn_to(&mut self, vhost: &Arc<VhostCounts>) {
        if self.vhost.as_ref().is_none_or(|current| !Arc::ptr_eq(current, vhost)) {
            self.change_to(vhost);
        }
    }

    #[cold]
    fn change_to(&mut self, vhost: &Arc<VhostCounts>) {
        self.add_up();
        self.vhost = Some(Arc::clone(vhost));
    }

    /// Counts copies that went to a queue.
    #[inline]
    pub fn routed(&mut self, copies: usize) {
        self.routed += copies as u64;
    }

    pub fn publishes(&mut self) -> &mut PublishCounts {
        self.has_published = true;
        &mut self.publishes
    }

    /// What clients get of queues of the type in this place.
    #[inline]
    pub fn deliveries(&mut self, place: u8) -> &mut DeliveryCounts {
        self.delivered |= 1 << place;
        &mut self.deliveries[usize::from(place) % COUNTED_TYPES.len()]
    }

    /// Counts a message that leaves a queue of the type in this place unconsumed.
    pub fn dead(&self, place: u8, reason: Reason, is_letter: bool) {
        let types = self.vhost.as_ref().map(|vhost| &vhost.types);
        if let Some(of_type) = types.and_then(|types| types.get(usize::from(place))) {
            let counts = if is_letter { &of_type.dead_lettered } else { &of_type.discarded };
            counts.add_one(reason);
        }
    }

    /// Adds everything to the numbers of the vhost.
    #[inline]
    pub fn add_up(&mut self) {
        if self.has_published || self.routed != 0 || self.delivered != 0 {
            self.add_all();
        }
    }

    fn add_all(&mut self) {
        let delivered = std::mem::take(&mut self.delivered);
        let publishes = std::mem::take(&mut self.has_published).then_some(&mut self.publishes);
        let routed = std::mem::take(&mut self.routed);
        // Nothing is counted before there is a vhost to count for.
        let Some(counts) = &self.vhost else { return };
        if let Some(publishes) = publishes {
            counts.publishes.add(&std::mem::take(publishes));
        }
        if routed != 0 {
            counts.routed.fetch_add(routed, Ordering::Relaxed);
        }
        for (place, (one, of_type)) in self.deliveries.iter_mut().zip(&counts.types).enumerate() {
            if delivered & 1 << place != 0 {
                of_type.deliveries.add(&std::mem::take(one));
            }
        }
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally").finish_non_exhaustive()
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.add_up();
    }
}
