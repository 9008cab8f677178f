//! Pacing, and latencies that do not hide a stall.

use courser_perftest::latency::{Recorder, Summary, new_histogram, percentile_curve};
use courser_perftest::pace::{Pacer, TICK_NS};

const MS: u64 = 1_000_000;

#[test]
fn messages_are_due_at_even_distances() {
    let mut pacer = Pacer::new(1000 * MS, 1000);
    assert_eq!(pacer.due(999 * MS), 0);
    assert_eq!(pacer.due(1000 * MS), 1);
    assert_eq!(pacer.next_stamp_ns(1000 * MS), 1000 * MS);
    assert_eq!(pacer.due(1000 * MS), 0);
    assert_eq!(pacer.wake_at_ns(1000 * MS), 1001 * MS);
    assert_eq!(pacer.due(1001 * MS - 1), 0);
    assert_eq!(pacer.due(1001 * MS), 1);
}

#[test]
fn a_rate_that_does_not_divide_a_second_is_kept() {
    let mut pacer = Pacer::new(0, 3000);
    let mut now_ns = 0;
    let mut sent = 0;
    while now_ns < 10_000 * MS {
        let due = pacer.due(now_ns);
        for _ in 0..due {
            assert!(pacer.next_stamp_ns(now_ns) <= now_ns);
        }
        sent += due;
        now_ns = pacer.wake_at_ns(now_ns);
    }
    assert_eq!(sent, 30_000);
}

#[test]
fn without_a_rate_everything_is_due_now() {
    let mut pacer = Pacer::new(0, 0);
    assert!(!pacer.is_limited());
    assert_eq!(pacer.due(5), u64::MAX);
    assert_eq!(pacer.next_stamp_ns(5), 5);
}

#[test]
fn rates_that_follow_each_other_have_a_schedule_each() {
    let steps: Vec<_> = ["1000:2ms", "0:3ms", "500:4ms"].map(|step| step.parse().unwrap()).into();
    let mut pacer = Pacer::in_steps(0, &steps);
    let due_ms: Vec<_> = (0..8).map(|_| pacer.next_stamp_ns(0) / MS).collect();
    assert_eq!(due_ms, [0, 1, 5, 7, 9, 10, 14, 16]);
    let pacer = Pacer::in_steps(0, &steps);
    let due: Vec<_> = [0, 1, 2, 4, 5, 8, 9].map(|ms| pacer.due(ms * MS)).into();
    assert_eq!(due, [1, 2, 2, 2, 3, 4, 5]);
    assert_eq!(pacer.wake_at_ns(0), 0);
}

#[test]
fn high_rates_wake_in_ticks() {
    let mut pacer = Pacer::new(0, 1_000_000);
    assert_eq!(pacer.next_stamp_ns(0), 0);
    assert_eq!(pacer.wake_at_ns(0), TICK_NS);
    assert_eq!(pacer.due(TICK_NS), 100);
}

/// A broker that answers at once, but for 100 ms in which it takes nothing.
fn latencies_with_a_stall(corrected: bool) -> Summary {
    let mut pacer = Pacer::new(0, 1000);
    let recorder = Recorder::default();
    let mut now_ns = 0;
    while now_ns < 1000 * MS {
        for _ in 0..pacer.due(now_ns) {
            let stamp_ns = pacer.next_stamp_ns(now_ns);
            let sent_ns = if corrected { stamp_ns } else { now_ns };
            recorder.lock().add(now_ns - sent_ns);
        }
        let is_stalled = now_ns == 500 * MS;
        now_ns = if is_stalled { 600 * MS } else { pacer.wake_at_ns(now_ns) };
    }
    let mut total = new_histogram();
    recorder.take_into(&mut total);
    Summary::of(&total).unwrap()
}

#[test]
fn a_stall_shows_in_every_message_that_it_delays() {
    let naive = latencies_with_a_stall(false);
    assert!(naive.max_ns <= 1, "{naive:?}");
    let corrected = latencies_with_a_stall(true);
    assert_eq!(corrected.count, naive.count);
    // A tenth of the messages waited, up to 99 ms.
    assert!(corrected.median_ns <= 1, "{corrected:?}");
    assert!((85 * MS..101 * MS).contains(&corrected.p99_ns), "{corrected:?}");
    assert!((98 * MS..101 * MS).contains(&corrected.max_ns), "{corrected:?}");
    assert!((45 * MS..55 * MS).contains(&corrected.p95_ns), "{corrected:?}");
}

#[test]
fn figures_keep_three_digits() {
    let recorder = Recorder::default();
    for latency_us in 1..=1000 {
        recorder.lock().add(latency_us * 1000);
    }
    let mut total = new_histogram();
    recorder.take_into(&mut total);
    recorder.take_into(&mut total);
    let summary = Summary::of(&total).unwrap();
    assert_eq!(summary.count, 1000);
    for (latency_ns, expected_us) in [
        (summary.min_ns, 1),
        (summary.median_ns, 500),
        (summary.p75_ns, 750),
        (summary.p95_ns, 950),
        (summary.p99_ns, 990),
        (summary.p999_ns, 999),
        (summary.max_ns, 1000),
    ] {
        let error = latency_ns.abs_diff(expected_us * 1000) as f64 / (expected_us * 1000) as f64;
        assert!(error < 0.002, "{latency_ns} ns instead of {expected_us} us");
    }
}

#[test]
fn an_hour_and_more_is_an_hour() {
    let recorder = Recorder::default();
    recorder.lock().add(u64::MAX);
    recorder.lock().add(0);
    let mut total = new_histogram();
    recorder.take_into(&mut total);
    let summary = Summary::of(&total).unwrap();
    assert_eq!(summary.min_ns, 1);
    assert!(summary.max_ns.abs_diff(3_600_000_000_000) < 3_600_000_000, "{summary:?}");
}

#[test]
fn nothing_recorded_is_no_figures() {
    assert_eq!(Summary::of(&new_histogram()), None);
    assert!(percentile_curve(&new_histogram()).is_empty());
}

#[test]
fn the_percentile_curve_rises_to_the_longest() {
    let mut histogram = new_histogram();
    for latency_ns in 1..=100_000 {
        histogram.record(latency_ns).unwrap();
    }
    let curve = percentile_curve(&histogram);
    assert!(curve.len() > 30);
    assert!(
        curve.windows(2).all(|pair| pair[0].latency_ns <= pair[1].latency_ns
            && pair[0].percentile < pair[1].percentile)
    );
    assert_eq!(curve.last().unwrap().percentile, 100.0);
}
