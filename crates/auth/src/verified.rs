//! Remembers for a short time which passwords were right, so that a client that connects often does
//! not cost a slow hash each time.
//!
//! What is kept is a sum with a random key, over the hash that the password was checked against too: a changed
//! password is not remembered, and what is in memory is of no use elsewhere.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use zeroize::Zeroizing;

/// How long a password is remembered.
const REMEMBERED_MS: u64 = 60_000;
/// Passwords that are remembered.
const ENTRIES_MAX: usize = 4096;

type Sum = [u8; 32];

pub(crate) struct VerifiedCache {
    /// Without one, where the system gave no random numbers, nothing is remembered.
    key: Option<Zeroizing<[u8; 32]>>,
    /// Until when each counts.
    until_ms: HashMap<Sum, u64>,
}

impl VerifiedCache {
    pub fn new() -> Self {
        let mut key = Zeroizing::new([0; 32]);
        let filled = getrandom::fill(&mut *key);
        VerifiedCache { key: filled.is_ok().then_some(key), until_ms: HashMap::new() }
    }

    pub fn knows(&self, user: &str, password: &[u8], hash: &str, now_ms: u64) -> bool {
        let Some(sum) = self.sum(user, password, hash) else { return false };
        let until = self.until_ms.get(&sum);
        // A clock that was set back must not make it count longer.
        until.is_some_and(|until| (now_ms..=now_ms + REMEMBERED_MS).contains(until))
    }

    pub fn remember(&mut self, user: &str, password: &[u8], hash: &str, now_ms: u64) {
        if self.until_ms.len() >= ENTRIES_MAX {
            self.until_ms.retain(|_, until| *until >= now_ms);
        }
        if self.until_ms.len() >= ENTRIES_MAX {
            self.until_ms.clear();
        }
        let Some(sum) = self.sum(user, password, hash) else { return };
        self.until_ms.insert(sum, now_ms + REMEMBERED_MS);
    }

    fn sum(&self, user: &str, password: &[u8], hash: &str) -> Option<Sum> {
        let mut sum = Sha256::new().chain_update(self.key.as_ref()?.as_slice());
        for part in [user.as_bytes(), hash.as_bytes(), password] {
            sum.update((part.len() as u64).to_le_bytes());
            sum.update(part);
        }
        // The key is as long as the sum's output and stands before all that can be chosen; lengths
        // are in it, so that nothing can be appended to what was summed up.
        Some(sum.finalize().into())
    }
}
