//! Slows down who guesses passwords.
//!
//! Refused logins are counted per address and user (or token), and, with more patience, per address. A user who
//! has failed too often waits, each time twice as long up to a minute; until then a login is refused
//! without its password being looked at. What others do elsewhere locks no user out, as a count per
//! user would, and this machine never waits: its administrator can always log in.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

/// Failures without a wait, for one user from one address.
const FREE_FAILURES: u32 = 5;
/// The same for all users from one address together: it may be many people's.
const FREE_FAILURES_OF_ADDRESS: u32 = 50;
/// The first wait.
const WAIT_MS: u64 = 1_000;
/// The longest wait.
const WAIT_MS_MAX: u64 = 60_000;
/// How long nothing must fail for all to be forgotten.
const FORGOTTEN_AFTER_MS: u64 = 10 * 60_000;
/// Addresses and users that are remembered.
const ENTRIES_MAX: usize = 16_384;

/// What a login tries, by which failures are counted besides the address.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Tried<'a> {
    /// To be the user of this name.
    User(&'a [u8]),
    /// A secret that says itself whose it is, such as a token. Others who bring one from the same address do not wait for
    /// the failures of this one.
    Secret(&'a [u8]),
}

impl Tried<'_> {
    /// The name that is tried; nothing for a secret, which no log shows.
    pub(crate) fn name(&self) -> &[u8] {
        match self {
            Tried::User(name) => name,
            Tried::Secret(_) => b"",
        }
    }
}

/// What is counted for: an address, and what is tried by its hash, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    address: IpAddr,
    tried: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last_ms: u64,
}

/// Who has to wait before the next login.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: HashMap<Key, Failures>,
    hasher: std::hash::RandomState,
}

impl Backoff {
    /// For how many more milliseconds this is refused from this address; 0 if it is not.
    pub fn wait_ms(&self, address: IpAddr, tried: impl Hash, now_ms: u64) -> u64 {
        if address.to_canonical().is_loopback() {
            return 0;
        }
        let [pair, whole] = self.keys(address, tried);
        let of_pair = self.wait_of(pair, FREE_FAILURES, now_ms);
        of_pair.max(self.wait_of(whole, FREE_FAILURES_OF_ADDRESS, now_ms))
    }

    /// A password was wrong, or there is no such user.
    pub fn failed(&mut self, address: IpAddr, tried: impl Hash, now_ms: u64) {
        if address.to_canonical().is_loopback() {
            return;
        }
        for key in self.keys(address, tried) {
            if self.failures.len() >= ENTRIES_MAX && !self.failures.contains_key(&key) {
                self.make_room(now_ms);
            }
            let failures =
                self.failures.entry(key).or_insert(Failures { count: 0, last_ms: now_ms });
            if has_passed(failures.last_ms, FORGOTTEN_AFTER_MS, now_ms) {
                failures.count = 0;
            }
            failures.count = failures.count.saturating_add(1);
            failures.last_ms = now_ms;
        }
    }

    /// The password was right: what failed before was a mistake. Other users' failures from there
    /// still count.
    pub fn succeeded(&mut self, address: IpAddr, tried: impl Hash) {
        let [pair, _] = self.keys(address, tried);
        self.failures.remove(&pair);
    }

    fn wait_of(&self, key: Key, free: u32, now_ms: u64) -> u64 {
        let Some(failures) = self.failures.get(&key) else { return 0 };
        if failures.count < free {
            return 0;
        }
        let doublings = (failures.count - free).min(16);
        let wait = (WAIT_MS << doublings).min(WAIT_MS_MAX);
        // A clock that was set back must not make the wait longer.
        let passed = now_ms.checked_sub(failures.last_ms).unwrap_or(wait);
        wait.saturating_sub(passed)
    }

    /// Forgets what is old, or else the half that is oldest.
    fn make_room(&mut self, now_ms: u64) {
        self.failures.retain(|_, one| !has_passed(one.last_ms, FORGOTTEN_AFTER_MS, now_ms));
        if self.failures.len() < ENTRIES_MAX {
            return;
        }
        let mut times: Vec<u64> = self.failures.values().map(|one| one.last_ms).collect();
        let half = times.len() / 2;
        let middle = *times.select_nth_unstable(half).1;
        self.failures.retain(|_, one| one.last_ms > middle);
    }

    fn keys(&self, address: IpAddr, tried: impl Hash) -> [Key; 2] {
        use std::hash::BuildHasher;
        let address = network(address);
        let pair = Key { address, tried: Some(self.hasher.hash_one(tried)) };
        [pair, Key { address, tried: None }]
    }
}

fn has_passed(since_ms: u64, wait_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(since_ms) >= wait_ms
}

/// The address, or of IPv6 the network: one client has as many addresses there as it likes.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(bits))
        }
        v4 => v4,
    }
}
