//! The broker's life on the disk: recovery at the start, checkpoints while it runs, the end.

use crate::config::Config;
use crate::notices::Notices;
use crate::scrub::{Journals, Open, Readable};
use crate::server::StartError;
use courser_broker::{Broker, Limits, Restored, spill_bytes};
pub use courser_journal::{Disk, rest_after_failure};
use courser_journal::{JournalShards, JournalStore, Part, Pass, Repeated, Scrubbing};
use courser_store::{
    MemoryGauge, OpenReport, OpenShard, Opened, Opening, Progress, Role, ShardId, ShardState,
    Shards,
};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A start that takes longer than this tells how far it is.
const QUIET_START: Duration = Duration::from_secs(1);

/// The store has failed: nothing can be confirmed from then on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct StoreFailed {
    /// What failed, on which file, and what the system said.
    pub reason: String,
}

/// Why a broker did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Not everything could be made durable; what was confirmed is.
    #[error(transparent)]
    Store(#[from] StoreFailed),
    /// A thread has panicked, which is a fault of the broker.
    #[error("the broker's end was interrupted: {0}")]
    Panicked(tokio::task::JoinError),
}

/// The shards of a broker that are open.
pub(crate) struct Storage {
    broker: Arc<Broker>,
    /// The home shard is the first.
    shards: Vec<(ShardId, Arc<dyn OpenShard>)>,
}

impl Readable for JournalStore {
    fn bytes(&self) -> u64 {
        self.journal().scrub_bytes()
    }

    fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        self.journal().scrub(by)
    }

    /// There is no other copy.
    fn repair(&self, _: Part) -> bool {
        false
    }
}

/// A broker with everything that it had before, the shards of its data folder that it is on, and their journals.
pub(crate) fn open(
    config: &Config,
    disk: Arc<dyn Disk>,
    limits: Limits,
    now_ms: u64,
) -> Result<(Arc<Broker>, Storage, Journals), StartError> {
    let gauge = Arc::new(MemoryGauge::default());
    let spill_bytes = spill_bytes(limits.memory_high_bytes);
    let options = config.journal_options();
    let for_store = Arc::clone(&gauge);
    let all = JournalShards::new(&config.data_dir, options, disk, for_store, spill_bytes);
    let (broker, storage) = open_on(&all, 0, gauge, limits, now_ms)?;
    let journals = move || {
        let named = |(id, store): (ShardId, Arc<JournalStore>)| {
            let store: Arc<dyn Readable> = store;
            let open: Open = Box::new(move || Some(Arc::clone(&store)));
            (all.folder_name(id), open)
        };
        all.opened().into_iter().map(named).collect()
    };
    Ok((broker, storage, Box::new(journals)))
}

/// The broker of a group with everything that is in these shards, which report the memory that they use to `gauge`.
pub(crate) fn open_on(
    all: &dyn Shards,
    group: u16,
    gauge: Arc<MemoryGauge>,
    limits: Limits,
    now_ms: u64,
) -> Result<(Arc<Broker>, Storage), StartError> {
    let started = Instant::now();
    let mut seed = [0; 16];
    getrandom::fill(&mut seed).map_err(StartError::Random)?;
    let home = open_shard(all, ShardId::HOME, Opening::MakeIfMissing)?;
    let broker =
        Broker::of_group(group, home.shard.store(), gauge, limits, u128::from_ne_bytes(seed));
    broker.set_time(now_ms);
    let restored = broker.restore(home.recovered)?;
    if !all.has_others() {
        broker.stay_at_home()?;
    }
    tell(ShardId::HOME, restored, &home.report, started);
    let mut shards = vec![(ShardId::HOME, home.shard)];
    for id in broker.shards_in_use() {
        let started = Instant::now();
        let opened = open_shard(all, id, Opening::Existing)?;
        if opened.shard.role() == Role::Leader {
            let restored = broker.open_shard(id, opened.shard.store(), opened.recovered)?;
            tell(id, restored, &opened.report, started);
        }
        shards.push((id, opened.shard));
    }
    broker.for_each_refused_policy(&mut |vhost, policy, why| {
        tracing::warn!(
            vhost,
            policy,
            why,
            "a policy that an earlier version has accepted matches nothing: change or clear it"
        );
    });
    tell_refused_permissions(&broker);
    broker.for_each_shortened_history(&mut |vhost, exchange, messages| {
        tracing::warn!(
            vhost,
            %exchange,
            messages,
            "histories would use more than half of limits.memory_high_bytes: the oldest messages of an exchange are forgotten"
        );
    });
    let storage = Storage { broker: Arc::clone(&broker), shards };
    Ok((broker, storage))
}

/// Says which permissions permit nothing any more.
fn tell_refused_permissions(broker: &Broker) {
    if broker.group() != 0 {
        // Home says so.
        return;
    }
    broker.accounts().directory().for_each_refused(&mut |user, vhost, exchange| {
        tracing::warn!(
            user,
            vhost,
            exchange,
            "a permission with a pattern that an earlier version has accepted permits nothing: set it anew"
        );
    });
}

fn open_shard(all: &dyn Shards, id: ShardId, opening: Opening) -> Result<Opened, StartError> {
    let mut told = Instant::now();
    let mut progress = |progress: Progress| {
        if told.elapsed() >= QUIET_START {
            told = Instant::now();
            let mib = |bytes: u64| bytes >> 20;
            let (read, total) = (mib(progress.read_bytes), mib(progress.total_bytes));
            tracing::info!(shard = id.0, "replaying the journal: {read} of {total} MiB");
        }
    };
    Ok(all.open(id, opening, &mut progress)?)
}

fn tell(id: ShardId, restored: Restored, report: &OpenReport, started: Instant) {
    let Restored { messages, ownerless } = restored;
    if report.torn {
        tracing::warn!(
            shard = id.0,
            end = report.end.0,
            "the last write before the stop is not whole and is cut off: it was interrupted, and nothing in it was confirmed, or the disk has damaged it"
        );
    }
    if ownerless > 0 {
        tracing::warn!(
            shard = id.0,
            messages = ownerless,
            "messages of queues without a definition are dropped: the broker ended while these were deleted, or the disk has damaged their definitions"
        );
    }
    let (elapsed_ms, replayed) = (started.elapsed().as_millis() as u64, report.records);
    tracing::info!(shard = id.0, messages, replayed, elapsed_ms, "journal ready");
}

impl Storage {
    /// Starts the threads that make checkpoints when a shard wants one.
    /// Operators see in `notices` while none can be made.
    pub fn start_checkpoints(self, notices: &Arc<Notices>) -> Checkpoints {
        let Storage { broker, shards } = self;
        let start = |(id, shard): (ShardId, Arc<dyn OpenShard>)| {
            let state = broker.state_of(id)?;
            let (broker, notices) = (Arc::clone(&broker), Arc::clone(notices));
            let (state, failures) = (Box::new(state), Repeated::default());
            Some(ShardCheckpoints::start(Maker { broker, id, shard, state, notices, failures }))
        };
        Checkpoints { shards: shards.into_iter().filter_map(start).collect() }
    }
}

/// The threads that make checkpoints, one for each shard.
#[cfg_attr(test, derive(Default))]
pub(crate) struct Checkpoints {
    shards: Vec<ShardCheckpoints>,
}

impl Checkpoints {
    /// Ends the threads, after a last checkpoint of each shard that makes the next start quick, and
    /// makes everything durable. Blocks.
    pub fn finish(self) -> Result<(), StoreFailed> {
        // The home shard, which says where everything is, comes last.
        self.shards.into_iter().rev().map(ShardCheckpoints::finish).fold(Ok(()), Result::and)
    }
}

struct ShardCheckpoints {
    maker: Arc<Maker>,
    thread: Option<JoinHandle<()>>,
}

impl ShardCheckpoints {
    fn start(maker: Maker) -> Self {
        let maker = Arc::new(maker);
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn({
            let maker = Arc::clone(&maker);
            move || {
                while maker.shard.wait_for_checkpoint() {
                    maker.make();
                }
            }
        });
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread for checkpoints: the journal will only grow");
        }
        ShardCheckpoints { maker, thread: thread.ok() }
    }

    fn finish(mut self) -> Result<(), StoreFailed> {
        self.end_thread();
        let shard = &self.maker.shard;
        if shard.store().failure().is_none() {
            self.maker.make();
            if shard.has_unlogged() {
                tracing::error!(
                    "the disk is full: messages that were acknowledged come again after the next start"
                );
            }
        }
        shard.close().map_err(|reason| StoreFailed { reason })
    }

    fn end_thread(&mut self) {
        self.maker.shard.stop_checkpoints();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpointing thread has panicked");
        }
    }
}

impl Drop for ShardCheckpoints {
    fn drop(&mut self) {
        self.end_thread();
        // None is wanted any more.
        self.maker.tell(true);
    }
}

/// Makes the checkpoints of a shard.
struct Maker {
    broker: Arc<Broker>,
    id: ShardId,
    shard: Arc<dyn OpenShard>,
    state: Box<dyn ShardState + Send + Sync>,
    notices: Arc<Notices>,
    failures: Repeated,
}

impl Maker {
    fn make(&self) {
        let started = Instant::now();
        let made = self.shard.checkpoint(&*self.state);
        let (shard, elapsed_ms) = (self.id.0, started.elapsed().as_millis() as u64);
        self.tell(made.is_ok());
        match made {
            Ok(done) => {
                tracing::debug!(shard, bytes = done.size_bytes, elapsed_ms, "checkpoint made");
            }
            Err(error) => {
                if let Some(others) = self.failures.line(Instant::now()) {
                    tracing::error!(shard, %error, others, "no checkpoint could be made");
                }
            }
        }
        self.broker.check_alarms();
    }

    /// Has operators see whether the last one could be made.
    fn tell(&self, is_made: bool) {
        self.notices.checkpoint_tried(self.broker.group(), self.id, is_made);
    }
}
