//! Messages that go to very many queues: the copies count, so that they come a few at a time.

use crate::delayed::{START_MS, declare_as, delayed_type};
use crate::frame_costs::{cost, fill, large};
use crate::support::{Client, Message, Step, World, declare_with};
use courser_broker::Limits;
use courser_codec::{FieldTable, basic, tx};

/// Binds so many queues to an exchange: `q0` and so on.
fn bind_many(client: &mut Client, exchange: &str, count: usize) {
    for nth in 0..count {
        let name = format!("q{nth}");
        client.declare(&name);
        client.bind(&name, exchange, "");
    }
}

fn to_all() -> Message {
    Message::new("amq.fanout", "", "x")
}

#[test]
fn a_publish_counts_for_each_queue_that_gets_it() {
    const QUEUES: usize = 100;
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", "headers");
    bind_many(&mut client, "amq.fanout", QUEUES);
    (0..QUEUES).for_each(|nth| client.bind(&format!("q{nth}"), "x", ""));
    for (exchange, publishes) in [("amq.fanout", 50), ("x", 50)] {
        let message = Message::new(exchange, "", "x");
        let taken = cost(|| client.read(&vec![Step::Publish(1, message.clone()); publishes]));
        assert!(taken >= (publishes * QUEUES) as u64, "{exchange}: {taken}");
    }
    assert_eq!(world.counts("q7").0, 100);
}

#[test]
fn dead_letters_for_many_queues_are_posted_a_few_at_a_time() {
    const LETTERS: usize = 300;
    let world = large();
    world.broker.set_time(1000);
    let mut client = world.connect();
    bind_many(&mut client, "amq.fanout", 1000);
    let letters = FieldTable::new().with("x-dead-letter-exchange", "amq.fanout");
    declare_with(&mut client, "source", false, &letters);
    fill(&mut client, "source", LETTERS);
    client.consume("source");
    client.heard();
    client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: false });
    let at_once = world.counts("q7").0;
    assert!((1..=LETTERS * 4 / 5).contains(&at_once), "{at_once}");
    world.tick_all(1000);
    assert_eq!(world.counts("q999").0, LETTERS, "without a wait");
    assert_eq!(world.counts("source"), (0, 0, 1));
}

#[test]
fn delayed_messages_for_many_queues_are_sent_on_a_few_at_a_time() {
    const MESSAGES: usize = 100;
    let world = World::new();
    world.broker.set_time(START_MS);
    let mut client = world.connect();
    declare_as(&mut client, delayed_type("fanout"), false);
    bind_many(&mut client, "x", 2000);
    let message = Message::new("x", "", "x").headers(FieldTable::new().with("x-delay", 10));
    client.read(&vec![Step::Publish(1, message); MESSAGES]);
    let (mut arrived, mut most) = (0, 0);
    for _ in 0..100 {
        world.broker.tick(START_MS + 10);
        let now = world.counts("q7").0;
        (arrived, most) = (now, most.max(now - arrived));
    }
    assert_eq!(arrived, MESSAGES);
    assert!(most <= MESSAGES * 4 / 5, "{most} at once");
}

#[test]
fn the_copies_of_a_transaction_count_before_any_is_made() {
    const QUEUES: usize = 200;
    let limits = Limits { memory_high_bytes: 8_000_000, ..Limits::default() };
    let world = World::with(limits);
    let mut client = world.connect();
    bind_many(&mut client, "amq.fanout", QUEUES);
    client.tx_select();
    client.read(&vec![Step::Publish(1, to_all()); 100]);
    let taken = cost(|| client.commit());
    assert!(taken >= 100 * QUEUES as u64, "{taken}");
    assert_eq!(world.counts("q7").0, 100);
    client.read(&vec![Step::Publish(1, to_all()); 1000]);
    assert!(client.takes_long(tx::Commit {}), "others are served meanwhile");
    let refused = client.refused(tx::Commit {});
    assert!(refused.contains("of open transactions reached"), "{refused}");
    assert_eq!(world.counts("q7").0, 100, "none of it has taken effect");
}
