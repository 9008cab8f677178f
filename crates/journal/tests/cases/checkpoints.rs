//! When checkpoints are made.

use crate::support::{dir, options};
use courser_journal::{JournalStore, Lsn, Options, rest_after_failure, testing::FakeDisk};
use courser_store::{Log, MemoryGauge, Position, Record, ShardState, Sync};
use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// The state of an owner, which can't be written while `fails`.
struct State {
    store: Arc<JournalStore>,
    fails: AtomicBool,
    /// How long it takes to find out that it can't be written.
    takes: Duration,
    /// Something is removed behind the start of each checkpoint, which the log does not know.
    changes: AtomicBool,
    /// Something is appended while each checkpoint is written.
    appends: AtomicBool,
    /// When it was to be written.
    tried: Mutex<Vec<Instant>>,
}

impl State {
    /// That of an owner whose journal is new.
    fn new(options: Options, fails: bool, takes: Duration) -> Arc<Self> {
        let (disk, gauge) = (Arc::new(FakeDisk::new(1)), Arc::new(MemoryGauge::default()));
        let opened = JournalStore::open(&dir(), options, disk, gauge, u64::MAX, &mut |_| {});
        let (fails, changes, appends) = (AtomicBool::new(fails), false.into(), false.into());
        let (store, tried) = (opened.unwrap().0, Mutex::default());
        Arc::new(State { store, fails, takes, changes, appends, tried })
    }

    fn append(&self) {
        let record = Record::Defined { key: b"key", value: &[1; 1000] };
        self.store.append(&[record], Sync::Wanted, &mut Vec::new()).unwrap();
    }

    fn note_unlogged(&self) {
        self.store.unlogged().expect("it is the only copy").release(&[]);
    }

    /// Makes checkpoints when they are wanted, until the store is closed.
    fn make_checkpoints(self: &Arc<Self>) -> JoinHandle<()> {
        let state = Arc::clone(self);
        std::thread::spawn(move || {
            while state.store.wait_for_checkpoint() {
                drop(state.store.checkpoint(&*state));
            }
        })
    }

    fn tried(&self) -> Vec<Instant> {
        self.tried.lock().unwrap().clone()
    }

    fn close(&self, thread: JoinHandle<()>) {
        self.store.stop_checkpoints();
        thread.join().unwrap();
        self.store.journal().close().unwrap();
    }
}

impl ShardState for State {
    fn start(&self) -> Lsn {
        let start = self.store.end();
        if self.changes.load(Relaxed) {
            self.note_unlogged();
        }
        start
    }

    fn for_each_live(&self, _: Lsn, _: &mut dyn FnMut(Position)) {}

    fn write(&self, _: Lsn, out: &mut dyn Write) -> io::Result<()> {
        self.tried.lock().unwrap().push(Instant::now());
        if self.fails.load(Relaxed) {
            std::thread::sleep(self.takes);
            return Err(io::Error::other("the disk does not take this"));
        }
        if self.appends.load(Relaxed) {
            self.append();
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
    let state = State::new(options, true, Duration::ZERO);
    let thread = state.make_checkpoints();
    let since = Instant::now();
    while state.tried().len() < 2 {
        assert!(since.elapsed().as_secs() < 60, "it is not tried again");
        state.append();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(since.elapsed() >= Duration::from_secs(1), "without a rest");
    state.fails.store(false, Relaxed);
    state.append();
    wait_until("it is not made when it can be", || !state.store.journal().wants_checkpoint());
    state.close(thread);
}

#[test]
fn what_is_appended_while_a_checkpoint_is_made_asks_for_no_second_one() {
    let options = Options { checkpoint_after_bytes: 16 << 10, ..options() };
    let state = State::new(options, false, Duration::ZERO);
    while !state.store.journal().wants_checkpoint() {
        state.append();
    }
    assert!(state.store.wait_for_checkpoint());
    state.appends.store(true, Relaxed);
    state.store.checkpoint(&*state).unwrap();
    let (tell, told) = channel();
    let waiting = std::thread::spawn({
        let state = Arc::clone(&state);
        move || tell.send(state.store.wait_for_checkpoint())
    });
    // Too short a time only finds less.
    let asked = told.recv_timeout(Duration::from_millis(200));
    assert_eq!(asked, Err(RecvTimeoutError::Timeout));
    state.store.stop_checkpoints();
    assert_eq!(told.recv(), Ok(false));
    waiting.join().unwrap().unwrap();
}

#[test]
fn a_checkpoint_that_fails_while_the_log_has_room_is_tried_again_after_the_whole_rest() {
    let takes = Duration::from_millis(200);
    let state = State::new(Options { threads: true, ..options() }, true, takes);
    let thread = state.make_checkpoints();
    state.note_unlogged();
    wait_until("it is not tried again", || state.tried().len() > 1);
    let tried = state.tried();
    assert!(tried[1] - tried[0] >= takes + rest_after_failure(takes), "{:?}", tried[1] - tried[0]);
    state.close(thread);
}

#[test]
fn a_checkpoint_does_not_stand_for_what_is_removed_behind_its_start() {
    let state = State::new(options(), false, Duration::ZERO);
    let make = |changes| {
        state.changes.store(changes, Relaxed);
        state.store.checkpoint(&*state).unwrap();
        state.store.journal().has_unlogged()
    };
    assert!(make(true), "the change may take effect when the state has been written");
    assert!(!make(false));
}
