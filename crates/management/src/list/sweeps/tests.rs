//! Rates, and what is kept for them.

use super::*;
use courser_broker::{Broker, Limits};
use courser_store::{MemoryGauge, MemoryStore};

fn admin() -> Admin {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    Broker::new(store, gauge, Limits::default(), 7).admin()
}

fn rates(sweeps: &Sweeps, now_ms: u64, counts: &[u64]) -> Vec<i64> {
    rates_in(&admin(), sweeps, now_ms, counts)
}

fn rates_in(admin: &Admin, sweeps: &Sweeps, now_ms: u64, counts: &[u64]) -> Vec<i64> {
    let sweep = sweeps.begin(admin, "publish", now_ms);
    let counts = counts.iter().enumerate();
    counts.map(|(queue, count)| sweep.rate(queue as u64, *count)).collect()
}

#[tokio::test]
async fn the_rate_is_what_was_added_since_the_last_look() {
    let sweeps = Sweeps::default();
    assert_eq!(rates(&sweeps, 10_000, &[5, 100]), [0, 0]);
    assert_eq!(rates(&sweeps, 12_000, &[5, 300, 9]), [0, 100_000, 0]);
    assert_eq!(rates(&sweeps, 13_000, &[0, 300, 9]), [-5_000, 0, 0]);
}

#[tokio::test]
async fn two_who_ask_at_once_see_the_same_rate() {
    let sweeps = Sweeps::default();
    rates(&sweeps, 10_000, &[0]);
    assert_eq!(rates(&sweeps, 12_000, &[20]), [10_000]);
    assert_eq!(rates(&sweeps, 12_000, &[20]), [10_000]);
}

#[tokio::test]
async fn a_look_at_some_queues_leaves_what_is_noted_of_the_others() {
    let sweeps = Sweeps::default();
    rates(&sweeps, 10_000, &[0, 0]);
    assert_eq!(rates(&sweeps, 12_000, &[2]), [1_000]);
    assert_eq!(rates(&sweeps, 12_500, &[2, 5]), [800, 2_000]);
    assert_eq!(rates(&sweeps, 14_500, &[2, 9]), [0, 2_000]);
}

#[tokio::test]
async fn queues_that_are_not_looked_at_any_more_are_forgotten() {
    let sweeps = Sweeps::default();
    rates(&sweeps, 10_000, &[0, 0]);
    rates(&sweeps, 10_000 + STALE_MS, &[0]);
    rates(&sweeps, 10_000 + STALE_MS + CLEANING_MS, &[0]);
    assert_eq!(sweeps.columns.lock()[0].queues.lock().noted.len(), 1);
}

#[tokio::test]
async fn what_was_noted_long_ago_says_nothing() {
    let sweeps = Sweeps::default();
    rates(&sweeps, 10_000, &[0]);
    assert_eq!(rates(&sweeps, 10_000 + STALE_MS + 1, &[900]), [0]);
}

#[tokio::test]
async fn there_is_a_bound_to_what_is_noted() {
    let sweeps = Sweeps::default();
    for nth in 0..COLUMNS_MAX as u64 + 3 {
        let name = format!("column {nth}");
        sweeps.begin(&admin(), &name, nth).rate(1, 1);
    }
    let columns = sweeps.columns.lock();
    assert_eq!(columns.len(), COLUMNS_MAX);
    assert!(columns.iter().all(|column| column.name != "column 0"));
}

#[tokio::test(start_paused = true)]
async fn notes_count_as_memory_until_a_while_after_they_are_used_last() {
    let (admin, sweeps) = (admin(), Sweeps::default());
    let before = admin.memory_used_bytes();
    let used = || admin.memory_used_bytes() - before;
    let wait = |times: u64| tokio::time::sleep(Duration::from_millis(times * STALE_MS + 1));
    let counts = [0; 10_000];
    for _ in 0..2 {
        rates_in(&admin, &sweeps, 10_000, &counts);
        let least = counts.len() as u64 * size_of::<(u64, Noted)>() as u64;
        assert!((least..4 * least).contains(&used()), "{} of {least}", used());
        wait(1).await;
        assert!(used() > least, "it was used not long ago");
        rates_in(&admin, &sweeps, 10_000, &[0]);
        wait(1).await;
        assert!(used() > least);
        wait(1).await;
        assert_eq!(used(), 0);
    }
    rates_in(&admin, &sweeps, 10_000, &counts);
    rates_in(&admin, &sweeps, 10_000 + STALE_MS + CLEANING_MS, &[0]);
    assert!(used() < 1_000, "{} of one queue", used());
}
