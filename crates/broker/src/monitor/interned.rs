//! What many connections say of themselves in the same words, kept once.

use crate::memory::Charge;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Different bytes that are kept before those are looked for that no connection has any more.
const UNSWEPT_MIN: usize = 64;

/// Bytes that are shared by all who have the same.
#[derive(Default)]
pub(crate) struct Interned(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: HashSet<Arc<[u8]>>,
    /// How many of them connections had, at the last look.
    in_use: usize,
    charge: Charge,
}

/// What some bytes use besides themselves.
const ENTRY_BYTES: usize = 64;

fn used_bytes(shared: &Arc<[u8]>) -> usize {
    shared.len() + ENTRY_BYTES
}

impl Interned {
    /// None yet. What they use is counted by `charge`.
    pub fn counted(charge: Charge) -> Self {
        Interned(Mutex::new(Known { charge, ..Known::default() }))
    }

    /// These bytes, shared with all that have the same already.
    pub fn share(&self, bytes: &[u8]) -> Arc<[u8]> {
        let mut known = self.0.lock();
        if let Some(shared) = known.all.get(bytes) {
            return Arc::clone(shared);
        }
        if known.all.len() >= 2 * known.in_use.max(UNSWEPT_MIN) {
            // Two who had the same and went together have each taken the other for one who stays.
            known.all.retain(|shared| Arc::strong_count(shared) > 1);
            known.in_use = known.all.len();
            let used = known.all.iter().map(used_bytes).sum();
            known.charge.set(used);
        }
        let shared: Arc<[u8]> = bytes.into();
        let used = known.charge.bytes() + used_bytes(&shared);
        known.charge.set(used);
        known.all.insert(Arc::clone(&shared));
        shared
    }

    /// Forgets bytes that only the caller still has.
    pub fn release(&self, shared: &Arc<[u8]>) {
        let mut known = self.0.lock();
        // Counted with the lock held, as no other connection can begin to share them then.
        if Arc::strong_count(shared) <= 2 && known.all.remove(&**shared) {
            let used = known.charge.bytes().saturating_sub(used_bytes(shared));
            known.charge.set(used);
        }
    }
}
