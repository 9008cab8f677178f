//! Very many deliveries that come back together do so in portions: others have their turns in between, and what goes out again
//! does so in order.

use crate::consumer_timeout::{TIMEOUT_MS, tick};
use crate::dead_letters::to_queue;
use crate::frame_costs::cost;
use crate::support::{
    Client, Heard, Message, Step, World, WorldOnDisk, declare_with, on_a_thread, short,
};
use courser_codec::{FieldTable, Method, basic};
use courser_journal::testing::Call;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// More than four portions.
const MESSAGES: usize = 20_000;
/// More than goes in one portion, or in one turn of the timers, and much less than all.
const PORTION_MAX: usize = 10_000;
const START_MS: u64 = 10_000;
const OVER_MS: u64 = START_MS + TIMEOUT_MS;

fn quorum() -> FieldTable {
    FieldTable::new()
        .with("x-queue-type", "quorum")
        .with("x-delivery-limit", 20)
        .with("x-consumer-timeout", TIMEOUT_MS as i64)
}

fn names() -> Vec<String> {
    (0..MESSAGES).map(|nth| nth.to_string()).collect()
}

/// Puts all the messages into `q`.
fn fill(client: &mut Client) {
    let message = |name: String| {
        let message = Message::new("", "q", name);
        message.with_properties(|properties| properties.delivery_mode = Some(2))
    };
    let all: Vec<_> = names().into_iter().map(|name| Step::Publish(1, message(name))).collect();
    client.read(&all);
}

/// All that a client is sent until there is nothing more.
fn all_bodies(world: &World, client: &mut Client, now_ms: u64) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        world.tick_all(now_ms);
        let some = client.bodies();
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

/// As `assert_eq`, which shows all.
fn assert_in_order(bodies: &[String], expected: &[String]) {
    let differing = bodies.iter().zip(expected).position(|(one, other)| one != other);
    let differing = differing.map(|at| (&bodies[at], &expected[at]));
    assert_eq!((bodies.len(), differing), (expected.len(), None));
}

/// A client that has all messages of `q`, which is declared with `arguments`.
fn with_all(world: &World, arguments: &FieldTable) -> Client {
    tick(world, START_MS);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, arguments);
    client.consume("q");
    fill(&mut client);
    assert_eq!(all_bodies(world, &mut client, START_MS).len(), MESSAGES);
    assert_eq!(world.counts("q"), (0, MESSAGES, 1));
    client
}

/// Has another client publish to `q` when the log is told next of what becomes of messages of it: what the queue holds then.
fn publish_between_portions(world: &WorldOnDisk) -> Receiver<(usize, usize, usize)> {
    let (mut other, vhost) = (world.connect(), world.vhost());
    let (tell, told) = channel();
    world.store().before_next_append(move || {
        on_a_thread(|| other.publish("", "q", "late"));
        let status = vhost.queue(b"q").expect("it is there").status();
        tell.send((status.ready, status.unacked, status.consumers)).expect("it is waited for");
    });
    told
}

/// A way for all deliveries of a client to come back.
type Return = fn(&mut Client);

const RETURNS: [(&str, Return); 4] = [
    ("close", |client| client.close_channel(1)),
    ("disconnect", Client::disconnect),
    ("recover", |client| client.recover()),
    ("nack", |client| {
        client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: true });
    }),
];

#[test]
fn others_have_their_turns_between_the_portions_that_come_back() {
    for (name, come_back) in RETURNS {
        // Where another machine may lead next, the log is told of all that comes back.
        let world = WorldOnDisk::on_copy();
        let mut taker = world.connect();
        let mut client = world.connect();
        tick(&world, START_MS);
        declare_with(&mut client, "q", true, &quorum());
        let tag = client.consume("q");
        fill(&mut client);
        world.flush();
        assert_eq!(all_bodies(&world, &mut client, START_MS).len(), MESSAGES, "{name}");
        if name == "recover" || name == "nack" {
            client.cancel(&tag);
        }
        taker.consume("q");
        assert_eq!(taker.deliveries().len(), 0);
        let told = publish_between_portions(&world);
        come_back(&mut client);
        let (ready, unacked, consumers) = told.recv().expect("the log is told");
        assert!((1..PORTION_MAX).contains(&ready), "{name}: {ready} at once");
        assert_eq!((ready + unacked, consumers), (MESSAGES + 1, 1), "{name}");
        world.flush();
        let expected: Vec<_> = names().into_iter().chain(["late".to_owned()]).collect();
        assert_in_order(&all_bodies(&world, &mut taker, START_MS), &expected);
        assert_eq!(world.counts("q"), (0, MESSAGES + 1, 1), "{name}");
    }
}

#[test]
fn what_another_client_returns_between_two_portions_goes_out_in_order_too() {
    let world = World::new();
    tick(&world, START_MS);
    let (mut slow, mut other, mut taker) = (world.connect(), world.connect(), world.connect());
    declare_with(&mut slow, "q", true, &quorum());
    fill(&mut slow);
    assert_eq!(other.get("q").expect("a message").tag, 1);
    slow.qos(MESSAGES as u16 - 1);
    slow.consume("q");
    assert_eq!(all_bodies(&world, &mut slow, START_MS).len(), MESSAGES - 1);
    // So that it does not keep this for too long itself.
    tick(&world, OVER_MS - 1);
    other.fail_on(1);
    assert_eq!(other.get("q").expect("a message").text(), "0");
    taker.consume("q");
    tick(&world, OVER_MS);
    let (ready, unacked, _) = world.counts("q");
    assert!((1..PORTION_MAX).contains(&ready), "{ready} at once");
    assert_eq!(ready + unacked, MESSAGES);
    other.fail_on(2);
    assert_in_order(&all_bodies(&world, &mut taker, OVER_MS), &names());
    assert_eq!(world.counts("q"), (0, MESSAGES, 1));
}

#[test]
fn what_comes_back_too_often_is_dead_lettered_in_portions_and_in_order() {
    let world = WorldOnDisk::new();
    tick(&world, START_MS);
    let mut reader = world.connect();
    declare_with(&mut reader, "dead", true, &FieldTable::new());
    let arguments = to_queue("dead").with("x-queue-type", "quorum").with("x-delivery-limit", 0);
    let mut client = with_all(&world, &arguments);
    let told = publish_between_portions(&world);
    client.disconnect();
    let (ready, unacked, _) = told.recv().expect("the log is told");
    assert_eq!(ready, 1, "what was published");
    assert!((MESSAGES - PORTION_MAX..MESSAGES).contains(&unacked), "{unacked}");
    world.tick_all(START_MS);
    assert_eq!(world.counts("q"), (1, 0, 0));
    reader.consume("dead");
    assert_in_order(&all_bodies(&world, &mut reader, START_MS), &names());
}

#[test]
fn of_what_comes_back_beyond_the_length_the_oldest_goes_when_all_are_in_their_places() {
    const KEPT: usize = 100;
    let world = World::new();
    let arguments = quorum().with("x-max-length", KEPT as i64);
    tick(&world, START_MS);
    let (mut client, mut taker) = (world.connect(), world.connect());
    declare_with(&mut client, "q", true, &arguments);
    client.consume("q");
    for name in names() {
        client.publish("", "q", &name);
        assert_eq!(client.bodies().len(), 1);
    }
    tick(&world, OVER_MS);
    let (ready, unacked, _) = world.counts("q");
    assert!((KEPT + 1..PORTION_MAX).contains(&ready), "{ready} at once");
    assert_eq!(ready + unacked, MESSAGES);
    world.tick_all(OVER_MS);
    assert_eq!(world.counts("q"), (KEPT, 0, 0));
    taker.consume("q");
    assert_in_order(&taker.bodies(), &names()[MESSAGES - KEPT..]);
}

#[test]
fn what_is_done_with_or_refused_is_settled_in_portions() {
    for requeue in [None, Some(false)] {
        let world = WorldOnDisk::new();
        let mut client = with_all(&world, &quorum());
        let settled = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&settled);
        let told = publish_between_portions(&world);
        world.store().set_faults(move |call| {
            seen.fetch_add(usize::from(call == Call::Settle), Ordering::Relaxed);
            None
        });
        match requeue {
            None => client.ack_through(0),
            Some(requeue) => client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue }),
        }
        let (_, unacked, _) = told.recv().expect("the log is told");
        assert!((MESSAGES - PORTION_MAX..=MESSAGES).contains(&unacked), "{unacked}");
        assert_eq!(settled.load(Ordering::Relaxed), 5);
        assert_eq!(client.bodies(), ["late"]);
        assert_eq!(world.counts("q"), (0, 1, 1));
    }
}

#[test]
fn what_is_overdue_comes_back_in_portions_and_in_order() {
    let world = World::new();
    let mut slow = with_all(&world, &quorum());
    let mut taker = world.connect();
    taker.consume("q");
    tick(&world, OVER_MS);
    let (ready, unacked, consumers) = world.counts("q");
    assert!((1..PORTION_MAX).contains(&ready), "{ready} at once");
    assert_eq!((ready + unacked, consumers), (MESSAGES, 1));
    assert!(matches!(slow.heard()[..], [Heard::Cancelled(_)]));
    assert_eq!(taker.deliveries().len(), 0, "not all are in their places");
    world.connect().publish("", "q", "late");
    assert_eq!(taker.deliveries().len(), 0, "not all are in their places");
    let expected: Vec<_> = names().into_iter().chain(["late".to_owned()]).collect();
    assert_in_order(&all_bodies(&world, &mut taker, OVER_MS), &expected);
    assert_eq!(world.counts("q"), (0, MESSAGES + 1, 1));
}

#[test]
fn a_poll_between_two_portions_gets_what_comes_first() {
    let world = World::new();
    let _slow = with_all(&world, &quorum());
    tick(&world, OVER_MS);
    assert!(world.counts("q").1 > 0);
    let mut client = world.connect();
    assert!(client.takes_long(basic::Get { queue: short("q"), ..Default::default() }));
    assert_eq!(client.pop("q").as_deref(), Some("0"));
    assert_eq!(world.counts("q"), (MESSAGES - 1, 0, 0));
    assert_eq!(client.pop("q").as_deref(), Some("1"));
}

#[test]
fn what_a_client_settles_between_two_portions_does_not_come_back() {
    let world = World::new();
    let mut slow = with_all(&world, &quorum());
    tick(&world, OVER_MS);
    let (ready, unacked, _) = world.counts("q");
    // What is back already is not settled by it.
    slow.ack_through(MESSAGES as u64);
    assert_eq!(world.counts("q"), (ready, 0, 0));
    world.tick_all(OVER_MS);
    assert_eq!(world.counts("q"), (MESSAGES - unacked, 0, 0));
}

#[test]
fn what_a_channel_has_that_was_opened_between_two_portions_stays_with_it() {
    let world = World::new();
    let mut slow = with_all(&world, &quorum());
    tick(&world, OVER_MS);
    assert!(world.counts("q").1 > 0);
    // All the rest comes back with its channel.
    slow.close_channel(1);
    assert_eq!(world.counts("q"), (MESSAGES, 0, 0));
    slow.open_channel(1);
    slow.consume("q");
    assert_in_order(&all_bodies(&world, &mut slow, OVER_MS), &names());
    assert_eq!(world.counts("q"), (0, MESSAGES, 1));
}

#[test]
fn a_consumer_that_follows_in_the_slot_of_an_overdue_one_keeps_what_it_has() {
    let world = World::new();
    let mut slow = with_all(&world, &quorum());
    tick(&world, OVER_MS);
    let ready = world.counts("q").0;
    let settle = basic::Ack { delivery_tag: MESSAGES as u64, multiple: true };
    let consume = basic::Consume { queue: short("q"), nowait: true, ..Default::default() };
    slow.read(&[Step::Call(1, Method::from(settle)), Step::Call(1, consume.into())]);
    assert_eq!(all_bodies(&world, &mut slow, OVER_MS).len(), ready);
    assert_eq!(world.counts("q"), (0, ready, 1));
}

#[test]
fn a_queue_can_be_deleted_between_two_portions() {
    let world = World::new();
    let mut slow = with_all(&world, &quorum());
    tick(&world, OVER_MS);
    assert!(world.counts("q").1 > 0);
    world.connect().delete("q");
    // One that is not back yet.
    slow.ack(1);
    let next_ms = tick(&world, OVER_MS);
    assert!(next_ms.is_none_or(|next_ms| next_ms > OVER_MS), "nothing of it comes back");
    slow.ack_through(0);
    slow.declare("q");
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn all_are_there_in_order_after_a_crash_between_two_portions() {
    let mut world = WorldOnDisk::new();
    let mut slow = with_all(&world, &quorum());
    world.flush();
    tick(&world, OVER_MS);
    assert!(world.counts("q").1 > 0);
    world.crash(|| slow.disconnect());
    assert_eq!(world.counts("q"), (MESSAGES, 0, 0));
    let mut client = world.connect();
    client.consume("q");
    assert_in_order(&all_bodies(&world, &mut client, OVER_MS), &names());
}

#[test]
fn a_single_active_consumer_follows_one_with_very_many_messages_in_order() {
    for now_ms in [START_MS, OVER_MS] {
        let world = World::new();
        let arguments = quorum().with("x-single-active-consumer", true);
        let mut first = with_all(&world, &arguments);
        let mut second = world.connect();
        second.consume("q");
        match now_ms {
            START_MS => first.close_channel(1),
            _ => assert!(tick(&world, now_ms).is_some()),
        }
        assert_in_order(&all_bodies(&world, &mut second, now_ms), &names());
        assert_eq!(world.counts("q"), (0, MESSAGES, 1));
    }
}

#[test]
fn an_auto_delete_queue_goes_when_very_many_messages_have_come_back() {
    let world = World::new();
    let mut client = world.connect();
    let queue = courser_codec::queue::Declare {
        queue: short("q"),
        auto_delete: true,
        ..Default::default()
    };
    client.call(queue);
    client.consume("q");
    fill(&mut client);
    assert_eq!(all_bodies(&world, &mut client, 1).len(), MESSAGES);
    client.close_channel(1);
    assert!(!world.has_queue("q"));
}

#[test]
fn one_look_for_what_is_overdue_is_at_a_bounded_number_of_messages() {
    let world = World::new();
    let timeout = FieldTable::new().with("x-consumer-timeout", TIMEOUT_MS as i64);
    let mut client = with_all(&world, &timeout);
    let taken = cost(|| assert!(tick(&world, OVER_MS).is_some()));
    // Other timers have had their turns before all were looked at.
    assert!(taken < MESSAGES as u64, "{taken} steps");
    assert!(matches!(client.heard()[..], [Heard::ChannelClosed(_)]));
    world.tick_all(OVER_MS);
    assert_eq!(world.counts("q"), (MESSAGES, 0, 0));
}
