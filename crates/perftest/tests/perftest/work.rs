//! How producers and consumers work: channels, transactions, polling, refusals, slow consumers.

use std::time::Duration;

use courser_perftest::report::Fate;
use courser_perftest::{Options, run};
use tokio::sync::mpsc;

use crate::broker::{Broker, Faults};
use crate::command::PATIENCE;
use crate::runs::run_lines;

#[tokio::test(flavor = "multi_thread")]
async fn producers_and_consumers_share_connections_on_channels_of_their_own() {
    let broker = Broker::start(Faults::default()).await;
    let line = "--messages 50 --producers 5 --consumers 4 --channels 3 --prefetch 10";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    assert_eq!((report.published.total, report.consumed.total), (50, 50));
    // Two of producers, two of consumers, one to set up.
    assert_eq!(broker.seen().connections, 5);
    assert_eq!(broker.seen().consumers.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_committed_when_they_are_full_and_at_the_end() {
    let broker = Broker::start(Faults::default()).await;
    let report = run_lines(&broker, "--messages 25 --tx 10 --prefetch 10", |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    assert_eq!(broker.seen().commits, [10, 10, 5]);
    assert_eq!(report.confirmed.total, 25, "what is committed counts as confirmed");
    assert_eq!(report.confirm_latency.unwrap().count, 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_waited_for_once() {
    let broker = Broker::start(Faults { forgets_from: Some(1), ..Faults::default() }).await;
    let line = "--duration 100ms --tx 10 --prefetch 10 --drain-timeout 2s";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(broker.seen().commits, [10]);
    assert_eq!(report.fate, Fate { unconfirmed: 10, ..Fate::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_ends_the_wait_for_a_commit() {
    let broker = Broker::start(Faults { forgets_from: Some(1), ..Faults::default() }).await;
    let line = format!("perftest --uri {} --duration 1h --tx 10 --drain-timeout 1h", broker.uri);
    let options = Options::parse_from_args(line.split_whitespace()).unwrap();
    let (sender, interrupts) = mpsc::channel(2);
    let run = tokio::spawn(run(options, |_| (), interrupts));
    let begins = async {
        while broker.seen().commits.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, begins).await.unwrap();
    for _ in 0..2 {
        sender.send(()).await.unwrap();
    }
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap().unwrap();
    assert!(report.interrupted);
    assert_eq!(report.fate.unconfirmed, 10, "{:?}", report.fate);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_are_committed_when_a_transaction_is_full_and_at_the_end() {
    for polling in ["", "--polling"] {
        let broker = Broker::start(Faults::default()).await;
        let line = format!("--messages 25 --consumer-tx 10 --prefetch 10 {polling}");
        let report = run_lines(&broker, &line, |_| ()).await;
        assert_eq!(report.fate, Fate::default());
        assert_eq!(broker.seen().commits, [10, 10, 5]);
    }
    // Folded acknowledgements: of ten messages each, so every second one fills a transaction.
    let broker = Broker::start(Faults::default()).await;
    let line = "--messages 40 --consumer-tx 11 --multi-ack 10 --prefetch 20";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    assert_eq!(broker.seen().commits, [2, 2, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_takes_each_message_by_a_request() {
    let broker = Broker::start(Faults::default()).await;
    let report = run_lines(&broker, "--messages 20 --polling --polling-interval 1ms", |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    assert_eq!(report.consumed.total, 20);
    let seen = broker.seen();
    assert_eq!((seen.gets, seen.consumers.len()), (20, 0));
    assert_eq!(broker.acknowledgements().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fourth_message_is_refused_and_those_before_it_are_not() {
    for single in ["", "--consumer-rate 1000"] {
        let broker = Broker::start(Faults::default()).await;
        let line = format!("--messages 12 --nack-every 4 --multi-ack 10 --prefetch 10 {single}");
        let report = run_lines(&broker, &line, |_| ()).await;
        assert_eq!(report.fate, Fate { refused: 3, ..Fate::default() });
        let nacks: Vec<_> = broker.seen().nacks.iter().map(|nack| nack.delivery_tag).collect();
        assert_eq!(nacks, [4, 8, 12]);
        assert!(broker.seen().nacks.iter().all(|nack| !nack.requeue && !nack.multiple));
        let acks: Vec<_> = broker.acknowledgements().iter().map(|ack| ack.delivery_tag).collect();
        assert_eq!(acks, [3, 7, 11]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_back_is_taken_when_it_comes_again() {
    let broker = Broker::start(Faults::default()).await;
    let line = "--messages 12 --nack-every 1 --requeue --prefetch 10 --drain-timeout 20s";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate { refused: 12, ..Fate::default() });
    assert_eq!(report.consumed.total, 12, "{report:?}");
    let nacks = broker.seen().nacks;
    assert!(nacks.len() == 12 && nacks.iter().all(|nack| nack.requeue), "{nacks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_takes_no_more_than_its_rate() {
    let broker = Broker::start(Faults::default()).await;
    let line = "--messages 21 --consumer-rate 100 --prefetch 100";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    let took = Duration::from_secs_f64(report.duration_s + report.drain_s);
    assert!(took >= Duration::from_millis(195), "{took:?} for 20 times 10 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_acknowledged_when_the_work_on_it_is_done() {
    let broker = Broker::start(Faults::default()).await;
    let line = "--messages 5 --consumer-latency 50ms --prefetch 5";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    let took = Duration::from_secs_f64(report.duration_s + report.drain_s);
    assert!(took >= Duration::from_millis(245), "{took:?} for five times 50 ms");
    assert_eq!(broker.acknowledgements().len(), 5);
}
