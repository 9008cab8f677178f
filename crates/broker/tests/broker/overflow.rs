//! `x-max-length`, `x-max-length-bytes` and `x-overflow`: queues that hold only so much.

use crate::support::{Client, Heard, Message, Step, World, WorldOnDisk, deaths, declare_with};
use courser_codec::FieldTable;

fn most(messages: i64) -> FieldTable {
    FieldTable::new().with("x-max-length", messages)
}

fn refusing(messages: i64, overflow: &str) -> FieldTable {
    most(messages).with("x-overflow", overflow)
}

fn dying_to(queue: &str, arguments: FieldTable) -> FieldTable {
    arguments.with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", queue)
}

fn confirm(through: u64, multiple: bool) -> Heard {
    Heard::Confirm { channel: 1, through, multiple }
}

fn refused(tag: u64) -> Heard {
    Heard::Refused { channel: 1, tag }
}

fn persistent_to(queue: &str, body: &str) -> Message {
    Message::new("", queue, body).with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Publishes texts to `q` in one read.
fn publish_all(client: &mut Client, bodies: &[&str]) {
    client.fill("q", bodies);
}

#[test]
fn the_oldest_leave_when_there_are_too_many() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    declare_with(&mut client, "q", false, &dying_to("dead", most(2)));
    publish_all(&mut client, &["1", "2", "3"]);
    publish_all(&mut client, &["4"]);
    let dead = client.get("dead").expect("a dead letter");
    assert_eq!((dead.text(), deaths(&dead)), ("1", vec!["q maxlen 1".to_owned()]));
    assert_eq!(client.pop_all("dead"), ["2"]);
    assert_eq!(client.pop_all("q"), ["3", "4"]);
}

#[test]
fn only_what_waits_counts() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &most(1));
    publish_all(&mut client, &["1"]);
    let delivery = client.get("q").expect("a message");
    publish_all(&mut client, &["2"]);
    assert_eq!(world.counts("q"), (1, 1, 0));
    client.requeue(delivery.tag);
    assert_eq!(client.pop_all("q"), ["2"], "the one that came back is the oldest");
}

#[test]
fn of_many_that_come_back_no_consumer_gets_those_that_are_too_much() {
    let world = World::new();
    let (mut client, mut other) = (world.connect(), world.connect());
    declare_with(&mut client, "q", false, &most(1));
    client.consume("q");
    let bodies: Vec<String> = (1..=4200).map(|number| number.to_string()).collect();
    publish_all(&mut client, &bodies.iter().map(String::as_str).collect::<Vec<_>>());
    other.qos(1);
    other.consume("q");
    client.disconnect();
    world.tick_all(0);
    assert_eq!(other.bodies(), ["4200"]);
}

#[test]
fn a_queue_for_nothing_passes_on_to_who_is_ready() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &most(0));
    publish_all(&mut client, &["1", "2"]);
    assert_eq!(world.counts("q"), (0, 0, 0));
    client.consume_no_ack("q");
    publish_all(&mut client, &["3", "4"]);
    assert_eq!(client.bodies(), ["3", "4"]);
}

#[test]
fn bytes_of_bodies_count() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-max-length-bytes", 10);
    declare_with(&mut client, "q", false, &arguments);
    publish_all(&mut client, &["1234", "5678", "90"]);
    assert_eq!(world.counts("q"), (3, 0, 0));
    publish_all(&mut client, &["x"]);
    assert_eq!(world.counts("q"), (3, 0, 0));
    let first = client.get("q").expect("a message");
    assert_eq!(first.text(), "5678");
    publish_all(&mut client, &["abcdefg"]);
    assert_eq!(world.counts("q"), (3, 1, 0), "90, x and seven more are ten");
    client.requeue(first.tag);
    assert_eq!(client.pop_all("q"), ["90", "x", "abcdefg"]);
    publish_all(&mut client, &["larger than all"]);
    assert_eq!(world.counts("q"), (0, 0, 0));
    client.consume_no_ack("q");
    publish_all(&mut client, &["larger than all"]);
    assert_eq!(client.bodies(), ["larger than all"]);
}

#[test]
fn a_purge_makes_room() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-max-length-bytes", 4);
    declare_with(&mut client, "q", false, &arguments);
    publish_all(&mut client, &["1234"]);
    client.purge("q");
    publish_all(&mut client, &["12", "34"]);
    assert_eq!(client.pop_all("q"), ["12", "34"]);
}

#[test]
fn a_publisher_is_told_what_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &refusing(2, "reject-publish"));
    client.confirm_select();
    publish_all(&mut client, &["1", "2", "3", "4"]);
    assert_eq!(client.heard(), [confirm(2, true), refused(3), refused(4)]);
    assert_eq!(client.pop("q").as_deref(), Some("1"));
    publish_all(&mut client, &["5", "6"]);
    assert_eq!(client.heard(), [confirm(5, false), refused(6)]);
    publish_all(&mut client, &["7"]);
    assert_eq!(client.heard(), [refused(7)]);
    assert_eq!(client.pop_all("q"), ["2", "5"]);
}

#[test]
fn an_ack_of_many_does_not_reach_over_what_was_refused() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &refusing(2, "reject-publish"));
    client.confirm_select();
    let persistent = |body| persistent_to("q", body);
    for body in ["1", "2", "3"] {
        client.send(persistent(body));
    }
    assert_eq!(
        client.heard(),
        [],
        "before that is durable, nothing is said of what comes after it"
    );
    assert_eq!(client.pop("q").as_deref(), Some("1"));
    client.send(persistent("4"));
    world.sync();
    assert_eq!(client.heard(), [confirm(2, true), refused(3), confirm(4, false)]);
    client.disconnect();
    world.restart();
}

#[test]
fn a_refusal_is_told_when_what_it_refuses_can_not_come_back() {
    for overflow in ["reject-publish", "reject-publish-dlx"] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &refusing(1, overflow));
        client.confirm_select();
        let publish = |body| Step::Publish(1, persistent_to("q", body));
        client.read(&[publish("1"), publish("2")]);
        assert_eq!(client.heard(), [], "what is refused is in the log, and its end is not");
        world.sync();
        assert_eq!(client.heard(), [confirm(1, false), refused(2)]);
        world.lose_power();
        client.disconnect();
        let mut client = world.connect();
        assert_eq!(client.pop_all("q"), ["1"]);
        client.disconnect();
    }
}

#[test]
fn what_a_full_queue_refuses_is_not_written_first() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &refusing(1, "reject-publish"));
    client.confirm_select();
    client.send(persistent_to("q", "1"));
    world.sync();
    assert_eq!(client.heard(), [confirm(1, false)]);
    let end = world.log_end();
    client.read(&[
        Step::Publish(1, persistent_to("q", "2")),
        Step::Publish(1, persistent_to("q", "3")),
    ]);
    assert_eq!(client.heard(), [refused(2), refused(3)]);
    assert_eq!(world.log_end(), end);
    client.disconnect();
}

#[test]
fn a_publisher_without_confirms_is_not_told() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &refusing(1, "reject-publish"));
    publish_all(&mut client, &["1", "2"]);
    assert_eq!(client.heard(), []);
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn each_channel_hears_of_its_own() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &refusing(1, "reject-publish"));
    client.open_channel(2);
    client.confirm_select();
    client.call_on(2, courser_codec::confirm::Select { nowait: false });
    let message = || Message::new("", "q", "m");
    client.read(&[
        Step::Publish(2, message()),
        Step::Publish(1, message()),
        Step::Publish(2, message()),
    ]);
    let expected = [
        Heard::Confirm { channel: 2, through: 1, multiple: false },
        Heard::Refused { channel: 2, tag: 2 },
        refused(1),
    ];
    assert_eq!(client.heard(), expected);
}

#[test]
fn one_queue_of_many_that_refuses_is_enough_and_the_others_keep_their_copy() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "full", false, &refusing(0, "reject-publish"));
    client.declare("open");
    for queue in ["full", "open"] {
        client.bind(queue, "amq.fanout", "");
    }
    client.confirm_select();
    client.publish("amq.fanout", "", "m");
    assert_eq!(client.heard(), [refused(1)]);
    assert_eq!(client.pop_all("open"), ["m"]);
}

#[test]
fn what_is_refused_can_be_a_dead_letter() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    declare_with(&mut client, "q", false, &dying_to("dead", refusing(1, "reject-publish-dlx")));
    client.confirm_select();
    publish_all(&mut client, &["1", "2", "3"]);
    assert_eq!(client.heard(), [confirm(1, false), refused(2), refused(3)]);
    let dead = client.get("dead").expect("a dead letter");
    assert_eq!((dead.text(), deaths(&dead)), ("2", vec!["q maxlen 1".to_owned()]));
    assert_eq!(client.pop_all("dead"), ["3"]);
}

#[test]
fn a_chain_of_full_queues_ends() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "c", false, &dying_to("a", most(1)));
    declare_with(&mut client, "b", false, &dying_to("c", most(1)));
    declare_with(&mut client, "a", false, &dying_to("b", most(1)));
    client.fill("a", &["1", "2", "3", "4", "5"]);
    let left = ["a", "b", "c"].map(|queue| client.pop_all(queue).join(" "));
    assert_eq!(left, ["5", "4", "3"]);
}

#[test]
fn bounds_hold_after_a_restart_and_what_was_refused_does_not_come_back() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    let arguments = refusing(2, "reject-publish").with("x-max-length-bytes", 5);
    declare_with(&mut client, "q", true, &arguments);
    declare_with(&mut client, "dropping", true, &most(1));
    let persistent = |queue: &str, text: &str| {
        Message::new("", queue, text)
            .with_properties(|properties| properties.delivery_mode = Some(2))
    };
    for text in ["12", "34", "no room"] {
        client.send(persistent("q", text));
        client.send(persistent("dropping", text));
    }
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    assert_eq!(client.pop_all("dropping"), ["no room"]);
    assert_eq!(client.pop("q").as_deref(), Some("12"));
    client.send(persistent("q", "5678"));
    client.send(persistent("q", "567"));
    assert_eq!(client.pop_all("q"), ["34", "567"]);
    client.disconnect();
}

#[test]
fn what_is_lost_takes_its_bytes_along() {
    for overflow in ["drop-head", "reject-publish"] {
        let world = WorldOnDisk::new();
        let mut client = world.connect();
        let arguments =
            FieldTable::new().with("x-max-length-bytes", 9_500).with("x-overflow", overflow);
        declare_with(&mut client, "q", true, &arguments);
        let lasting = |body: &[u8]| {
            let message = Message::new("", "q", body);
            message.with_properties(|properties| properties.delivery_mode = Some(2))
        };
        (0..9).for_each(|_| client.send(lasting(&[b'd'; 1000])));
        world.sync();
        world.damage(&[b'd'; 1000]);
        assert_eq!(client.get("q"), None, "all are lost");
        (0..4).for_each(|_| client.send(lasting(&[b'x'; 1000])));
        assert_eq!(world.counts("q"), (4, 0, 0), "{overflow}");
    }
}
