//! Tracing: copies of what is published and delivered go to `amq.rabbitmq.trace`.

use crate::streams::{read, stream};
use crate::support::{Client, Delivery, Heard, Message, World, declare_with, headers, short};
use courser_broker::Limits;
use courser_codec::{FieldTable, FieldValue, exchange};

const TRACE: &str = "amq.rabbitmq.trace";

/// A client with queue `q` bound to exchange `x`, and queue `trace` for all copies.
fn traced() -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", "topic");
    client.declare("q");
    client.bind("q", "x", "key");
    client.declare("trace");
    client.bind("trace", TRACE, "#");
    trace(&world, true);
    (world, client)
}

fn trace(world: &World, on: bool) {
    let admin = world.broker.admin();
    admin.change_vhost("/", |settings| settings.tracing = on).expect("the vhost is there");
}

fn copies(client: &mut Client) -> Vec<Delivery> {
    let mut all = Vec::new();
    while let Some(copy) = client.get("trace") {
        client.ack(copy.tag);
        all.push(copy);
    }
    all
}

fn keys(copies: &[Delivery]) -> Vec<&str> {
    copies.iter().map(|copy| copy.routing_key.as_str()).collect()
}

fn texts(values: &[&str]) -> FieldValue {
    values.iter().map(|value| FieldValue::from(*value)).collect::<Vec<_>>().into()
}

#[test]
fn every_vhost_has_the_exchange_for_it() {
    let world = World::new();
    let mut client =
        world.connect_to(world.broker.define_vhost("other", Default::default()).expect("a vhost"));
    let (exchange, kind) = (short(TRACE), short("topic"));
    let same =
        exchange::Declare { exchange, kind, durable: true, internal: true, ..Default::default() };
    assert_eq!(client.call(same), Heard::Done("exchange.declare-ok"));
    assert_eq!(
        client.refused_publish(Message::new(TRACE, "publish.x", "forged")),
        "403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost 'other'"
    );
    assert_eq!(
        client.refused(exchange::Delete { exchange, ..Default::default() }),
        "403 ACCESS_REFUSED - deletion of system exchange 'amq.rabbitmq.trace' in vhost 'other' not allowed"
    );
}

#[test]
fn what_is_published_and_delivered_is_copied_with_what_is_known_of_it() {
    let (_world, mut client) = traced();
    client.consume_no_ack("q");
    client.send(Message::new("x", "key", "body").with_properties(|properties| {
        properties.headers = Some(FieldTable::new().with("own", 1));
        properties.content_type = Some("text/plain".try_into().expect("short"));
        properties.priority = Some(3);
    }));
    assert_eq!(client.bodies(), ["body"]);
    let copies = copies(&mut client);
    assert_eq!(keys(&copies), ["publish.x", "deliver.q"]);
    for copy in &copies {
        assert_eq!((copy.exchange.as_str(), copy.text()), (TRACE, "body"));
        let known = headers(copy);
        assert_eq!(known.get("exchange_name"), Some(&"x".into()));
        assert_eq!(known.get("routing_keys"), Some(&texts(&["key"])));
        assert_eq!(known.get("vhost"), Some(&"/".into()));
        assert_eq!(known.get("user"), Some(&"guest".into()));
        assert_eq!(known.get("channel"), Some(&FieldValue::I32(1)));
        let properties = known.get("properties").and_then(FieldValue::as_table).expect("a table");
        assert_eq!(properties.get("content_type"), Some(&"text/plain".into()));
        assert_eq!(properties.get("priority"), Some(&FieldValue::I32(3)));
        let own = FieldTable::new().with("own", 1);
        assert_eq!(properties.get("headers"), Some(&FieldValue::Table(own)));
    }
    assert_eq!(headers(&copies[0]).get("routed_queues"), Some(&texts(&["q"])));
    assert_eq!(headers(&copies[1]).get("redelivered"), Some(&FieldValue::I32(0)));
}

#[test]
fn polled_redelivered_and_unroutable_messages_are_copied_too() {
    let (_world, mut client) = traced();
    client.publish("x", "key", "m");
    let first = client.get("q").expect("a message");
    client.requeue(first.tag);
    assert_eq!(client.pop("q").as_deref(), Some("m"));
    client.publish("x", "nowhere", "lost");
    client.publish("", "q", "by name");
    let copies = copies(&mut client);
    let expected = ["publish.x", "deliver.q", "deliver.q", "publish.x", "publish."];
    assert_eq!(keys(&copies), expected);
    assert_eq!(headers(&copies[2]).get("redelivered"), Some(&FieldValue::I32(1)));
    assert_eq!(headers(&copies[3]).get("routed_queues"), Some(&texts(&[])));
}

#[test]
fn a_publish_in_a_transaction_is_copied_with_its_commit() {
    let (_world, mut client) = traced();
    client.tx_select();
    client.publish("x", "key", "m");
    let mut observer = _world.connect();
    assert_eq!(keys(&copies(&mut observer)), Vec::<&str>::new());
    client.commit();
    assert_eq!(keys(&copies(&mut observer)), ["publish.x"]);
}

#[test]
fn copies_are_not_copied_and_come_only_while_it_is_on() {
    let (world, mut client) = traced();
    let mut watcher = world.connect();
    watcher.consume_no_ack("trace");
    client.publish("x", "key", "1");
    assert_eq!(keys(&watcher.deliveries()), ["publish.x"]);
    trace(&world, false);
    client.publish("x", "key", "2");
    assert_eq!(client.pop_all("q"), ["1", "2"]);
    assert_eq!(watcher.deliveries(), []);
    trace(&world, true);
    client.declare("made while it is on");
    client.publish("", "made while it is on", "3");
    client.pop("made while it is on");
    assert_eq!(keys(&watcher.deliveries()), ["publish.", "deliver.made while it is on"]);
}

#[test]
fn copies_that_have_died_are_not_copied_when_they_are_consumed() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    let arguments = FieldTable::new()
        .with("x-max-length", 0)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "trace", false, &arguments);
    client.bind("trace", TRACE, "#");
    trace(&world, true);
    client.publish("", "nowhere", "m");
    let letter = client.get("dead").expect("the copy of the publish");
    assert_eq!(headers(&letter).get("x-first-death-exchange"), Some(&TRACE.into()));
    assert_eq!(client.get("dead"), None);
}

#[test]
fn a_publisher_that_says_where_its_message_died_does_not_hide_the_delivery() {
    let (_world, mut client) = traced();
    let says = FieldTable::new().with("x-first-death-exchange", TRACE);
    client.send(Message::new("x", "key", "m").headers(says));
    client.pop("q");
    assert_eq!(keys(&copies(&mut client)), ["publish.x", "deliver.q"]);
}

/// So many publishes are committed together.
fn committed(client: &mut Client, routing_key: &str, messages: usize) {
    client.tx_select();
    (0..messages).for_each(|number| client.publish("x", routing_key, &number.to_string()));
    client.commit();
}

#[test]
fn copies_of_a_large_transaction_are_posted_in_portions_and_in_order() {
    const MESSAGES: usize = 20_000;
    let (world, mut client) = traced();
    let used = || world.broker.admin().memory_uses().answers;
    committed(&mut client, "nowhere", MESSAGES);
    let posted = world.counts("trace").0;
    assert!(posted > 0 && posted < MESSAGES, "{posted}");
    let waiting = used();
    assert!(waiting > 0, "those that wait count");
    // Another client's copy comes behind them.
    let mut other = world.connect();
    other.publish("x", "nowhere", "the last");
    let now_ms = world.broker.now_ms();
    world.broker.tick(now_ms);
    let more = world.counts("trace").0;
    assert!(more > posted && more < MESSAGES, "a portion in each turn: {posted}, then {more}");
    assert!(used() < waiting);
    world.tick_all(now_ms);
    assert_eq!((world.counts("trace").0, used()), (MESSAGES + 1, 0));
    let bodies = copies(&mut other).into_iter().map(|copy| copy.text().to_owned());
    let expected = (0..MESSAGES).map(|number| number.to_string()).chain(["the last".to_owned()]);
    assert!(bodies.eq(expected));
}

#[test]
fn copies_for_many_queues_are_posted_in_portions() {
    const QUEUES: usize = 500;
    const MESSAGES: usize = 1000;
    let (world, mut client) = traced();
    for number in 1..QUEUES {
        let name = format!("trace {number}");
        client.declare(&name);
        client.bind(&name, TRACE, "#");
    }
    committed(&mut client, "nowhere", MESSAGES);
    let posted = world.counts("trace").0;
    assert!(posted > 0 && posted < MESSAGES, "{posted}");
    world.tick_all(world.broker.now_ms());
    assert_eq!(world.counts("trace").0, MESSAGES);
}

#[test]
fn copies_that_wait_go_with_their_vhost() {
    let world = World::new();
    let vhost = world.broker.define_vhost("other", Default::default()).expect("a vhost");
    let admin = world.broker.admin();
    admin.change_vhost("other", |settings| settings.tracing = true).expect("the vhost is there");
    let mut client = world.connect_to(vhost);
    client.declare("trace");
    client.bind("trace", TRACE, "#");
    client.declare_exchange("x", "topic");
    committed(&mut client, "nowhere", 10_000);
    assert!(admin.memory_uses().answers > 0);
    drop(client);
    admin.delete_vhost("other").expect("it is there");
    world.tick_all(world.broker.now_ms());
    assert_eq!(admin.memory_uses().answers, 0);
}

#[test]
fn copies_that_memory_has_no_room_for_are_not_made() {
    const MESSAGES: usize = 500;
    let world = World::with(Limits { memory_high_bytes: 4 << 20, ..Limits::default() });
    let mut client = world.connect();
    client.declare("trace");
    client.bind("trace", TRACE, "#");
    client.declare_exchange("x", "topic");
    // A copy names all of them, which takes more than its message.
    for number in 0..20 {
        let name = format!("{number:0200}");
        client.declare(&name);
        client.bind(&name, "x", "all");
    }
    trace(&world, true);
    committed(&mut client, "all", MESSAGES);
    world.tick_all(world.broker.now_ms());
    let posted = world.counts("trace").0;
    assert!(posted > 0 && posted < MESSAGES, "{posted}");
    client.tx_select();
    client.publish("x", "nowhere", "there is room again");
    client.commit();
    assert_eq!(world.counts("trace").0, posted + 1);
}

#[test]
fn deliveries_from_a_stream_are_copied() {
    let world = World::new();
    let mut watcher = world.connect();
    watcher.declare("trace");
    watcher.bind("trace", TRACE, "deliver.#");
    let mut client = world.connect();
    client.qos(10);
    stream(&mut client, "s");
    client.publish("", "s", "before it was on");
    trace(&world, true);
    read(&mut client, "s", "first");
    client.publish("", "s", "while it is on");
    assert_eq!(client.bodies(), ["before it was on", "while it is on"]);
    let first = copies(&mut watcher);
    assert_eq!(keys(&first), ["deliver.s", "deliver.s"]);
    let bodies: Vec<_> = first.iter().map(Delivery::text).collect();
    assert_eq!(bodies, ["before it was on", "while it is on"]);
    trace(&world, false);
    client.publish("", "s", "when it was off");
    assert_eq!(client.bodies(), ["when it was off"]);
    assert_eq!(copies(&mut watcher), []);
}

#[test]
fn deliveries_are_copied_while_it_is_on_whatever_way_they_take() {
    let world = World::new();
    let mut watcher = world.connect();
    watcher.declare("trace");
    watcher.bind("trace", TRACE, "deliver.#");
    for on_before in [false, true] {
        trace(&world, on_before);
        let mut asking = world.connect();
        asking.consume_no_ack("amq.rabbitmq.reply-to");
        let mut client = world.connect();
        for name in ["consumed", "polled", "rpc"] {
            client.declare(name);
        }
        client.consume_no_ack("consumed");
        let reply_to = Some(short("amq.rabbitmq.reply-to").into());
        asking.send(
            Message::new("", "rpc", "question")
                .with_properties(|properties| properties.reply_to = reply_to),
        );
        let request = client.get("rpc").expect("the request");
        client.ack(request.tag);
        let reply_to = request.properties.reply_to.expect("a name").to_string();
        copies(&mut watcher);
        trace(&world, !on_before);
        for key in ["consumed", "polled", &reply_to] {
            client.publish("", key, "m");
        }
        assert_eq!(client.pop("polled").as_deref(), Some("m"));
        assert_eq!((asking.bodies().len(), client.bodies().len()), (1, 1));
        let copied = copies(&mut watcher);
        let mut copied = keys(&copied);
        copied.sort_unstable();
        let reply = format!("deliver.{reply_to}");
        let expected =
            if on_before { vec![] } else { vec![&*reply, "deliver.consumed", "deliver.polled"] };
        assert_eq!(copied, expected, "it was on before: {on_before}");
    }
}
