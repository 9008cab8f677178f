//! What is seen of queues, streams, exchanges, bindings and consumers that are made with some arguments.

use super::trials::{Given, none, stream};
use crate::support::{Client, Heard, Message, World, WorldOnDisk, deaths, declare_with, short};
use courser_broker::admin::{ApplyTo, Policy};
use courser_codec::{FieldTable, FieldValue, Table, basic, confirm, exchange, queue};
use std::fmt::Debug;

const T0_MS: u64 = 1_000_000_000;

pub fn world() -> World {
    let world = World::new();
    world.broker.set_time(T0_MS);
    world
}

fn give(world: &World, given: &Given<'_>) {
    if let Some((kind, definition)) = given.policy {
        let policy = Policy {
            name: "the policy".to_owned(),
            pattern: "^[qx]$".to_owned(),
            apply_to: ApplyTo::All,
            priority: 0,
            definition: definition.clone(),
        };
        world.broker.set_policy("/", *kind, policy).expect("a good policy");
    }
}

fn note(seen: &mut Vec<String>, what: &str, value: impl Debug) {
    seen.push(format!("{what}: {value:?}"));
}

fn message(exchange: &str, key: &str, body: &str, priority: u8, same: &str, id: &str) -> Message {
    let headers = none()
        .with("x-deduplication-header", same)
        .with("id", id)
        .with("x-stream-filter-value", id);
    Message::new(exchange, key, body).with_properties(|properties| {
        properties.headers = Some(headers);
        properties.priority = Some(priority);
        properties.message_id = Some(id.try_into().expect("short"));
    })
}

/// Everything that a queue with these arguments does: with bounds, repeated messages, consumers, and as time goes on.
pub fn of_queue(given: Given<'_>) -> Vec<String> {
    let world = world();
    let mut client = world.connect();
    client.declare_exchange("letters", "direct");
    for (queue, key) in [("dead", "q"), ("dead-other", "other")] {
        client.declare(queue);
        client.bind(queue, "letters", key);
    }
    give(&world, &given);
    declare_with(&mut client, "q", true, given.arguments);
    let mut seen = Vec::new();
    let mut sender = world.connect();
    sender.tell(confirm::Select { nowait: true });
    for (body, priority, same, id) in
        [("one", 1, "a", "1"), ("two", 5, "a", "2"), ("three", 40, "b", "2"), ("four", 3, "c", "3")]
    {
        sender.send(message("", "q", body, priority, same, id));
        note(&mut seen, "confirmed", sender.heard());
    }
    // What has gone is forgotten, unless it is remembered.
    note(&mut seen, "in turn", client.pop_all("q"));
    world.tick_all(T0_MS + 2_000);
    sender.send(message("", "q", "once more", 1, "a", "4"));
    note(&mut seen, "once more", (sender.heard(), client.pop_all("q")));
    client.publish("", "q", "comes back");
    for _ in 0..4 {
        let Some(delivery) = client.get("q") else { break };
        client.tell(basic::Reject { delivery_tag: delivery.tag, requeue: true });
    }
    note(&mut seen, "came back", client.pop_all("q"));
    client.publish("", "q", "refused");
    if let Some(delivery) = client.get("q") {
        client.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
    }
    consumers(&world, &mut seen);
    client.declare("late");
    client.publish("", "q", "waits");
    world.tick_all(T0_MS + 30_000);
    note(&mut seen, "later", world.has_queue("q").then(|| client.pop_all("q")));
    for queue in ["dead", "dead-other", "late"] {
        while let Some(letter) = client.get(queue) {
            note(&mut seen, queue, (letter.text(), deaths(&letter)));
            client.ack(letter.tag);
        }
    }
    world.tick_all(T0_MS + 60_000);
    note(&mut seen, "in the end", world.has_queue("q"));
    seen
}

/// What is delivered before it is committed, and after, where the log has copies on other machines.
pub fn of_copied_queue(given: Given<'_>) -> Vec<String> {
    let world = WorldOnDisk::on_copy();
    give(&world, &given);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, given.arguments);
    client.consume_no_ack("q");
    client.send(
        Message::new("", "q", "one")
            .with_properties(|properties| properties.delivery_mode = Some(2)),
    );
    let mut seen = Vec::new();
    note(&mut seen, "at once", client.bodies());
    world.flush();
    note(&mut seen, "then", client.bodies());
    seen
}

/// Two consumers, one of which never acknowledges.
fn consumers(world: &World, seen: &mut Vec<String>) {
    let (mut slow, mut other) = (world.connect(), world.connect());
    slow.qos(1);
    slow.consume("q");
    other.consume_no_ack("q");
    slow.fill("q", &["c1", "c2", "c3"]);
    note(seen, "consumed", (slow.bodies(), other.bodies()));
    world.tick_all(T0_MS + 10_000);
    note(seen, "too slow", (slow.heard(), other.bodies()));
    slow.disconnect();
    other.disconnect();
    world.connect().pop_all("q");
}

/// When a message can be had on which a client fails each time.
pub fn of_retries(given: Given<'_>) -> Vec<String> {
    let world = world();
    let mut client = world.connect();
    give(&world, &given);
    declare_with(&mut client, "q", true, given.arguments);
    client.publish("", "q", "fails");
    let mut seen = Vec::new();
    for at_ms in (T0_MS..T0_MS + 8_000).step_by(500) {
        world.tick_all(at_ms);
        if let Some(delivery) = client.get("q") {
            note(&mut seen, "had", at_ms - T0_MS);
            client.fail_on(delivery.tag);
        }
    }
    seen
}

/// What is left of a stream: after much, and after a day.
pub fn of_stream(given: Given<'_>) -> Vec<String> {
    let world = world();
    let mut client = world.connect();
    give(&world, &given);
    declare_with(&mut client, "q", true, given.arguments);
    for _ in 0..4000 {
        client.publish("", "q", "a message of some bytes");
    }
    let mut seen = vec![format!("{:?}", world.counts("q"))];
    world.tick_all(T0_MS + 86_400_000);
    note(&mut seen, "after a day", world.counts("q"));
    seen
}

pub fn without(arguments: &FieldTable, name: &str) -> (FieldTable, Option<FieldValue>) {
    let mut rest = arguments.clone();
    let taken = rest.get(name).cloned();
    rest.remove(name.as_bytes());
    (rest, taken)
}

/// Where an exchange sends messages, some of which are alike.
pub fn of_exchange(given: Given<'_>) -> Vec<String> {
    let world = world();
    let mut client = world.connect();
    let (arguments, kind) = without(given.arguments, "type");
    let kind = kind.as_ref().and_then(FieldValue::as_str).expect("a type").to_owned();
    let queues = ["1", "2", "3", "4"];
    client.declare_exchange("spare", "fanout");
    client.declare("rest");
    client.bind("rest", "spare", "");
    queues.iter().for_each(|queue| client.declare(queue));
    give(&world, &given);
    let entries = arguments.to_entries();
    let declared = client.call(exchange::Declare {
        exchange: short("x"),
        kind: short(&kind),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    });
    let mut seen = vec![format!("{declared:?}")];
    if declared != Heard::Done("exchange.declare-ok") {
        return seen;
    }
    queues.iter().for_each(|queue| client.bind(queue, "x", queue));
    for nth in 0..24_u64 {
        let (same, id) = ((nth % 3).to_string(), (nth / 2).to_string());
        client.send(message("x", &(nth % 5).to_string(), &nth.to_string(), 0, &same, &id));
        world.tick_all(T0_MS + nth * 500);
    }
    for queue in queues.into_iter().chain(["rest"]) {
        note(&mut seen, queue, client.pop_all(queue));
    }
    client.declare("later");
    client.bind("later", "x", "1");
    note(&mut seen, "later", client.pop_all("later"));
    seen
}

/// Which messages a binding of a headers exchange lets through.
pub fn of_binding(given: Given<'_>) -> Vec<String> {
    let world = world();
    let mut client = world.connect();
    client.declare_exchange("x", "headers");
    client.declare("q");
    let entries = given.arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    let (queue, exchange) = (short("q"), short("x"));
    let bound = client.call(queue::Bind { queue, exchange, arguments, ..Default::default() });
    assert_eq!(bound, Heard::Done("queue.bind-ok"));
    for headers in [none().with("a", 1), none().with("a", 1).with("b", 1)] {
        client.send(Message::new("x", "", format!("{}", headers.len())).headers(headers));
    }
    client.pop_all("q")
}

/// What comes to a consumer with these arguments, beside one that was there before.
pub fn of_consumer(given: Given<'_>) -> Vec<String> {
    let world = world();
    let mut client = world.connect();
    let (arguments, kind) = without(given.arguments, "x-queue-type");
    let of_queue = kind.map_or_else(none, |kind| none().with("x-queue-type", kind));
    let is_stream = of_queue == stream();
    declare_with(&mut client, "q", true, &of_queue);
    let (mut first, mut second) = (world.connect(), world.connect());
    let send = |client: &mut Client, bodies: [(&str, &str); 3]| {
        bodies.iter().for_each(|(body, id)| client.send(message("", "q", body, 0, body, id)));
    };
    if is_stream {
        send(&mut client, [("early", "wanted"), ("unwanted", "other"), ("wanted", "wanted")]);
        client.publish("", "q", "unmarked");
    }
    [&mut first, &mut second].into_iter().for_each(|client| client.qos(10));
    first.consume("q");
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    second.consume_with(basic::Consume { queue: short("q"), arguments, ..Default::default() });
    send(&mut client, [("a", "wanted"), ("b", "wanted"), ("c", "wanted")]);
    let mut seen = vec![format!("{:?} {:?}", first.bodies(), second.bodies())];
    world.tick_all(T0_MS + 10_000);
    note(&mut seen, "too slow", second.heard());
    seen
}
