//! What a queue or an exchange knows of its bindings.

use courser_codec::ShortString;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The exchanges a queue or exchange is bound to, to find its bindings when it goes.
#[derive(Debug, Default)]
pub(crate) struct Sources(Mutex<BTreeSet<ShortString>>);

impl Sources {
    pub fn add(&self, exchange: &ShortString) {
        self.0.lock().insert(exchange.clone());
    }

    pub fn remove(&self, exchange: &ShortString) {
        self.0.lock().remove(exchange);
    }

    pub fn take(&self) -> Vec<ShortString> {
        std::mem::take(&mut *self.0.lock()).into_iter().collect()
    }

    /// Some of them, `most` at most.
    pub fn some(&self, most: usize) -> Vec<ShortString> {
        self.0.lock().iter().take(most).cloned().collect()
    }

    pub fn all(&self) -> Vec<ShortString> {
        self.0.lock().iter().cloned().collect()
    }
}
