//! What options make of the topology, of messages and of their times, as the broker sees it.

use courser_codec::FieldTable;
use courser_perftest::report::Fate;

use crate::broker::{Broker, Faults, Seen};
use crate::runs::run_lines;

/// A run that loses nothing, and what the broker has seen of it.
async fn seen(line: &str) -> Seen {
    let broker = Broker::start(Faults::default()).await;
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default(), "{line}");
    broker.seen()
}

fn integer(table: &FieldTable, name: &str) -> Option<i64> {
    table.get(name).and_then(courser_codec::FieldValue::as_integer)
}

fn text<'t>(table: &'t FieldTable, name: &str) -> Option<&'t str> {
    table.get(name).and_then(courser_codec::FieldValue::as_str)
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_the_queue_the_exchange_and_the_consumer() {
    let seen = seen(
        "--messages 3 --exchange x --queue-args x-max-length=5,x-overflow=reject-publish \
         --exchange-args alternate-exchange=spare --consumer-args x-priority=7,x-some=true",
    )
    .await;
    let (_, _, arguments) = &seen.queues[0];
    assert_eq!(integer(arguments, "x-max-length"), Some(5));
    assert_eq!(text(arguments, "x-overflow"), Some("reject-publish"));
    let (_, _, arguments) = &seen.exchanges[0];
    assert_eq!(text(arguments, "alternate-exchange"), Some("spare"));
    assert_eq!(integer(&seen.consumers[0], "x-priority"), Some(7));
    assert_eq!(seen.consumers[0].get("x-some"), Some(&true.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn quorum_queues_are_durable_and_have_a_time_to_live() {
    let seen = seen("--messages 3 --quorum --ttl 90s").await;
    let (_, durable, arguments) = &seen.queues[0];
    assert!(durable);
    assert_eq!(text(arguments, "x-queue-type"), Some("quorum"));
    assert_eq!(integer(arguments, "x-message-ttl"), Some(90_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_consumer_of_a_stream_reads_all_of_it() {
    let broker = Broker::start(Faults::default()).await;
    let line = "--messages 20 --stream --stream-offset first --consumers 3 --prefetch 10";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default(), "what stays in a stream is not left, nor doubled");
    assert_eq!((report.published.total, report.consumed.total), (20, 60));
    let seen = broker.seen();
    let (_, durable, arguments) = &seen.queues[0];
    assert!(durable);
    assert_eq!(text(arguments, "x-queue-type"), Some("stream"));
    assert_eq!(text(&seen.consumers[0], "x-stream-offset"), Some("first"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stream_keeps_does_not_hide_a_loss() {
    let broker = Broker::start(Faults { loses: Some(5), ..Faults::default() }).await;
    let line = "--messages 20 --stream --prefetch 10 --drain-timeout 1s";
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate { lost: 1, ..Fate::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn priorities_are_declared_and_published_in_turn() {
    let seen = seen("--messages 7 --max-priority 2").await;
    assert_eq!(integer(&seen.queues[0].2, "x-max-priority"), Some(2));
    let priorities: Vec<_> = seen.published.iter().map(|of| of.properties.priority).collect();
    assert_eq!(priorities, [0, 1, 2, 0, 1, 2, 0].map(Some));
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_on_every_message() {
    let seen = seen(
        "--messages 2 --persistent --headers a=1 --properties content_type=text/plain,priority=4,\
         expiration=60000,timestamp=12,type=t,reply_to=r,correlation_id=c,message_id=m,app_id=a,content_encoding=e",
    )
    .await;
    for published in &seen.published {
        let properties = &published.properties;
        let text = |text: &Option<courser_codec::ShortString>| text.as_ref().unwrap().to_string();
        assert_eq!(text(&properties.content_type), "text/plain");
        assert_eq!((properties.priority, properties.delivery_mode), (Some(4), Some(2)));
        assert_eq!(
            (text(&properties.expiration).as_str(), properties.timestamp),
            ("60000", Some(12))
        );
        assert_eq!(
            (text(&properties.kind).as_str(), text(&properties.reply_to).as_str()),
            ("t", "r")
        );
        let names = [&properties.correlation_id, &properties.message_id, &properties.app_id];
        assert_eq!(names.map(text), ["c", "m", "a"]);
        assert_eq!(text(&properties.content_encoding), "e");
        assert_eq!(integer(properties.headers.as_ref().unwrap(), "a"), Some(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn routing_keys_are_bound_and_take_turns() {
    let seen = seen("--messages 7 --exchange x --routing-key k --routing-keys 3").await;
    let keys: Vec<_> = seen.published.iter().map(|published| published.key.as_str()).collect();
    assert_eq!(keys, ["k.1", "k.2", "k.3", "k.1", "k.2", "k.3", "k.1"]);
    assert_eq!(seen.bindings, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn routing_keys_of_several_queues_reach_each_its_own() {
    let seen = seen("--messages 60 --exchange x --queues 2 --consumers 2 --routing-keys 5").await;
    assert_eq!(seen.bindings, 10);
    let mut keys: Vec<_> = seen.published.iter().map(|published| &published.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fanout_with_many_keys_has_one_binding() {
    let line = "--messages 9 --exchange x --exchange-type fanout --routing-keys 3";
    let seen = seen(line).await;
    assert_eq!((seen.bindings, seen.published[2].key.as_str()), (1, "perftest.3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_that_changes_is_kept_in_each_of_its_times() {
    // 100 a second for 300 ms, nothing for 200 ms, and once more; then nothing, however late the end comes.
    const RATES: &str = "100:300ms,0:200ms,100:300ms,0:60s";
    let broker = Broker::start(Faults::default()).await;
    let line = &format!("--duration 2s --variable-rate {RATES} --prefetch 10");
    let report = run_lines(&broker, line, |_| ()).await;
    assert_eq!(report.fate, Fate::default());
    assert_eq!(report.published.total, 60);
    assert_eq!(report.settings.variable_rate, RATES);
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_change_in_their_times() {
    let seen = seen("--duration 500ms --rate 200 --variable-size 20:50ms,3000:50ms").await;
    let mut sizes: Vec<_> = seen.published.iter().map(|published| published.size_bytes).collect();
    assert_eq!(sizes[0], 20);
    sizes.dedup();
    assert!(sizes.len() > 3, "they come again: {sizes:?}");
    sizes.sort_unstable();
    sizes.dedup();
    assert_eq!(sizes, [20, 3000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_go_to_several_brokers_and_past_one_that_is_not_there() {
    let brokers = [Broker::start(Faults::default()).await, Broker::start(Faults::default()).await];
    let uri = format!("{},amqp://127.0.0.1:1,{}", brokers[0].uri, brokers[1].uri);
    let line = format!("--uri {uri} --producers 3 --consumers 0 --messages 3");
    let report = run_lines(&brokers[0], &line, |_| ()).await;
    assert!(report.fate.failures.is_empty(), "{:?}", report.fate);
    // The first one has the setup and a producer, the second one its own producer and that of the missing one.
    assert_eq!(brokers.map(|broker| broker.seen().connections), [2, 2]);
}
