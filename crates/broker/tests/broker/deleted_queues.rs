//! Deleted queues: what is kept of them for clients counts for those alone, and no longer than they need it.

use crate::support::{Client, World, declare_with, short};
use courser_broker::{Batch, Limits, Queue};
use courser_codec::{FieldTable, Method, basic, queue};
use std::sync::{Arc, Weak};

/// All definitions together may use 2 MB.
fn world() -> World {
    World::with(Limits {
        memory_high_bytes: 8_000_000,
        outbox_high_bytes: 1000,
        ..Limits::default()
    })
}

/// Declares a queue with arguments of 20 KB, and a message in it.
fn declare_large(world: &World, client: &mut Client, name: &str) -> Weak<Queue> {
    let large = FieldTable::new().with("text", "x".repeat(20_000).as_str());
    declare_with(client, name, false, &large);
    client.publish("", name, "x");
    Arc::downgrade(&world.vhost().queue(name.as_bytes()).expect("declared"))
}

fn kept(queues: &[Weak<Queue>]) -> usize {
    queues.iter().filter(|queue| queue.strong_count() > 0).count()
}

fn definitions(world: &World) -> u64 {
    world.broker.admin().memory_uses().definitions
}

#[test]
fn a_channel_whose_limit_is_used_up_keeps_no_queue_that_it_has_consumed_from() {
    let world = world();
    let (mut client, mut other) = (world.connect(), world.connect());
    client.call(basic::Qos { prefetch_count: 1, global: true, ..Default::default() });
    client.declare("q");
    client.consume("q");
    other.publish("", "q", "the one that it may have");
    let before = definitions(&world);
    let queues: Vec<_> = (0..200)
        .map(|nth| {
            let name = format!("q{nth}");
            let queue = declare_large(&world, &mut other, &name);
            client.consume(&name);
            other.delete(&name);
            queue
        })
        .collect();
    // Its last route.
    other.publish("", "nowhere", "x");
    assert_eq!((kept(&queues), definitions(&world)), (0, before));
    client.consume("q");
    client.ack(1);
    other.publish("", "q", "next");
    assert_eq!(client.bodies(), ["the one that it may have", "next"]);
}

#[test]
fn consumers_of_a_channel_keep_their_turns_when_others_have_gone() {
    let world = world();
    let (mut client, mut other) = (world.connect(), world.connect());
    client.call(basic::Qos { prefetch_count: 1, global: true, ..Default::default() });
    let names: Vec<String> = (0..100).map(|nth| format!("q{nth}")).collect();
    for name in &names {
        other.declare(name);
        other.publish("", name, name);
        client.consume(name);
    }
    names.iter().skip(1).step_by(2).for_each(|name| drop(other.delete(name)));
    let left: Vec<&String> = names.iter().step_by(2).collect();
    for (nth, name) in left.iter().enumerate() {
        assert_eq!(client.bodies(), [name.as_str()]);
        client.ack(nth as u64 + 1);
    }
    assert_eq!(client.bodies(), [""; 0]);
}

#[test]
fn a_client_that_does_not_read_keeps_no_queue_that_it_has_consumed_from() {
    let world = world();
    let (mut client, mut other) = (world.connect(), world.connect());
    other.declare("q");
    client.consume_no_ack("q");
    other.fill("q", &["x".repeat(1000).as_str(); 3]);
    let before = definitions(&world);
    let queues: Vec<_> = (0..200)
        .map(|nth| {
            let name = format!("q{nth}");
            let queue = declare_large(&world, &mut other, &name);
            let consume =
                basic::Consume { queue: short(&name), nowait: true, ..Default::default() };
            let mut batch = Batch::default();
            let session = client.session();
            session.request(&mut batch, 1, &Method::from(consume)).expect("a queue");
            session.flush(&mut batch).expect("room in the store");
            other.delete(&name);
            queue
        })
        .collect();
    other.publish("", "nowhere", "x");
    assert_eq!((kept(&queues), definitions(&world)), (0, before));
    assert_eq!(client.bodies().len(), 3);
    other.publish("", "q", "next");
    assert_eq!(client.bodies(), ["next"]);
}

#[test]
fn what_is_unacknowledged_of_a_deleted_queue_refuses_no_client_a_declaration() {
    let world = world();
    let (mut client, mut other) = (world.connect(), world.connect());
    let (before, used) = (definitions(&world), world.broker.memory_used_bytes());
    // Nearly as many as may be kept so.
    for nth in 0..80 {
        let name = format!("q{nth}");
        declare_large(&world, &mut client, &name);
        client.call(basic::Get { queue: short(&name), no_ack: false });
        client.delete(&name);
        assert_eq!(definitions(&world), before);
    }
    other.declare("another's");
    assert!(world.broker.memory_used_bytes() > used + 80 * 20_000, "it counts all the same");
    client.ack_through(0);
    client.session().release_memory();
    let left = world.broker.memory_used_bytes() - used;
    assert!(left < 20_000, "{left}");
}

#[test]
fn an_idle_client_keeps_no_queue_that_it_has_published_to_or_acknowledged() {
    let world = world();
    let (mut client, mut other) = (world.connect(), world.connect());
    client.open_channel(2);
    let queue = declare_large(&world, &mut client, "q");
    client.publish("amq.fanout", "", "the other way");
    client.consume("q");
    assert_eq!(client.bodies(), ["x"]);
    client.ack(1);
    client.session().release_memory();
    other.delete("q");
    assert_eq!(queue.strong_count(), 0);
    let passive = queue::Declare { queue: short("q"), passive: true, ..Default::default() };
    client.refused(passive);
    other.declare("q");
    client.publish("", "q", "found again");
    assert_eq!(other.pop("q").as_deref(), Some("found again"));
}
