//! Looking at messages, taking and moving them.

use crate::support::{Message, World, WorldOnDisk, declare_with};
use courser_broker::admin::{GetMode, MessageView, NewQueue};
use courser_codec::FieldTable;

fn bodies<'a>(messages: impl IntoIterator<Item = &'a MessageView>) -> Vec<String> {
    let body = |one: &MessageView| String::from_utf8_lossy(&one.body).into_owned();
    messages.into_iter().map(body).collect()
}

#[test]
fn peeking_shows_what_waits_and_changes_nothing() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["a", "b", "c", "d"]);
    let admin = world.broker.admin();
    let shown = admin.peek("/", b"q", 1, 2, usize::MAX).expect("the queue");
    assert_eq!(bodies(shown.iter().flatten()), ["b", "c"]);
    let first = shown[0].as_ref().expect("a message");
    assert_eq!(first.routing_key.to_string(), "q");
    assert!(!first.redelivered);
    assert_eq!(world.counts("q"), (4, 0, 0));
    let first = client.get("q").expect("a message");
    assert!(!first.redelivered, "it was not delivered");
    assert_eq!(client.pop_all("q"), ["b", "c", "d"]);
}

#[test]
fn peeking_goes_by_priority_and_over_any_number_of_messages() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let names: Vec<String> = (0..3000).map(|nth| nth.to_string()).collect();
    client.fill("q", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let admin = world.broker.admin();
    for skip in [0, 1000, 1024, 2048, 2990, 5000] {
        let shown = admin.peek("/", b"q", skip, 15, usize::MAX).expect("the queue");
        let expected: Vec<String> = names.iter().skip(skip).take(15).cloned().collect();
        assert_eq!(bodies(shown.iter().flatten()), expected, "behind {skip}");
    }
}

#[test]
fn a_body_is_shown_in_part_where_that_is_enough() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["0123456789"]);
    let shown = world.broker.admin().peek("/", b"q", 0, 1, 4).expect("the queue");
    let bytes = shown[0].as_ref().map(|one| one.body_bytes);
    assert_eq!((bodies(shown.iter().flatten()), bytes), (vec!["0123".to_owned()], Some(10)));
}

#[test]
fn messages_that_are_got_go_return_or_become_dead_letters() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "q", false, &arguments);
    client.fill("q", &["a", "b", "c", "d"]);
    let admin = world.broker.admin();
    let get =
        |count, mode| bodies(&admin.get("/", b"q", count, mode, 100, 1 << 20).expect("the queue"));
    assert_eq!(get(2, GetMode::Requeue { counts: false }), ["a", "b"]);
    assert_eq!(get(1, GetMode::Acknowledge), ["a"]);
    assert_eq!(get(1, GetMode::Reject), ["b"]);
    assert_eq!(get(10, GetMode::Requeue { counts: false }), ["c", "d"]);
    assert_eq!(world.counts("q"), (2, 0, 0));
    assert_eq!(client.pop_all("dead"), ["b"]);
    assert!(client.get("q").expect("a message").redelivered);
}

#[test]
fn messages_are_moved_in_their_order() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    client.declare("to");
    let names: Vec<String> = (0..700).map(|nth| nth.to_string()).collect();
    client.fill("from", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let admin = world.broker.admin();
    assert_eq!(admin.move_messages("/", b"from", b"to", Some(10)).expect("both"), 10);
    assert_eq!((world.counts("from").0, world.counts("to").0), (690, 10));
    assert_eq!(admin.move_messages("/", b"from", b"to", None).expect("both"), 690);
    assert_eq!(world.counts("from"), (0, 0, 0));
    assert_eq!(client.pop_all("to"), names);
    assert_eq!(admin.move_messages("/", b"to", b"to", None).expect_err("the same").code, 406);
    assert_eq!(admin.move_messages("/", b"to", b"no", None).expect_err("none").code, 404);
}

#[test]
fn what_the_other_queue_has_no_room_for_stays() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    let arguments =
        FieldTable::new().with("x-max-length", 2_i64).with("x-overflow", "reject-publish");
    declare_with(&mut client, "to", false, &arguments);
    client.fill("from", &["a", "b", "c"]);
    let admin = world.broker.admin();
    assert_eq!(admin.move_messages("/", b"from", b"to", None).expect("both"), 2);
    assert_eq!(client.pop_all("from"), ["c"]);
    assert_eq!(client.pop_all("to"), ["a", "b"]);
}

#[test]
fn a_moved_message_is_in_one_queue_after_a_restart() {
    let mut world = WorldOnDisk::new();
    {
        let admin = world.broker.admin();
        for name in ["from", "to"] {
            let durable = NewQueue { durable: true, ..NewQueue::default() };
            admin.declare_queue("/", name, durable).expect("a new queue");
        }
        let mut client = world.connect();
        for body in ["a", "b", "c"] {
            client.send(Message::new("", "from", body).with_properties(|properties| {
                properties.delivery_mode = Some(2);
            }));
        }
        client.disconnect();
        assert_eq!(admin.move_messages("/", b"from", b"to", Some(2)).expect("both"), 2);
    }
    world.restart();
    let admin = world.broker.admin();
    let shown = |queue: &[u8]| {
        bodies(admin.peek("/", queue, 0, 10, 10).expect("the queue").iter().flatten())
    };
    assert_eq!((shown(b"from"), shown(b"to")), (vec!["c".into()], vec!["a".into(), "b".into()]));
}
