//! `x-message-ttl` and `expiration`: messages that are not consumed in time.

use crate::support::{Heard, Message, World, WorldOnDisk, deaths, declare_with, headers, short};
use courser_codec::{FieldTable, FieldValue, basic};

/// When the tests begin.
const T0: u64 = 1_000_000;

fn world_at_t0() -> World {
    let world = World::new();
    world.broker.set_time(T0);
    world
}

fn ttl(ttl_ms: i64) -> FieldTable {
    FieldTable::new().with("x-message-ttl", ttl_ms)
}

fn dying_to(queue: &str, arguments: FieldTable) -> FieldTable {
    arguments.with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", queue)
}

fn expiring(queue: &str, body: &str, expiration: &str) -> Message {
    Message::new("", queue, body).expiration(expiration)
}

fn persistent(message: Message) -> Message {
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

#[test]
fn messages_leave_when_their_queue_says_so() {
    let world = world_at_t0();
    world.broker.set_time(T0 + 1000);
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &ttl(100));
    client.fill("q", &["1"]);
    world.broker.set_time(T0 + 1050);
    client.fill("q", &["2", "3"]);
    assert_eq!(world.broker.tick(T0 + 1099), Some(T0 + 1100));
    assert_eq!(world.counts("q"), (3, 0, 0));
    assert_eq!(world.broker.tick(T0 + 1100), Some(T0 + 1150));
    assert_eq!(world.counts("q"), (2, 0, 0));
    assert_eq!(world.broker.tick(T0 + 1150), None);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn what_has_expired_behind_a_polled_message_is_not_left() {
    let world = world_at_t0();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["first"]);
    client.send(expiring("q", "expired", "0"));
    client.fill("q", &["second"]);
    client.send(expiring("q", "expired too", "0"));
    for (body, no_ack, left_then) in [("first", false, 2), ("second", true, 0)] {
        let answer = client.call(basic::Get { queue: short("q"), no_ack });
        let Heard::GetOk { delivery, left } = answer else { panic!("{answer:?}") };
        assert_eq!((delivery.text(), left), (body, left_then));
    }
    client.recover();
    assert_eq!(client.pop_all("q"), ["first"]);
}

#[test]
fn a_queue_with_much_to_expire_holds_up_no_other() {
    let world = world_at_t0();
    let mut client = world.connect();
    for (queue, count) in [("many", 5000), ("one", 1)] {
        declare_with(&mut client, queue, false, &ttl(100));
        let many = vec!["x"; count];
        many.chunks(1000).for_each(|bodies| client.fill(queue, bodies));
    }
    world.broker.tick(T0 + 100);
    assert!(world.counts("many").0 > 0, "all at once would hold up the rest");
    assert_eq!(world.counts("one"), (0, 0, 0));
}

#[test]
fn the_shorter_of_both_times_counts() {
    let world = world_at_t0();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &ttl(100));
    client.send(expiring("q", "short", "50"));
    client.send(expiring("q", "long", "500"));
    world.broker.tick(T0 + 50);
    assert_eq!(world.counts("q"), (1, 0, 0));
    world.broker.tick(T0 + 100);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn a_message_expires_only_at_the_head() {
    let world = world_at_t0();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["stays"]);
    client.send(expiring("q", "late", "10"));
    client.send(expiring("q", "later", "20"));
    world.broker.tick(T0 + 100);
    assert_eq!(world.counts("q"), (3, 0, 0));
    assert_eq!(client.pop("q").as_deref(), Some("stays"));
    assert_eq!(world.counts("q"), (0, 0, 0), "both were over and are at the head now");
}

#[test]
fn what_has_expired_is_never_delivered_even_if_no_timer_has_fired() {
    let world = world_at_t0();
    let mut client = world.connect();
    client.declare("q");
    client.send(expiring("q", "1", "10"));
    client.fill("q", &["2"]);
    client.send(expiring("q", "3", "10"));
    world.broker.set_time(T0 + 10);
    client.consume_no_ack("q");
    assert_eq!(client.bodies(), ["2"]);
    let mut client = world.connect();
    client.declare("other");
    client.send(expiring("other", "1", "10"));
    world.broker.set_time(T0 + 20);
    assert_eq!(client.pop("other"), None);
}

#[test]
fn a_time_of_zero_means_now_or_never() {
    let world = world_at_t0();
    world.broker.set_time(T0 + 1);
    let mut client = world.connect();
    client.declare("dead");
    declare_with(&mut client, "q", false, &dying_to("dead", ttl(0)));
    client.fill("q", &["not taken"]);
    assert_eq!(world.counts("q"), (0, 0, 0));
    assert_eq!(client.pop_all("dead"), ["not taken"]);
    client.consume_no_ack("q");
    client.fill("q", &["taken"]);
    assert_eq!(client.bodies(), ["taken"]);
    client.declare("plain");
    client.send(expiring("plain", "gone", "0"));
    assert_eq!(world.counts("plain"), (0, 0, 0));
}

#[test]
fn an_expired_message_is_dead_lettered_without_its_expiration() {
    let world = world_at_t0();
    world.broker.set_time(T0 + 5_000);
    let mut client = world.connect();
    client.declare("dead");
    declare_with(&mut client, "q", false, &dying_to("dead", FieldTable::new()));
    client.send(expiring("q", "m", "+10"));
    world.broker.tick(T0 + 6_000);
    world.broker.tick(T0 + 100_000);
    let dead = client.get("dead").expect("a dead letter, which does not expire again");
    assert_eq!(deaths(&dead), ["q expired 1"]);
    assert_eq!(dead.properties.expiration, None);
    let headers = headers(&dead);
    let death = headers.get("x-death").and_then(FieldValue::as_array).expect("deaths")[0].clone();
    let death = death.as_table().expect("a table").clone();
    assert_eq!(death.get("original-expiration"), Some(&FieldValue::from("+10")));
    assert_eq!(death.get("time"), Some(&FieldValue::Timestamp(T0 / 1000 + 6)));
}

#[test]
fn messages_that_expire_go_in_circles_only_if_a_client_rejects_them() {
    let world = world_at_t0();
    let mut client = world.connect();
    declare_with(&mut client, "a", false, &dying_to("b", ttl(10)));
    declare_with(&mut client, "b", false, &dying_to("a", ttl(10)));
    client.fill("a", &["round"]);
    world.broker.tick(T0 + 10);
    assert_eq!((world.counts("a").0, world.counts("b").0), (0, 1));
    world.broker.tick(T0 + 20);
    assert_eq!((world.counts("a").0, world.counts("b").0), (0, 0), "it would never end");
    client.fill("a", &["refused"]);
    world.broker.tick(T0 + 30);
    let delivery = client.get("b").expect("a message");
    client.tell(courser_codec::basic::Reject { delivery_tag: delivery.tag, requeue: false });
    assert_eq!((world.counts("a").0, world.counts("b").0), (1, 0));
    world.broker.tick(T0 + 40);
    assert_eq!(world.counts("b").0, 1);
    assert_eq!(deaths(&client.get("b").expect("it")), ["a expired 2", "b rejected 1"]);
}

#[test]
fn what_comes_back_too_late_leaves_at_once() {
    let world = world_at_t0();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &ttl(100));
    client.fill("q", &["1", "2"]);
    let delivery = client.get("q").expect("a message");
    assert_eq!(world.broker.tick(T0 + 100), None);
    assert_eq!(world.counts("q"), (0, 1, 0));
    client.requeue(delivery.tag);
    assert_eq!(world.counts("q"), (0, 0, 0));
    client.fill("q", &["3"]);
    let delivery = client.get("q").expect("a message");
    world.broker.set_time(T0 + 150);
    client.requeue(delivery.tag);
    assert_eq!(world.counts("q"), (1, 0, 0));
    world.broker.tick(T0 + 200);
    assert_eq!(world.counts("q"), (0, 0, 0), "prompt after a requeue");
}

#[test]
fn a_long_backlog_expires_piece_by_piece() {
    let world = world_at_t0();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &ttl(100));
    for _ in 0..100 {
        client.fill("q", &["m"; 100]);
    }
    let mut ticks = 0;
    while world.broker.tick(T0 + 200) == Some(T0 + 200) {
        ticks += 1;
    }
    assert_eq!(world.counts("q"), (0, 0, 0));
    assert!(ticks > 1, "one tick does not do it all");
}

#[test]
fn a_get_finds_what_lives_behind_a_long_backlog_that_does_not() {
    let world = world_at_t0();
    let mut client = world.connect();
    client.declare("q");
    for _ in 0..1000 {
        client.send(expiring("q", "over", "10"));
    }
    client.fill("q", &["alive"]);
    world.broker.set_time(T0 + 10);
    assert_eq!(client.pop("q").as_deref(), Some("alive"));
}

#[test]
fn times_to_live_survive_a_restart() {
    let mut world = WorldOnDisk::new();
    world.broker.set_time(T0 + 1_000);
    let mut client = world.connect();
    declare_with(&mut client, "dead", true, &FieldTable::new());
    declare_with(&mut client, "own", true, &dying_to("dead", FieldTable::new()));
    declare_with(&mut client, "all", true, &dying_to("dead", ttl(500)));
    client.send(persistent(expiring("own", "1", "100")));
    client.send(persistent(Message::new("", "all", "2")));
    client.disconnect();
    world.restart_from_checkpoint();
    world.broker.set_time(T0 + 1_050);
    assert_eq!(world.broker.tick(T0 + 1_050), Some(T0 + 1_100));
    assert_eq!(world.counts("own"), (1, 0, 0));
    assert_eq!(world.broker.tick(T0 + 1_100), Some(T0 + 1_500));
    world.broker.tick(T0 + 1_500);
    world.restart();
    assert_eq!((world.counts("own"), world.counts("all")), ((0, 0, 0), (0, 0, 0)));
    let mut client = world.connect();
    assert_eq!(client.pop_all("dead"), ["1", "2"]);
    client.disconnect();
}

#[test]
fn a_consumer_gets_what_lives_behind_any_number_of_expired_messages() {
    for expired in [255, 256, 300, 511, 512, 513, 2000] {
        for prefetch in [0, 50] {
            let world = world_at_t0();
            let (mut publisher, mut consumer) = (world.connect(), world.connect());
            publisher.declare("q");
            publisher.fill("q", &["live"]);
            (0..expired).for_each(|_| publisher.send(expiring("q", "dead", "1")));
            publisher.fill("q", &["live"; 10]);
            world.broker.set_time(T0 + 10);
            consumer.qos(prefetch);
            consumer.consume("q");
            world.tick_all(T0 + 10);
            assert_eq!(consumer.bodies(), ["live"; 11], "{expired} expired, prefetch {prefetch}");
            publisher.fill("q", &["later"]);
            assert_eq!(consumer.bodies(), ["later"], "{expired} expired, prefetch {prefetch}");
        }
    }
}
