//! Transactions: publishes and settlements that take effect together.

use crate::support::{Client, Heard, Message, Step, World, WorldOnDisk, declare_with, short};
use courser_broker::{Broker, Limits};
use courser_codec::{FieldTable, Table, basic, tx};
use courser_journal::testing::{Call, WatchedStore};
use courser_store::{MemoryGauge, MemoryStore, Store, StoreError};
use std::sync::Arc;

fn transactional(world: &World) -> Client {
    let mut client = world.connect();
    client.declare("q");
    client.tx_select();
    client
}

/// A broker in memory, and what stands before its store.
fn world_watched() -> (World, Arc<WatchedStore>) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let store = Arc::new(WatchedStore::new(store));
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let broker = Broker::new(shared, gauge, Limits::default(), 7);
    (World { broker, log: None }, store)
}

#[test]
fn publishes_wait_for_the_commit() {
    let world = World::new();
    let mut client = transactional(&world);
    client.fill("q", &["1", "2"]);
    client.read(&[Step::PublishLarge(1, Message::new("", "q", "3"))]);
    assert_eq!(world.counts("q"), (0, 0, 0));
    client.commit();
    assert_eq!(world.counts("q"), (3, 0, 0));
    client.commit();
    let mut other = world.connect();
    assert_eq!(other.pop_all("q"), ["1", "2", "3"]);
}

#[test]
fn a_rollback_forgets_publishes() {
    let world = World::new();
    let mut client = transactional(&world);
    client.fill("q", &["forgotten"]);
    client.rollback();
    client.fill("q", &["kept"]);
    client.commit();
    assert_eq!(world.connect().pop_all("q"), ["kept"]);
}

#[test]
fn a_transaction_is_its_channels_alone() {
    let world = World::new();
    let mut client = transactional(&world);
    client.open_channel(2);
    client.call_on(2, tx::Select {});
    client.open_channel(3);
    let publish = |channel, body| Step::Publish(channel, Message::new("", "q", body));
    client.read(&[publish(1, "1"), publish(2, "2"), publish(3, "at once")]);
    let mut other = transactional(&world);
    other.fill("q", &["other"]);
    assert_eq!(world.counts("q"), (1, 0, 0));
    client.commit();
    assert_eq!(world.counts("q"), (2, 0, 0));
    client.call_on(2, tx::Rollback {});
    client.call_on(2, tx::Commit {});
    assert_eq!(world.counts("q"), (2, 0, 0));
    other.commit();
    assert_eq!(world.connect().pop_all("q"), ["at once", "1", "other"]);
}

#[test]
fn acknowledgements_wait_for_the_commit() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1", "2", "3"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1", "2", "3"]);
    client.ack(1);
    client.tell(basic::Nack { delivery_tag: 2, multiple: false, requeue: false });
    assert_eq!(world.counts("q"), (0, 3, 1));
    client.commit();
    assert_eq!(world.counts("q"), (0, 1, 1));
}

#[test]
fn a_requeue_waits_for_the_commit() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1"]);
    client.requeue(1);
    assert_eq!(client.bodies(), Vec::<String>::new());
    client.commit();
    assert_eq!(client.bodies(), ["1"]);
}

#[test]
fn a_rollback_undoes_acknowledgements_and_requeues_nothing() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1", "2", "3"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1", "2", "3"]);
    client.ack(2);
    client.ack_through(1);
    client.rollback();
    assert_eq!(world.counts("q"), (0, 3, 1));
    assert_eq!(client.bodies(), Vec::<String>::new());
    client.ack_through(2);
    client.commit();
    assert_eq!(world.counts("q"), (0, 1, 1));
}

#[test]
fn an_unknown_tag_is_refused_at_once() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1"]);
    client.ack(1);
    let twice = basic::Ack { delivery_tag: 1, multiple: false };
    assert_eq!(client.refused(twice), "406 PRECONDITION_FAILED - unknown delivery tag 1");
}

#[test]
fn closing_the_channel_forgets_publishes_and_requeues_what_was_only_acknowledged_so_far() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1", "2"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1", "2"]);
    client.ack(1);
    client.fill("q", &["never"]);
    client.close_channel(1);
    assert_eq!(world.connect().pop_all("q"), ["1", "2"]);
}

#[test]
fn a_lost_connection_forgets_the_transaction() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1"]);
    let polled = client.get("q").expect("a message");
    client.ack(polled.tag);
    client.fill("q", &["never"]);
    drop(client);
    assert_eq!(world.connect().pop_all("q"), ["1"]);
}

#[test]
fn a_channel_opened_anew_is_not_transactional() {
    let world = World::new();
    let mut client = transactional(&world);
    client.close_channel(1);
    client.open_channel(1);
    client.fill("q", &["at once"]);
    assert_eq!(world.counts("q"), (1, 0, 0));
}

#[test]
fn a_bad_publish_is_refused_at_once() {
    let world = World::new();
    let mut client = transactional(&world);
    let text = client.refused_publish(Message::new("x", "", "refused"));
    assert_eq!(text, "404 NOT_FOUND - no exchange 'x' in vhost '/'");
    let mut client = transactional(&world);
    let text = client.refused_publish(Message::new("", "q", "refused").expiration("x"));
    assert!(text.starts_with("406 "), "{text}");
}

#[test]
fn an_unroutable_mandatory_message_is_returned_at_the_commit() {
    let world = World::new();
    let mut client = transactional(&world);
    client.send(Message::new("", "missing", "back").mandatory());
    assert_eq!(client.heard(), []);
    client.read(&[Step::Call(1, tx::Commit {}.into())]);
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::Return { .. }, Heard::Done("tx.commit-ok")]), "{heard:?}");
}

#[test]
fn a_commit_to_an_exchange_that_has_gone_is_refused_as_a_whole() {
    let world = World::new();
    let mut client = transactional(&world);
    world.connect().fill("q", &["1"]);
    let polled = client.get("q").expect("a message");
    client.ack(polled.tag);
    client.declare_exchange("x", "fanout");
    client.send(Message::new("x", "", "lost").mandatory());
    client.fill("q", &["not kept"]);
    client.call(courser_codec::exchange::Delete { exchange: short("x"), ..Default::default() });
    assert_eq!(client.refused(tx::Commit {}), "404 NOT_FOUND - no exchange 'x' in vhost '/'");
    assert_eq!(client.heard(), []);
    assert_eq!(world.connect().pop_all("q"), ["1"]);
}

#[test]
fn a_commit_without_room_has_no_effect() {
    let (world, store) = world_watched();
    let mut client = transactional(&world);
    client.declare("out");
    let delayed = FieldTable::new().with("x-delayed-type", "fanout").to_entries();
    let declared = client.call(courser_codec::exchange::Declare {
        exchange: short("later"),
        kind: short("x-delayed-message"),
        arguments: Table::from_entries(&delayed),
        ..Default::default()
    });
    assert_eq!(declared, Heard::Done("exchange.declare-ok"));
    let waiting = Message::new("later", "", "late").headers(FieldTable::new().with("x-delay", 5));
    for message in [Message::new("", "out", "done"), waiting] {
        world.connect().fill("q", &["job"]);
        let polled = client.get("q").expect("a message");
        client.ack(polled.tag);
        client.send(message);
        store.set_faults(|call| (call == Call::Keep).then_some(StoreError::Full));
        let text = client.fatal(tx::Commit {});
        store.heal();
        assert!(text.starts_with("506 "), "{text}");
        assert_eq!(world.counts("q"), (1, 0, 0), "the acknowledgement is undone");
        assert_eq!(world.counts("out"), (0, 0, 0));
        assert_eq!(world.connect().pop_all("q"), ["job"]);
        client = world.connect();
        client.tx_select();
    }
}

#[test]
fn selecting_twice_keeps_the_transaction() {
    let world = World::new();
    let mut client = transactional(&world);
    client.fill("q", &["1"]);
    client.tx_select();
    client.commit();
    assert_eq!(world.counts("q"), (1, 0, 0));
}

#[test]
fn a_commit_frees_the_prefetch() {
    let world = World::new();
    let mut client = transactional(&world);
    client.qos(1);
    world.connect().fill("q", &["1", "2"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1"]);
    client.ack(1);
    assert_eq!(client.bodies(), Vec::<String>::new());
    client.commit();
    assert_eq!(client.bodies(), ["2"]);
}

#[test]
fn a_transaction_holds_no_more_than_it_may() {
    let limits = Limits { transaction_max_bytes: 10_000, ..Limits::default() };
    let world = World::with(limits);
    let mut client = transactional(&world);
    let body = "x".repeat(4000);
    client.publish("", "q", &body);
    client.publish("", "q", &body);
    assert_eq!(
        client.refused_publish(Message::new("", "q", &body)),
        "406 PRECONDITION_FAILED - transaction limit (10000 bytes) of the connection reached"
    );
    client.tx_select();
    client.publish("", "q", &body);
    client.commit();
    client.publish("", "q", &body);
    client.publish("", "q", &body);
    client.commit();
    assert_eq!(world.counts("q"), (3, 0, 0), "a commit makes room, and a closed channel forgets");
}

#[test]
fn a_transaction_holds_no_more_publishes_than_it_may() {
    let limits = Limits { transaction_publishes_max: 2, ..Limits::default() };
    let world = World::with(limits);
    let mut client = transactional(&world);
    client.fill("q", &["1", "2"]);
    assert_eq!(
        client.refused_publish(Message::new("", "q", "3")),
        "406 PRECONDITION_FAILED - transaction limit (2 publishes) of channel 1 reached"
    );
    client.tx_select();
    client.open_channel(2);
    client.call_on(2, tx::Select {});
    let one = |channel| Step::Publish(channel, Message::new("", "q", "x"));
    client.read(&[one(1), one(1), one(2), one(2)]);
    client.commit();
    client.read(&[one(1), one(1)]);
    client.commit();
    assert_eq!(world.counts("q"), (4, 0, 0), "each channel has its own, and a commit makes room");
}

/// Declares queue `q`, whose letters go to queue `dead`.
fn declare_with_letters(client: &mut Client) {
    let letters = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(client, "q", true, &letters);
    declare_with(client, "dead", true, &FieldTable::new());
}

#[test]
fn a_commit_is_answered_when_its_rejections_are_durable() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with_letters(&mut client);
    client.send(Message::new("", "q", "rejected").with_properties(|of| of.delivery_mode = Some(2)));
    world.flush();
    client.tx_select();
    let delivery_tag = client.get("q").expect("a message").tag;
    client.tell(basic::Reject { delivery_tag, requeue: false });
    client.read(&[Step::Call(1, tx::Commit {}.into())]);
    assert_eq!(client.heard(), [], "the letter is not on the disk");
    world.flush();
    assert_eq!(client.heard(), [Heard::Done("tx.commit-ok")]);
    world.crash(|| client.disconnect());
    assert_eq!((world.counts("q"), world.counts("dead")), ((0, 0, 0), (1, 0, 0)));
}

#[test]
fn more_rejections_than_are_written_at_once_are_in_one_of_two_queues_after_a_crash() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with_letters(&mut client);
    let bodies: Vec<String> = (0..5000).map(|number| format!("{number:0>4}")).collect();
    let persistent =
        |body| Message::new("", "q", body).with_properties(|of| of.delivery_mode = Some(2));
    let steps: Vec<_> = bodies.iter().map(|body| Step::Publish(1, persistent(body))).collect();
    client.read(&steps);
    client.tx_select();
    client.consume("q");
    let delivery_tag = client.deliveries().last().expect("messages").tag;
    assert_eq!(delivery_tag, 5000);
    client.tell(basic::Nack { delivery_tag, multiple: true, requeue: false });
    client.read(&[Step::Call(1, tx::Commit {}.into())]);
    world.flush();
    assert_eq!(client.heard(), [Heard::Done("tx.commit-ok")]);
    world.crash(|| client.disconnect());
    let mut client = world.connect();
    let (dead, not_yet) = (client.pop_all("dead"), client.pop_all("q"));
    assert_eq!(dead.len(), 4096);
    assert_eq!([dead, not_yet].concat(), bodies);
    client.disconnect();
}
