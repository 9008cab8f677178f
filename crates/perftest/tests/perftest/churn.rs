//! Opening and closing over and over.

use courser_perftest::churn::{self, ChurnReport};
use courser_perftest::cli::{Arguments, Command};
use tokio::sync::mpsc;

use crate::broker::{Broker, Faults, Seen};
use crate::command::PATIENCE;

async fn churn(line: &str) -> (ChurnReport, Seen) {
    let broker = Broker::start(Faults::default()).await;
    let line = format!("perftest churn {line} --uri {}", broker.uri);
    let arguments = Arguments::parse_from_args(line.split_whitespace()).unwrap();
    let Some(Command::Churn(options)) = arguments.command else { panic!("{line}") };
    let (_sender, interrupts) = mpsc::channel(1);
    let report = churn::run(options, interrupts).await.unwrap();
    assert_eq!(report.failures, [""; 0], "{line}");
    assert!(broker.queues().is_empty(), "{line}");
    (report, broker.seen())
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_opened_and_closed() {
    let (report, seen) = churn("connections --count 20 --workers 2").await;
    assert_eq!((report.total, report.latency.unwrap().count), (20, 20));
    assert_eq!(seen.connections, 22, "each worker has one to begin with");
    let text = report.render();
    assert!(
        text.contains("Connections opened and closed: 20 (") && text.contains("  99th: "),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_opened_and_closed() {
    let (report, seen) = churn("channels --count 20").await;
    assert_eq!((report.total, seen.channels, seen.connections), (20, 21, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_declared_and_deleted() {
    let (report, seen) = churn("queues --count 20 --workers 3").await;
    assert_eq!((report.total, seen.queues.len(), seen.deleted_queues), (20, 20, 20));
    assert!(seen.queues.iter().all(|(_, durable, _)| !durable));
    let (_, seen) = churn("queues --count 1 --durable").await;
    assert!(seen.queues[0].1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_are_made_and_removed() {
    let (report, seen) = churn("bindings --count 20").await;
    assert_eq!((report.total, seen.bindings, seen.unbindings), (20, 20, 20));
    assert_eq!(seen.deleted_queues, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_come_and_go() {
    let (report, seen) = churn("consumers --count 20").await;
    assert_eq!((report.total, seen.consumers.len()), (20, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_ends_it() {
    let (report, _) = churn("channels --duration 200ms").await;
    assert!(report.total > 0 && report.duration_s >= 0.2, "{report:?}");
    assert_eq!(report.per_s, report.total as f64 / report.duration_s);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_not_there_is_a_failure() {
    let line = ["perftest", "churn", "channels", "--uri", "amqp://127.0.0.1:1", "--workers", "2"];
    let Some(Command::Churn(options)) = Arguments::parse_from_args(line).unwrap().command else {
        panic!("{line:?}")
    };
    let (_sender, interrupts) = mpsc::channel(1);
    let report = churn::run(options, interrupts).await.unwrap();
    assert_eq!(report.failures.len(), 2);
    assert!(report.render().contains("FAILED: a worker failed: cannot connect to 127.0.0.1:1"));
}

/// Churns on a broker that does not answer, with so many interrupts to begin with.
async fn churn_in_vain(line: &str, interrupts: usize) -> ChurnReport {
    let broker = Broker::start(Faults { declares_nothing: true, ..Faults::default() }).await;
    let line = format!("perftest churn queues {line} --uri {}", broker.uri);
    let arguments = Arguments::parse_from_args(line.split_whitespace()).unwrap();
    let Some(Command::Churn(options)) = arguments.command else { panic!("{line}") };
    let (sender, receiver) = mpsc::channel(2);
    for _ in 0..interrupts {
        sender.send(()).await.unwrap();
    }
    tokio::time::timeout(PATIENCE, churn::run(options, receiver)).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_answer_is_told_and_not_waited_for() {
    let report = churn_in_vain("--duration 100ms --workers 2", 0).await;
    assert_eq!(report.failures, ["2 workers had no answer for 10s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_ends_the_wait_for_workers() {
    let report = churn_in_vain("--duration 1h", 2).await;
    assert_eq!((report.total, report.failures), (0, Vec::new()));
}
