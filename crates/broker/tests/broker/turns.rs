//! What a connection does before others get their turn: counted in steps.

use crate::frame_costs::{ask, consume, cost, fill, large};
use crate::streams;
use crate::support::{Client, Message, Step, World, WorldOnDisk, declare_with, short};
use courser_broker::Budget;
use courser_broker::wire::WireBuffer;
use courser_codec::{FieldTable, Method, Table, basic, exchange, queue, tx};
use courser_journal::testing::Call;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const READERS: usize = 20;
/// The steps of a turn, and of the last thing in it.
const TURN: u64 = 20_000;

fn large_message() -> Message {
    Message::new("", "s", vec![7; 20_000])
}

/// A message that passes the filter of the readers.
fn wanted() -> Message {
    large_message().headers(FieldTable::new().with("x-stream-filter-value", "wanted"))
}

/// A stream `s` of 2 MB, and one connection that reads all of it many times over and wants none of it.
fn filled(world: &World) -> (Client, Client) {
    let (mut publisher, mut client) = (world.connect(), world.connect());
    streams::stream(&mut publisher, "s");
    publisher.read(&vec![Step::Publish(1, large_message()); 100]);
    client.qos(1);
    let entries = FieldTable::new()
        .with("x-stream-offset", "first")
        .with("x-stream-filter", "wanted")
        .to_entries();
    let tags: Vec<String> = (0..READERS).map(|nth| nth.to_string()).collect();
    let consume = |tag| basic::Consume {
        queue: short("s"),
        consumer_tag: short(tag),
        nowait: true,
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    let all: Vec<Method<'_>> = tags.iter().map(|tag| consume(tag).into()).collect();
    let taken = cost(|| ask(&mut client, &all));
    assert!(taken <= TURN, "the read that brings them: {taken}");
    (publisher, client)
}

#[test]
fn readers_that_want_nothing_read_no_more_in_a_turn_than_others_can_wait_for() {
    let world = World::new();
    let (mut publisher, mut client) = filled(&world);
    let mut turns = 0;
    loop {
        let taken = cost(|| client.session().confirm_durable());
        assert!(taken <= TURN, "{taken}");
        if taken == 0 {
            break;
        }
        turns += 1;
    }
    assert!((30..60).contains(&turns), "{turns}");
    publisher.send(wanted());
    assert_eq!(client.deliveries().len(), READERS, "all have come to the end");
}

#[test]
fn readers_that_want_nothing_keep_nothing_from_their_connection_while_they_read() {
    let world = WorldOnDisk::new();
    let (mut publisher, mut client) = filled(&world);
    world.flush();
    let (outbox, reads) = (Arc::clone(client.session().outbox()), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&reads);
    world.store().set_faults(move |call| {
        if call == Call::Read {
            count.fetch_add(1, Relaxed);
            let shown = format!("{outbox:?}");
            assert!(!shown.starts_with("Outbox { state: Mutex { data: <locked>"), "others wait");
        }
        None
    });
    while cost(|| client.session().confirm_durable()) > 0 {}
    assert!(reads.load(Relaxed) >= 100, "{reads:?}");
    world.store().heal();
    publisher.send(wanted());
    world.flush();
    assert_eq!(client.deliveries().len(), READERS);
}

#[test]
fn a_reader_that_has_waited_for_room_reads_outside_the_gate() {
    let world = World::new();
    let (_publisher, _) = filled(&world);
    let mut client = world.connect();
    client.qos(u16::MAX);
    streams::read(&mut client, "s", "first");
    // Its outbox takes less at once. Debug builds hold that nothing is read in the gate.
    assert_eq!(client.deliveries().len(), 100);
}

#[test]
fn the_exclusive_queues_of_a_connection_that_ends_go_a_few_in_a_turn() {
    const QUEUES: usize = 1000;
    let world = World::new();
    let mut client = world.connect();
    let names: Vec<String> = (0..QUEUES).map(|nth| format!("q{nth}")).collect();
    for name in &names {
        let queue = short(name);
        client.call(queue::Declare { queue, exclusive: true, ..Default::default() });
    }
    client.session().close_quietly(&mut WireBuffer::default());
    let (mut left, mut turns) = (QUEUES, 0);
    loop {
        let is_done = client.session().end(&mut Budget::begin());
        let now = world.vhost().queues().len();
        assert!(now < left && left - now <= 300, "{} at once", left - now);
        (left, turns) = (now, turns + 1);
        if is_done {
            break;
        }
    }
    assert!(left == 0 && turns >= 4, "{left} {turns}");
}

#[test]
fn what_a_message_is_compared_with_counts_where_routes_can_not_be_remembered() {
    const QUEUES: usize = 500;
    let by_header = FieldTable::new().with("x-match", "all").with("h", 1).to_entries();
    let hashed = FieldTable::new().with("hash-header", "h").to_entries();
    let (by_header, hashed) = (Table::from_entries(&by_header), Table::from_entries(&hashed));
    for (kind, arguments, of_binding) in
        [("headers", Table::EMPTY, by_header), ("x-consistent-hash", hashed, Table::EMPTY)]
    {
        let world = World::new();
        let mut client = world.connect();
        let (exchange, kind) = (short("x"), short(kind));
        client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
        for nth in 0..QUEUES {
            let name = format!("q{nth}");
            client.declare(&name);
            let (queue, routing_key) = (short(&name), short("1"));
            let arguments = of_binding;
            client.call(queue::Bind {
                queue,
                exchange,
                routing_key,
                arguments,
                ..Default::default()
            });
        }
        let message = Message::new("x", "1", "m").headers(FieldTable::new().with("h", 1));
        let taken = cost(|| client.send(message));
        assert!(taken >= QUEUES as u64, "{kind}: {taken}");
    }
}

#[test]
fn what_settles_very_many_deliveries_takes_long_and_nothing_else_does() {
    let world = large();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    publisher.declare("q");
    client.consume("q");
    let all = |delivery_tag| basic::Ack { delivery_tag, multiple: true };
    let one = basic::Ack { delivery_tag: 1, multiple: false };
    let nack = basic::Nack { delivery_tag: 0, multiple: true, requeue: true };
    let recover = basic::Recover { requeue: true };
    fill(&mut publisher, "q", 1000);
    client.heard();
    assert!(!client.takes_long(all(0)) && !client.takes_long(nack) && !client.takes_long(recover));
    assert!(!client.session().takes_long_to_end());
    fill(&mut publisher, "q", 60_000);
    client.heard();
    assert!(client.takes_long(all(0)) && client.takes_long(nack) && client.takes_long(recover));
    assert!(client.session().takes_long_to_end() && client.session().takes_long_to_close(1));
    assert!(!client.takes_long(one) && !client.takes_long(basic::Qos::default()));
    let mut batch = courser_broker::Batch::default();
    client.session().request(&mut batch, 1, &all(0).into()).expect("a good method");
    assert!(client.session().has_much_to_settle() && client.takes_long(basic::Qos::default()));
    client.session().flush(&mut batch).expect("nothing fails");
    assert!(!client.session().has_much_to_settle() && !client.session().takes_long_to_end());
    consume(&mut client, "q", 6000);
    assert!(client.session().takes_long_to_end());
}

#[test]
fn a_channel_whose_end_takes_many_queues_along_takes_long_to_close() {
    let world = World::new();
    let mut client = world.connect();
    let mut consumed = 0;
    let mut consume_some = |client: &mut Client, queues: usize, bindings: usize| {
        for _ in 0..queues {
            let name = format!("q{consumed}");
            consumed += 1;
            let queue = short(&name);
            client.call(queue::Declare { queue, auto_delete: true, ..Default::default() });
            (0..bindings).for_each(|nth| client.bind(&name, "amq.direct", &nth.to_string()));
            client.consume(&name);
        }
    };
    consume_some(&mut client, 400, 0);
    assert!(!client.session().takes_long_to_close(1) && !client.session().takes_long_to_end());
    consume_some(&mut client, 200, 0);
    assert!(client.session().takes_long_to_close(1) && client.session().takes_long_to_end());
    client.close_channel(1);
    client.open_channel(1);
    // None has many, and all together have.
    consume_some(&mut client, 3, 1500);
    assert!(!client.session().takes_long_to_close(1));
    consume_some(&mut client, 1, 1500);
    assert!(client.session().takes_long_to_close(1) && client.session().takes_long_to_end());
}

#[test]
fn a_channel_with_many_consumers_takes_long_to_close_whatever_they_take_from() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let (queue, auto_delete) = (short("goes"), true);
    client.call(queue::Declare { queue, auto_delete, ..Default::default() });
    // A queue that goes once counts once.
    consume(&mut client, "goes", 1000);
    consume(&mut client, "q", 3900);
    assert!(!client.session().takes_long_to_close(1));
    client.declare("another");
    consume(&mut client, "another", 200);
    assert!(client.session().takes_long_to_close(1));
}

#[test]
fn whether_a_queue_has_many_bindings_is_known_after_so_many() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    (0..20_000).for_each(|nth| client.bind("q", "amq.direct", &nth.to_string()));
    let purge = || queue::Purge { queue: short("q"), ..Default::default() };
    let taken = cost(|| assert!(client.takes_long(purge())));
    assert!((5000..6000).contains(&taken), "{taken}");
}

#[test]
fn the_end_of_a_long_transaction_takes_long() {
    let world = large();
    let mut client = world.connect();
    client.declare("q");
    client.tx_select();
    fill(&mut client, "q", 100);
    assert!(!client.takes_long(tx::Commit {}) && !client.takes_long(tx::Rollback {}));
    fill(&mut client, "q", 10_000);
    assert!(client.takes_long(tx::Commit {}) && client.takes_long(tx::Rollback {}));
    client.commit();
    assert!(!client.takes_long(tx::Commit {}));
    client.consume("q");
    fill(&mut world.connect(), "q", 60_000);
    client.heard();
    client.tell(basic::Ack { delivery_tag: 0, multiple: true });
    assert!(client.takes_long(tx::Commit {}) && client.takes_long(tx::Rollback {}));
}

#[test]
fn a_poll_behind_which_very_many_have_expired_takes_long() {
    let world = large();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    client.declare("q");
    let get = || basic::Get { queue: short("q"), no_ack: true };
    let brief = || Message::new("", "q", "brief").expiration("1");
    for (count, takes_long) in [(1000, false), (6000, true)] {
        client.publish("", "q", "lasting");
        client.read(&vec![Step::Publish(1, brief()); count]);
        world.broker.tick(world.broker.now_ms() + 10);
        assert!(!client.takes_long(get()), "the first has not expired");
        assert_eq!(client.pop("q").as_deref(), Some("lasting"));
        assert_eq!(client.takes_long(get()), takes_long, "{count}");
        assert_eq!(client.pop("q"), None);
        assert!(!client.takes_long(get()));
    }
}

#[test]
fn the_end_of_what_takes_a_large_queue_along_takes_long() {
    let world = large();
    let mut client = world.connect();
    client.declare_exchange("x", "topic");
    let declare = |queue, exclusive, auto_delete| queue::Declare {
        queue: short(queue),
        exclusive,
        auto_delete,
        ..Default::default()
    };
    client.call(declare("unused", false, true));
    client.call(declare("own", true, false));
    client.call(declare("small", true, false));
    let tag = client.consume("unused");
    let cancel = || basic::Cancel { consumer_tag: short(&tag), ..Default::default() };
    assert!(!client.takes_long(cancel()) && !client.session().takes_long_to_close(1));
    assert!(!client.session().takes_long_to_end());
    for queue in ["unused", "own"] {
        (0..6000).for_each(|key| client.bind(queue, "x", &key.to_string()));
    }
    assert!(client.takes_long(cancel()) && client.session().takes_long_to_close(1));
    assert!(client.session().takes_long_to_end());
    client.cancel(&tag);
    assert!(!client.session().takes_long_to_end() && !client.session().takes_long_to_close(1));
    client.session().close_quietly(&mut WireBuffer::default());
    assert!(client.session().takes_long_to_go_on(), "its exclusive queue");
    let mut budget = Budget::begin();
    while !client.session().end(&mut budget) {}
    assert!(!client.session().takes_long_to_go_on());
    assert_eq!(world.broker.admin().queues(Some("/")).expect("a vhost").len(), 0);
}

#[test]
fn a_purge_of_very_many_that_wait_for_another_try_takes_long() {
    let world = large();
    let mut client = world.connect();
    let retrying = FieldTable::new().with("x-queue-type", "quorum");
    let retrying = retrying.with("x-delayed-retry-type", "all").with("x-delayed-retry-min", 1000);
    declare_with(&mut client, "q", true, &retrying);
    let purge = || queue::Purge { queue: short("q"), ..Default::default() };
    let delete = || queue::Delete { queue: short("q"), ..Default::default() };
    for (count, takes_long) in [(1000, false), (300_000, true)] {
        let tag = client.consume("q");
        fill(&mut world.connect(), "q", count);
        client.heard();
        client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: true });
        client.cancel(&tag);
        assert_eq!(world.counts("q"), (0, 0, 0), "all wait for another try");
        assert_eq!(client.takes_long(purge()), takes_long, "{count}");
        assert_eq!(client.takes_long(delete()), takes_long, "{count}");
    }
}
