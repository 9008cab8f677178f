//! Moving chosen messages, and moving them back to where they died.

use crate::cc::tangled;
use crate::support::{Message, World, WorldOnDisk, declare_with, owned};
use courser_broker::Broker;
use courser_broker::admin::{MessageView, MoveTo, NewQueue, Relocated, Selection, WriteTarget};
use courser_codec::FieldTable;
use std::cell::Cell;
use std::sync::Arc;

pub fn bodies(broker: &Arc<Broker>, queue: &str) -> Vec<String> {
    let shown = broker.admin().peek("/", queue.as_bytes(), 0, 1000, 100).expect("the queue");
    shown.iter().flatten().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect()
}

pub fn anywhere(_: WriteTarget<'_>) -> Option<bool> {
    Some(true)
}

pub fn to(queue: &str) -> MoveTo {
    MoveTo::Queue(owned(queue))
}

pub fn relocate(
    broker: &Arc<Broker>,
    from: &str,
    selection: &Selection<'_>,
    to: &MoveTo,
) -> Relocated {
    let moved = broker.admin().relocate("/", from.as_bytes(), selection, to, &anywhere, false);
    moved.expect("it can be done")
}

fn is_even(message: &MessageView) -> bool {
    String::from_utf8_lossy(&message.body).parse::<usize>().is_ok_and(|number| number % 2 == 0)
}

#[test]
fn those_that_are_chosen_move_and_the_others_stay_as_they_were() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    client.declare("to");
    let names: Vec<String> = (0..3000).map(|nth| nth.to_string()).collect();
    client.fill("from", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let selection = Selection { filter: Some(&is_even), ..Selection::default() };
    let done = relocate(&world.broker, "from", &selection, &to("to"));
    assert_eq!((done.moved, done.looked_at, done.is_partial), (1500, 3000, false));
    let (odd, even): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| name.parse::<usize>().is_ok_and(|number| number % 2 == 1));
    assert_eq!(client.pop_all("to"), even);
    assert!(!client.get("from").expect("a message").redelivered, "it was not delivered");
    assert_eq!(client.pop_all("from"), odd[1..]);
    assert_eq!(world.counts("from"), (0, 1, 0));
}

#[test]
fn messages_are_chosen_by_their_numbers_in_queues_with_priorities_too() {
    for arguments in [FieldTable::new(), FieldTable::new().with("x-max-priority", 5_i64)] {
        let world = World::new();
        let mut client = world.connect();
        client.declare("to");
        declare_with(&mut client, "from", false, &arguments);
        for (nth, body) in ["a", "b", "c", "d"].iter().enumerate() {
            client.send(Message::new("", "from", body).with_properties(|properties| {
                properties.priority = Some(nth as u8);
            }));
        }
        let admin = world.broker.admin();
        let shown = admin.peek("/", b"from", 0, 10, 10).expect("the queue");
        let order = bodies(&world.broker, "from");
        let number = |nth: usize| shown[nth].as_ref().expect("a message").number;
        let numbers = [number(2), number(1), u64::MAX >> 1];
        let selection = Selection { numbers: Some(&numbers), ..Selection::default() };
        assert_eq!(relocate(&world.broker, "from", &selection, &to("to")).moved, 2);
        assert_eq!(client.pop_all("to"), order[1..3]);
        assert_eq!(client.pop_all("from"), [order[0].clone(), order[3].clone()]);
    }
}

#[test]
fn a_trial_says_what_would_be_and_moves_nothing() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    client.declare("to");
    client.fill("from", &["1", "2", "3", "4"]);
    let admin = world.broker.admin();
    let selection = Selection { count: Some(1), filter: Some(&is_even), ..Selection::default() };
    let trial = admin.relocate("/", b"from", &selection, &to("to"), &anywhere, true);
    assert_eq!(trial.expect("it can be done").moved, 1);
    assert_eq!((world.counts("from").0, world.counts("to").0), (4, 0));
}

#[test]
fn dead_letters_go_back_to_the_queues_that_they_died_in() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-max-length", 0_i64);
    for queue in ["one", "two"] {
        declare_with(&mut client, queue, false, &arguments);
        client.fill(queue, &[queue]);
    }
    client.fill("dead", &["never died"]);
    client.call(courser_codec::queue::Delete {
        queue: "two".try_into().expect("a name"),
        ..Default::default()
    });
    let arguments = FieldTable::new();
    client.call(courser_codec::queue::Delete {
        queue: "one".try_into().expect("a name"),
        ..Default::default()
    });
    declare_with(&mut client, "one", false, &arguments);
    assert_eq!(bodies(&world.broker, "dead").len(), 3);
    let done = relocate(&world.broker, "dead", &Selection::default(), &MoveTo::Origin);
    assert_eq!((done.moved, done.without_place), (1, 2));
    assert_eq!(client.pop_all("one"), ["one"]);
    assert_eq!(client.pop_all("dead"), ["two", "never died"]);
}

#[test]
fn what_may_not_go_there_or_has_no_way_there_stays() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    client.declare("a");
    client.fill("from", &["1"]);
    let admin = world.broker.admin();
    let all = Selection::default();
    let never = |_: WriteTarget<'_>| Some(false);
    let done = admin.relocate("/", b"from", &all, &to("a"), &never, false).expect("it is heard");
    assert_eq!((done.moved, done.forbidden), (0, 1));
    let nowhere = MoveTo::Exchange(owned("amq.direct"), None);
    assert_eq!(relocate(&world.broker, "from", &all, &nowhere).without_place, 1);
    let itself = MoveTo::Exchange(owned(""), Some(owned("from")));
    assert_eq!(relocate(&world.broker, "from", &all, &itself).without_place, 1);
    assert_eq!(world.counts("from"), (1, 0, 0));
    let elsewhere = MoveTo::Exchange(owned(""), Some(owned("a")));
    assert_eq!(relocate(&world.broker, "from", &all, &elsewhere).moved, 1);
    assert_eq!(client.pop_all("a"), ["1"]);
    for to in [to("none"), MoveTo::Exchange(owned("none"), None)] {
        let refused = admin.relocate("/", b"from", &all, &to, &anywhere, false);
        assert_eq!(refused.expect_err("it is not there").code, 404);
    }
}

#[test]
fn a_message_that_takes_too_long_to_route_stays_and_holds_up_no_other() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    let (exchange, headers) = tangled(&mut client, 300);
    client.bind("to", exchange, "plain");
    client.send(Message::new("", "from", "tangled").headers(headers));
    client.fill("from", &["plain"]);
    let elsewhere = MoveTo::Exchange(owned(exchange), Some(owned("plain")));
    let done = relocate(&world.broker, "from", &Selection::default(), &elsewhere);
    assert_eq!((done.moved, done.without_place), (1, 1));
    assert_eq!(client.pop_all("from"), ["tangled"]);
    assert_eq!(client.pop_all("to"), ["plain"]);
}

#[test]
fn there_is_an_end_where_the_other_queue_is_full() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    let arguments =
        FieldTable::new().with("x-max-length", 2_i64).with("x-overflow", "reject-publish");
    declare_with(&mut client, "to", false, &arguments);
    client.fill("from", &["1", "2", "4", "6", "8"]);
    let selection = Selection { filter: Some(&is_even), ..Selection::default() };
    let done = relocate(&world.broker, "from", &selection, &to("to"));
    assert_eq!((done.moved, done.is_partial), (2, true));
    assert_eq!(done.next, 1, "the next move looks at the one without room");
    assert_eq!(client.pop_all("to"), ["2", "4"]);
    assert_eq!(client.pop_all("from"), ["1", "6", "8"]);
}

#[test]
fn there_is_an_end_where_it_can_not_be_asked_whether_a_message_may_go_on() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("from");
    client.declare("to");
    client.fill("from", &["1", "2", "4", "6", "8"]);
    let selection = Selection { filter: Some(&is_even), ..Selection::default() };
    let left = Cell::new(3);
    let until_then = |_: WriteTarget<'_>| {
        left.set(left.get() - 1);
        (left.get() > 0).then_some(true)
    };
    let admin = world.broker.admin();
    let done = admin.relocate("/", b"from", &selection, &to("to"), &until_then, false);
    let done = done.expect("it can be done");
    assert_eq!((done.moved, done.forbidden, done.is_partial), (2, 0, true));
    assert_eq!(
        (done.looked_at, done.next),
        (3, 1),
        "the next move looks at the one that was not asked about"
    );
    assert_eq!(client.pop_all("to"), ["2", "4"]);
    assert_eq!(client.pop_all("from"), ["1", "6", "8"]);
}

#[test]
fn a_chosen_message_is_in_one_queue_after_a_crash() {
    let mut world = WorldOnDisk::new();
    {
        let admin = world.broker.admin();
        for name in ["from", "to"] {
            let durable = NewQueue { durable: true, ..NewQueue::default() };
            admin.declare_queue("/", name, durable).expect("a new queue");
        }
        let mut client = world.connect();
        for body in ["1", "2", "3", "4"] {
            client.send(Message::new("", "from", body).with_properties(|properties| {
                properties.delivery_mode = Some(2);
            }));
        }
        client.disconnect();
        let selection = Selection { filter: Some(&is_even), ..Selection::default() };
        assert_eq!(relocate(&world.broker, "from", &selection, &to("to")).moved, 2);
    }
    world.restart();
    assert_eq!(bodies(&world.broker, "from"), ["1", "3"]);
    assert_eq!(bodies(&world.broker, "to"), ["2", "4"]);
}

#[test]
fn the_first_messages_are_purged() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let names: Vec<String> = (0..700).map(|nth| nth.to_string()).collect();
    client.fill("q", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let admin = world.broker.admin();
    assert_eq!(admin.purge_some("/", b"q", 600).expect("the queue"), 600);
    assert_eq!(bodies(&world.broker, "q"), names[600..]);
    assert_eq!(admin.purge_some("/", b"q", 600).expect("the queue"), 100);
    assert_eq!(world.counts("q"), (0, 0, 0));
}
