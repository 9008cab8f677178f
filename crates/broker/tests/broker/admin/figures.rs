//! Numbers for monitoring.

use crate::support::{World, owned};

#[test]
fn what_went_through_connections_that_are_over_stays_in_the_sum() {
    let world = World::new();
    let admin = world.broker.admin();
    let mut client = world.connect();
    client.session().note_received(100);
    client.session().note_sent(70);
    let during = admin.traffic();
    assert_eq!((during.received_bytes, during.receives), (100, 1));
    assert_eq!((during.sent_bytes, during.sends), (70, 1));
    assert_eq!(admin.connection_figures().iter().map(|one| one.traffic).next(), Some(during));
    client.disconnect();
    assert_eq!(admin.connection_figures().len(), 0);
    assert_eq!(admin.traffic(), during);
}

#[test]
fn the_numbers_of_a_queue_are_those_of_its_view() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("work");
    client.publish("", "work", "one");
    client.publish("", "work", "two");
    let admin = world.broker.admin();
    let figures: Vec<_> = admin.queue_figures(None).expect("all vhosts").iter().collect();
    let view = admin.queue("/", b"work").expect("the queue");
    assert_eq!(figures.len(), 1);
    assert_eq!((&*figures[0].vhost, &figures[0].name), ("/", &owned("work")));
    assert_eq!((figures[0].ready, figures[0].unacked), (view.ready, view.unacked));
    assert_eq!((figures[0].ready, figures[0].counts), (2, view.counts));
    assert_eq!(admin.queue_figures(Some("nope")).expect_err("there is none").code, 404);
}

#[test]
fn memory_is_told_by_its_uses() {
    let world = World::new();
    let admin = world.broker.admin();
    let before = admin.memory_uses();
    let mut client = world.connect();
    client.declare("work");
    client.publish("", "work", &"x".repeat(1000));
    let after = admin.memory_uses();
    assert!(after.definitions > before.definitions, "{after:?}");
    assert!(after.messages >= before.messages + 1000, "{after:?}");
    let sum = after.messages
        + after.definitions
        + after.transactions
        + after.sessions
        + after.places
        + after.deduplication;
    assert_eq!(sum, admin.memory_used_bytes());
}
