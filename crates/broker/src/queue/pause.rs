//! Pausing: a queue that is paused takes messages as always and hands out none to clients, neither to
//! consumers nor to `basic.get`, until it is resumed.

use super::Queue;
use crate::wakes::Wakes;
use courser_store::{Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Queue {
    /// Whether clients get nothing from it for now.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Pauses it, or ends that: then [`Queue::go_on`] has to follow. When this returns, no message is
    /// just being handed to a consumer; readers of a stream end their turns.
    pub(crate) fn set_paused(&self, on: bool) {
        let _state = self.state.lock();
        self.paused.store(on, Ordering::Relaxed);
    }

    /// Hands out what waits, after a pause.
    pub(crate) fn go_on(
        self: &Arc<Self>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        if self.stream.is_some() {
            // What reads for its consumers goes on with the next turn of their connections.
            let state = self.state.lock();
            state.consumers.for_each_outbox(&mut |outbox| wakes.push(outbox));
        }
        self.section(store, wakes, |_| {})
    }
}
