//! A broker with a journal on a disk of its own, which can be stopped and started again.

use super::World;
use courser_broker::{Broker, Limits};
use courser_journal::testing::{FakeDisk, Faults};
use courser_journal::{JournalStore, Options};
use courser_store::{Log, MemoryGauge, Record, Recovered, ShardId, Store, Sync};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// A [`World`] that survives.
pub struct WorldOnDisk {
    disk: FakeDisk,
    /// The group of a cluster that the broker is of.
    group: u16,
    running: Option<(World, Arc<JournalStore>)>,
}

impl WorldOnDisk {
    pub fn new() -> Self {
        WorldOnDisk::of_group(0)
    }

    /// The broker of a group of a cluster.
    pub fn of_group(group: u16) -> Self {
        let mut world = WorldOnDisk { disk: FakeDisk::new(7), group, running: None };
        world.start();
        world
    }

    /// With these changes in the log, as another version may have written them.
    pub fn of(records: &[Record<'_>]) -> Self {
        let mut world = WorldOnDisk { disk: FakeDisk::new(7), group: 0, running: None };
        let (store, _, _) = world.open();
        store.append(records, Sync::Wanted, &mut Vec::new()).expect("nothing fails");
        store.journal().close().expect("nothing fails");
        drop(store);
        world.start();
        world
    }

    /// Stops the broker in order and starts it again. Clients have to disconnect before.
    pub fn restart(&mut self) {
        let (world, store) = self.running.take().expect("it runs");
        store.journal().close().expect("nothing fails");
        drop((world, store));
        self.start();
    }

    /// Kills the broker and starts it again: what was never written is lost. Clients have to
    /// disconnect after the crash, which `crashed` gets the chance for.
    pub fn crash(&mut self, crashed: impl FnOnce()) {
        self.disk.kill();
        crashed();
        self.running = None;
        self.start();
    }

    /// What a restart would find. Stops the broker in order and starts it again.
    pub fn found_by_restart(&mut self) -> Recovered {
        let (world, store) = self.running.take().expect("it runs");
        store.journal().close().expect("nothing fails");
        drop((world, store));
        let (store, recovered, _) = self.open();
        store.journal().close().expect("nothing fails");
        drop(store);
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

    /// Has every write fail from now on, which the journal notices.
    pub fn break_disk(&self) {
        self.disk.kill();
        let (_, store) = self.running.as_ref().expect("it runs");
        store.journal().flush_once();
        assert!(store.failure().is_some());
    }

    /// Makes everything durable that was appended.
    pub fn flush(&self) {
        let (_, store) = self.running.as_ref().expect("it runs");
        while store.journal().flush_once() {}
    }

    /// Makes durable what has been appended, as the log's own thread would.
    pub fn sync(&self) {
        let (_, store) = self.running.as_ref().expect("it runs");
        while store.journal().flush_once() {}
    }

    /// How much has been appended to the log.
    pub fn log_end(&self) -> courser_store::Lsn {
        let (_, store) = self.running.as_ref().expect("it runs");
        store.end()
    }

    /// Takes the power away and starts the broker again: what was not durable may be lost. Clients
    /// are gone with it.
    pub fn lose_power(&mut self) {
        let (world, store) = self.running.take().expect("it runs");
        self.disk.lose_power();
        drop((world, store));
        self.start();
    }

    /// Kills the broker while it writes, and starts it again: of what was not durable, the beginning may
    /// be there, up to any of its changes. Clients are gone with it.
    pub fn crash_while_writing(&mut self) {
        let (world, store) = self.running.take().expect("it runs");
        let faults =
            Faults { short_write_one_in: 1, fail_write_after: Some(1), ..Faults::default() };
        self.disk.set_faults(faults);
        store.journal().flush_once();
        self.disk.kill();
        drop((world, store));
        self.start();
    }

    /// As [`WorldOnDisk::restart`], from a checkpoint instead of the log.
    pub fn restart_from_checkpoint(&mut self) {
        self.checkpoint();
        self.restart();
    }

    /// Makes a checkpoint.
    pub fn checkpoint(&self) {
        let (world, store) = self.running.as_ref().expect("it runs");
        let state = world.broker.state_of(ShardId::HOME).expect("always open");
        store.checkpoint(&state).expect("a checkpoint");
    }

    fn open(&self) -> (Arc<JournalStore>, Recovered, Arc<MemoryGauge>) {
        let gauge = Arc::new(MemoryGauge::default());
        let options = Options {
            segment_bytes: 1 << 20,
            buffer_bytes: 1 << 20,
            threads: false,
            ..Options::default()
        };
        let disk = Arc::new(self.disk.clone());
        let gauge_of_store = Arc::clone(&gauge);
        let path = Path::new("journal");
        let opened = JournalStore::open(path, options, disk, gauge_of_store, u64::MAX, &mut |_| {});
        let (store, recovered, _) = opened.expect("a good journal");
        (store, recovered, gauge)
    }

    fn start(&mut self) {
        let (store, recovered, gauge) = self.open();
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let broker = Broker::of_group(self.group, shared, gauge, Limits::default(), 7);
        broker.restore(recovered).expect("what was written can be read");
        let log = Some(Arc::clone(&store));
        self.running = Some((World { broker, log }, store));
    }
}

impl Deref for WorldOnDisk {
    type Target = World;

    fn deref(&self) -> &World {
        &self.running.as_ref().expect("it runs").0
    }
}
