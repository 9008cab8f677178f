//! What all connections share: the vhosts, the store and the memory alarm.

use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::queue::ConnectionId;
use crate::session::Session;
use crate::vhost::Vhost;
use courser_codec::ShortString;
use courser_store::{MemoryGauge, Store};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A running broker.
pub struct Broker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Limits,
    gauge: Arc<MemoryGauge>,
    vhosts: RwLock<FxHashMap<String, Arc<Vhost>>>,
    next_id: AtomicU64,
    names: Mutex<fastrand::Rng>,
    memory_alarm: AtomicBool,
    /// Connections that wait for the end of the alarm.
    held_back: Mutex<Vec<Arc<Outbox>>>,
}

/// On whose behalf a session acts.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name of the user who logged in.
    pub user: ShortString,
    /// Whether the client wants to hear of consumers that the broker cancels.
    pub cancel_notify: bool,
    /// Whether the user may publish with another user's `user-id`.
    pub impersonator: bool,
}

impl Broker {
    /// A broker with the vhost `/`, which keeps its messages in `store`. `gauge` is what that store
    /// reports its memory to; `seed` makes the names that the broker gives out unpredictable.
    pub fn new(
        store: Arc<dyn Store>,
        gauge: Arc<MemoryGauge>,
        limits: Limits,
        seed: u64,
    ) -> Arc<Self> {
        let broker = Broker {
            store,
            limits,
            gauge,
            vhosts: RwLock::default(),
            next_id: AtomicU64::new(1),
            names: Mutex::new(fastrand::Rng::with_seed(seed)),
            memory_alarm: AtomicBool::new(false),
            held_back: Mutex::default(),
        };
        broker.add_vhost("/");
        Arc::new(broker)
    }

    /// The vhost of this name.
    pub fn vhost(&self, name: &str) -> Option<Arc<Vhost>> {
        self.vhosts.read().get(name).cloned()
    }

    /// Makes a vhost with its predefined exchanges, unless it exists.
    pub fn add_vhost(&self, name: &str) -> Arc<Vhost> {
        let mut vhosts = self.vhosts.write();
        let vhost = vhosts
            .entry(name.to_owned())
            .or_insert_with(|| Vhost::new(name, || self.next_id(), &self.limits));
        Arc::clone(vhost)
    }

    /// Begins the session of a connection whose `connection.open` has been accepted.
    pub fn open_session(
        self: &Arc<Self>,
        vhost: Arc<Vhost>,
        identity: Identity,
        frame_max: usize,
    ) -> Session {
        let connection: ConnectionId = self.next_id();
        let outbox = Outbox::new(frame_max, self.limits.outbox_high_bytes, identity.cancel_notify);
        Session::new(Arc::clone(self), vhost, identity, connection, outbox)
    }

    /// Whether publishers have to wait because waiting messages use too much memory.
    pub fn memory_alarm(&self) -> bool {
        self.memory_alarm.load(Ordering::Acquire)
    }

    /// Octets that waiting messages use.
    pub fn memory_used_bytes(&self) -> u64 {
        self.gauge.used_bytes()
    }

    /// Has the connection of `outbox` woken when the memory alarm is over. Returns false, and does
    /// nothing, when there is none.
    pub fn hold_back(&self, outbox: &Arc<Outbox>) -> bool {
        let mut held_back = self.held_back.lock();
        if !self.memory_alarm() {
            return false;
        }
        if !held_back.iter().any(|known| Arc::ptr_eq(known, outbox)) {
            held_back.push(Arc::clone(outbox));
        }
        true
    }

    /// Raises or ends the memory alarm by what is used now.
    pub(crate) fn check_memory(&self) {
        let used = self.gauge.used_bytes();
        let alarm = self.memory_alarm.load(Ordering::Relaxed);
        if !alarm && used > self.limits.memory_high_bytes {
            self.memory_alarm.store(true, Ordering::Release);
            // Whatever was settled between the two lines above has to find the alarm raised.
            if self.gauge.used_bytes() <= self.memory_low_bytes() {
                self.end_alarm();
            }
        } else if alarm && used <= self.memory_low_bytes() {
            self.end_alarm();
        }
    }

    /// Ends the alarm a little below its beginning, so that it does not flutter.
    fn memory_low_bytes(&self) -> u64 {
        self.limits.memory_high_bytes / 10 * 9
    }

    fn end_alarm(&self) {
        let held_back = {
            let mut held_back = self.held_back.lock();
            self.memory_alarm.store(false, Ordering::Release);
            std::mem::take(&mut *held_back)
        };
        for outbox in held_back {
            outbox.wake();
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A name that nobody else has: `prefix` and 22 random characters.
    pub(crate) fn random_name(&self, prefix: &str) -> ShortString {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut name = Vec::from(prefix.as_bytes());
        let mut random = self.names.lock();
        name.extend((0..22).map(|_| ALPHABET[random.usize(0..ALPHABET.len())]));
        ShortString::new(&name).unwrap_or_default()
    }
}
