//! What a vhost has, in the order of names, for lists that come page by page.

use super::{PREDEFINED, Vhost};
use crate::exchange::Exchange;
use crate::monitor::{Ordered, Snapshot};
use crate::queue::Queue;
use courser_codec::ShortString;
use std::sync::atomic::Ordering;

/// Kept in step with the names under the write lock.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub queues: Ordered<Queue>,
    pub exchanges: Ordered<Exchange>,
}

/// Whether every vhost has an exchange of this name.
pub(crate) fn is_predefined(name: &ShortString) -> bool {
    PREDEFINED.iter().any(|(predefined, _)| *name == *predefined)
}

impl Vhost {
    /// All queues, by name.
    pub(crate) fn ordered_queues(&self) -> Snapshot<Queue> {
        self.listed.queues.snapshot()
    }

    /// All exchanges, by name.
    pub(crate) fn ordered_exchanges(&self) -> Snapshot<Exchange> {
        self.listed.exchanges.snapshot()
    }

    /// Bindings, those by name at the default exchange not counted.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.load(Ordering::Relaxed)
    }
}
