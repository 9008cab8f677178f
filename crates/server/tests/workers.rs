//! Threads of the runtime: as many serve as the load needs, and nothing waits for one that is held.
//!
//! How many that is, the processor time of the process says. So these tests have a process of their own, and run one
//! after the other.

use courser::Workers;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

const THREADS: usize = 4;
const LIMIT: Duration = Duration::from_secs(60);
static ALONE: Mutex<()> = Mutex::new(());

/// No other test runs while this is held; one that has failed does not hinder the others.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads() -> (Workers, Runtime) {
    threads_of(THREADS)
}

fn threads_of(count: usize) -> (Workers, Runtime) {
    let mut workers = Workers::new();
    let mut builder = Builder::new_multi_thread();
    workers.install(builder.worker_threads(count).enable_all());
    let runtime = builder.build().expect("threads");
    workers.start(runtime.handle()).expect("a thread that looks after them");
    (workers, runtime)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn spin(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Keeps all threads of the runtime busy until it is told to stop.
fn occupy(runtime: &Runtime, stop: &Arc<AtomicBool>) {
    for _ in 0..2 * THREADS {
        let stop = Arc::clone(stop);
        runtime.spawn(async move {
            while !stop.load(SeqCst) {
                spin(Duration::from_micros(50));
                tokio::task::yield_now().await;
            }
        });
    }
}

/// A pair of tasks that pass a number to and fro; returns how often it came back.
fn rally(runtime: &Runtime) -> Arc<AtomicU64> {
    let rounds = Arc::new(AtomicU64::new(0));
    let ((to, mut at), (back, mut home)) = (mpsc::channel(1), mpsc::channel(1));
    runtime.spawn(async move {
        while let Some(ball) = at.recv().await {
            if back.send(ball).await.is_err() {
                return;
            }
        }
    });
    let counted = Arc::clone(&rounds);
    runtime.spawn(async move {
        while to.send(()).await.is_ok() && home.recv().await.is_some() {
            counted.fetch_add(1, SeqCst);
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    });
    rounds
}

/// How many have gone on since then.
fn moved(rounds: &[Arc<AtomicU64>], before: &[u64]) -> usize {
    rounds.iter().zip(before).filter(|(now, before)| now.load(SeqCst) > **before + 2).count()
}

fn scores(rounds: &[Arc<AtomicU64>]) -> Vec<u64> {
    rounds.iter().map(|score| score.load(SeqCst)).collect()
}

#[test]
fn one_thread_serves_what_one_can() {
    let _alone = alone();
    let (workers, runtime) = threads();
    let _rally = rally(&runtime);
    wait_until("others are held", || workers.held() == THREADS - 1);
}

#[test]
fn all_threads_serve_what_keeps_them_busy_and_one_when_that_has_ended() {
    let _alone = alone();
    let (workers, runtime) = threads();
    let _rally = rally(&runtime);
    wait_until("others are held", || workers.held() == THREADS - 1);
    let stop = Arc::new(AtomicBool::new(false));
    occupy(&runtime, &stop);
    wait_until("all serve", || workers.held() == 0);
    stop.store(true, SeqCst);
    wait_until("others are held again", || workers.held() == THREADS - 1);
}

#[test]
fn others_go_on_while_a_task_does_not_return() {
    let _alone = alone();
    let (workers, runtime) = threads();
    let rallies: Vec<_> = (0..8).map(|_| rally(&runtime)).collect();
    wait_until("others are held", || workers.held() == THREADS - 1);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    runtime.spawn(async move {
        while !stopped.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let before = scores(&rallies);
    // One may be what the thread of that task would have run next, which no other takes from it.
    let go_on = || moved(&rallies, &before) + 1 >= rallies.len();
    let waited = panic::catch_unwind(|| wait_until("others go on", go_on));
    // The runtime does not end before.
    stop.store(true, SeqCst);
    if let Err(failed) = waited {
        panic::resume_unwind(failed);
    }
}

#[test]
fn no_task_is_left_behind_when_threads_are_held() {
    let _alone = alone();
    let (workers, runtime) = threads();
    let rallies: Vec<_> = (0..64).map(|_| rally(&runtime)).collect();
    for _ in 0..4 {
        wait_until("others are held", || workers.held() == THREADS - 1);
        let stop = Arc::new(AtomicBool::new(false));
        occupy(&runtime, &stop);
        wait_until("all serve", || workers.held() == 0);
        stop.store(true, SeqCst);
        let before = scores(&rallies);
        wait_until("all go on", || moved(&rallies, &before) == rallies.len());
    }
}

/// A task that does a lot in small steps, and makes way after each; returns how many it has done. As the task that serves timers.
fn steps(runtime: &Runtime, pause: Duration) -> Arc<AtomicU64> {
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    runtime.spawn(async move {
        loop {
            for _ in 0..50 {
                spin(Duration::from_micros(2));
                counted.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(pause).await;
        }
    });
    steps
}

#[test]
fn a_task_that_makes_way_goes_on_when_its_thread_is_held() {
    let _alone = alone();
    let (workers, runtime) = threads_of(2);
    let pause = |number| Duration::from_micros(4000 + 300 * number);
    let tasks: Vec<_> = (0..8_u64).map(|number| steps(&runtime, pause(number))).collect();
    for _ in 0..5 {
        wait_until("the other is held", || workers.held() == 1);
        let before = scores(&tasks);
        wait_until("all go on", || moved(&tasks, &before) == tasks.len());
        let stop = Arc::new(AtomicBool::new(false));
        occupy(&runtime, &stop);
        wait_until("all serve", || workers.held() == 0);
        stop.store(true, SeqCst);
    }
}

#[test]
fn the_end_of_the_runtime_waits_for_no_thread_that_is_held() {
    let _alone = alone();
    let (workers, runtime) = threads();
    let _rally = rally(&runtime);
    wait_until("others are held", || workers.held() == THREADS - 1);
    let begun = Instant::now();
    drop(workers);
    drop(runtime);
    assert!(begun.elapsed() < LIMIT, "it took {:?}", begun.elapsed());
}
