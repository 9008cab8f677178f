//! How what a message costs grows with what is there: with twice as many queues, exchanges and headers, and headers twice as long, it
//! is twice as much, in steps and in allocated bytes. What a step does is only as good as the count of it: each loop over what
//! clients have many of has to count.

use crate::frame_costs::{cost, large};
use crate::support::{Client, Message, Step, World, declare_with, owned, short, taken_bytes};
use courser_codec::{FieldTable, Table, exchange, tx};

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

/// An exchange `once` that drops repetitions, behind the exchange of this name, with the queue `behind`. The other has the queue `q`.
fn once_behind(client: &mut Client, exchange: &str, routing_key: &str) {
    let once = table().with(DEDUPLICATION, true);
    exchange_with(client, "once", "fanout", &once);
    client.bind_exchange("once", exchange, routing_key);
    for (queue, exchange) in [("q", exchange), ("behind", "once")] {
        client.declare(queue);
        client.bind(queue, exchange, routing_key);
    }
}

#[test]
fn repetitions_in_a_transaction_find_the_way_that_is_left_once() {
    const MANY: usize = 300;
    let (world, mut client) = began();
    client.declare_exchange("all", "fanout");
    once_behind(&mut client, "all", "");
    for nth in 0..MANY {
        let name = format!("fanout{nth}");
        client.declare_exchange(&name, "fanout");
        client.bind_exchange(&name, "all", "");
    }
    client.tx_select();
    client.read(&vec![Step::Publish(1, marked("all", "")); MANY]);
    let taken = cost(|| client.commit());
    assert!((MANY as u64..60 * MANY as u64).contains(&taken), "{taken}");
    assert_eq!((world.counts("q").0, world.counts("behind").0), (MANY, 1));
}

#[test]
fn a_commit_is_refused_whose_repetitions_find_many_long_ways() {
    let (world, mut client) = began();
    client.declare_exchange("words", "topic");
    once_behind(&mut client, "words", "#");
    for nth in 0..10 {
        client.bind("q", "words", &format!("{}{}z", "*.".repeat(nth), "#.a.".repeat(55)));
    }
    client.tx_select();
    let publishes: Vec<_> = (0..300).map(|nth| "a.".repeat(110 + nth % 2) + "a").collect();
    let publishes = publishes.iter().map(|key| Step::Publish(1, marked("words", key)));
    client.read(&publishes.collect::<Vec<_>>());
    assert!(client.heard().is_empty());
    client.read(&[Step::Call(1, tx::Commit {}.into())]);
    let heard = format!("{:?}", client.heard());
    assert!(heard.contains("506") && heard.contains("steps to route"), "{heard}");
    // Nothing of it has taken effect, and nothing is remembered.
    assert_eq!((world.counts("q").0, world.counts("behind").0), (0, 0));
    let mut client = world.connect();
    client.send(marked("words", "a"));
    assert_eq!((world.counts("q").0, world.counts("behind").0), (1, 1));
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
