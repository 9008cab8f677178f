//! What all connections share: the vhosts, the store and the memory alarm.

use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::queue::ConnectionId;
use crate::session::Session;
use crate::timers::Timers;
use crate::vhost::{Admission, Vhost};
use crate::wakes::Wakes;
use courser_codec::ShortString;
use courser_store::{MemoryGauge, Store};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Wake, Waker};

/// A running broker.
pub struct Broker {
    pub(crate) store: Arc<dyn Store>,
    /// Held for reading between the append of a change and its effect, for writing to find a point
    /// in the log before which everything has taken effect.
    pub(crate) gate: RwLock<()>,
    pub(crate) limits: Limits,
    timers: Arc<Timers>,
    gauge: Arc<MemoryGauge>,
    vhosts: RwLock<FxHashMap<String, Arc<Vhost>>>,
    next_id: AtomicU64,
    names: Mutex<fastrand::Rng>,
    memory_alarm: AtomicBool,
    disk_alarm: AtomicBool,
    failed: AtomicBool,
    /// Called once, with the reason, when the store has failed.
    on_failure: OnceLock<FailureCall>,
    me: Weak<Broker>,
    /// Connections that wait for the end of the alarm.
    held_back: Mutex<Vec<Arc<Outbox>>>,
}

/// Timers that one call of [`Broker::tick`] lets fire.
const TIMERS_PER_TICK: usize = 16;

/// What is to be done with the reason of a store's failure.
type FailureCall = Box<dyn Fn(&str) + Send + Sync>;

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
        let broker = Arc::new_cyclic(|me| Broker {
            store,
            gate: RwLock::new(()),
            limits,
            timers: Arc::default(),
            gauge,
            vhosts: RwLock::default(),
            next_id: AtomicU64::new(1),
            names: Mutex::new(fastrand::Rng::with_seed(seed)),
            memory_alarm: AtomicBool::new(false),
            disk_alarm: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            on_failure: OnceLock::new(),
            me: Weak::clone(me),
            held_back: Mutex::default(),
        });
        broker.add_vhost("/");
        broker
    }

    /// The vhost of this name.
    pub fn vhost(&self, name: &str) -> Option<Arc<Vhost>> {
        self.vhosts.read().get(name).cloned()
    }

    /// All vhosts, in no particular order.
    pub fn vhosts(&self) -> Vec<Arc<Vhost>> {
        self.vhosts.read().values().cloned().collect()
    }

    /// Makes a vhost with its predefined exchanges, unless it exists.
    pub fn add_vhost(&self, name: &str) -> Arc<Vhost> {
        let mut vhosts = self.vhosts.write();
        let vhost = vhosts.entry(name.to_owned()).or_insert_with(|| {
            Vhost::new(name, || self.next_id(), &self.limits, &self.store, &self.timers)
        });
        Arc::clone(vhost)
    }

    /// Says what time it is, in milliseconds since 1970. To be called once for each read, and whenever
    /// something is called that acts on the time.
    #[inline]
    pub fn set_time(&self, now_ms: u64) {
        self.timers.set_time(now_ms);
    }

    /// The time as it was last told, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.timers.now_ms()
    }

    /// Does what is due at `now_ms`: a bounded amount of it, so that it may be called where others
    /// wait. Returns when it has to be called again, which may be at once.
    pub fn tick(&self, now_ms: u64) -> Option<u64> {
        self.set_time(now_ms);
        let mut wakes = Wakes::default();
        for _ in 0..TIMERS_PER_TICK {
            let Some((fired_ms, kind, target)) = self.timers.pop_due(now_ms) else { break };
            let Some(target) = target.upgrade() else { continue };
            let _gate = self.gate.read();
            target.fire(kind, fired_ms, now_ms, &*self.store, &mut wakes);
            if self.post_dead_letters(&mut wakes) {
                // They have to be written, which is enough for one call.
                break;
            }
        }
        wakes.wake_all();
        self.check_alarms();
        self.timers.next_ms()
    }

    /// Has `call` called when [`Broker::tick`] has to be called earlier than it last said. It is
    /// called with locks held: all it may do is to wake whoever calls.
    pub fn on_timer(&self, call: impl Fn() + Send + Sync + 'static) {
        self.timers.on_earlier(call);
    }

    /// Begins the session of a connection whose `connection.open` has been accepted.
    pub fn open_session(
        self: &Arc<Self>,
        admission: impl Into<Admission>,
        identity: Identity,
        frame_max: usize,
    ) -> Session {
        let connection: ConnectionId = self.next_id();
        let outbox = Outbox::new(frame_max, self.limits.outbox_high_bytes, identity.cancel_notify);
        Session::new(Arc::clone(self), admission.into(), identity, connection, outbox)
    }

    /// What is short, if publishers have to wait: a reason for `connection.blocked`.
    pub fn alarm(&self) -> Option<&'static str> {
        let memory = self.memory_alarm.load(Ordering::Acquire);
        let disk = self.disk_alarm.load(Ordering::Acquire);
        match (memory, disk) {
            (false, false) => None,
            (true, false) => Some("low on memory"),
            (false, true) => Some("low on disk"),
            (true, true) => Some("low on memory & disk"),
        }
    }

    /// Octets that waiting messages use.
    pub fn memory_used_bytes(&self) -> u64 {
        self.gauge.used_bytes()
    }

    /// Has the connection of `outbox` woken when no alarm is left. Returns the reason of the alarm,
    /// or does nothing when there is none.
    pub fn hold_back(&self, outbox: &Arc<Outbox>) -> Option<&'static str> {
        self.alarm()?;
        let mut held_back = self.held_back.lock();
        let reason = self.alarm()?;
        if !held_back.iter().any(|known| Arc::ptr_eq(known, outbox)) {
            held_back.push(Arc::clone(outbox));
        }
        Some(reason)
    }

    /// Raises or ends the alarms by what is used now.
    pub fn check_alarms(&self) {
        self.check_failure();
        let used = self.gauge.used_bytes();
        let memory = self.memory_alarm.load(Ordering::Relaxed);
        // An alarm ends a little below its beginning, so that it does not flutter.
        let high = self.limits.memory_high_bytes;
        let short_of_memory = if memory { used > high / 10 * 9 } else { used > high };
        let short_of_disk = !self.store.has_room();
        let disk = self.disk_alarm.load(Ordering::Relaxed);
        if (memory, disk) != (short_of_memory, short_of_disk) {
            self.set_alarms();
        }
    }

    #[cold]
    fn set_alarms(&self) {
        let mut woken = Vec::new();
        let short_of_disk = {
            let mut held_back = self.held_back.lock();
            // Read again under the lock, so that the last to come here leaves the truth behind.
            let short_of_memory = self.gauge.used_bytes() > self.limits.memory_high_bytes / 10 * 9;
            self.memory_alarm.store(short_of_memory, Ordering::Release);
            let short_of_disk = !self.store.has_room();
            self.disk_alarm.store(short_of_disk, Ordering::Release);
            if self.alarm().is_none() {
                woken = std::mem::take(&mut *held_back);
            }
            short_of_disk
        };
        for outbox in woken {
            outbox.wake();
        }
        if short_of_disk {
            self.store.when_room(&Waker::from(Arc::new(RoomWatch(Weak::clone(&self.me)))));
        }
    }

    /// Has `call` called, once, when the store has failed: nothing can be promised from then on.
    pub fn on_failure(&self, call: impl Fn(&str) + Send + Sync + 'static) {
        // Whoever came first keeps the place.
        let _ = self.on_failure.set(Box::new(call));
    }

    /// Notices a store that has failed.
    pub(crate) fn check_failure(&self) {
        if let Some(reason) = self.store.failure()
            && !self.failed.swap(true, Ordering::AcqRel)
            && let Some(call) = self.on_failure.get()
        {
            call(&reason);
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sees to it that a number that was given out before a restart is not given out again.
    pub(crate) fn reserve_id(&self, id: u64) {
        self.next_id.fetch_max(id + 1, Ordering::Relaxed);
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

/// Woken when the store has room again.
struct RoomWatch(Weak<Broker>);

impl Wake for RoomWatch {
    fn wake(self: Arc<Self>) {
        if let Some(broker) = self.0.upgrade() {
            broker.check_alarms();
        }
    }
}
