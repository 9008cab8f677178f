//! What waits to be sent counts as memory by what it takes, until it is sent or its connection ends.

use crate::support::{
    Client, Message, Step, World, WorldOnDisk, allocated_bytes, declare_with, short,
};
use courser_broker::wire::WireBuffer;
use courser_broker::{Broker, Limits};
use courser_codec::{FieldTable, Method, queue};
use std::sync::Arc;

const BODY: usize = 100_000;

fn outboxes(broker: &Arc<Broker>) -> usize {
    broker.admin().memory_uses().outboxes as usize
}

fn message() -> Message {
    Message::new("", "q", vec![b'x'; BODY])
}

/// A client to which `count` messages are on their way, of which it takes none.
fn stuck(world: &World, count: usize) -> Client {
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    consumer.consume_no_ack("q");
    assert_eq!(outboxes(&world.broker), 0);
    (0..count).for_each(|_| publisher.send(message()));
    publisher.disconnect();
    consumer
}

#[test]
fn what_waits_counts_by_what_it_takes_until_it_is_sent() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    consumer.consume_no_ack("q");
    publisher.send(message());
    assert_eq!(consumer.deliveries().len(), 1);
    let before = allocated_bytes();
    for count in 1..=5 {
        publisher.send(message());
        let (counted, allocated) = (outboxes(&world.broker), allocated_bytes() - before);
        assert!((count * BODY..2 * (count + 1) * BODY).contains(&counted), "{count}: {counted}");
        assert!(allocated <= counted as i64 + 65_536, "{allocated} of {counted} counted");
    }
    assert_eq!(consumer.deliveries().len(), 5);
    assert_eq!(outboxes(&world.broker), 0);
}

#[test]
fn what_is_taken_to_be_sent_counts_where_it_is() {
    let world = World::new();
    let mut consumer = stuck(&world, 2);
    let counted = outboxes(&world.broker);
    let mut sending = WireBuffer::default();
    drop(consumer.session().outbox().take(&mut sending));
    assert_eq!(outboxes(&world.broker), counted);
    sending.clear();
    assert_eq!(outboxes(&world.broker), counted, "its memory is kept for what comes next");
    // Which comes in its place, and counts too.
    let mut publisher = world.connect();
    publisher.send(message());
    drop(consumer.session().outbox().take(&mut sending));
    assert!(outboxes(&world.broker) > counted);
    publisher.send(message());
    assert!(outboxes(&world.broker) < 2 * counted, "in the memory that was there");
    drop(sending);
    consumer.heard();
    assert_eq!(outboxes(&world.broker), 0);
}

#[test]
fn it_is_given_back_however_its_connection_ends() {
    let endings: [fn(&World, Client); 6] = [
        |_, mut client| client.disconnect(),
        |_, client| drop(client),
        |_, mut client| client.read(&[Step::Fatal]),
        |world, mut client| {
            assert_eq!(world.broker.admin().close_connections_of_user("guest", "enough"), 1);
            client.heard();
        },
        |world, mut client| {
            world.broker.admin().delete_vhost("/").expect("it is there");
            client.heard();
        },
        |world, mut client| {
            let mut tail = WireBuffer::default();
            client.session().close_quietly(&mut tail);
            assert!(outboxes(&world.broker) >= 2 * BODY, "it is still to be sent");
        },
    ];
    for (nth, end) in endings.into_iter().enumerate() {
        let world = World::new();
        let client = stuck(&world, 2);
        assert!(outboxes(&world.broker) >= 2 * BODY);
        end(&world, client);
        assert_eq!(outboxes(&world.broker), 0, "the {nth}th");
    }
}

#[test]
fn answers_that_wait_for_the_disk_count() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    assert_eq!(outboxes(&world.broker), 0);
    let declare = queue::Declare { queue: short("q"), durable: true, ..Default::default() };
    client.read(&[Step::Call(1, Method::from(declare))]);
    assert!(outboxes(&world.broker) > 0);
    world.sync();
    client.heard();
    assert_eq!(outboxes(&world.broker), 0);
}

#[test]
fn a_large_body_counts_once_until_the_last_has_got_it_whom_it_is_sent() {
    const LARGE: usize = 1_000_000;
    let world = World::new();
    let mut publisher = world.connect();
    let mut consumers: Vec<Client> = (0..20).map(|_| world.connect()).collect();
    for (number, consumer) in consumers.iter_mut().enumerate() {
        let name = format!("q{number}");
        consumer.declare(&name);
        consumer.bind(&name, "amq.fanout", "");
        consumer.consume_no_ack(&name);
    }
    publisher.publish("amq.fanout", "", "the way is known");
    consumers.iter_mut().for_each(|consumer| drop(consumer.heard()));
    let before = world.broker.memory_used_bytes();
    let used = || world.broker.memory_used_bytes().saturating_sub(before) as usize;
    let large = Message::new("amq.fanout", "", vec![b'x'; LARGE]);
    publisher.read(&[Step::PublishLarge(1, large)]);
    assert!((LARGE..LARGE * 5 / 4).contains(&used()), "{}", used());
    let mut last = consumers.pop().expect("some");
    consumers.iter_mut().for_each(|consumer| assert_eq!(consumer.deliveries().len(), 1));
    assert!((LARGE..LARGE + 10_000).contains(&used()), "{}", used());
    assert_eq!(last.deliveries().len(), 1);
    assert!(used() < 1000, "{}", used());
}

#[test]
fn a_large_body_that_waits_to_be_committed_counts_once() {
    const LARGE: usize = 1_000_000;
    let world = WorldOnDisk::on_copy();
    let mut publisher = world.connect();
    let mut consumers: Vec<Client> = (0..20).map(|_| world.connect()).collect();
    for (number, consumer) in consumers.iter_mut().enumerate() {
        let name = format!("q{number}");
        declare_with(consumer, &name, true, &FieldTable::new());
        consumer.bind(&name, "amq.fanout", "");
        consumer.consume_no_ack(&name);
    }
    let large = Message::new("amq.fanout", "", vec![b'x'; LARGE]);
    let kept = large.with_properties(|properties| properties.delivery_mode = Some(2));
    publisher.read(&[Step::PublishLarge(1, kept)]);
    for consumer in &mut consumers {
        assert_eq!(consumer.deliveries(), [], "it is not committed");
    }
    assert!((1..LARGE).contains(&outboxes(&world.broker)), "{}", outboxes(&world.broker));
    world.flush();
    consumers.iter_mut().for_each(|consumer| assert_eq!(consumer.deliveries().len(), 1));
    assert_eq!(outboxes(&world.broker), 0);
}

#[test]
fn clients_that_take_nothing_raise_the_alarm_until_they_are_gone() {
    const CLIENTS: usize = 10;
    let world = World::with(Limits { memory_high_bytes: 3 << 20, ..Limits::default() });
    let mut publisher = world.connect();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| world.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.declare(&format!("q{number}"));
        client.consume_no_ack(&format!("q{number}"));
    }
    // Less than would fill an outbox, so that nothing waits in a queue.
    let sent = (0..5).flat_map(|_| 0..CLIENTS).position(|number| {
        publisher.send(Message::new("", &format!("q{number}"), vec![b'x'; BODY]));
        world.broker.alarm().is_some()
    });
    assert!(sent.is_some(), "{} bytes wait", outboxes(&world.broker));
    assert_eq!(world.broker.messages_bytes(), 0);
    assert_eq!(publisher.session().hold_back(), Some("low on memory"));
    while let Some(mut client) = clients.pop() {
        client.disconnect();
    }
    assert_eq!(publisher.session().hold_back(), None);
}
