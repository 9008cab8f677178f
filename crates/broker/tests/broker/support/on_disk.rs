//! A broker with a journal on a disk of its own, which can be stopped and started again.

use super::World;
use courser_broker::{Broker, Limits, NOTING, Restored};
use courser_cluster::testing::{LogOfGroup, LogOnDisk};
use courser_journal::testing::{Call, FakeDisk, Faults, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_store::recovered::CheckpointWriter;
use courser_store::{Log, MemoryGauge, Record, Recovered, ShardId, Store, StoreError, Sync};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// More than this its journal does not take at once.
pub const BATCH_BYTES: u64 = 8 << 20;

/// An event that lasts until it is let go, and what hears that it has begun.
pub fn lasting() -> (impl FnOnce() + Send + 'static, Receiver<()>, Sender<()>) {
    let ((begin, begun), (let_go, go)) = (channel(), channel());
    let event = move || {
        begin.send(()).expect("it is waited for");
        go.recv().ok();
    };
    (event, begun, let_go)
}

/// A [`World`] that survives.
pub struct WorldOnDisk {
    disk: FakeDisk,
    limits: Limits,
    /// The group of a cluster that the broker is of.
    group: u16,
    /// The log is one copy of a replicated one.
    is_copy: bool,
    running: Option<(World, Arc<LogOnDisk>)>,
    /// What stands between the two.
    watched: Option<Arc<WatchedStore>>,
    /// The next start finds no sizes of messages.
    forgets_sizes: bool,
    /// Each read of the next start fails like this.
    reads_fail: Option<StoreError>,
    /// So many bytes of messages stay in memory.
    spill_bytes: u64,
    /// What the last start has found.
    pub restored: Restored,
}

impl WorldOnDisk {
    pub fn new() -> Self {
        WorldOnDisk::of_group(0)
    }

    /// The broker of a group of a cluster.
    pub fn of_group(group: u16) -> Self {
        let mut world = WorldOnDisk::stopped(group, false);
        world.start();
        world
    }

    /// With these limits.
    pub fn with(limits: Limits) -> Self {
        let mut world = WorldOnDisk { limits, ..WorldOnDisk::stopped(0, false) };
        world.start();
        world
    }

    /// With no memory for messages: what waits does so in the log.
    pub fn without_memory() -> Self {
        let mut world = WorldOnDisk { spill_bytes: 0, ..WorldOnDisk::stopped(0, false) };
        world.start();
        world
    }

    /// On a replicated log.
    pub fn on_copy() -> Self {
        let mut world = WorldOnDisk::stopped(0, true);
        world.start();
        world
    }

    fn stopped(group: u16, is_copy: bool) -> Self {
        let disk = FakeDisk::new(7);
        WorldOnDisk {
            disk,
            limits: Limits::default(),
            group,
            is_copy,
            running: None,
            watched: None,
            forgets_sizes: false,
            reads_fail: None,
            spill_bytes: u64::MAX,
            restored: Restored::default(),
        }
    }

    /// With these changes in the log, as another version may have written them.
    pub fn of(records: &[Record<'_>]) -> Self {
        let mut world = WorldOnDisk::stopped(0, false);
        let (store, _) = world.open_journal(Arc::default()).expect("a good journal");
        store.append(records, Sync::Wanted, &mut Vec::new()).expect("nothing fails");
        store.journal().close().expect("nothing fails");
        drop(store);
        world.start();
        world
    }

    /// Stops the broker in order and starts it again. Clients have to disconnect before.
    pub fn restart(&mut self) {
        self.watched = None;
        let (world, log) = self.running.take().expect("it runs");
        log.close();
        drop((world, log));
        self.start();
    }

    /// The same with other limits.
    pub fn restart_within(&mut self, limits: Limits) {
        self.limits = limits;
        self.restart();
    }

    /// Kills the broker and starts it again: what was never written is lost. Clients have to
    /// disconnect after the crash, which `crashed` gets the chance for.
    pub fn crash(&mut self, crashed: impl FnOnce()) {
        self.disk.kill();
        crashed();
        self.watched = None;
        self.running = None;
        self.start();
    }

    /// What a restart would find. Stops the broker in order and starts it again.
    pub fn found_by_restart(&mut self) -> Recovered {
        self.watched = None;
        let (world, log) = self.running.take().expect("it runs");
        log.close();
        drop((world, log));
        let (log, recovered) = self.open(Arc::default()).expect("a good log");
        log.close();
        drop(log);
        self.start();
        recovered
    }

    /// Leaves the disk no room for more than what is there.
    pub fn fill_disk(&self) {
        self.disk.set_capacity(self.disk.used_bytes());
    }

    /// Gives it room again.
    pub fn free_disk(&self) {
        self.disk.set_capacity(u64::MAX);
    }

    /// Has every read of the disk fail from now on, or none any more.
    pub fn fail_reads(&self, fail_reads: bool) {
        self.disk.set_faults(Faults { fail_reads, ..Faults::default() });
    }

    /// Has every read fail of the page in the middle of what was written as `pattern`. That takes nothing else if it is longer than
    /// two pages.
    pub fn make_unreadable(&self, pattern: &[u8]) {
        let contents = self.disk.names().into_iter().filter_map(|path| self.disk.contents(&path));
        let mut spots = contents.filter_map(|bytes| {
            let start = bytes.windows(pattern.len()).position(|part| part == pattern)? as u64;
            let middle = start + pattern.len() as u64 / 2;
            Some(middle..middle + 1)
        });
        let bad_spot = spots.next().expect("it was written");
        self.disk.set_faults(Faults { bad_spot, ..Faults::default() });
    }

    /// Damages each part of the disk that is `pattern`: its first byte is another one then.
    pub fn damage(&self, pattern: &[u8]) {
        for path in self.disk.names() {
            let contents = self.disk.contents(&path).unwrap_or_default();
            let mut at = 0;
            while let Some(found) =
                contents[at..].windows(pattern.len()).position(|part| part == pattern)
            {
                self.disk.corrupt(&path, at + found, 1);
                at += found + pattern.len();
            }
        }
    }

    /// Has every write fail from now on, which the journal notices.
    pub fn break_disk(&self) {
        self.disk.kill();
        self.flush();
        assert!(self.store().failure().is_some());
    }

    /// What stands between the broker and its journal.
    pub fn store(&self) -> &Arc<WatchedStore> {
        self.watched.as_ref().expect("it runs")
    }

    /// Its log.
    pub fn log(&self) -> Arc<LogOnDisk> {
        Arc::clone(&self.running.as_ref().expect("it runs").1)
    }

    /// Makes everything durable right behind the next look how far it is.
    pub fn flush_after_look(&self) {
        let log = Arc::clone(&self.running.as_ref().expect("it runs").1);
        self.store().after_next_look(move || log.flush());
    }

    /// Makes everything durable that was appended.
    pub fn flush(&self) {
        self.running.as_ref().expect("it runs").1.flush();
    }

    /// Makes durable what has been appended, as the log's own thread would.
    pub fn sync(&self) {
        self.flush();
    }

    /// How much has been appended to the log.
    pub fn log_end(&self) -> courser_store::Lsn {
        self.store().end()
    }

    /// Takes the power away and starts the broker again: what was not durable may be lost. Clients
    /// are gone with it.
    pub fn lose_power(&mut self) {
        self.watched = None;
        let (world, store) = self.running.take().expect("it runs");
        self.disk.lose_power();
        drop((world, store));
        self.start();
    }

    /// Kills the broker while it writes, and starts it again: of what was not durable, the beginning may
    /// be there, up to any of its changes. Clients are gone with it.
    pub fn crash_while_writing(&mut self) {
        self.watched = None;
        let (world, store) = self.running.take().expect("it runs");
        let faults =
            Faults { short_write_one_in: 1, fail_write_after: Some(1), ..Faults::default() };
        self.disk.set_faults(faults);
        store.flush();
        self.disk.kill();
        drop((world, store));
        self.start();
    }

    /// As [`WorldOnDisk::restart`], from a checkpoint instead of the log.
    pub fn restart_from_checkpoint(&mut self) {
        self.checkpoint();
        self.restart();
    }

    /// The same from a checkpoint of a version that wrote no sizes of messages; what is there besides
    /// definitions and messages in queues is left out.
    pub fn restart_without_sizes(&mut self) {
        self.forgets_sizes = true;
        self.restart_from_checkpoint();
        self.forgets_sizes = false;
    }

    /// The same, while reads fail like this. Returns how many there were.
    pub fn restart_without_sizes_and_reads(&mut self, error: StoreError) -> u64 {
        self.reads_fail = Some(error);
        self.restart_without_sizes();
        self.reads_fail = None;
        self.store().set_faults(|_| None);
        self.store().reads()
    }

    /// Makes a checkpoint.
    pub fn checkpoint(&self) {
        self.try_checkpoint().expect("a checkpoint");
    }

    /// Makes a checkpoint; why not, if that fails.
    pub fn try_checkpoint(&self) -> Result<(), String> {
        let (world, log) = self.running.as_ref().expect("it runs");
        let state = world.broker.state_of(ShardId::HOME).expect("always open");
        log.checkpoint(&state)
    }

    /// Stops the broker, in order or not, and tries to start it again on a disk with these faults; why that failed, if it has.
    pub fn restart_with(&mut self, faults: Faults, in_order: bool) -> Result<(), String> {
        self.watched = None;
        let (world, log) = self.running.take().expect("it runs");
        if in_order {
            log.close();
        } else {
            self.disk.kill();
        }
        drop((world, log));
        self.disk.set_faults(faults);
        self.try_start()
    }

    /// What it is on.
    pub fn disk(&self) -> &FakeDisk {
        &self.disk
    }

    fn open(&self, gauge: Arc<MemoryGauge>) -> Result<(LogOnDisk, Recovered), String> {
        if self.is_copy {
            let (copy, recovered) = LogOfGroup::open(&self.disk, options(), gauge)?;
            return Ok((LogOnDisk::Copy(Box::new(copy)), recovered));
        }
        let (store, recovered) = self.open_journal(gauge)?;
        Ok((LogOnDisk::Alone(store), recovered))
    }

    fn open_journal(
        &self,
        gauge: Arc<MemoryGauge>,
    ) -> Result<(Arc<JournalStore>, Recovered), String> {
        let disk = Arc::new(self.disk.clone());
        let path = Path::new("journal");
        let most = self.spill_bytes;
        let opened = JournalStore::open(path, options(), disk, gauge, most, &mut |_| {});
        opened.map(|(store, recovered, _)| (store, recovered)).map_err(|error| error.to_string())
    }

    fn start(&mut self) {
        self.try_start().expect("a good log");
    }

    /// Starts the broker; why that failed, if it has.
    pub fn try_start(&mut self) -> Result<(), String> {
        let gauge = Arc::new(MemoryGauge::default());
        let (log, mut recovered) = self.open(Arc::clone(&gauge))?;
        if self.forgets_sizes {
            recovered = without_sizes(&recovered);
        }
        let log = Arc::new(log);
        let watched = Arc::new(WatchedStore::new(log.store()));
        if let Some(error) = self.reads_fail.clone() {
            watched.set_faults(move |call| (call == Call::Read).then(|| error.clone()));
        }
        let shared = Arc::clone(&watched) as Arc<dyn Store>;
        let broker = Broker::of_group(self.group, shared, gauge, self.limits.clone(), 7);
        self.restored = broker.restore(recovered).expect("what was written can be read");
        let world = World { broker, log: Some(Arc::clone(&log)) };
        self.running = Some((world, log));
        self.watched = Some(watched);
        Ok(())
    }
}

/// The definitions and the messages in queues of a checkpoint that tells no sizes.
fn without_sizes(found: &Recovered) -> Recovered {
    let mut bytes = Vec::new();
    let mut writer = CheckpointWriter::new(&mut bytes);
    for (key, value) in &found.definitions {
        writer.definition(key, value).expect("there is room");
    }
    for (queue, index) in &found.queues {
        let positions: Vec<_> = index.positions().collect();
        for run in positions.chunk_by(|one, next| one < next) {
            writer.queue(*queue, run).expect("there is room");
        }
    }
    Recovered::from_checkpoint(&bytes).expect("it was just written")
}

fn options() -> Options {
    Options {
        segment_bytes: 1 << 20,
        buffer_bytes: 1 << 20,
        batch_bytes: BATCH_BYTES,
        threads: false,
        noting: Some(NOTING),
        ..Options::default()
    }
}

impl Deref for WorldOnDisk {
    type Target = World;

    fn deref(&self) -> &World {
        &self.running.as_ref().expect("it runs").0
    }
}
