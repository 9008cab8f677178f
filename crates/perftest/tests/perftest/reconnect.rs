//! Runs that go on when connections fail.

use crate::broker::{Broker, Faults};
use crate::runs::run_lines;

const LINE: &str = "--messages 400 --rate 1000 --confirm 10 --prefetch 10 --reconnect";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_after_the_broker_has_restarted() {
    let broker = Broker::start(Faults { restarts_at: Some(100), ..Faults::default() }).await;
    let report = run_lines(&broker, &format!("{LINE} --durable --persistent"), |_| ()).await;
    assert!(report.is_good(), "{:?}", report.fate);
    let fate = &report.fate;
    assert_eq!((report.published.total, fate.lost, fate.reconnects), (400, 0, 2), "{fate:?}");
    assert!((1..=10).contains(&fate.uncertain), "the one that broke it had no answer: {fate:?}");
    // Whether those without an answer have arrived is open; what comes twice counts twice.
    let arrived = report.consumed.total - fate.duplicates;
    assert!((400 - fate.uncertain..=400).contains(&arrived), "{report:?}");
    assert!(broker.queues().is_empty(), "what was made is deleted over a new connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_restart_has_lost_and_doubled_is_told() {
    let faults = Faults {
        restarts_at: Some(100),
        loses: Some(200),
        doubles: Some(300),
        ..Faults::default()
    };
    let broker = Broker::start(faults).await;
    let line = format!("{LINE} --durable --persistent --drain-timeout 3s");
    let report = run_lines(&broker, &line, |_| ()).await;
    assert_eq!(report.fate.lost, 1, "{:?}", report.fate);
    assert!(report.fate.duplicates >= 1, "{:?}", report.fate);
    assert!(!report.is_good());
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_that_a_restart_has_taken_are_made_again() {
    let broker = Broker::start(Faults { restarts_at: Some(100), ..Faults::default() }).await;
    let line = format!("{LINE} --exchange x --exchange-type fanout --drain-timeout 3s");
    let report = run_lines(&broker, &line, |_| ()).await;
    assert!(report.fate.failures.is_empty(), "{:?}", report.fate);
    assert_eq!(report.fate.reconnects, 2);
    assert!(report.consumed.total > 150, "{:?}", report.fate);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_that_a_restart_has_ended_is_not_lost() {
    let broker = Broker::start(Faults { restarts_at: Some(25), ..Faults::default() }).await;
    let line = "--messages 40 --rate 1000 --tx 10 --prefetch 10 --reconnect --durable";
    let report = run_lines(&broker, line, |_| ()).await;
    assert!(report.is_good(), "{:?}", report.fate);
    assert!((1..=10).contains(&report.fate.uncertain), "{:?}", report.fate);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_a_restart_ends_the_run() {
    let broker = Broker::start(Faults { restarts_at: Some(100), ..Faults::default() }).await;
    let report = run_lines(&broker, "--messages 400 --confirm 10 --prefetch 10", |_| ()).await;
    assert!(!report.fate.failures.is_empty());
    assert_eq!(report.fate.reconnects, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_stream_goes_on_behind_what_it_has_read() {
    for from in ["next", "first"] {
        let broker = Broker::start(Faults { restarts_at: Some(100), ..Faults::default() }).await;
        let line = format!("{LINE} --stream --stream-offset {from} --drain-timeout 10s");
        let report = run_lines(&broker, &line, |_| ()).await;
        assert!(report.is_good(), "{from}: {:?}", report.fate);
        assert_eq!((report.fate.lost, report.fate.duplicates), (0, 0), "{from}");
        let offset = broker.seen().consumers[1].get("x-stream-offset").unwrap().as_integer();
        assert!(offset.is_some_and(|offset| (1..100).contains(&offset)), "{from}: {offset:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_stream_that_has_read_nothing_misses_nothing() {
    let broker = Broker::start(Faults { restarts_at: Some(1), ..Faults::default() }).await;
    let report = run_lines(&broker, &format!("{LINE} --stream --drain-timeout 10s"), |_| ()).await;
    assert!(report.is_good(), "{:?}", report.fate);
    let offsets = broker.seen().consumers;
    let offsets: Vec<_> = offsets.iter().map(|of| of.get("x-stream-offset")).collect();
    assert_eq!(offsets, [None, Some(&"first".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_refuses_is_not_published_again() {
    for code in [403, 406] {
        let broker = Broker::start(Faults { rejects: Some(code), ..Faults::default() }).await;
        let report = run_lines(&broker, "--reconnect --messages 400 --duration 60s", |_| ()).await;
        let told = &report.fate.failures;
        assert!(told[0].starts_with("a producer failed: "), "{told:?}");
        assert!(told[0].contains(&code.to_string()), "{told:?}");
        assert_eq!(report.fate.reconnects, 0, "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_fails_over_and_over_waits_in_between_and_fails_the_run() {
    // The exchange is gone each time.
    let broker = Broker::start(Faults { rejects: Some(404), ..Faults::default() }).await;
    let report = run_lines(&broker, "--reconnect --duration 1s", |_| ()).await;
    let fate = &report.fate;
    assert!((1..30).contains(&fate.reconnects), "{fate:?}");
    assert_eq!(report.problems(), ["nothing of what was published was confirmed"]);
}
