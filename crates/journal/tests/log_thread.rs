//! A model of the log thread and of threads that append and wait, in every order of their steps: none
//! is told of a sync before it, each is told, and the thread never sleeps over what there is to do.
//! It follows `Core::run_log`, `gather`, `flush_once`, `appended`, `ask_sync` and `when_durable`; what the
//! thread does next it is told by the journal itself.
//!
//! A wait with a limit may end at any time, with or without a wake.

use courser_journal::testing::{Outlook, Turn};
use loom::{
    model::Builder,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

/// What the code may get wrong, to see that the model notices.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The mark that the thread wakes by itself at the end of a gap stays.
    KeepsGathering,
    /// It waits without a limit with the mark of one that lingers.
    KeepsLingering,
    /// Who waits is told before the sync.
    TellsTooEarly,
    /// Who begins to wait does not look again whether it is durable by now.
    LooksOnce,
}

#[derive(Default)]
struct Log {
    end: u64,
    sync_to: u64,
    buffered: bool,
    lingering: bool,
    gathering: bool,
    stop: bool,
    /// The log thread waits without a limit, and was not woken.
    sleeps: bool,
    /// It was woken since it last began to wait.
    woken: bool,
}

struct Core {
    fault: Fault,
    log: Mutex<Log>,
    work: Condvar,
    /// What is on the disk, and what has been published of that.
    disk: AtomicU64,
    durable: AtomicU64,
    waiters: Mutex<Vec<u64>>,
    told: Mutex<Vec<u64>>,
}

impl Core {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Core {
            fault,
            log: Mutex::default(),
            work: Condvar::new(),
            disk: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            waiters: Mutex::default(),
            told: Mutex::default(),
        })
    }

    fn wake(&self, log: &mut Log) {
        log.woken = true;
        log.sleeps = false;
        self.work.notify_one();
    }

    fn append(&self, sync: bool) -> u64 {
        let mut log = self.log.lock().unwrap();
        log.end += 1;
        log.buffered = true;
        if sync {
            log.sync_to = log.end;
        }
        if !(log.gathering || log.lingering && !sync) {
            self.wake(&mut log);
        }
        assert!(!log.sleeps, "the log thread sleeps over what is to be written");
        log.end
    }

    fn when_durable(&self, lsn: u64) {
        if self.durable.load(SeqCst) >= lsn {
            return self.tell(lsn);
        }
        self.waiters.lock().unwrap().push(lsn);
        self.ask_sync(lsn);
        if self.durable.load(SeqCst) >= lsn && self.fault != Fault::LooksOnce {
            self.tell(lsn);
        }
    }

    fn tell(&self, lsn: u64) {
        assert!(self.disk.load(SeqCst) >= lsn, "told before the sync");
        self.told.lock().unwrap().push(lsn);
    }

    fn ask_sync(&self, lsn: u64) {
        let mut log = self.log.lock().unwrap();
        if log.sync_to < lsn {
            log.sync_to = lsn.min(log.end);
            if !log.gathering {
                self.wake(&mut log);
            }
        }
        let is_wished = log.sync_to > self.durable.load(SeqCst);
        assert!(!(log.sleeps && is_wished), "the log thread sleeps over a wish for a sync");
    }

    fn run_log(&self) {
        loop {
            let mut log = self.log.lock().unwrap();
            let mut lingered = false;
            let next = loop {
                let outlook = Outlook {
                    wished: log.sync_to > self.durable.load(SeqCst),
                    buffered: log.buffered,
                    much: false,
                    lingered,
                    over: log.stop,
                };
                let next = outlook.next_turn();
                if next != Turn::Wait {
                    break next;
                }
                log.lingering = !lingered || self.fault == Fault::KeepsLingering;
                (log, lingered) = if lingered { self.wait(log) } else { self.wait_for(log) };
                log.lingering = false;
            };
            if next == Turn::End {
                return;
            }
            if log.sync_to > self.durable.load(SeqCst) {
                log.gathering = true;
                log = self.wait_for(log).0;
                log.gathering = self.fault == Fault::KeepsGathering;
            }
            drop(log);
            self.flush_once();
        }
    }

    /// Waits until it is woken.
    fn wait<'a>(&'a self, mut log: MutexGuard<'a, Log>) -> (MutexGuard<'a, Log>, bool) {
        log.sleeps = true;
        let mut log = self.work.wait(log).unwrap();
        log.sleeps = false;
        (log, false)
    }

    /// Waits until it is woken or the time is up, which may be at once. Returns whether it was the time.
    fn wait_for<'a>(&'a self, mut log: MutexGuard<'a, Log>) -> (MutexGuard<'a, Log>, bool) {
        log.woken = false;
        drop(log);
        let log = self.log.lock().unwrap();
        let timed_out = !log.woken;
        (log, timed_out)
    }

    fn flush_once(&self) {
        let mut log = self.log.lock().unwrap();
        log.buffered = false;
        let end = log.end;
        drop(log);
        // Here it writes.
        let sync_to = self.log.lock().unwrap().sync_to;
        if sync_to <= self.durable.load(SeqCst) {
            return;
        }
        if self.fault == Fault::TellsTooEarly {
            self.publish_durable(end);
        }
        self.disk.store(end, SeqCst);
        self.publish_durable(end);
    }

    fn publish_durable(&self, lsn: u64) {
        self.durable.store(lsn, SeqCst);
        let mut waiters = self.waiters.lock().unwrap();
        let (due, rest): (Vec<_>, Vec<_>) = waiters.drain(..).partition(|waits| *waits <= lsn);
        *waiters = rest;
        drop(waiters);
        due.into_iter().for_each(|lsn| self.tell(lsn));
    }

    fn stop(&self) {
        let mut log = self.log.lock().unwrap();
        log.stop = true;
        self.wake(&mut log);
    }
}

/// One thread wants its records synced at once; the other appends what has no waiter, and then waits.
fn append_beside_the_log_thread(fault: Fault) {
    let mut model = Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let core = Core::new(fault);
        let spawn = |run: fn(&Core)| {
            let core = Arc::clone(&core);
            thread::spawn(move || run(&core))
        };
        let log = spawn(Core::run_log);
        let prompt = spawn(|core| core.when_durable(core.append(true)));
        let lsn = core.append(false);
        core.when_durable(lsn);
        prompt.join().unwrap();
        core.stop();
        log.join().unwrap();
        assert_eq!(core.disk.load(SeqCst), 2);
        let mut told = core.told.lock().unwrap().clone();
        told.sort_unstable();
        told.dedup();
        assert_eq!(told, [1, 2], "a waiter was not told");
    });
}

#[test]
fn what_waits_is_told_after_the_sync_and_no_wake_is_lost() {
    append_beside_the_log_thread(Fault::None);
}

#[test]
#[should_panic(expected = "sleeps over")]
fn a_gap_that_never_ends_loses_a_wake() {
    append_beside_the_log_thread(Fault::KeepsGathering);
}

#[test]
#[should_panic(expected = "sleeps over")]
fn a_thread_that_sleeps_as_if_it_lingered_is_not_woken() {
    append_beside_the_log_thread(Fault::KeepsLingering);
}

#[test]
#[should_panic(expected = "told before the sync")]
fn news_of_a_sync_before_it_is_noticed() {
    append_beside_the_log_thread(Fault::TellsTooEarly);
}

#[test]
#[should_panic(expected = "a waiter was not told")]
fn who_looks_only_before_it_waits_misses_the_sync() {
    append_beside_the_log_thread(Fault::LooksOnce);
}
