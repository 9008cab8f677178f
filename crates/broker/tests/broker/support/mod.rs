//! A broker and its clients without sockets.
//!
//! A [`Client`] does for its session what the driver of a connection does: it hands in what was
//! read, closes channels for faults, and takes what the outbox holds. It decodes every frame, and
//! checks on the way that it fits the negotiated size and that the connection was woken for it.

mod allocated;
mod client;
mod dead;
mod heard;
mod message;
mod methods;
mod on_disk;

pub use allocated::{allocated_bytes, taken_bytes};
pub use client::{Client, Step};
pub use dead::{deaths, declare_with, headers};
pub use heard::{Delivery, Heard};
pub use message::Message;
pub use on_disk::{BATCH_BYTES, WorldOnDisk, lasting};

use courser_auth::{Authority, Grant};
use courser_broker::{
    Admission, ApplyTo, Broker, Fault, Identity, Limits, Policy, PolicyKind, QueueStatus, Vhost,
};
use courser_cluster::testing::LogOnDisk;
use courser_codec::{FieldTable, ShortStr, ShortString};
use courser_store::{MemoryGauge, MemoryStore};
use rustix::time::{ClockId, clock_gettime};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A broker in memory.
pub struct World {
    pub broker: Arc<Broker>,
    /// Its log, if it is on a disk after all.
    pub log: Option<Arc<LogOnDisk>>,
}

impl World {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        World { broker: Broker::new(store, gauge, limits, 7), log: None }
    }

    /// The broker of a group of a cluster.
    pub fn of_group(group: u16) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        let broker = Broker::of_group(group, store, gauge, Limits::default(), 7);
        World { broker, log: None }
    }

    /// A client with channel 1 open.
    pub fn connect(&self) -> Client {
        self.connect_as(guest())
    }

    pub fn connect_as(&self, identity: Identity) -> Client {
        self.open(self.vhost(), identity, 131_072)
    }

    pub fn connect_with_frame_max(&self, frame_max: usize) -> Client {
        self.open(self.vhost(), guest(), frame_max)
    }

    pub fn connect_to(&self, admission: impl Into<Admission>) -> Client {
        self.open(admission, guest(), 131_072)
    }

    pub fn connect_small_to(&self, admission: impl Into<Admission>, frame_max: usize) -> Client {
        self.open(admission, guest(), frame_max)
    }

    /// A client of one of the accounts, in `/`.
    pub fn connect_user(&self, user: &str) -> Client {
        self.admit(user, "/").expect("admitted")
    }

    /// A client of one of the accounts, if it may enter the vhost.
    pub fn admit(&self, user: &str, vhost: &str) -> Result<Client, Fault> {
        let admission = self.broker.admit(user, vhost)?;
        Ok(self.open(admission, Identity { user: owned(user), ..guest() }, 131_072))
    }

    /// A client of a user whom `authority` knows, in `/`.
    pub fn connect_granted(&self, authority: Arc<dyn Authority>) -> Client {
        let user = Identity { user: owned(&authority.user().name), ..guest() };
        let admission = self.broker.admit_granted(&Grant::new(authority), "/").expect("admitted");
        self.open(admission, user, 131_072)
    }

    fn open(
        &self,
        admission: impl Into<Admission>,
        identity: Identity,
        frame_max: usize,
    ) -> Client {
        let session = self.broker.open_session(admission, identity, frame_max);
        let log = self.log.as_ref().map_or_else(Weak::new, Arc::downgrade);
        Client::new(session, frame_max, log)
    }

    pub fn vhost(&self) -> Arc<Vhost> {
        self.broker.vhost("/").expect("the default vhost")
    }

    /// Gives a queue the only policy that it has.
    pub fn give_policy(&self, queue: &str, definition: FieldTable) {
        let name = "the policy".to_owned();
        let (pattern, apply_to) = (format!("^{queue}$"), ApplyTo::All);
        let policy = Policy { name, pattern, apply_to, priority: 0, definition };
        self.broker.set_policy("/", PolicyKind::User, policy).expect("a good policy");
    }

    /// Takes it back.
    pub fn take_policy(&self) {
        let cleared = self.broker.clear_policy("/", PolicyKind::User, "the policy");
        assert!(cleared.expect("the vhost is there"));
    }

    /// Does everything that is due at `now_ms`.
    pub fn tick_all(&self, now_ms: u64) {
        while self.broker.tick(now_ms).is_some_and(|next_ms| next_ms <= now_ms) {}
    }

    pub fn has_queue(&self, name: &str) -> bool {
        self.vhost().queue(name.as_bytes()).is_some()
    }

    pub fn has_exchange(&self, name: &str) -> bool {
        self.vhost().exchange(name.as_bytes()).is_some()
    }

    /// What a queue holds: ready, unacknowledged, consumers.
    pub fn counts(&self, queue: &str) -> (usize, usize, usize) {
        let queue = self.vhost().queue(queue.as_bytes()).expect("a queue of this name");
        let QueueStatus { ready, unacked, consumers, .. } = queue.status();
        (ready, unacked, consumers)
    }
}

/// The usual user, who wants to hear of cancelled consumers.
pub fn guest() -> Identity {
    Identity { user: short("guest").into(), cancel_notify: true, impersonator: false }
}

/// Does something on a thread of its own, while this one holds a lock or is in a gate.
pub fn on_a_thread<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(call).join().expect("no panic"))
}

/// What this thread has had of a processor: the same however busy the machine is.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().expect("seconds"), time.tv_nsec.try_into().expect("less"))
}

pub fn short(text: &str) -> ShortStr<'_> {
    text.try_into().expect("at most 255 bytes")
}

pub fn owned(text: &str) -> ShortString {
    text.try_into().expect("at most 255 bytes")
}
