//! What a queue or an exchange knows of the bindings that lead to it.

use crate::log_end::LogEnd;
use courser_codec::ShortString;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The exchanges a queue or exchange is bound to, to find its bindings when it goes.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    names: Mutex<BTreeSet<ShortString>>,
    /// Where the log ends with the definitions of these bindings that were made since the start: they survive once that is durable.
    pub defined: LogEnd,
}

impl Sources {
    pub fn add(&self, exchange: &ShortString) {
        self.names.lock().insert(exchange.clone());
    }

    pub fn remove(&self, exchange: &ShortString) {
        self.names.lock().remove(exchange);
    }

    pub fn take(&self) -> Vec<ShortString> {
        std::mem::take(&mut *self.names.lock()).into_iter().collect()
    }

    /// Some of them, `most` at most.
    pub fn some(&self, most: usize) -> Vec<ShortString> {
        self.names.lock().iter().take(most).cloned().collect()
    }

    pub fn all(&self) -> Vec<ShortString> {
        self.names.lock().iter().cloned().collect()
    }
}
