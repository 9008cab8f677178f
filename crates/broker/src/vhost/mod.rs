//! A vhost: a namespace of exchanges and queues, and the bindings between them.
//!
//! Names are looked up in an immutable snapshot. A change makes the next snapshot under the write
//! lock and raises the generation, which ends the life of every remembered route.

mod bind;
mod carry;
mod declare;
mod delete;
mod exclusive;
mod limits;
mod listed;
mod log;
mod matching;
mod policies;
mod removed;
mod replay;
mod replies;
mod route;
mod settings;
mod stillness;

pub(crate) use bind::BindingRequest;
pub(crate) use declare::{QueueRequest, owned_arguments, refuse_default_exchange};
pub use limits::{Admission, VhostLimits};
pub(crate) use listed::is_predefined;
pub(crate) use policies::Configured;
pub(crate) use removed::{CONSUMERS, Removed};
pub use route::WriteTarget;
pub use settings::VhostSettings;
pub(crate) use stillness::stands_still;

use crate::counts::VhostCounts;
use crate::exchange::{Context, Destination, Exchange, ExchangeKind, ExchangeSettings};
use crate::fault::{Fault, Resource};
use crate::limits::Limits;
use crate::log_end::LogEnd;
use crate::memory::{Charge, Use};
use crate::monitor::{Event, EventKind, Monitor, TrafficCounts};
use crate::policy::{ExchangePolicy, Policies, QueuePolicies};
use crate::queue::{ConnectionId, Home, Queue, QueueSettings};
use crate::removals::Removals;
use crate::shard::Shard;
use crate::trace::{self, WaitingCopies};
use arc_swap::ArcSwap;
use courser_codec::{FieldTable, ShortStr, ShortString};
use courser_store::blocking::Lock;
use exclusive::ExclusiveQueues;
use parking_lot::{Mutex, RwLock};
use replies::ReplyQueues;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The exchanges that every vhost has (AMQP 0-9-1, 3.1.3, and RabbitMQ's `amq.match`).
const PREDEFINED: [(&str, ExchangeKind); 7] = [
    ("", ExchangeKind::Direct),
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
    (trace::EXCHANGE, ExchangeKind::Topic),
];

/// A vhost of the broker.
pub struct Vhost {
    /// Its name, `/` for the default one.
    pub name: String,
    names: ArcSwap<Names>,
    listed: listed::Listed,
    /// Held while the topology changes.
    write: Lock<()>,
    traced: AtomicBool,
    copies: Arc<WaitingCopies>,
    generation: AtomicU64,
    bindings: AtomicUsize,
    /// What they use.
    bindings_charge: Mutex<Charge>,
    queues_max: usize,
    exchanges_max: usize,
    bindings_max: usize,
    /// What an operator has said of it, if anything.
    settings: Mutex<Option<VhostSettings>>,
    connections: AtomicU64,
    stillness: stillness::Stillness,
    /// Changed by one that holds `write`, and has stopped matching ([`Vhost::stop_matching`]), but for a vhost that is restored,
    /// arrives or is deleted: nothing is declared there.
    policies: RwLock<Arc<Policies>>,
    /// Held while policies are changed, and it is worked out what that comes to.
    policies_change: Mutex<()>,
    /// What it takes to match what is durable in it.
    matching: matching::Matching,
    replays: replay::Replays,
    /// The end of the log behind the last change of the topology that is in it.
    logged: LogEnd,
    /// What is gone from it, and the log has yet to be told so.
    pub(crate) removals: Removals,
    shard: Arc<Shard>,
    /// What its connections know of it.
    pub(crate) label: Arc<VhostLabel>,
    /// Queues that have no place in the namespace.
    pub(crate) replies: ReplyQueues,
    pub(crate) exclusive: ExclusiveQueues,
    me: Weak<Vhost>,
    pub(crate) monitor: Arc<Monitor>,
    counts: Arc<VhostCounts>,
}

/// What is known of a vhost where it itself is not.
#[derive(Debug, Default)]
pub(crate) struct VhostLabel {
    pub name: String,
    /// It is going with everything in it.
    deleted: AtomicBool,
    /// That has failed half way: another try may go on.
    half_deleted: AtomicBool,
    /// What went through connections to it that are over.
    pub past_traffic: Mutex<TrafficCounts>,
}

impl VhostLabel {
    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Marks it as deleted. Returns whether it was not yet, or its deletion has failed.
    pub fn begin_deletion(&self) -> bool {
        !self.deleted.swap(true, Ordering::AcqRel)
            || self.half_deleted.swap(false, Ordering::AcqRel)
    }

    /// Its deletion has failed. It stays marked, as some of it is gone.
    pub fn deletion_failed(&self) {
        self.half_deleted.store(true, Ordering::Release);
    }
}

#[derive(Clone, Default)]
struct Names {
    exchanges: imbl::HashMap<ShortString, Arc<Exchange>>,
    queues: imbl::HashMap<ShortString, Arc<Queue>>,
}

impl Vhost {
    pub(crate) fn new(
        name: &str,
        limits: &Limits,
        shard: &Arc<Shard>,
        monitor: &Arc<Monitor>,
    ) -> Arc<Self> {
        let mut names = Names::default();
        let listed = listed::Listed::default();
        // None of these keeps anything, so they need not know where they are.
        let context = Context::new(Weak::<Vhost>::new(), shard);
        let mut copies_to = 0;
        for (name, kind) in PREDEFINED {
            let name = ShortString::from(ShortStr::from_static(name));
            let settings = ExchangeSettings {
                kind,
                durable: true,
                auto_delete: false,
                internal: name == *trace::EXCHANGE,
                arguments: FieldTable::new(),
            };
            let id = shard.next_id();
            if name == *trace::EXCHANGE {
                copies_to = id;
            }
            let exchange =
                Exchange::new(id, name.clone(), settings, Default::default(), context.clone());
            listed.exchanges.insert(Arc::clone(&exchange));
            names.exchanges.insert(name, exchange);
        }
        Arc::new_cyclic(|me| Vhost {
            name: name.to_owned(),
            names: ArcSwap::from_pointee(names),
            listed,
            write: Lock::new(()),
            traced: AtomicBool::new(false),
            copies: WaitingCopies::new(
                Weak::<Vhost>::clone(me),
                copies_to,
                &shard.timers,
                &shard.memory,
            ),
            generation: AtomicU64::new(1),
            bindings: AtomicUsize::new(0),
            bindings_charge: Mutex::new(shard.memory.charge(Use::Definitions, 0)),
            queues_max: limits.queues_max,
            exchanges_max: limits.exchanges_max,
            bindings_max: limits.bindings_max,
            settings: Mutex::new(None),
            connections: AtomicU64::new(0),
            stillness: stillness::Stillness::default(),
            policies: RwLock::default(),
            policies_change: Mutex::default(),
            matching: matching::Matching::new(limits),
            replays: replay::Replays::default(),
            logged: LogEnd::default(),
            removals: Removals::default(),
            shard: Arc::clone(shard),
            monitor: Arc::clone(monitor),
            label: Arc::new(VhostLabel { name: name.to_owned(), ..VhostLabel::default() }),
            replies: ReplyQueues::default(),
            exclusive: ExclusiveQueues::default(),
            me: Weak::clone(me),
            counts: Arc::default(),
        })
    }

    /// Whether it is going with everything in it.
    pub(crate) fn is_deleted(&self) -> bool {
        self.label.is_deleted()
    }

    /// Tells the followers what has happened here.
    fn tell(&self, kind: EventKind, name: &ShortString) {
        let event = || Event::new(self.shard.timers.now_ms(), kind, &self.name, name);
        self.monitor.events.tell(event);
    }

    /// Whether copies of messages go to `amq.rabbitmq.trace`.
    pub fn is_traced(&self) -> bool {
        self.traced.load(Ordering::Relaxed)
    }

    /// Those of them that are to be posted.
    pub(crate) fn copies(&self) -> &Arc<WaitingCopies> {
        &self.copies
    }

    /// Switches that on or off.
    pub(crate) fn set_tracing(&self, on: bool) {
        // A queue that is made at the same moment is seen here, or finds what is said here.
        let _write = self.write.lock();
        self.traced.store(on, Ordering::Relaxed);
        self.queues().iter().chain(&self.replies.all()).for_each(|queue| queue.set_traced(on));
        self.routes_changed();
    }

    /// How many messages have come and gone.
    pub(crate) fn counts(&self) -> &Arc<VhostCounts> {
        &self.counts
    }

    /// The shard that it is on.
    pub(crate) fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// An exchange that is at home here, but that can't be found yet.
    pub(crate) fn make_exchange(
        &self,
        id: u64,
        name: ShortString,
        settings: ExchangeSettings,
        policy: ExchangePolicy,
    ) -> Arc<Exchange> {
        let namespace = Weak::<Vhost>::clone(&self.me);
        Exchange::new(id, name, settings, policy, Context::new(namespace, &self.shard))
    }

    /// A queue that is at home here, but that can't be found yet.
    pub(crate) fn make_queue(
        &self,
        id: u64,
        name: ShortString,
        settings: QueueSettings,
        policies: QueuePolicies,
    ) -> Arc<Queue> {
        let home = Home {
            namespace: Weak::<Vhost>::clone(&self.me),
            vhost_counts: Arc::clone(&self.counts),
            timers: Arc::clone(&self.shard.timers),
            memory: &self.shard.memory,
            is_copied: self.shard.is_copied(),
        };
        let queue = Queue::new(id, name, settings, policies, home);
        if self.is_traced() {
            queue.set_traced(true);
        }
        queue
    }

    /// Rises with every change that can change a route.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The queue of this name.
    pub fn queue(&self, name: &[u8]) -> Option<Arc<Queue>> {
        self.names.load().queues.get(name).cloned()
    }

    /// The exchange of this name.
    pub fn exchange(&self, name: &[u8]) -> Option<Arc<Exchange>> {
        self.names.load().exchanges.get(name).cloned()
    }

    /// All queues, in no particular order.
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        self.names.load().queues.values().cloned().collect()
    }

    /// All exchanges, in no particular order.
    pub fn exchanges(&self) -> Vec<Arc<Exchange>> {
        self.names.load().exchanges.values().cloned().collect()
    }

    /// The queue of this name, or 404; or 405 if it is another connection's exclusive queue.
    pub(crate) fn queue_for(
        &self,
        name: &[u8],
        connection: ConnectionId,
    ) -> Result<Arc<Queue>, Fault> {
        let queue = self.queue(name).ok_or_else(|| self.no_queue(name))?;
        self.check_owner(&queue, connection)?;
        Ok(queue)
    }

    /// Whether a queue is the one that has its name now: it is not deleted. The caller holds the write lock.
    fn is_current(&self, queue: &Arc<Queue>) -> bool {
        self.queue(queue.name.as_bytes()).is_some_and(|current| Arc::ptr_eq(&current, queue))
    }

    /// The exchange of this name, or 404.
    pub(crate) fn exchange_or_fault(&self, name: &[u8]) -> Result<Arc<Exchange>, Fault> {
        self.exchange(name).ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            Fault::not_found(format_args!("no exchange '{name}' in vhost '{}'", self.name))
        })
    }

    /// The queue or exchange of this name, exclusive or not, or 404.
    fn destination(&self, name: &[u8], to_queue: bool) -> Result<Destination, Fault> {
        if to_queue {
            self.queue(name).ok_or_else(|| self.no_queue(name)).map(Destination::Queue)
        } else {
            self.exchange_or_fault(name).map(Destination::Exchange)
        }
    }

    fn check_owner(&self, queue: &Queue, connection: ConnectionId) -> Result<(), Fault> {
        match queue.settings.exclusive_owner {
            Some(owner) if owner != connection => Err(self.locked(&queue.name)),
            _ => Ok(()),
        }
    }

    fn locked(&self, name: &ShortString) -> Fault {
        Fault::resource_locked(format_args!(
            "cannot obtain exclusive access to locked {}. It could be originally declared on \
             another connection or the exclusive property value does not match that of the \
             original declaration.",
            self.queue_resource(name)
        ))
    }

    pub(crate) fn no_queue(&self, name: &[u8]) -> Fault {
        let name = String::from_utf8_lossy(name);
        Fault::not_found(format_args!("no queue '{name}' in vhost '{}'", self.name))
    }

    fn queue_resource<'a>(&'a self, name: &'a ShortString) -> Resource<'a> {
        Resource { kind: "queue", name: name.as_short_str(), vhost: &self.name }
    }

    fn exchange_resource<'a>(&'a self, name: &'a ShortString) -> Resource<'a> {
        Resource { kind: "exchange", name: name.as_short_str(), vhost: &self.name }
    }

    /// Makes and publishes the next snapshot. The caller holds the write lock.
    fn change(&self, change: impl FnOnce(&mut Names)) {
        let mut names = Names::clone(&self.names.load());
        change(&mut names);
        self.names.store(Arc::new(names));
        self.routes_changed();
    }

    pub(crate) fn routes_changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// A name without carriage returns and line feeds, which names lose.
pub(crate) fn clean_name(name: ShortStr<'_>) -> ShortString {
    let bytes = name.as_bytes();
    if bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        let kept: Vec<u8> =
            bytes.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        return ShortString::new(&kept).unwrap_or_default();
    }
    ShortString::from(name)
}
