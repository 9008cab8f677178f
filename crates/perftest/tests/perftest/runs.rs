//! Whole runs.

use std::time::{Duration, Instant};

use courser_perftest::report::{Fate, Report};
use courser_perftest::stamp::Stamp;
use courser_perftest::{Options, run};
use tokio::sync::mpsc;

use crate::broker::{Broker, Faults, Remake};

/// Runs against a broker and reports; `line` gets what is printed every second.
pub async fn run_lines(broker: &Broker, line: &str, printed: impl FnMut(&str)) -> Report {
    let uri = if line.contains("--uri") { String::new() } else { format!("--uri {}", broker.uri) };
    let line = format!("perftest {uri} {line}");
    let options = Options::parse_from_args(line.split_whitespace()).unwrap();
    let (_sender, interrupts) = mpsc::channel(1);
    run(options, printed, interrupts).await.unwrap()
}

/// Runs against a broker that fails; what is lost is not waited for as long as by default.
pub async fn run_on(faults: Faults, line: &str) -> Report {
    let line = format!("--drain-timeout 3s {line}");
    run_lines(&Broker::start(faults).await, &line, |_| ()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_by_time_loses_nothing_and_cleans_up() {
    let broker = Broker::start(Faults::default()).await;
    let mut lines = Vec::new();
    let report =
        run_lines(&broker, "--duration 1500ms --auto-ack --size 100 --confirm 0", |line| {
            lines.push(line.to_owned())
        })
        .await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert!(
        report.published.total > 100 && report.published.total == report.consumed.total,
        "{report:?}"
    );
    assert!((1.4..3.0).contains(&report.duration_s), "{}", report.duration_s);
    assert_eq!(report.consumer_latency.unwrap().count, report.consumed.total);
    assert_eq!(report.fate, Fate::default());
    assert_eq!((report.confirmed.total, report.confirm_latency), (0, None));
    assert_eq!(report.settings.broker, "Test broker 1");
    assert!(!lines.is_empty() && lines[0].starts_with("published: "), "{lines:?}");
    assert!(broker.queues().is_empty(), "the queue that was made is deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_by_messages_publishes_exactly_so_many() {
    let report = run_on(
        Faults::default(),
        "--messages 1001 --producers 3 --consumers 2 --confirm 10 --prefetch 50 --multi-ack 7",
    )
    .await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert_eq!((report.published.total, report.consumed.total), (1001, 1001));
    assert_eq!(report.confirmed.total, 1001);
    assert_eq!(report.confirm_latency.unwrap().count, 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_message_that_is_lost_fails_the_run() {
    let report =
        run_on(Faults { loses: Some(500), ..Faults::default() }, "--messages 1000 --confirm 100")
            .await;
    assert_eq!(report.fate, Fate { lost: 1, ..Fate::default() });
    assert!(!report.is_good());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_message_that_is_lost_fails_the_run_too() {
    let report = run_on(
        Faults { loses: Some(500), ..Faults::default() },
        "--messages 1000 --confirm 100 --size 4",
    )
    .await;
    assert_eq!(report.fate, Fate { lost: 1, ..Fate::default() });
    assert_eq!(report.consumer_latency, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_does_not_hide_a_loss() {
    let faults = Faults { loses: Some(5), doubles: Some(7), ..Faults::default() };
    let report = run_on(faults, "--messages 1000 --auto-ack --confirm 0").await;
    assert_eq!(report.fate, Fate { lost: 1, duplicates: 1, ..Fate::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_fails_the_run_and_is_not_lost() {
    let report =
        run_on(Faults { refuses: Some(500), ..Faults::default() }, "--messages 1000 --confirm 100")
            .await;
    assert_eq!(report.fate, Fate { nacked: 1, ..Fate::default() });
    assert!(!report.is_good());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_stays_unconfirmed_fails_the_run() {
    let report = run_on(
        Faults { forgets_from: Some(998), ..Faults::default() },
        "--messages 1000 --confirm 100",
    )
    .await;
    assert_eq!(report.fate, Fate { unconfirmed: 3, ..Fate::default() });
    assert!(!report.is_good());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_stops_confirming_does_not_hold_up_the_end() {
    let begun = Instant::now();
    let report = run_on(
        Faults { forgets_from: Some(50), ..Faults::default() },
        "--duration 300ms --confirm 10",
    )
    .await;
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(report.fate.unconfirmed, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_fails_the_run() {
    for faults in [
        Faults { breaks_at: Some(500), ..Faults::default() },
        Faults { closes_at: Some(500), ..Faults::default() },
    ] {
        let report = run_on(faults, "--duration 20s --confirm 10").await;
        assert!(report.duration_s < 10.0, "the run ends at once");
        assert!(report.fate.failures[0].starts_with("a producer failed: "), "{:?}", report.fate);
        assert!(!report.is_good());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mandatory_messages_that_come_back_are_counted_and_not_lost() {
    let returns = Faults { returns: Some(<[u8]>::to_vec), ..Faults::default() };
    for (faults, line) in [(Faults::default(), "--routing-key nowhere"), (returns, "--producers 2")]
    {
        let report =
            run_on(faults, &format!("--messages 100 --mandatory --confirm 10 {line}")).await;
        assert!(report.is_good(), "{:?}", report.fate);
        assert_eq!(report.fate.returned, 100);
    }
}

/// A body with another stamp than the one that it has.
fn restamped(body: &[u8], change: fn(&mut Stamp)) -> Vec<u8> {
    let mut stamp = Stamp::read(body).unwrap();
    change(&mut stamp);
    stamp.to_bytes().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_and_was_not_published_here_excuses_nothing() {
    let others: [Remake; 6] = [
        |body| restamped(body, |stamp| stamp.run ^= 1),
        |body| restamped(body, |stamp| stamp.time_ns = 1),
        |body| restamped(body, |stamp| stamp.producer ^= 1),
        |body| restamped(body, |stamp| stamp.producer = 4000),
        |body| restamped(body, |stamp| stamp.number += 100),
        |body| body[..8].to_vec(),
    ];
    let mut runs = tokio::task::JoinSet::new();
    for other in others {
        let faults = Faults { returns: Some(other), ..Faults::default() };
        runs.spawn(run_on(faults, "--messages 100 --producers 2 --mandatory --confirm 10"));
    }
    for Report { fate, .. } in runs.join_all().await {
        assert_eq!((fate.lost, fate.foreign, fate.returned), (100, 100, 0), "{fate:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fanout_is_consumed_from_every_queue() {
    let broker = Broker::start(Faults::default()).await;
    let report = run_lines(
        &broker,
        "--messages 500 --exchange x --exchange-type fanout --queues 3 --consumers 3",
        |_| (),
    )
    .await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert_eq!((report.published.total, report.consumed.total), (500, 1500));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_others_are_told_apart() {
    let broker = Broker::start(Faults::default()).await;
    broker.leave("perftest", &Stamp { time_ns: 1, run: 0, producer: 0, number: 3 }.to_bytes());
    broker.leave("perftest", b"small");
    let report = run_lines(&broker, "--messages 100", |_| ()).await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert_eq!((report.consumed.total, report.fate.foreign), (100, 2));
    assert_eq!(broker.queues(), ["perftest"], "a queue that was there stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_left_and_drained() {
    let broker = Broker::start(Faults::default()).await;
    let filled = run_lines(&broker, "--messages 200 --consumers 0", |_| ()).await;
    assert!(filled.is_good(), "{:?}", filled.fate);
    assert_eq!((filled.fate.left, broker.queues().len()), (200, 1));
    let drained = run_lines(&broker, "--messages 200 --producers 0", |_| ()).await;
    assert!(drained.is_good(), "{:?}", drained.fate);
    assert_eq!((drained.consumed.total, drained.fate.left), (200, 0));
    assert_eq!(
        drained.consumer_latency.map(|latency| latency.count),
        None,
        "it was sent before this run"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_are_folded_as_asked_for_and_none_is_left_out() {
    let broker = Broker::start(Faults::default()).await;
    run_lines(&broker, "--messages 25 --prefetch 20 --multi-ack 10", |_| ()).await;
    let ack = |delivery_tag| courser_codec::basic::Ack { delivery_tag, multiple: true };
    assert_eq!(broker.acknowledgements(), [ack(10), ack(20), ack(25)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_kept() {
    let report = run_on(Faults::default(), "--duration 1s --rate 500 --auto-ack").await;
    let per_s = report.published.total as f64 / report.duration_s;
    assert!((480.0..520.0).contains(&per_s), "{per_s} messages a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_warm_up_is_not_counted() {
    let report =
        run_on(Faults::default(), "--warmup 500ms --duration 500ms --rate 1000 --auto-ack").await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert!((400..=600).contains(&report.published.total), "{} messages", report.published.total);
    assert!((0.45..0.7).contains(&report.duration_s), "{}", report.duration_s);
    assert!(report.series[0].warmup && !report.series.last().unwrap().warmup);
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_are_of_the_measured_time_and_what_comes_behind_it_is_told_apart() {
    let broker = Broker::start(Faults { drips: true, ..Faults::default() }).await;
    // The limit is reached at once, so all is published at the beginning of what is measured.
    let line = "--messages 40 --confirm 0 --prefetch 0";
    let report = run_lines(&broker, line, |_| ()).await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert_eq!((report.published.total, report.consumed.total), (40, 40));
    assert!(report.consumed.drained > 0 && report.published.drained == 0, "{report:?}");
    let measured = report.consumed.total - report.consumed.drained;
    assert_eq!(report.consumed.per_s, measured as f64 / report.duration_s);
    assert_eq!(report.published.per_s, 40.0 / report.duration_s);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_counts_the_time_in_which_nothing_could_be_published() {
    // The tenth confirm never comes, so publishing stands still from the twentieth message on.
    let faults = Faults { forgets_from: Some(10), ..Faults::default() };
    let report = run_on(faults, "--duration 1s --confirm 10").await;
    assert_eq!(report.published.per_s, report.published.total as f64 / report.duration_s);
    assert!(report.published.per_s < 20.0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_the_warm_up_that_come_late_are_told() {
    let broker = Broker::start(Faults { drips: true, ..Faults::default() }).await;
    let line = "--warmup 300ms --duration 300ms --rate 500 --confirm 0";
    let report = run_lines(&broker, line, |_| ()).await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert!(report.consumed_from_warmup > 0, "{report:?}");
    assert!(report.consumed_from_warmup < report.consumed.total, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drain_ends_in_time_though_messages_keep_coming() {
    let faults = Faults { drips: true, ..Faults::default() };
    let report = run_on(faults, "--messages 2000 --confirm 0").await;
    let fate = &report.fate;
    assert!(fate.undrained > 0, "{fate:?}");
    assert_eq!(report.consumed.total + fate.undrained, 2000, "{fate:?}");
    assert_eq!((fate.lost, fate.left), (0, fate.undrained));
    let told = format!("{} messages were left after 3s (--drain-timeout)", fate.undrained);
    assert_eq!(report.problems(), [told]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_a_listener_is_an_error_at_once() {
    let options = Options::parse_from_args(["perftest", "--uri", "amqp://127.0.0.1:1"]).unwrap();
    let (_sender, interrupts) = mpsc::channel(1);
    let error = run(options, |_| (), interrupts).await.unwrap_err();
    assert!(
        error.to_string().starts_with("setting up: cannot connect to 127.0.0.1:1: "),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_start_deletes_what_it_has_declared() {
    let broker = Broker::start(Faults::default()).await;
    let line =
        format!("perftest --uri {} --exchange x --consumer-args x-priority=high", broker.uri);
    let options = Options::parse_from_args(line.split_whitespace()).unwrap();
    let (_sender, interrupts) = mpsc::channel(1);
    let error = run(options, |_| (), interrupts).await.unwrap_err();
    assert!(error.to_string().starts_with("consumer 1: "), "{error}");
    assert_eq!((broker.seen().queues.len(), broker.queues().len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_run_says_where_its_metrics_are_and_nothing_else() {
    let broker = Broker::start(Faults::default()).await;
    let mut lines = Vec::new();
    let line = "--quiet --metrics 127.0.0.1:0 --duration 1500ms --rate 10";
    run_lines(&broker, line, |line| lines.push(line.to_owned())).await;
    assert!(lines.len() == 1 && lines[0].starts_with("metrics: http://127.0.0.1:"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_has_every_setting_that_changes_what_is_measured() {
    let broker = Broker::start(Faults::default()).await;
    let settings = async |line: &str| {
        let report =
            run_lines(&broker, &format!("--exchange x --messages 2 --prefetch 10 {line}"), |_| ())
                .await;
        serde_json::to_value(report.settings).unwrap()
    };
    let before = settings("").await;
    for line in [
        "--consumer-rate 1000",
        "--consumer-latency 1ms",
        "--polling",
        "--nack-every 2",
        "--consumer-tx 2",
        "--routing-key k",
        "--headers a=1",
        "--properties type=t",
        "--consumer-args x-priority=1",
        "--exchange-args a=b",
        "--mandatory",
        "--reconnect",
    ] {
        assert_ne!(settings(line).await, before, "{line}");
    }
}
