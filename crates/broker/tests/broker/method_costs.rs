//! What each method of a client's costs at the limits of what a client may have: every method that the
//! protocol's description names has a row.

use crate::frame_costs::{ask, consume, cost, fill, large};
use crate::streams;
use crate::support::{Client, Message, Step, World, declare_with, owned, short};
use courser_codec::{FieldTable, Method, Table, basic, channel, confirm, exchange, queue, tx};
use std::collections::BTreeSet;

const UNACKED: usize = 300_000;
const CONSUMERS: usize = 10_000;
const BINDINGS: usize = 50_000;
const MESSAGES: usize = 100_000;
/// Steps of what asks for one thing, however much there is.
const FEW: usize = 64;

/// A method, and what it has cost of what it may.
struct Row {
    method: &'static str,
    taken: u64,
    most: usize,
}

/// Hands in one method on channel 1.
fn row<'m>(client: &mut Client, most: usize, method: impl Into<Method<'m>>) -> Row {
    let method = method.into();
    let taken = cost(|| ask(client, &[method]));
    Row { method: method.name(), taken, most }
}

fn no_wait_bind<'q>(queue: &'q str, exchange: &'q str, key: &'q str) -> queue::Bind<'q> {
    let (queue, exchange, routing_key) = (short(queue), short(exchange), short(key));
    queue::Bind { queue, exchange, routing_key, nowait: true, ..Default::default() }
}

/// Many deliveries that one channel has not acknowledged.
fn unacknowledged() -> Vec<Row> {
    let world = large();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    publisher.declare("q");
    client.consume("q");
    fill(&mut publisher, "q", UNACKED);
    assert_eq!(world.counts("q"), (0, UNACKED, 1));
    let all = UNACKED as u64;
    let nack = |delivery_tag, requeue| basic::Nack { delivery_tag, multiple: true, requeue };
    let mut rows = vec![row(&mut client, 5 * UNACKED, nack(0, true))];
    world.tick_all(1);
    assert_eq!(world.counts("q"), (0, UNACKED, 1));
    rows.push(row(&mut client, 5 * UNACKED, basic::Recover { requeue: true }));
    world.tick_all(1);
    rows.push(row(&mut client, 5 * UNACKED, basic::RecoverAsync { requeue: true }));
    world.tick_all(1);
    assert_eq!(world.counts("q"), (0, UNACKED, 1));
    let first = 3 * all + 1;
    let reject = basic::Reject { delivery_tag: first + all / 2, requeue: false };
    rows.push(row(&mut client, FEW, reject));
    let ack = basic::Ack { delivery_tag: first + all / 3, multiple: true };
    rows.push(row(&mut client, 5 * UNACKED, ack));
    rows.push(row(&mut client, 5 * UNACKED, nack(first + all * 2 / 3, false)));
    let taken = cost(|| client.session().close_channel(1));
    rows.push(Row { method: "channel.close", taken, most: 5 * UNACKED });
    let left = world.counts("q");
    assert_eq!((left.1, left.2), (0, 0));
    assert!(left.0.abs_diff(UNACKED / 3) < 5, "{left:?}");
    rows
}

/// The same on a channel with transactions.
fn in_transactions() -> Vec<Row> {
    let world = large();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    publisher.declare("q");
    let taken = cost(|| client.tx_select());
    let mut rows = vec![Row { method: "tx.select", taken, most: FEW }];
    client.consume("q");
    fill(&mut publisher, "q", UNACKED);
    let ack = basic::Ack { delivery_tag: 0, multiple: true };
    ask(&mut client, &[ack.into()]);
    rows.push(row(&mut client, 5 * UNACKED, tx::Rollback {}));
    ask(&mut client, &[ack.into()]);
    rows.push(row(&mut client, 5 * UNACKED, tx::Commit {}));
    assert_eq!(world.counts("q"), (0, 0, 1));
    rows
}

/// As many consumers as a channel may have.
fn consumers() -> Vec<Row> {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    consume(&mut client, "q", CONSUMERS - 1);
    let (queue, consumer_tag) = (short("q"), short("the last"));
    let consume = basic::Consume { queue, consumer_tag, ..Default::default() };
    let qos = basic::Qos { prefetch_count: 10, global: true, ..Default::default() };
    vec![
        row(&mut client, FEW, consume),
        row(&mut client, 5 * CONSUMERS, qos),
        row(&mut client, FEW, channel::Flow { active: false }),
        row(&mut client, 5 * CONSUMERS, channel::Flow { active: true }),
        row(&mut client, FEW, basic::Cancel { consumer_tag, nowait: true }),
    ]
}

/// As many channels as a connection may have.
fn channels() -> Vec<Row> {
    let world = World::new();
    let mut client = world.connect();
    (2..u16::MAX).for_each(|number| client.open_channel(number));
    let opened = cost(|| client.open_channel(u16::MAX));
    let closed = cost(|| client.session().close_channel(u16::MAX));
    let most = FEW;
    vec![
        Row { method: "channel.open", taken: opened, most },
        Row { method: "channel.close", taken: closed, most },
        row(&mut client, most, confirm::Select::default()),
    ]
}

/// Many messages that wait.
fn messages() -> Vec<Row> {
    let world = large();
    let mut client = world.connect();
    client.declare("q");
    fill(&mut client, "q", MESSAGES);
    let message = Message::new("", "q", "x");
    let taken = cost(|| drop(client.publish_and_flush(&message)));
    let queue = short("q");
    vec![
        Row { method: "basic.publish", taken, most: FEW },
        row(&mut client, FEW, basic::Get { queue, no_ack: true }),
        row(&mut client, 5 * MESSAGES, queue::Purge { queue, ..Default::default() }),
    ]
}

/// An exchange of this type with many bindings: each queue has some.
fn bindings(kind: &str) -> Vec<Row> {
    const EACH: usize = 25;
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", kind);
    client.declare_exchange("to", "fanout");
    let queues: Vec<String> = (0..BINDINGS / EACH).map(|nth| format!("q{nth}")).collect();
    // Consistent hashes take weights.
    let keys: Vec<String> = (1..=EACH).map(|nth| nth.to_string()).collect();
    let table = FieldTable::new().with("x-match", "all").with("h", 1).to_entries();
    let arguments = match kind {
        "headers" => Table::from_entries(&table),
        _ => Table::EMPTY,
    };
    for queue in &queues {
        client.declare(queue);
        let bind = |key| queue::Bind { arguments, ..no_wait_bind(queue, "x", key) };
        let all: Vec<_> = keys.iter().map(|key| Step::Call(1, bind(key).into())).collect();
        client.read(&all);
    }
    assert_eq!(
        world.broker.admin().bindings_from("/", b"x", &mut |_| true).expect("the exchange").len(),
        BINDINGS
    );
    let (exchange, destination, source) = (short("x"), short("to"), short("x"));
    let (middle, last) = (&*queues[queues.len() / 2], &*queues[queues.len() - 1]);
    let routing_key = short("77");
    let unbind = |queue, routing_key| queue::Unbind {
        queue: short(queue),
        exchange,
        routing_key,
        arguments,
    };
    let bind_exchange =
        exchange::Bind { source, destination, routing_key, arguments, ..Default::default() };
    let unbind_exchange =
        exchange::Unbind { source, destination, routing_key, arguments, ..Default::default() };
    let bind = queue::Bind { arguments, ..no_wait_bind(middle, "x", "77") };
    let mut rows =
        vec![row(&mut client, FEW, bind), row(&mut client, FEW, unbind(middle, routing_key))];
    rows.extend(keys.iter().map(|key| row(&mut client, FEW, unbind(middle, short(key)))));
    rows.push(row(&mut client, FEW, bind_exchange));
    rows.push(row(&mut client, FEW, unbind_exchange));
    let delete = queue::Delete { queue: short(last), ..Default::default() };
    rows.push(row(&mut client, EACH * FEW, delete));
    let declare = queue::Declare { queue: short("another"), ..Default::default() };
    rows.push(row(&mut client, FEW, declare));
    let kind = short("direct");
    let declare = exchange::Declare { exchange: short("another"), kind, ..Default::default() };
    rows.push(row(&mut client, FEW, declare));
    rows.push(row(&mut client, 5 * BINDINGS, exchange::Delete { exchange, ..Default::default() }));
    rows
}

#[track_caller]
fn assert_cheap(rows: &[Row]) {
    let dear: Vec<_> = rows.iter().filter(|row| row.taken > row.most as u64).collect();
    let texts = dear.iter().map(|row| format!("{}: {} of {}", row.method, row.taken, row.most));
    assert!(dear.is_empty(), "{}", texts.collect::<Vec<_>>().join(", "));
}

#[test]
fn with_many_unacknowledged_no_method_costs_more_than_a_few_steps_for_each() {
    assert_cheap(&unacknowledged());
    assert_cheap(&in_transactions());
}

#[test]
fn with_many_bindings_of_any_type_no_method_looks_at_others() {
    for kind in
        ["direct", "fanout", "topic", "headers", "x-consistent-hash", "x-modulus-hash", "x-random"]
    {
        assert_cheap(&bindings(kind));
    }
}

#[test]
fn bindings_by_headers_are_removed_without_a_look_at_others_of_the_same_queue() {
    const ALL: usize = 2_000;
    for tables in [1, 40, ALL] {
        let world = World::new();
        let mut client = world.connect();
        client.declare("q");
        client.declare_exchange("x", "headers");
        let tables: Vec<_> =
            (0..tables).map(|nth| FieldTable::new().with("h", nth as i64).to_entries()).collect();
        let keys: Vec<String> = (0..ALL / tables.len()).map(|nth| nth.to_string()).collect();
        let all = || keys.iter().flat_map(|key| tables.iter().map(move |table| (key, table)));
        let binds = all().map(|(key, table)| {
            let arguments = Table::from_entries(table);
            Step::Call(1, queue::Bind { arguments, ..no_wait_bind("q", "x", key) }.into())
        });
        client.read(&binds.collect::<Vec<_>>());
        let (key, table) = all().nth(ALL / 2).expect("one in the middle");
        let unbind = queue::Unbind {
            queue: short("q"),
            exchange: short("x"),
            routing_key: short(key),
            arguments: Table::from_entries(table),
        };
        let delete = queue::Delete { queue: short("q"), ..Default::default() };
        assert_cheap(&[row(&mut client, FEW, unbind), row(&mut client, 10 * ALL, delete)]);
    }
}

#[test]
fn a_queue_that_is_bound_to_many_exchanges_is_bound_and_unbound_without_a_look_at_them() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let names: Vec<String> = (0..2_000).map(|nth| format!("x{nth}")).collect();
    for name in &names {
        client.declare_exchange(name, "fanout");
        client.bind("q", name, "");
    }
    let exchange = short(&names[1_000]);
    let unbind = queue::Unbind { queue: short("q"), exchange, ..Default::default() };
    let bind = no_wait_bind("q", &names[1_000], "");
    assert_cheap(&[row(&mut client, FEW, unbind), row(&mut client, FEW, bind)]);
    assert_eq!(world.vhost().queue(b"q").expect("the queue").name, owned("q"));
}

/// What clients may send, by the description of the protocol: but for what belongs to the connection
/// itself, and for answers.
fn methods() -> BTreeSet<String> {
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/amqp-0-9-1.toml");
    let spec = std::fs::read_to_string(spec).expect("the description");
    let (mut class, mut method, mut section) = (String::new(), String::new(), "");
    let mut found = BTreeSet::new();
    for line in spec.lines() {
        let value = line.split('"').nth(1).unwrap_or_default();
        match line.split(" = ").next() {
            Some(header) if header.starts_with('[') => section = header,
            Some("name") if section == "[[class]]" => value.clone_into(&mut class),
            Some("name") if section == "[[class.method]]" => value.clone_into(&mut method),
            Some("from") if section == "[[class.method]]" && value != "server" => {
                found.insert(format!("{class}.{method}"));
            }
            _ => {}
        }
    }
    found.retain(|name| !name.starts_with("connection.") && !name.ends_with("-ok"));
    found
}

#[test]
fn every_method_has_a_row() {
    let rows = [
        consumers(),
        channels(),
        messages(),
        bindings("direct"),
        // What costs much has a test of its own.
        ["basic.nack", "basic.recover", "basic.recover-async", "basic.reject", "basic.ack"]
            .into_iter()
            .chain(["tx.select", "tx.rollback", "tx.commit"])
            .map(|method| Row { method, taken: 0, most: 0 })
            .collect(),
    ];
    rows.iter().for_each(|rows| assert_cheap(rows));
    let known: BTreeSet<String> = rows.iter().flatten().map(|row| row.method.to_owned()).collect();
    assert_eq!(known, methods());
}

#[test]
fn a_consumer_of_a_stream_ends_without_a_look_at_the_others_of_its_connection() {
    let world = large();
    let mut client = world.connect();
    streams::stream(&mut client, "s");
    client.qos(1);
    consume(&mut client, "s", CONSUMERS);
    assert_eq!(world.counts("s"), (0, 0, CONSUMERS));
    let cancel = |tag| basic::Cancel { consumer_tag: short(tag), nowait: true };
    assert_cheap(&[row(&mut client, FEW, cancel("s 5000")), row(&mut client, FEW, cancel("s 77"))]);
    let taken = cost(|| client.heard().clear());
    assert!(taken <= FEW as u64, "its task looks at {taken} of them, though nothing has come");
    assert_eq!(world.counts("s"), (0, 0, CONSUMERS - 2));
    // All others are still there.
    fill(&mut world.connect(), "s", 1);
    assert_eq!(client.deliveries().len(), CONSUMERS - 2);
}

#[test]
fn publishes_that_are_confirmed_on_many_channels_in_turn_cost_no_more_than_on_one() {
    const CHANNELS: u16 = 500;
    const PUBLISHES: usize = 4 * CHANNELS as usize;
    let nothing = FieldTable::new().with("x-max-length", 0).with("x-overflow", "reject-publish");
    for arguments in [FieldTable::new(), nothing] {
        let world = World::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", false, &arguments);
        for number in 2..CHANNELS + 2 {
            client.open_channel(number);
            client.call_on(number, confirm::Select { nowait: false });
        }
        let publish = |nth: u16| Step::Publish(2 + nth % CHANNELS, Message::new("", "q", "x"));
        let all: Vec<_> = (0..PUBLISHES as u16).map(publish).collect();
        let taken = cost(|| client.read(&all));
        assert!(taken <= 4 * PUBLISHES as u64, "{taken}");
        // Each of them is counted all the same, once.
        let mut confirmed = Vec::new();
        let admin = world.broker.admin();
        admin
            .for_each_channel(None, &mut |one| {
                let counts = one.counts.publishes;
                let answered = counts.confirmed + counts.refused;
                confirmed.push((counts.published, counts.to_confirm, answered));
            })
            .expect("vhosts");
        confirmed.retain(|counts| *counts != (4, 4, 4));
        assert_eq!(confirmed, [(0, 0, 0)], "but for the one that publishes nothing");
        let all = PUBLISHES as u64;
        let counts = admin.message_counts().publishes;
        assert_eq!((counts.published, counts.to_confirm), (all, all));
    }
}
