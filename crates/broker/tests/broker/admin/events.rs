//! Following what happens.

use crate::support::World;
use courser_auth::{PasswordHash, Permission, Tags, TopicPermission, User};
use courser_broker::admin::{EVENTS_MAX, EventKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_follower_hears_what_happens_from_then_on_in_order() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("before");
    let mut follower = world.broker.admin().follow();
    client.declare("q");
    client.bind("q", "amq.topic", "x");
    client.delete("q");
    let followed = follower.take(usize::MAX);
    assert_eq!(followed.missed, 0);
    let heard: Vec<(EventKind, &str)> =
        followed.events.iter().map(|event| (event.kind, event.name.as_str())).collect();
    let expected = [
        (EventKind::QueueCreated, "q"),
        (EventKind::BindingCreated, "amq.topic"),
        (EventKind::QueueDeleted, "q"),
    ];
    assert_eq!(heard, expected);
    let binding = &followed.events[1].details;
    assert_eq!(*binding, [("destination", "q".to_owned()), ("routing_key", "x".to_owned())]);
    assert!(follower.take(usize::MAX).events.is_empty());
}

#[test]
fn a_follower_that_is_too_slow_loses_the_oldest_events_and_is_told_how_many() {
    let world = World::new();
    let mut client = world.connect();
    let (mut slow, mut quick) = (world.broker.admin().follow(), world.broker.admin().follow());
    for nth in 0..EVENTS_MAX + 10 {
        client.declare(&format!("q{nth}"));
        let followed = quick.take(100);
        assert_eq!((followed.missed, followed.events.len()), (0, 1));
    }
    let followed = slow.take(3);
    assert_eq!((followed.missed, followed.events.len()), (10, 3));
    assert_eq!(followed.events[0].name, "q10");
    let followed = slow.take(usize::MAX);
    assert_eq!((followed.missed, followed.events.len()), (0, EVENTS_MAX - 3));
}

#[test]
fn who_waits_is_woken_once_by_the_next_event() {
    let world = World::new();
    let mut client = world.connect();
    let mut follower = world.broker.admin().follow();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert!(follower.take_or_wait(10, &waker).events.is_empty());
    assert!(follower.take_or_wait(10, &waker).events.is_empty());
    client.declare("a");
    client.declare("b");
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(follower.take_or_wait(10, &waker).events.len(), 2);
}

#[test]
fn nothing_is_kept_for_those_who_have_gone() {
    let world = World::new();
    let mut client = world.connect();
    let follower = world.broker.admin().follow();
    client.declare("a");
    drop(follower);
    client.declare("b");
    let mut later = world.broker.admin().follow();
    client.declare("c");
    let followed = later.take(10);
    let names: Vec<&str> = followed.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!((followed.missed, names), (0, vec!["c"]));
}

#[test]
fn those_who_follow_hear_of_users_and_of_what_they_may_do() {
    let world = World::new();
    let admin = world.broker.admin();
    let mut follower = admin.follow();
    admin.create_user(User::new("u", PasswordHash::none())).expect("a user");
    let hash = PasswordHash::quick(b"secret").expect("a hash");
    let change = |user: &mut User| {
        user.password = hash;
        user.tags = Tags::administrator();
        Ok(())
    };
    admin.change_user("u", change).expect("it is there");
    admin.set_user_limit("u", "max-channels", 5).expect("a limit");
    admin.set_permission("u", "/", Permission::all()).expect("a permission");
    let topic = TopicPermission { write: "^a".into(), read: ".*".into() };
    admin.set_topic_permission("u", "/", "amq.topic", topic).expect("a permission");
    admin.clear_topic_permissions("u", "/", None).expect("it is there");
    admin.clear_permission("u", "/").expect("it is there");
    admin.delete_user("u").expect("it is there");
    let events = follower.take(usize::MAX).events;
    let heard: Vec<(&str, &str, &str)> = events
        .iter()
        .map(|event| (event.kind.name(), event.vhost.as_str(), event.name.as_str()))
        .collect();
    let expected = [
        ("user.created", "", "u"),
        ("user.password.changed", "", "u"),
        ("user.tags.set", "", "u"),
        ("user.limits.set", "", "u"),
        ("permission.created", "/", "u"),
        ("topic.permission.created", "/", "u"),
        ("topic.permission.deleted", "/", "u"),
        ("permission.deleted", "/", "u"),
        ("user.deleted", "", "u"),
    ];
    assert_eq!(heard, expected);
    assert_eq!(events[5].details, [("exchange", "amq.topic".to_owned())]);
}
