//! Whether an operator has suspended the listeners for clients: the broker listens at none until they are resumed, and the
//! connections that are there stay.

#[cfg(test)]
mod tests;

use crate::notices::Notices;
use std::sync::Arc;
use tokio::sync::watch;

/// Whether the listeners are suspended.
pub(crate) struct Suspension {
    on: watch::Sender<bool>,
    notices: Arc<Notices>,
}

impl Suspension {
    /// Listeners that are not. `notices` says when they are.
    pub fn new(notices: &Arc<Notices>) -> Self {
        Suspension { on: watch::Sender::new(false), notices: Arc::clone(notices) }
    }

    /// Suspends them, or resumes them.
    pub fn set(&self, on: bool) {
        // The notice goes with the state: of two operators at once, one is last with both.
        let is_changed = self.on.send_if_modified(|is_on| {
            self.notices.listeners_suspended(on);
            std::mem::replace(is_on, on) != on
        });
        if is_changed {
            let what = if on { "suspended" } else { "resumed" };
            tracing::info!("the listeners for clients are {what}");
        }
    }

    /// Whether they are suspended.
    pub fn is_on(&self) -> bool {
        *self.on.borrow()
    }

    /// Waits until they are, or are no longer.
    pub async fn becomes(&self, wanted: bool) {
        // An error would say that nothing can change it any more, and this can.
        let _ = self.on.subscribe().wait_for(|on| *on == wanted).await;
    }
}
