//! How what a message costs grows with what is there, in steps.

use crate::frame_costs::{cost, large};
use crate::support::{Client, Message, World, declare_with, owned};
use courser_codec::FieldTable;

const DEDUPLICATION: &str = "x-message-deduplication";

fn table() -> FieldTable {
    FieldTable::new()
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

/// So many headers, besides one that identifies a message by a text of this length.
fn headers(count: usize, identity: &str) -> FieldTable {
    let many = (0..count).map(|nth| (owned(&format!("h{nth}")), (nth as i64).into()));
    let named = (owned("x-deduplication-header"), identity.into());
    many.chain([named]).collect()
}

fn began() -> (World, Client) {
    let world = large();
    world.broker.set_time(0);
    let client = world.connect();
    (world, client)
}
