//! The broker's life on the disk: recovery at the start, checkpoints while it runs.

use crate::config::Config;
use crate::server::StartError;
use crate::timers;
use courser_broker::{Broker, Limits};
use courser_journal::{JournalStore, Lsn, Progress, RealDisk};
use courser_store::{MemoryGauge, Store};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A start that takes longer than this tells how far it is.
const QUIET_START: Duration = Duration::from_secs(1);

/// A broker with everything that it had before, and the store that it is on.
pub(crate) fn open(
    config: &Config,
    limits: Limits,
    seed: u64,
) -> Result<(Arc<Broker>, Arc<JournalStore>), StartError> {
    let started = Instant::now();
    let path = config.data_dir.join("journal");
    let gauge = Arc::new(MemoryGauge::default());
    let mut told = started;
    let mut progress = |progress: Progress| {
        if told.elapsed() >= QUIET_START {
            told = Instant::now();
            let mib = |bytes: u64| bytes >> 20;
            let (read, total) = (mib(progress.read_bytes), mib(progress.total_bytes));
            tracing::info!("replaying the journal: {read} of {total} MiB");
        }
    };
    let opened = JournalStore::open(
        &path,
        config.journal_options(),
        Arc::new(RealDisk),
        Arc::clone(&gauge),
        limits.memory_high_bytes / 2,
        &mut progress,
    );
    let (store, recovered, stats) = opened.map_err(|error| StartError::Journal { path, error })?;
    let broker = Broker::new(Arc::clone(&store) as Arc<dyn Store>, gauge, limits, seed);
    broker.set_time(timers::now_ms());
    let messages = broker.restore(recovered)?;
    if stats.torn {
        tracing::warn!(
            end = stats.end.0,
            "the last write before the stop was incomplete and is cut off; nothing in it was confirmed"
        );
    }
    let elapsed_ms = started.elapsed().as_millis() as u64;
    tracing::info!(messages, replayed = stats.records, elapsed_ms, "journal ready");
    Ok((broker, store))
}

/// The thread that makes checkpoints when the journal wants one.
pub(crate) struct Checkpoints {
    broker: Arc<Broker>,
    store: Arc<JournalStore>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    pub fn start(broker: &Arc<Broker>, store: &Arc<JournalStore>) -> Self {
        let (broker, store) = (Arc::clone(broker), Arc::clone(store));
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn({
            let (broker, store) = (Arc::clone(&broker), Arc::clone(&store));
            move || {
                while store.wait_for_checkpoint() {
                    make(&broker, &store);
                }
            }
        });
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread for checkpoints: the journal will only grow");
        }
        Checkpoints { broker, store, thread: thread.ok() }
    }

    /// Ends the thread, after a last checkpoint that makes the next start quick.
    pub fn finish(mut self) {
        self.end_thread();
        if self.store.failure().is_none() {
            make(&self.broker, &self.store);
            if self.store.journal().has_unlogged() {
                tracing::error!(
                    "the disk is full: messages that were acknowledged come again after the next start"
                );
            }
        }
    }

    fn end_thread(&mut self) {
        self.store.stop_checkpoints();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpointing thread has panicked");
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.end_thread();
    }
}

fn make(broker: &Broker, store: &JournalStore) {
    let started = Instant::now();
    let start = broker.checkpoint_start();
    let made = store.journal().checkpoint(
        Lsn(start.0),
        &mut |each| broker.for_each_live(start, &mut |position| each(Lsn(position))),
        &mut |out| broker.write_checkpoint(start, out),
    );
    let elapsed_ms = started.elapsed().as_millis() as u64;
    match made {
        Ok(done) => tracing::debug!(octets = done.size_bytes, elapsed_ms, "checkpoint made"),
        Err(error) => tracing::error!(%error, "no checkpoint could be made"),
    }
    broker.check_alarms();
}
