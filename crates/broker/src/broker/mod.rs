//! What all connections share: the vhosts, the store and the memory alarm.

mod alarms;
mod groups;
mod names;
mod shards;
mod vhosts;

use alarms::HeldBack;
pub use alarms::{Alarms, spill_bytes};
pub use shards::ShardFault;

use crate::counts::MessageCounts;
use crate::limits::Limits;
use crate::members::Members;
use crate::memory::Memory;
use crate::monitor::Monitor;
use crate::persistence::definition_changes::DefinitionChanges;
use crate::persistence::scope::Kept;
use crate::queue::ConnectionId;
use crate::shard::Shard;
use crate::timers::{Due, Lane, Timers};
use crate::transfer::Arrivals;
use crate::vhost::{Configured, Vhost};
use crate::wakes::Wakes;
use crate::work::Budget;
use arc_swap::ArcSwap;
use courser_auth::{Accounts, Directory, Settings as AccountSettings};
use courser_codec::ShortString;
use courser_store::{MemoryGauge, ShardId, Store};
use names::RandomNames;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A running broker.
pub struct Broker {
    /// All shards; the first is the one that is always there.
    shards: ArcSwap<Vec<Arc<Shard>>>,
    /// Held while a shard is added or taken away.
    pub(crate) shards_write: Mutex<()>,
    /// The group of a cluster whose vhosts it serves.
    pub(crate) group: u16,
    /// Held while users, permissions, global parameters or what is said of vhosts change, from the append
    /// to the effect. Which of them groups have to hear of.
    pub(crate) defined: Mutex<DefinitionChanges>,
    /// Where the log ended behind the last change of these.
    pub(crate) definitions_version: Arc<AtomicU64>,
    /// Held while what is defined in group 0 is adopted.
    pub(crate) adopting: Mutex<()>,
    /// How often the cluster was recovered from one member's copies.
    pub(crate) recoveries: AtomicU32,
    /// The policies that the configuration has for vhosts.
    pub(crate) configured: Mutex<Arc<Configured>>,
    /// What is defined for the whole broker.
    pub(crate) kept: Kept,
    pub(crate) limits: Limits,
    pub(crate) timers: Timers,
    /// The time of the last tick.
    ticked_ms: AtomicU64,
    pub(crate) gauge: Arc<MemoryGauge>,
    /// What clients make it hold besides waiting messages.
    pub(crate) memory: Arc<Memory>,
    vhosts: RwLock<FxHashMap<String, Arc<Vhost>>>,
    /// Vhosts that are being moved here, which can't be found yet.
    pub(crate) arrivals: Arrivals,
    next_connection: AtomicU64,
    names: RandomNames,
    memory_alarm: AtomicBool,
    disk_alarm: AtomicBool,
    failed: AtomicBool,
    /// It is about to be stopped.
    stopping: AtomicBool,
    /// There is no shard but the home shard.
    only_home: AtomicBool,
    /// Called once, with the reason, when the store has failed.
    on_failure: OnceLock<FailureCall>,
    me: Weak<Broker>,
    /// Queues whose publishers wait for their consumers.
    pub(crate) queues_behind: AtomicUsize,
    held_back: Mutex<HeldBack>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) members: Arc<Members>,
    /// Last, as a reader who follows the types from here comes to everything else.
    pub(crate) monitor: Arc<Monitor>,
}

/// Timers that one call of [`Broker::tick`] lets fire.
const TIMERS_PER_TICK: usize = 16;

/// A clock that goes back by no more is waited for.
const SET_BACK_MS: u64 = 1000;

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
    /// reports its memory to; `seed` makes the names that the broker gives out unpredictable: where
    /// clients are not trusted it has to come from the operating system.
    pub fn new(
        store: Arc<dyn Store>,
        gauge: Arc<MemoryGauge>,
        limits: Limits,
        seed: u128,
    ) -> Arc<Self> {
        Broker::of_group(0, store, gauge, limits, seed)
    }

    /// The broker of one group of a cluster. That of group 0, which is home to the accounts and to what
    /// is said of the vhosts of all groups, has the vhost `/`. Any other begins without a vhost and
    /// without users: it has what [`Admin::adopt_definitions`](crate::admin::Admin::adopt_definitions)
    /// was given.
    pub fn of_group(
        group: u16,
        store: Arc<dyn Store>,
        gauge: Arc<MemoryGauge>,
        limits: Limits,
        seed: u128,
    ) -> Arc<Self> {
        let timers = Timers::default();
        let memory = Memory::new(&limits);
        let home = Shard::new(ShardId::HOME, store, &timers, &memory, &limits);
        let definitions_version = Arc::<AtomicU64>::default();
        let broker = Arc::new_cyclic(|me| Broker {
            shards: ArcSwap::from_pointee(vec![home]),
            shards_write: Mutex::new(()),
            group,
            defined: Mutex::new(DefinitionChanges::of(&definitions_version)),
            definitions_version,
            adopting: Mutex::default(),
            recoveries: AtomicU32::default(),
            configured: Mutex::default(),
            kept: Kept::default(),
            limits,
            monitor: Monitor::new(&memory),
            timers: timers.clone(),
            ticked_ms: AtomicU64::new(0),
            gauge,
            memory: Arc::clone(&memory),
            vhosts: RwLock::default(),
            arrivals: Arrivals::default(),
            next_connection: AtomicU64::new(1),
            names: RandomNames::new(seed),
            memory_alarm: AtomicBool::new(false),
            disk_alarm: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            only_home: AtomicBool::new(false),
            on_failure: OnceLock::new(),
            me: Weak::clone(me),
            queues_behind: AtomicUsize::new(0),
            held_back: Mutex::default(),
            accounts: Accounts::new(Directory::default(), AccountSettings::default()),
            members: Arc::default(),
        });
        if group == 0 {
            broker.vhost_at_home("/");
        }
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

    /// The vhost of this name, made on the home shard if there is none.
    pub(crate) fn vhost_at_home(&self, name: &str) -> Arc<Vhost> {
        self.vhost_on(name, &self.home())
    }

    /// The vhost of this name, made on `shard` if there is none.
    pub(crate) fn vhost_on(&self, name: &str, shard: &Arc<Shard>) -> Arc<Vhost> {
        let mut vhosts = self.vhosts.write();
        let vhost = vhosts
            .entry(name.to_owned())
            .or_insert_with(|| Vhost::new(name, &self.limits, shard, &self.monitor));
        Arc::clone(vhost)
    }

    /// Lets a vhost be found that was hidden until now.
    pub(crate) fn show_vhost(&self, vhost: &Arc<Vhost>) {
        self.vhosts.write().insert(vhost.name.clone(), Arc::clone(vhost));
    }

    /// Lets a vhost be found no more.
    pub(crate) fn hide_vhost(&self, vhost: &Arc<Vhost>) {
        let mut vhosts = self.vhosts.write();
        if vhosts.get(&vhost.name).is_some_and(|known| Arc::ptr_eq(known, vhost)) {
            vhosts.remove(&vhost.name);
            *self.monitor.past_counts.lock() += &vhost.counts().read();
        }
    }

    /// How many messages have come and gone, in all vhosts that there ever were.
    pub(crate) fn message_counts(&self) -> MessageCounts {
        // Locked until the end: a vhost that goes meanwhile would count twice, or not at all.
        let vhosts = self.vhosts.read();
        let mut all = *self.monitor.past_counts.lock();
        vhosts.values().for_each(|vhost| all += &vhost.counts().read());
        all
    }

    /// Says what time it is, in milliseconds since 1970. To be called once for each read, and whenever
    /// something is called that acts on the time.
    #[inline]
    pub fn set_time(&self, now_ms: u64) {
        self.timers.set_time(now_ms);
    }

    /// Says what time it is before the first client is let in. To open the log may have taken long, and what is in it could not
    /// be used meanwhile.
    pub fn begin_to_serve(&self, now_ms: u64) {
        self.set_time(now_ms);
        for vhost in self.vhosts() {
            vhost.queues().iter().for_each(|queue| queue.begin_to_serve());
        }
    }

    /// The time as it was last told, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.timers.now_ms()
    }

    /// Does what is due at `now_ms`: a bounded amount of it, so that it may be called where others
    /// wait for all but the disk. Returns when it has to be called again, which may be at once.
    pub fn tick(&self, now_ms: u64) -> Option<u64> {
        self.fire_due((Lane::Prompt, false), now_ms);
        self.timers.next_ms(Lane::Prompt)
    }

    /// As [`Broker::tick`], but leaves what may have to be read from the disk, or takes long, to [`Broker::tick_reading`].
    pub fn tick_promptly(&self, now_ms: u64) -> Option<u64> {
        self.fire_due((Lane::Prompt, true), now_ms);
        self.timers.next_ms(Lane::Prompt)
    }

    /// Does what [`Broker::tick_promptly`] has left, or a part of it. Called where the disk may be waited for.
    pub fn tick_reading(&self, now_ms: u64) {
        self.fire_due((Lane::Reading, false), now_ms);
    }

    /// When what is left to [`Broker::tick_reading`] was due, if there is something.
    pub fn next_reading_ms(&self) -> Option<u64> {
        self.timers.next_ms(Lane::Reading)
    }

    /// Fires timers of a lane that are due; or leaves those that may take long.
    fn fire_due(&self, (lane, leaves): (Lane, bool), now_ms: u64) {
        self.set_time(now_ms);
        if matches!(lane, Lane::Prompt)
            && self.ticked_ms.swap(now_ms, Ordering::Relaxed) > now_ms.saturating_add(SET_BACK_MS)
        {
            self.go_on_at_once();
        }
        let _serving = self.timers.serve(lane);
        let mut wakes = Wakes::default();
        let budget = Budget::begin();
        for _ in 0..TIMERS_PER_TICK {
            if budget.is_spent() {
                break;
            }
            let Some(fired) = self.timers.pop_due(lane, now_ms) else { break };
            let Some(target) = fired.target.upgrade() else { continue };
            if leaves && target.may_take_long(fired.kind) {
                self.timers.leave_to_reading(fired);
                continue;
            }
            let Some(shard) = self.shard_instance(fired.shard) else { continue };
            let _gate = shard.gate.read();
            let Some(fired) = self.timers.hold_if_still(fired, &target) else { continue };
            target.fire(fired.kind, fired.deadline_ms, now_ms, &*shard.store, &mut wakes);
            if shard.post_dead_letters(&mut wakes) {
                // They have to be written, which is enough for one call.
                break;
            }
        }
        wakes.wake_all();
        self.check_alarms();
    }

    /// The clock was set back: has what follows by itself not wait until that time has come again.
    #[cold]
    fn go_on_at_once(&self) {
        for vhost in self.vhosts() {
            vhost.queues().iter().for_each(|queue| queue.go_on_at_once());
        }
    }

    /// Of what is due at `now_ms` and not done yet, what was due first: one that stays the same says that [`Broker::tick`], or
    /// [`Broker::tick_reading`], is not called, does not get on, or does not come to this.
    pub fn first_due(&self, now_ms: u64) -> Option<Due> {
        self.timers.first_due(now_ms)
    }

    /// Says since when, in milliseconds since 1970, what is due has not been served for too long; for operators.
    pub fn note_unserved(&self, since_ms: Option<u64>) {
        self.timers.note_unserved(since_ms);
    }

    /// Has `call` called when [`Broker::tick`] has to be called earlier than it last said. It is
    /// called with locks held: all it may do is to wake the task that calls `tick`.
    pub fn on_timer(&self, call: impl Fn() + Send + Sync + 'static) {
        self.timers.on_earlier(call);
    }

    /// A number that no other connection has.
    pub(crate) fn next_connection_id(&self) -> ConnectionId {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes that waiting messages use, and all else that clients make the broker hold.
    pub fn memory_used_bytes(&self) -> u64 {
        self.gauge.used_bytes() + self.memory.total()
    }

    /// Bytes that waiting messages use.
    pub fn messages_bytes(&self) -> u64 {
        self.gauge.used_bytes()
    }

    /// Has `call` called, once, when the store has failed: nothing can be promised from then on.
    pub fn on_failure(&self, call: impl Fn(&str) + Send + Sync + 'static) {
        // The first one given stays.
        let _ = self.on_failure.set(Box::new(call));
    }

    /// Notices a store that has failed.
    pub(crate) fn check_failure(&self) {
        if let Some(reason) = self.shards.load().iter().find_map(|shard| shard.store.failure())
            && !self.failed.swap(true, Ordering::AcqRel)
            && let Some(call) = self.on_failure.get()
        {
            call(&reason);
        }
    }

    /// A name that nothing else has, and that does not follow from others: `prefix` and 22 random characters.
    pub(crate) fn random_name(&self, prefix: &str) -> ShortString {
        self.names.next(prefix)
    }
}
