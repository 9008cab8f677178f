//! `queue.delete` and `queue.purge`.

use crate::delayed::delayed_type;
use crate::frame_costs::large;
use crate::support::{Heard, Message, Step, World, short};
use courser_codec::{FieldTable, Table, exchange, queue};

fn delete(name: &str) -> queue::Delete<'_> {
    queue::Delete { queue: short(name), ..Default::default() }
}

#[test]
fn delete_ok_counts_the_messages_that_were_ready() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2", "3"]);
    client.get("q");
    assert_eq!(client.call(delete("q")), Heard::Count(2));
    assert!(!world.has_queue("q"));
}

#[test]
fn deleting_a_missing_queue_is_fine() {
    assert_eq!(World::new().connect().call(delete("missing")), Heard::Count(0));
}

#[test]
fn a_queue_with_consumers_is_not_deleted_if_unused_is_asked_for() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let tag = client.consume("q");
    let if_unused = queue::Delete { if_unused: true, ..delete("q") };
    let mut other = world.connect();
    assert_eq!(other.refused(if_unused), "406 PRECONDITION_FAILED - queue 'q' in vhost '/' in use");
    client.publish("", "q", "still there");
    assert_eq!(client.bodies(), ["still there"]);
    client.cancel(&tag);
    assert_eq!(other.call(if_unused), Heard::Count(0));
}

#[test]
fn a_queue_with_messages_is_not_deleted_if_empty_is_asked_for() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1"]);
    let if_empty = queue::Delete { if_empty: true, ..delete("q") };
    assert_eq!(
        client.refused(if_empty),
        "406 PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"
    );
    assert_eq!(client.pop_all("q"), ["1"]);
    assert_eq!(client.call(if_empty), Heard::Count(0));
    assert!(!world.has_queue("q"));
}

#[test]
fn messages_are_a_reason_against_a_deletion_before_consumers_are() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(1);
    client.consume("q");
    client.publish("", "q", "delivered");
    client.publish("", "q", "waiting");
    let careful = queue::Delete { if_unused: true, if_empty: true, ..delete("q") };
    assert_eq!(
        world.connect().refused(careful),
        "406 PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"
    );
}

#[test]
fn a_deleted_queue_leaves_nothing_to_one_made_anew() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("q", "amq.fanout", "");
    client.fill("q", &["old", "older"]);
    let polled = client.get("q").expect("a message");
    client.call(delete("q"));
    client.declare("q");
    client.requeue(polled.tag);
    client.publish("amq.fanout", "", "unbound");
    assert_eq!(world.counts("q"), (0, 0, 0));
    assert_eq!(client.pop("q"), None);
}

#[test]
fn purge_counts_and_drops_what_is_ready_and_nothing_else() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("other");
    client.fill("q", &["1", "2", "3"]);
    client.fill("other", &["kept"]);
    let polled = client.get("q").expect("a message");
    assert_eq!(client.purge("q"), Heard::Count(2));
    assert_eq!(client.purge("q"), Heard::Count(0));
    assert_eq!(world.counts("q"), (0, 1, 0));
    client.requeue(polled.tag);
    assert_eq!(client.pop_all("q"), ["1"]);
    assert_eq!(client.pop_all("other"), ["kept"]);
}

#[test]
fn purging_a_missing_queue_is_not_found() {
    let purge = queue::Purge { queue: short("q"), nowait: false };
    let text = World::new().connect().refused(purge);
    assert_eq!(text, "404 NOT_FOUND - no queue 'q' in vhost '/'");
}

#[test]
fn purge_sees_what_was_published_before_it_in_the_same_read() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let purge = queue::Purge { queue: short("q"), nowait: false };
    let publish =
        |body| crate::support::Step::Publish(1, crate::support::Message::new("", "q", body));
    client.read(&[publish("1"), crate::support::Step::Call(1, purge.into()), publish("2")]);
    assert_eq!(client.heard(), [Heard::Count(1)]);
    assert_eq!(client.pop_all("q"), ["2"]);
}

#[test]
fn nowait_deletes_and_purges_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1"]);
    client.tell(queue::Purge { queue: short("q"), nowait: true });
    assert_eq!(world.counts("q"), (0, 0, 0));
    client.tell(queue::Delete { nowait: true, ..delete("q") });
    assert_eq!(client.heard(), []);
    assert!(!world.has_queue("q"));
}

#[test]
fn deleting_and_purging_gives_the_memory_back() {
    let world = World::new();
    let mut client = world.connect();
    for emptied in [false, true] {
        client.declare("q");
        for _ in 0..100 {
            client.publish("", "q", "some bytes that take memory");
        }
        let polled = client.get("q").expect("a message");
        assert!(world.broker.messages_bytes() > 0);
        if emptied {
            client.purge("q");
            client.ack(polled.tag);
        } else {
            client.call(delete("q"));
        }
        assert_eq!(world.broker.messages_bytes(), 0);
    }
}

#[test]
fn the_channel_that_deletes_what_it_consumes_from_has_its_reply_before_the_cancel() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let tag = client.consume("q");
    client.read(&[Step::Call(1, delete("q").into())]);
    let heard = client.heard();
    assert!(
        matches!(&heard[..], [Heard::Count(0), Heard::Cancelled(cancelled)] if *cancelled == tag),
        "{heard:?}"
    );
}

#[test]
fn what_is_bound_thousands_of_times_takes_long_to_delete_and_nothing_else_does() {
    let world = World::new();
    let mut client = world.connect();
    ["small", "large"].iter().for_each(|queue| client.declare(queue));
    ["some", "many"].iter().for_each(|exchange| client.declare_exchange(exchange, "topic"));
    client.bind("small", "many", "first");
    client.bind("small", "some", "first");
    (0..6000).for_each(|nth| client.bind("large", "many", &nth.to_string()));
    let exchange = |name| exchange::Delete { exchange: short(name), ..Default::default() };
    assert!(client.takes_long(exchange("many")));
    assert!(client.takes_long(delete("large")));
    assert!(!client.takes_long(exchange("some")));
    assert!(!client.takes_long(exchange("missing")));
    assert!(!client.takes_long(delete("small")));
    assert!(!client.takes_long(delete("missing")));
    (0..3000).for_each(|nth| client.unbind("large", "many", &nth.to_string()));
    assert!(!client.takes_long(exchange("many")));
    client.call(delete("large"));
    client.call(exchange("many"));
    client.declare_exchange("many", "topic");
    assert!(!client.takes_long(exchange("many")));
}

#[test]
fn what_goes_along_counts_when_it_is_told_how_long_a_removal_takes() {
    let world = World::new();
    let mut client = world.connect();
    ["small", "other"].iter().for_each(|queue| client.declare(queue));
    ["from", "to"].iter().for_each(|exchange| client.declare_exchange(exchange, "topic"));
    let (name, kind) = (short("auto"), short("fanout"));
    let auto_delete =
        exchange::Declare { exchange: name, kind, auto_delete: true, ..Default::default() };
    client.call(auto_delete);
    client.bind("small", "auto", "");
    let delete_exchange = |name| exchange::Delete { exchange: short(name), ..Default::default() };
    let unbind =
        queue::Unbind { queue: short("small"), exchange: short("auto"), ..Default::default() };
    client.bind_exchange("from", "auto", "");
    client.bind_exchange("auto", "from", "");
    assert!(!client.takes_long(delete_exchange("auto")), "each leads to the other");
    let onward = exchange::Unbind {
        destination: short("from"),
        source: short("auto"),
        ..Default::default()
    };
    assert!(!client.takes_long(onward) && !client.takes_long(unbind));
    client.call(onward);
    (0..6000).for_each(|nth| {
        client.bind_exchange("to", "from", &nth.to_string());
        client.bind_exchange("auto", "from", &nth.to_string());
    });
    assert!(client.takes_long(delete_exchange("to")));
    assert!(client.takes_long(delete_exchange("auto")));
    assert!(client.takes_long(unbind), "it is the last one");
    assert!(client.takes_long(delete("small")), "it is the last one");
    assert!(!client.takes_long(delete("other")));
    client.bind("other", "auto", "");
    assert!(!client.takes_long(unbind));
    assert!(!client.takes_long(delete("small")));
}

#[test]
fn what_waits_in_delayed_exchanges_counts_when_it_is_told_how_long_a_removal_takes() {
    const EXCHANGES: usize = 100;
    let world = large();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("all", "fanout");
    let entries = delayed_type("fanout").to_entries();
    for nth in 0..EXCHANGES {
        let name = format!("x{nth}");
        client.call(exchange::Declare {
            exchange: short(&name),
            kind: short("x-delayed-message"),
            arguments: Table::from_entries(&entries),
            auto_delete: true,
            ..Default::default()
        });
        client.bind("q", &name, "");
        client.bind_exchange(&name, "all", "");
    }
    let headers = FieldTable::new().with("x-delay", 3_600_000);
    let some = vec![Step::Publish(1, Message::new("all", "", "x").headers(headers)); 1000];
    (0..3).for_each(|_| client.read(&some));
    assert!(!client.takes_long(delete("q")));
    client.read(&some[..1]);
    assert!(client.takes_long(delete("q")), "they go with their last binding");
    client.unbind("q", "x7", "");
    assert!(!client.takes_long(delete("q")));
}
