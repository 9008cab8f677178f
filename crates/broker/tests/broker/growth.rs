//! How what a message costs grows with what is there: with twice as many queues, exchanges and headers, and headers twice as long, it
//! is twice as much, in steps and in allocated bytes. What a step does is only as good as the count of it: each loop over what
//! clients have many of has to count.

use crate::frame_costs::{cost, large};
use crate::support::{Client, Message, World, declare_with, owned, short, taken_bytes};
use courser_codec::{FieldTable, Table, exchange};

const DEDUPLICATION: &str = "x-message-deduplication";

fn table() -> FieldTable {
    FieldTable::new()
}

fn exchange_with(client: &mut Client, name: &str, kind: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let (exchange, kind, arguments) = (short(name), short(kind), Table::from_entries(&entries));
    client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
}

/// A fanout exchange `all` with so many queues behind it.
fn queues(client: &mut Client, count: usize, durable: bool, arguments: &FieldTable) {
    client.declare_exchange("all", "fanout");
    for nth in 0..count {
        let name = format!("q{nth}");
        declare_with(client, &name, durable, arguments);
        client.bind(&name, "all", "");
    }
}

/// A queue `dying` whose messages go to `all` when they are a second old.
fn dying(client: &mut Client) {
    let arguments = table().with("x-dead-letter-exchange", "all").with("x-message-ttl", 1000);
    declare_with(client, "dying", false, &arguments);
}

fn marked(exchange: &str, routing_key: &str) -> Message {
    let headers = table().with("x-deduplication-header", "the same");
    Message::new(exchange, routing_key, "x").headers(headers)
}

#[test]
fn a_dead_letter_for_many_durable_queues_takes_a_few_steps_for_each() {
    const QUEUES: usize = 2000;
    let (world, mut client) = began();
    queues(&mut client, QUEUES, true, &table());
    dying(&mut client);
    // It has died in one of them before, and does not come back there.
    let back =
        table().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "dying");
    declare_with(&mut client, "back", true, &back.with("x-message-ttl", 1000));
    client.bind("back", "all", "");
    client.publish("", "back", "x");
    let taken = cost(|| {
        world.tick_all(1100);
        world.tick_all(2200);
    });
    assert!((QUEUES as u64..20 * QUEUES as u64).contains(&taken), "{taken}");
    assert_eq!((world.counts("q0").0, world.counts("back").0), (1, 0));
}

#[test]
fn a_dead_letter_is_not_searched_for_its_deaths_by_each_queue() {
    const QUEUES: usize = 200;
    const HEADERS: usize = 5000;
    for arguments in [table(), table().with(DEDUPLICATION, true).with("x-cache-size", 10)] {
        let (world, mut client) = began();
        queues(&mut client, QUEUES, false, &arguments);
        dying(&mut client);
        client.send(Message::new("", "dying", "x").headers(headers(HEADERS, "")));
        let taken = cost(|| world.tick_all(1100));
        let most = 20 * (QUEUES + HEADERS) as u64;
        assert!((HEADERS as u64..most).contains(&taken), "{taken}");
        assert_eq!(world.counts("q0").0, 1);
    }
}

#[test]
fn a_repetition_for_many_queues_that_drop_it_takes_no_more_steps_than_the_first() {
    const QUEUES: usize = 2000;
    let present = table().with(DEDUPLICATION, true);
    for arguments in [present.clone(), present.with("x-cache-size", 10)] {
        let (world, mut client) = began();
        queues(&mut client, QUEUES, false, &arguments);
        let first = cost(|| client.send(marked("all", "")));
        let second = cost(|| client.send(marked("all", "")));
        assert!(second <= first, "{first}, then {second}");
        assert_eq!(world.counts("q0").0, 1);
    }
}

/// So many headers, besides one that identifies a message by a text of this length.
fn headers(count: usize, identity: &str) -> FieldTable {
    let many = (0..count).map(|nth| (owned(&format!("h{nth}")), (nth as i64).into()));
    let named = (owned("x-deduplication-header"), identity.into());
    many.chain([named]).collect()
}

/// `count` of all that a message may come to, from an exchange `later` that delays it, and `all` behind that.
fn everything(count: usize) -> (World, Client) {
    let (world, mut client) = began();
    client.declare_exchange("all", "fanout");
    exchange_with(
        &mut client,
        "later",
        "x-delayed-message",
        &table().with("x-delayed-type", "fanout"),
    );
    client.bind_exchange("all", "later", "");
    dying(&mut client);
    client.bind("dying", "all", "");
    let once = table().with(DEDUPLICATION, true);
    let remembering = once.clone().with("x-cache-size", 10);
    let kinds = [
        ("plain", false, table()),
        ("durable", true, table()),
        ("apart", false, once),
        ("once", true, remembering.clone()),
    ];
    for nth in 0..count {
        let through =
            [(format!("fanout{nth}"), table()), (format!("once{nth}"), remembering.clone())];
        for (name, arguments) in &through {
            exchange_with(&mut client, name, "fanout", arguments);
            client.bind_exchange(name, "all", "");
        }
        for (kind, durable, arguments) in &kinds {
            let queue = format!("{kind}{nth}");
            declare_with(&mut client, &queue, *durable, arguments);
            client.bind(&queue, "all", "");
            client.bind(&queue, &through[0].0, "");
            client.bind(&queue, &through[1].0, "");
        }
    }
    (world, client)
}

/// What each of these costs with `count` of everything: steps and allocated bytes.
fn costs(count: usize) -> Vec<(&'static str, u64, i64)> {
    let (world, mut client) = everything(count);
    let told = |text: &str| headers(count, &text.repeat(20 * count));
    let message = |exchange, identity| Message::new(exchange, "", "x").headers(told(identity));
    let mut costs = Vec::new();
    let mut note = |what, act: &mut dyn FnMut(&mut Client)| {
        let before = taken_bytes();
        let steps = cost(|| act(&mut client));
        costs.push((what, steps, taken_bytes() - before));
    };
    let (first, delayed) = (message("all", "a"), message("later", "b"));
    let delayed = delayed.headers(told("b").with("x-delay", 10));
    note("publish", &mut |client| client.send(first.clone()));
    note("repeat", &mut |client| client.send(first.clone()));
    note("delay", &mut |client| client.send(delayed.clone()));
    note("send on", &mut |_| world.tick_all(10));
    note("repeat what was delayed", &mut |client| client.send(delayed.clone()));
    note("drop what was delayed", &mut |_| world.tick_all(20));
    assert_eq!(world.counts("apart0").0, 2);
    note("dead-letter", &mut |_| world.tick_all(1100));
    note("delete an exchange", &mut |client| {
        client.call(exchange::Delete { exchange: short("all"), ..Default::default() });
    });
    costs
}

#[test]
fn what_a_message_costs_grows_no_faster_than_what_is_there() {
    const COUNT: usize = 200;
    let (once, twice) = (costs(COUNT), costs(2 * COUNT));
    for ((what, steps, bytes), (_, more_steps, more_bytes)) in once.into_iter().zip(twice) {
        let text =
            format!("{what}: {steps} steps, then {more_steps}; {bytes} bytes, then {more_bytes}");
        assert!(more_steps <= steps * 9 / 4 + 1000, "{text}");
        assert!(more_bytes <= bytes * 5 / 2 + 100_000, "{text}");
    }
}

fn began() -> (World, Client) {
    let world = large();
    world.broker.set_time(0);
    let client = world.connect();
    (world, client)
}
