//! `x-message-deduplication` beside other features: whatever way a message takes, it comes once; what did
//! not arrive may be sent again, and what comes back is no repetition.

use crate::recent_history_beside_others::history;
use crate::support::{Client, Heard, Message, World, WorldOnDisk, declare_with, owned, short};
use courser_broker::admin::{MoveTo, Selection};
use courser_broker::{Broker, Limits};
use courser_codec::{FieldTable, Table, basic, exchange, tx};
use courser_journal::testing::{Call, WatchedStore};
use courser_store::{MemoryGauge, MemoryStore, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

fn message(exchange: &str, key: &str, id: &str, body: &str) -> Message {
    let headers = FieldTable::new().with("x-deduplication-header", id);
    Message::new(exchange, key, body).headers(headers)
}

pub fn remembering(size: i32) -> FieldTable {
    FieldTable::new().with("x-message-deduplication", true).with("x-cache-size", size)
}

fn full() -> FieldTable {
    FieldTable::new().with("x-max-length", 1).with("x-overflow", "reject-publish")
}

pub fn declare_exchange(client: &mut Client, name: &str, kind: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let declare = exchange::Declare {
        exchange: short(name),
        kind: short(kind),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
}

/// A client, and a fanout exchange `once` that drops what it has had, with the queue `q` behind it.
fn with_once() -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    declare_exchange(&mut client, "once", "fanout", &remembering(100));
    client.declare("q");
    client.bind("q", "once", "");
    (world, client)
}

/// Sends a message three times, with a body that says which time it is.
fn thrice(client: &mut Client, exchange: &str, id: &str) {
    ["1", "2", "3"].iter().for_each(|time| client.send(message(exchange, "k", id, time)));
}

#[test]
fn a_binding_between_exchanges_leads_a_message_there_once() {
    let (_world, mut client) = with_once();
    client.declare_exchange("in", "fanout");
    client.bind_exchange("once", "in", "");
    client.declare("always");
    client.bind("always", "in", "");
    thrice(&mut client, "in", "a");
    assert_eq!(client.pop_all("q"), ["1"]);
    assert_eq!(client.pop_all("always"), ["1", "2", "3"]);
    thrice(&mut client, "once", "a");
    assert_eq!(client.pop_all("q"), Vec::<String>::new(), "it has come the other way");
}

#[test]
fn what_an_operator_moves_and_copies_of_what_is_traced_are_no_repetitions() {
    let (world, mut client) = with_once();
    client.send(message("once", "k", "a", "1"));
    assert_eq!(client.pop_all("q"), ["1"]);
    client.declare("other");
    client.send(message("", "other", "a", "moved"));
    let selection = Selection::default();
    let to = MoveTo::Exchange(owned("once"), None);
    let moved =
        world.broker.admin().relocate("/", b"other", &selection, &to, &|_| Some(true), false);
    assert_eq!(moved.expect("it can be done").moved, 1);
    assert_eq!(client.pop_all("q"), ["moved"]);
    thrice(&mut client, "once", "a");
    assert_eq!(client.pop_all("q"), Vec::<String>::new());

    declare_with(&mut client, "trace", false, &remembering(100));
    client.bind("trace", "amq.rabbitmq.trace", "publish.#");
    world.broker.admin().change_vhost("/", |settings| settings.tracing = true).expect("a vhost");
    thrice(&mut client, "once", "a");
    assert_eq!(client.pop_all("trace"), ["1", "2", "3"]);
}

#[test]
fn what_an_exchange_has_had_does_not_come_to_what_is_behind_it() {
    let (_world, mut client) = with_once();
    client.declare_exchange("behind", "fanout");
    client.bind_exchange("behind", "once", "");
    client.declare("far");
    client.bind("far", "behind", "");
    client.declare_exchange("in", "fanout");
    client.bind_exchange("once", "in", "");
    thrice(&mut client, "in", "a");
    assert_eq!(client.pop_all("far"), ["1"]);
}

#[test]
fn an_alternate_exchange_takes_a_message_once_and_none_is_returned() {
    let (_world, mut client) = with_once();
    let alternate = FieldTable::new().with("alternate-exchange", "once");
    declare_exchange(&mut client, "in", "direct", &alternate);
    for body in ["1", "2"] {
        client.send(message("in", "none", "a", body).mandatory());
    }
    assert_eq!(client.heard(), []);
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn a_delayed_message_comes_once() {
    let (world, mut client) = with_once();
    let fanout = FieldTable::new().with("x-delayed-type", "fanout");
    declare_exchange(&mut client, "later", "x-delayed-message", &fanout);
    client.bind_exchange("once", "later", "");
    for body in ["1", "2", "3"] {
        let headers = FieldTable::new().with("x-deduplication-header", "a").with("x-delay", 10);
        client.send(Message::new("later", "", body).headers(headers));
    }
    world.broker.tick(10);
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn an_exchange_that_delays_and_drops_sends_on_what_it_has_taken() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = remembering(100).with("x-delayed-type", "fanout");
    declare_exchange(&mut client, "later", "x-delayed-message", &arguments);
    client.declare("q");
    client.bind("q", "later", "");
    for body in ["1", "2"] {
        let headers = FieldTable::new().with("x-deduplication-header", "a").with("x-delay", 10);
        client.send(Message::new("later", "", body).headers(headers));
    }
    world.broker.tick(10);
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn what_an_exchange_remembers_comes_once_however_often_it_is_bound() {
    for is_acknowledged in [true, false] {
        let world = World::new();
        let mut client = world.connect();
        history(&mut client, "recent", 10, false);
        ["a", "b"].iter().for_each(|id| client.send(message("recent", "", id, id)));
        let by_presence = FieldTable::new().with("x-message-deduplication", true);
        let arguments = if is_acknowledged { remembering(100) } else { by_presence };
        declare_with(&mut client, "q", false, &arguments);
        client.bind("q", "recent", "");
        if is_acknowledged {
            assert_eq!(client.pop_all("q"), ["a", "b"]);
        }
        client.unbind("q", "recent", "");
        client.send(message("recent", "", "c", "c"));
        ["", "another"].iter().for_each(|key| client.bind("q", "recent", key));
        ["a", "b", "c"].iter().for_each(|id| client.send(message("recent", "", id, "again")));
        let new: &[&str] = if is_acknowledged { &["c"] } else { &["a", "b", "c"] };
        assert_eq!(client.pop_all("q"), new);
    }
}

#[test]
fn what_an_exchange_remembers_and_a_queue_has_is_not_written() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    history(&mut client, "recent", 10, true);
    declare_with(&mut client, "q", true, &FieldTable::new().with("x-message-deduplication", true));
    for id in ["a", "b"] {
        client.send(message("recent", "", id, id).with_properties(|of| of.delivery_mode = Some(2)));
    }
    client.bind("q", "recent", "");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    world.store().set_faults(move |call| {
        seen.lock().push(call);
        None
    });
    client.bind("q", "recent", "another");
    world.store().heal();
    let written = |call: &&Call| **call != Call::Read;
    assert_eq!(calls.lock().iter().filter(written).count(), 1, "the binding alone");
    assert_eq!(client.pop_all("q"), ["a", "b"]);
}

fn reject(client: &mut Client, queue: &str) {
    let delivery = client.get(queue).expect("a message");
    client.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
}

#[test]
fn dead_letters_come_once() {
    let (_world, mut client) = with_once();
    let letters = FieldTable::new().with("x-dead-letter-exchange", "once");
    declare_with(&mut client, "dying", false, &letters);
    for body in ["1", "2", "3"] {
        client.send(message("", "dying", "a", body));
    }
    (0..3).for_each(|_| reject(&mut client, "dying"));
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn a_dead_letter_that_comes_back_is_no_repetition() {
    let world = World::new();
    let mut client = world.connect();
    declare_exchange(&mut client, "once", "fanout", &remembering(100));
    client.declare_exchange("in", "fanout");
    client.bind_exchange("once", "in", "");
    // Back through the exchange that it came through, and the queue remembers it as well.
    for (published_to, dead_letters_to) in [("once", "once"), ("in", "in"), ("in", "once")] {
        let letters = remembering(100).with("x-dead-letter-exchange", dead_letters_to);
        declare_with(&mut client, "q", false, &letters);
        client.bind("q", "once", "");
        let id = format!("{published_to} {dead_letters_to}");
        client.send(message(published_to, "", &id, "m"));
        reject(&mut client, "q");
        let expected = if published_to == dead_letters_to { vec!["m"] } else { vec![] };
        assert_eq!(client.pop_all("q"), expected, "{id}");
        client.delete("q");
    }
}

#[test]
fn refusals_drive_out_nothing_that_is_remembered() {
    let (_world, mut client) = with_once();
    declare_with(&mut client, "bounded", false, &full());
    client.unbind("q", "once", "");
    client.bind("bounded", "once", "");
    client.send(message("once", "", "a", "1"));
    (0..150).for_each(|_| client.send(message("once", "", "b", "refused")));
    assert_eq!(client.pop_all("bounded"), ["1"]);
    client.send(message("once", "", "a", "2"));
    assert_eq!(client.pop_all("bounded"), Vec::<String>::new(), "it has been there");
    client.send(message("once", "", "b", "3"));
    assert_eq!(client.pop_all("bounded"), ["3"]);
}

#[test]
fn what_is_seen_again_after_its_time_is_the_latest_that_is_remembered() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &remembering(2));
    let short_lived = |body: &str| {
        let headers = FieldTable::new().with("x-deduplication-header", "a").with("x-cache-ttl", 10);
        Message::new("", "q", body).headers(headers)
    };
    client.send(short_lived("a1"));
    client.send(message("", "q", "b", "b1"));
    world.broker.set_time(10);
    client.send(message("", "q", "a", "a2"));
    client.send(message("", "q", "c", "c1"));
    client.send(message("", "q", "a", "a3"));
    assert_eq!(client.pop_all("q"), ["a1", "b1", "a2", "c1"]);
}

#[test]
fn what_a_commit_refused_or_returned_may_be_sent_again() {
    let (_world, mut client) = with_once();
    declare_with(&mut client, "bounded", false, &full());
    client.unbind("q", "once", "");
    client.bind("bounded", "once", "");
    client.tx_select();
    client.send(message("once", "", "a", "1"));
    client.commit();
    client.send(message("once", "", "b", "refused"));
    let text = client.refused(tx::Commit {});
    assert_eq!(text, "406 PRECONDITION_FAILED - partial tx completion");
    assert_eq!(client.pop_all("bounded"), ["1"]);
    client.tx_select();
    client.send(message("once", "", "b", "2"));
    client.commit();
    assert_eq!(client.pop_all("bounded"), ["2"]);

    client.unbind("bounded", "once", "");
    client.send(message("once", "", "c", "returned").mandatory());
    assert!(matches!(client.call(tx::Commit {}), Heard::Return { .. }));
    client.heard();
    client.bind("q", "once", "");
    client.send(message("once", "", "c", "3"));
    client.commit();
    assert_eq!(client.pop_all("q"), ["3"]);
}

#[test]
fn a_transaction_holds_a_message_once() {
    let (_world, mut client) = with_once();
    client.tx_select();
    thrice(&mut client, "once", "a");
    client.commit();
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn what_a_transaction_sends_nowhere_is_no_reason_to_drop_its_repetition() {
    let world = World::new();
    let mut client = world.connect();
    declare_exchange(&mut client, "once", "direct", &remembering(100));
    client.declare("q");
    client.bind("q", "once", "k");
    client.tx_select();
    client.send(message("once", "none", "a", "1"));
    client.send(message("once", "k", "a", "2"));
    client.send(message("once", "k", "a", "3"));
    client.commit();
    assert_eq!(client.pop_all("q"), ["2"]);
}

#[test]
fn a_repetition_is_not_confirmed_before_the_first_one_is_in_the_log() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let store = Arc::new(WatchedStore::new(store));
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let broker = Broker::new(shared, gauge, Limits::default(), 7);
    let world = World { broker, log: None };
    let (mut first, mut second) = (world.connect(), world.connect());
    declare_with(&mut first, "q", true, &remembering(10));
    let persistent = || {
        let message = message("", "q", "a", "m");
        message.with_properties(|properties| properties.delivery_mode = Some(2))
    };
    second.confirm_select();
    let (confirmed, heard_of) = mpsc::channel();
    std::thread::scope(|threads| {
        let (begin, begun) = mpsc::channel();
        threads.spawn(move || {
            begun.recv().expect("the first is about to be appended");
            second.send(persistent());
            // The test may not wait for it any more.
            let _ = confirmed.send(second.heard().len());
        });
        let (early, was_early) = mpsc::channel();
        let heard_of_early = heard_of;
        store.before_next_append(move || {
            begin.send(()).expect("the second waits");
            // Long enough for one that does not wait.
            let heard = heard_of_early.recv_timeout(Duration::from_millis(200));
            early.send(heard).expect("the test waits");
        });
        first.send(persistent());
        assert!(was_early.recv().expect("it was appended").is_err(), "confirmed too early");
    });
    assert_eq!(first.pop_all("q"), ["m"]);
}

#[test]
fn a_repetition_is_confirmed_when_the_first_one_is_durable() {
    let by_presence = FieldTable::new().with("x-message-deduplication", true);
    for arguments in [remembering(10), by_presence] {
        let world = WorldOnDisk::new();
        let mut clients = [world.connect(), world.connect()];
        declare_with(&mut clients[0], "q", true, &arguments);
        world.flush();
        for client in &mut clients {
            client.confirm_select();
            let message = message("", "q", "a", "m");
            client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
        }
        let heard =
            |clients: &mut [Client; 2]| clients.each_mut().map(|client| client.heard().len());
        assert_eq!(heard(&mut clients), [0, 0], "{arguments:?}: nothing is durable");
        world.flush();
        assert_eq!(heard(&mut clients), [1, 1], "{arguments:?}");
        assert_eq!(clients[0].pop_all("q"), ["m"]);
    }
}
