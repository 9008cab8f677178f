//! Auto-delete queues and exchanges: gone with the last that used them, but not before the first.

use crate::support::{
    Client, Heard, Message, World, WorldOnDisk, declare_with, on_a_thread, short,
};
use courser_broker::admin::NewQueue;
use courser_codec::{FieldTable, basic, exchange, queue};
use std::sync::Arc;

fn declare_queue(client: &mut Client, name: &str) {
    let declare = queue::Declare { queue: short(name), auto_delete: true, ..Default::default() };
    let answer = client.call(declare);
    assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
}

fn declare_exchange(client: &mut Client, name: &str) {
    let declare = exchange::Declare {
        exchange: short(name),
        kind: short("fanout"),
        auto_delete: true,
        ..Default::default()
    };
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
}

#[test]
fn a_queue_goes_with_its_last_consumer_before_cancel_ok() {
    let world = World::new();
    let (mut one, mut two) = (world.connect(), world.connect());
    declare_queue(&mut one, "q");
    let first = one.consume("q");
    let second = two.consume("q");
    one.cancel(&first);
    assert!(world.has_queue("q"));
    two.tell(basic::Cancel { consumer_tag: short(&second), nowait: true });
    assert!(!world.has_queue("q"));
}

#[test]
fn a_queue_that_never_had_a_consumer_stays() {
    let world = World::new();
    let mut client = world.connect();
    declare_queue(&mut client, "q");
    client.fill("q", &["x"]);
    client.pop("q");
    client.close_channel(1);
    client.disconnect();
    assert!(world.has_queue("q"));
}

#[test]
fn a_queue_goes_when_its_last_consumer_is_lost_with_its_channel_or_connection() {
    let world = World::new();
    let mut client = world.connect();
    client.open_channel(2);
    declare_queue(&mut client, "by channel");
    declare_queue(&mut client, "by connection");
    client.consume_on(2, basic::Consume { queue: short("by channel"), ..Default::default() });
    client.consume("by connection");
    client.close_channel(2);
    assert!(!world.has_queue("by channel"));
    assert!(world.has_queue("by connection"));
    drop(client);
    assert!(!world.has_queue("by connection"));
}

#[test]
fn a_queue_goes_with_its_bindings_and_unacknowledged_messages() {
    let world = World::new();
    let mut client = world.connect();
    declare_queue(&mut client, "q");
    client.bind("q", "amq.fanout", "");
    client.fill("q", &["a", "b"]);
    let tag = client.consume("q");
    assert_eq!(client.bodies(), ["a", "b"]);
    client.cancel(&tag);
    assert!(!world.has_queue("q"));
    client.ack(1);
    declare_queue(&mut client, "q");
    client.publish("amq.fanout", "", "unbound");
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn a_queue_declared_anew_while_the_last_consumer_of_the_old_one_leaves_survives() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    let (durable, auto_delete) = (true, true);
    let declare = queue::Declare { queue: short("q"), durable, auto_delete, ..Default::default() };
    client.call(declare);
    client.consume("q");
    // What returns to this queue is in the log before the other one goes.
    declare_with(&mut client, "returns", true, &FieldTable::new().with("x-delivery-limit", 2));
    let persistent =
        |message: Message| message.with_properties(|properties| properties.delivery_mode = Some(2));
    client.send(persistent(Message::new("", "returns", "returned")));
    client.get("returns").expect("a message");
    let broker = Arc::clone(&world.broker);
    let declare_anew = move || {
        let admin = broker.admin();
        admin.delete_queue("/", b"q", false, false).expect("it is there");
        admin.declare_queue("/", "q", NewQueue { durable, ..NewQueue::default() }).expect("new");
    };
    world.store().before_next_append(|| on_a_thread(declare_anew));
    client.close_channel(1);
    let mut publisher = world.connect();
    publisher.send(persistent(Message::new("", "q", "kept")));
    world.sync();
    client.disconnect();
    publisher.disconnect();
    world.restart();
    assert!(world.has_queue("q"));
    assert_eq!(world.connect().pop_all("q"), ["kept"]);
}

#[test]
fn an_exchange_goes_with_its_last_binding_but_not_before_the_first() {
    let world = World::new();
    let mut client = world.connect();
    declare_exchange(&mut client, "x");
    assert!(world.has_exchange("x"));
    client.declare("one");
    client.declare("two");
    client.bind("one", "x", "");
    client.bind("two", "x", "");
    client.unbind("one", "x", "");
    client.unbind("one", "x", "");
    assert!(world.has_exchange("x"));
    client.delete("two");
    assert!(!world.has_exchange("x"), "deleting a queue removes its bindings");
}

#[test]
fn an_exchange_goes_with_an_exchange_that_it_was_bound_to() {
    let world = World::new();
    let mut client = world.connect();
    for name in ["first", "second", "third"] {
        declare_exchange(&mut client, name);
    }
    client.declare("q");
    client.bind_exchange("second", "first", "");
    client.bind_exchange("third", "second", "");
    client.bind("q", "third", "");
    client.unbind("q", "third", "");
    for name in ["first", "second", "third"] {
        assert!(!world.has_exchange(name), "{name}: each has lost its last binding");
    }
}

#[test]
fn two_exchanges_bound_to_each_other_go_together() {
    let world = World::new();
    let mut client = world.connect();
    declare_exchange(&mut client, "x");
    declare_exchange(&mut client, "y");
    client.bind_exchange("y", "x", "");
    client.bind_exchange("x", "y", "");
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    assert!(!world.has_exchange("x"));
    assert!(!world.has_exchange("y"));
}

#[test]
fn a_long_chain_of_exchanges_goes_without_exhausting_the_stack() {
    const LENGTH: usize = 20_000;
    let world = World::new();
    let mut client = world.connect();
    let names: Vec<String> = (0..LENGTH).map(|number| format!("x{number}")).collect();
    for name in &names {
        declare_exchange(&mut client, name);
    }
    for pair in names.windows(2) {
        client.bind_exchange(&pair[1], &pair[0], "");
    }
    let last = short(names.last().expect("names"));
    // The stack of a thread that serves connections is not large.
    let deleting = move || {
        client.call(exchange::Delete { exchange: last, ..Default::default() });
    };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(1024 * 1024);
        builder.spawn_scoped(scope, deleting).expect("a thread").join().expect("no fault");
    });
    assert!(!world.has_exchange("x0"));
}
