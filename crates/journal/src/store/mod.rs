//! The journal as the broker's store: what survives goes into the log, what does not stays in
//! memory until memory is short.

mod checkpoints;
mod reader;

pub use checkpoints::rest_after_failure;
use checkpoints::{ByCheckpoint, CheckpointCalls};
use reader::LogReader;

use crate::{
    AppendError, AppendMode, Batch, CheckpointDone, CheckpointError, Disk, Journal, Lsn, OpenError,
    Options, ReadCache, Recovery, Repeated, ReplayError, Replayed as ReplayStats,
};
use courser_store::change::Replayed;
use courser_store::{
    BodySize, Figures, Location, Log, MemoryGauge, MemoryStore, MessageRef, Messages, Position,
    Progress, Proof, Reader, Record, Recovered, ShardState, StoreError, Sync, Unlogged, Waiter,
};
use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Instant;

thread_local! {
    /// The memory of this thread's batches.
    static BATCH: RefCell<Batch> = RefCell::new(Batch::new());
}

/// A [`Store`](courser_store::Store) on a [`Journal`].
pub struct JournalStore {
    journal: Arc<Journal>,
    memory: MemoryStore,
    gauge: Arc<MemoryGauge>,
    /// Bytes of messages in memory from which on more of them go to the log; none where they never do.
    spill_bytes: Option<AtomicU64>,
    checkpoints: Arc<CheckpointCalls>,
    failed_reads: Arc<Repeated>,
    /// What this broker alone has, and makes durable by checkpoints. A leader has it not: a change that the others are
    /// not told of would come and go with its lead.
    unlogged: Option<ByCheckpoint>,
}

/// Why a journal could not be taken into use.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The folder can't be opened, or is damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record can't be read.
    #[error(transparent)]
    Replay(#[from] ReplayError<MalformedRecord>),
    /// The checkpoint can't be read.
    #[error("the checkpoint can't be read: {0}")]
    Checkpoint(io::Error),
    /// The checkpoint is whole but makes no sense.
    #[error("the checkpoint is malformed")]
    MalformedCheckpoint,
}

impl RecoverError {
    /// Whether it may be taken up when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        match self {
            RecoverError::Open(error) | RecoverError::Replay(ReplayError::Journal(error)) => {
                error.lacks_room()
            }
            _ => false,
        }
    }
}

/// A record whose checksum is right and that makes no sense all the same.
#[derive(Debug, thiserror::Error)]
#[error("the record at position {0} is malformed")]
pub struct MalformedRecord(pub Position);

impl JournalStore {
    /// Opens the journal in `dir` and finds out what is in it.
    pub fn open(
        dir: &Path,
        options: Options,
        disk: Arc<dyn Disk>,
        gauge: Arc<MemoryGauge>,
        spill_bytes: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Arc<Self>, Recovered, ReplayStats), RecoverError> {
        let recovery = Journal::open(dir, options, disk)?;
        let (recovered, stats) = load(&recovery, progress)?;
        let mut missing = None;
        recovered.for_each_position(&mut |position| {
            if !recovery.hold(position.into(), 1) {
                missing.get_or_insert(position);
            }
        });
        if let Some(position) = missing {
            return Err(recovery.missing(position.into()).into());
        }
        let mut store = Self::on(Arc::new(recovery.start()?), gauge, Some(spill_bytes));
        let unlogged = ByCheckpoint::new(&store.journal, &store.checkpoints);
        unlogged.watch();
        store.unlogged = Some(unlogged);
        Ok((Arc::new(store), recovered, stats))
    }

    /// A store on what [`Replica::lead`](crate::replica::Replica::lead) gave, of which is known what is live:
    /// [`Journal::count_live`]. Messages that need not survive stay in memory, as the others that hold
    /// copies of the log have no use for them. Changes without messages are gathered when there is no room; when there are
    /// too many of them, the lead ends: see [`Events::overrun`](crate::replica::Events::overrun).
    pub fn on_lead(journal: Arc<Journal>, gauge: Arc<MemoryGauge>) -> Self {
        Self::on(journal, gauge, None)
    }

    fn on(journal: Arc<Journal>, gauge: Arc<MemoryGauge>, spill_bytes: Option<u64>) -> Self {
        JournalStore {
            journal,
            memory: MemoryStore::new(Arc::clone(&gauge)),
            gauge,
            spill_bytes: spill_bytes.map(AtomicU64::new),
            checkpoints: Arc::default(),
            failed_reads: Arc::default(),
            unlogged: None,
        }
    }

    /// The log itself.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Makes the broker's state durable: the only way to make a checkpoint.
    ///
    /// # Errors
    /// The checkpoint before stays then, and [`JournalStore::wait_for_checkpoint`] asks for none for as long as
    /// [`rest_after_failure`] says.
    pub fn checkpoint(&self, state: &dyn ShardState) -> Result<CheckpointDone, CheckpointError> {
        let (begun, had_room) = (Instant::now(), self.journal.has_room());
        let start = Cell::new(Lsn::default());
        let made = self.journal.checkpoint(
            &mut || {
                start.set(state.start());
                start.get()
            },
            &mut |each| state.for_each_live(start.get(), &mut |position| each(position.into())),
            &mut |out| state.write(start.get(), out),
        );
        match made {
            Ok(_) => self.checkpoints.made(),
            Err(_) => self.checkpoints.failed(begun, had_room),
        }
        made
    }

    /// Waits until a checkpoint is wanted, and until there has been a rest if the last one failed. Returns false when the store is being closed instead.
    pub fn wait_for_checkpoint(&self) -> bool {
        self.checkpoints.wait(&self.journal)
    }

    /// Makes [`JournalStore::wait_for_checkpoint`] return false, now and later.
    pub fn stop_checkpoints(&self) {
        self.checkpoints.stop();
    }

    fn append_records(
        &self,
        records: &mut dyn Iterator<Item = Record<'_>>,
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let end = BATCH.with_borrow_mut(|batch| {
            batch.clear();
            let end = self.append_batch(batch, records, sync, locations);
            // What was not taken is still in it.
            batch.clear();
            end
        })?;
        if self.journal.wants_checkpoint() {
            self.checkpoints.make();
        }
        Ok(end)
    }

    fn append_batch(
        &self,
        batch: &mut Batch,
        records: &mut dyn Iterator<Item = Record<'_>>,
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let mut head = Vec::new();
        // The index of each message in the batch, how many queues hold it, and how large it is.
        let mut messages: Vec<(usize, u32, BodySize)> = Vec::new();
        let mut defines = false;
        for record in records {
            head.clear();
            defines |= matches!(record, Record::Defined { .. });
            record.encode_head(&mut head)?;
            let index = match record.message() {
                Some(message) => {
                    let (prefix, [address, header, body]) = message.record_parts()?;
                    batch.push(&[&head, &prefix, address, header, body])
                }
                None => batch.push(&[&head]),
            };
            let holders = match record {
                Record::Message { holders, .. } => holders,
                Record::Delayed { .. } => 1,
                _ => 0,
            };
            if let Some(message) = record.message() {
                messages.push((index, holders, BodySize::of(message.body.len())));
            }
        }
        // Acknowledgements and deletions free room, so they may use the last there is; definitions do not. A leader has none that
        // the log may refuse.
        let takes_room = !messages.is_empty() || defines && self.unlogged.is_some();
        let mode = AppendMode { sync: sync == Sync::Wanted, reserve: !takes_room };
        let appended = self.journal.append(batch, mode).map_err(store_error)?;
        // All of a batch is in one segment.
        let holds = messages.iter().map(|(_, holders, _)| u64::from(*holders)).sum();
        if holds > 0 {
            self.journal.hold(appended.start(), holds);
        }
        for (index, _, body) in messages {
            let position = appended.position(index).into();
            locations.push(Location::Log { position, body, marks: 0 });
        }
        Ok(appended.end())
    }
}

/// What is in the journal: the state of its last checkpoint, and all changes since.
pub(crate) fn load(
    recovery: &Recovery,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Recovered, ReplayStats), RecoverError> {
    let mut recovered = Recovered::default();
    if let Some(mut checkpoint) = recovery.checkpoint()? {
        let mut bytes = Vec::new();
        checkpoint.read_to_end(&mut bytes).map_err(RecoverError::Checkpoint)?;
        recovered = Recovered::from_checkpoint(&bytes).ok_or(RecoverError::MalformedCheckpoint)?;
    }
    recovered = recovered.noting(recovery.options.noting);
    let stats = recovery.replay(
        &mut |record| {
            let position = Position::from(record.position);
            let change = Replayed::parse(record.bytes).ok_or(MalformedRecord(position))?;
            recovered.apply(position, change);
            Ok(())
        },
        progress,
    )?;
    Ok((recovered, stats))
}

fn store_error(error: AppendError) -> StoreError {
    match error {
        AppendError::Full => StoreError::Full,
        AppendError::TooLarge { size_bytes, .. } => StoreError::TooLarge(size_bytes),
        AppendError::Deposed => StoreError::Deposed,
        other => StoreError::Failed(other.to_string()),
    }
}

impl Messages for JournalStore {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        let waiting = self.gauge.waiting_bytes();
        if self.spill_bytes.as_ref().is_none_or(|from| waiting < from.load(Ordering::Relaxed)) {
            return self.memory.keep(messages, locations);
        }
        let mut records = messages.map(|message| Record::Spilled { message });
        self.append_records(&mut records, Sync::Later, locations).map(drop)
    }

    fn spill_from(&self, bytes: u64) {
        if let Some(from) = &self.spill_bytes {
            from.store(bytes, Ordering::Relaxed);
        }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(LogReader {
            journal: Arc::clone(&self.journal),
            cache: ReadCache::default(),
            failed_reads: Arc::clone(&self.failed_reads),
        })
    }

    fn hold(&self, position: Position) {
        self.journal.hold(position.into(), 1);
    }

    fn release(&self, positions: &[Position]) {
        self.journal.release(positions);
    }
}

impl Log for JournalStore {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        let end = self.append_records(&mut records.iter().copied(), sync, locations)?;
        Ok(end)
    }

    fn durable(&self) -> Lsn {
        self.journal.durable()
    }

    fn deliverable(&self) -> Lsn {
        if self.journal.is_replicated() { self.journal.durable() } else { Lsn::MAX }
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.journal.when_durable(lsn, waiter);
    }

    fn prove_lead(&self) -> Proof {
        self.journal.prove_lead()
    }

    fn proven(&self) -> Proof {
        self.journal.proven()
    }

    fn when_proven(&self, proof: Proof, waiter: Waiter) {
        self.journal.when_proven(proof, waiter);
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<bool, StoreError> {
        let appended = self.append(records, sync, &mut Vec::new());
        let is_logged = appended.is_ok();
        match (appended, &self.unlogged) {
            (Ok(_), _) => self.journal.release(positions),
            (Err(StoreError::Full), Some(unlogged)) => unlogged.release(positions),
            (Err(failed), _) => return Err(failed),
        }
        Ok(is_logged)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        self.unlogged.as_ref().map(|unlogged| unlogged as &dyn Unlogged)
    }

    fn end(&self) -> Lsn {
        self.journal.end()
    }

    fn failure(&self) -> Option<String> {
        self.journal.failure().map(|failure| failure.to_string())
    }

    fn is_deposed(&self) -> bool {
        self.journal.deposed().is_some()
    }

    fn has_room(&self) -> bool {
        self.journal.has_room()
    }

    fn is_behind(&self) -> bool {
        self.journal.is_behind()
    }

    fn may_block(&self) -> bool {
        self.journal.may_block()
    }

    fn when_room(&self, waker: &Waker) {
        if self.journal.poll_room(waker).is_ready() {
            waker.wake_by_ref();
        }
    }

    fn figures(&self) -> Figures {
        self.journal.figures()
    }
}
