//! Slows down who guesses passwords.
//!
//! Refused logins are counted per address and user (or token). A user who has failed too often waits, each time twice as long up
//! to a minute; until then a login is refused without its password being looked at. An address waits likewise if many of its users
//! fail: each of them counts there for its first failures alone, so that a client that tries an old password for ever has no other
//! user of its address wait. What others do elsewhere locks no user out, as a count per user would, and this machine never waits:
//! its administrator can always log in.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Failures without a wait, for one user from one address. It counts for no more at its address.
const FREE_FAILURES: u32 = 5;
/// The same for all users from one address together: it may be many people's.
const FREE_FAILURES_OF_ADDRESS: u32 = 50;
/// The first wait.
const WAIT_MS: u64 = 1_000;
/// The longest wait.
const WAIT_MS_MAX: u64 = 60_000;
/// How long a user must not fail to be forgotten.
const FORGOTTEN_AFTER_MS: u64 = 10 * 60_000;
/// Users of addresses that are remembered.
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

/// An address, and what is tried there as a hash.
type Key = (IpAddr, u64);

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u32,
    last_ms: u64,
}

/// Who has to wait before the next login.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: BTreeMap<Key, Failures>,
    hasher: std::hash::RandomState,
}

impl Backoff {
    /// For how many more milliseconds this is refused from this address; 0 if it is not.
    pub fn wait_ms(&self, address: IpAddr, tried: impl Hash, now_ms: u64) -> u64 {
        if address.to_canonical().is_loopback() {
            return 0;
        }
        let key = self.key(address, tried);
        let of_user = self.failures.get(&key).copied().unwrap_or_default();
        let of_address = self.of_address(key.0, now_ms);
        let wait_ms = of_user.wait_ms(FREE_FAILURES, now_ms);
        wait_ms.max(of_address.wait_ms(FREE_FAILURES_OF_ADDRESS, now_ms))
    }

    /// A password was wrong, or there is no such user.
    pub fn failed(&mut self, address: IpAddr, tried: impl Hash, now_ms: u64) {
        if address.to_canonical().is_loopback() {
            return;
        }
        let key = self.key(address, tried);
        self.forget_old(key.0, now_ms);
        if self.failures.len() >= ENTRIES_MAX && !self.failures.contains_key(&key) {
            self.make_room(now_ms);
        }
        let failures = self.failures.entry(key).or_default();
        failures.count = failures.count.saturating_add(1);
        failures.last_ms = now_ms;
    }

    /// The password was right: what failed before was a mistake, which counts no more at its address either. Other users'
    /// failures from there still count.
    pub fn succeeded(&mut self, address: IpAddr, tried: impl Hash) {
        let key = self.key(address, tried);
        self.failures.remove(&key);
    }

    /// What counts of all users of an address.
    fn of_address(&self, address: IpAddr, now_ms: u64) -> Failures {
        let mut all = Failures::default();
        for (_, one) in self.failures.range(users_of(address)) {
            // Where the clock was set back, what failed before says nothing.
            if one.last_ms <= now_ms && !one.is_old(now_ms) {
                all.count = all.count.saturating_add(one.count.min(FREE_FAILURES));
                all.last_ms = all.last_ms.max(one.last_ms);
            }
        }
        all
    }

    fn forget_old(&mut self, address: IpAddr, now_ms: u64) {
        let all = self.failures.range(users_of(address));
        let old: Vec<Key> =
            all.filter(|(_, one)| one.is_old(now_ms)).map(|(key, _)| *key).collect();
        for key in old {
            self.failures.remove(&key);
        }
    }

    /// Forgets what is old, or else the half that is oldest.
    fn make_room(&mut self, now_ms: u64) {
        self.failures.retain(|_, one| !one.is_old(now_ms));
        if self.failures.len() < ENTRIES_MAX {
            return;
        }
        let mut times: Vec<u64> = self.failures.values().map(|one| one.last_ms).collect();
        let half = times.len() / 2;
        let middle = *times.select_nth_unstable(half).1;
        self.failures.retain(|_, one| one.last_ms > middle);
    }

    fn key(&self, address: IpAddr, tried: impl Hash) -> Key {
        use std::hash::BuildHasher;
        (network(address), self.hasher.hash_one(tried))
    }
}

impl Failures {
    /// How long the next login still has to wait, if so many failures are free.
    fn wait_ms(self, free: u32, now_ms: u64) -> u64 {
        if self.count < free {
            return 0;
        }
        let doublings = (self.count - free).min(16);
        let wait = (WAIT_MS << doublings).min(WAIT_MS_MAX);
        // A clock that was set back must not make the wait longer.
        let passed = now_ms.checked_sub(self.last_ms).unwrap_or(wait);
        wait.saturating_sub(passed)
    }

    fn is_old(self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.last_ms) >= FORGOTTEN_AFTER_MS
    }
}

fn users_of(address: IpAddr) -> RangeInclusive<Key> {
    (address, 0)..=(address, u64::MAX)
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
