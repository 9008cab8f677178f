//! Publishing for a user who has no connection.

use crate::support::World;
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::{Fault, NewMessage, NewQueue, Published};
use courser_codec::{FieldTable, ShortString};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn world_with(queue: NewQueue, permission: Permission) -> World {
    let world = World::new();
    let admin = world.broker.admin();
    admin.create_user(User::new("anna", PasswordHash::none())).expect("a user");
    admin.set_permission("anna", "/", permission).expect("a permission");
    admin.declare_queue("/", "q", queue).expect("a queue");
    world
}

fn short(text: &str) -> ShortString {
    text.try_into().expect("short")
}

/// What becomes of a message; the store of these tests is durable at once.
fn publish(world: &World, exchange: &str, key: &str) -> Result<Published, Fault> {
    let message = NewMessage {
        exchange: short(exchange),
        routing_key: short(key),
        body: "hello".into(),
        ..NewMessage::default()
    };
    let mut publishing = pin!(world.broker.admin().publish("anna", "/", &message)?);
    match publishing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(published) => published,
        Poll::Pending => panic!("nothing is left to wait for"),
    }
}

#[test]
fn it_is_routed_refused_or_unroutable() {
    let full = FieldTable::new().with("x-max-length", 1_i64).with("x-overflow", "reject-publish");
    let queue = NewQueue { arguments: full, ..NewQueue::default() };
    let world = world_with(queue, Permission::all());
    assert_eq!(publish(&world, "", "q"), Ok(Published::Routed));
    assert_eq!(publish(&world, "", "q"), Ok(Published::Refused));
    assert_eq!(publish(&world, "", "none"), Ok(Published::Unroutable));
    let admin = world.broker.admin();
    assert_eq!(admin.queue("/", b"q").expect("the queue").ready, 1);
    assert!(admin.connections(None).expect("all vhosts").is_empty(), "nothing is left behind");
}

#[test]
fn the_users_permissions_count_and_what_is_not_there_is_named() {
    let none = Permission { write: "^w-".into(), ..Permission::default() };
    let world = world_with(NewQueue::default(), none);
    let fault = publish(&world, "amq.topic", "q").expect_err("it may not");
    let said = "write access to exchange 'amq.topic' in vhost '/' refused for user 'anna'";
    assert_eq!((fault.code, fault.explanation.as_str()), (403, said));
    assert_eq!(publish(&world, "w-none", "q").expect_err("none").code, 404);
    let message = NewMessage::default();
    let error = world.broker.admin().publish("anna", "other", &message).expect_err("no vhost");
    assert_eq!(error.code, 530);
}
