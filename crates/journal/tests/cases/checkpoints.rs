//! When checkpoints are made.

use crate::support::{dir, options};
use courser_journal::{JournalStore, Lsn, Options, testing::FakeDisk};
use courser_store::{Log, MemoryGauge, Position, Record, ShardState, Sync};
use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The state of an owner, which can't be written while `fails`.
struct State {
    store: Arc<JournalStore>,
    fails: AtomicBool,
    tried: AtomicU64,
}

impl ShardState for State {
    fn start(&self) -> Lsn {
        self.store.end()
    }

    fn for_each_live(&self, _: Lsn, _: &mut dyn FnMut(Position)) {}

    fn write(&self, _: Lsn, out: &mut dyn Write) -> io::Result<()> {
        self.tried.fetch_add(1, Relaxed);
        if self.fails.load(Relaxed) {
            return Err(io::Error::other("the disk does not take this"));
        }
        courser_store::Recovered::default().write(out)
    }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_checkpoint_that_fails_is_tried_again_after_a_rest_however_much_is_appended() {
    let options = Options { checkpoint_after_bytes: 16 << 10, threads: true, ..options() };
    let (disk, gauge) = (Arc::new(FakeDisk::new(1)), Arc::new(MemoryGauge::default()));
    let opened = JournalStore::open(&dir(), options, disk, gauge, u64::MAX, &mut |_| {});
    let store = opened.unwrap().0;
    let state = Arc::new(State {
        store: Arc::clone(&store),
        fails: AtomicBool::new(true),
        tried: AtomicU64::new(0),
    });
    let thread = std::thread::spawn({
        let (store, state) = (Arc::clone(&store), Arc::clone(&state));
        move || {
            while store.wait_for_checkpoint() {
                drop(store.checkpoint(&*state));
            }
        }
    });
    let tried = || state.tried.load(Relaxed);
    let append = || {
        let record = Record::Defined { key: b"key", value: &[1; 1000] };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).unwrap();
    };
    let since = Instant::now();
    while tried() < 2 {
        assert!(since.elapsed().as_secs() < 60, "it is not tried again");
        append();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(since.elapsed() >= Duration::from_secs(1), "without a rest");
    state.fails.store(false, Relaxed);
    append();
    wait_until("it is not made when it can be", || !store.journal().wants_checkpoint());
    store.stop_checkpoints();
    thread.join().unwrap();
    store.journal().close().unwrap();
}
