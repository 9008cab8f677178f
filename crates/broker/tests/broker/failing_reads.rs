//! Queues and streams while the disk can't read some messages, or all of them.

use crate::store_troubles::publisher;
use crate::streams;
use crate::support::{Client, Heard, Message, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, basic, queue};
use std::path::PathBuf;

/// A queue with the durable messages 1 to 3, of which the client has got the first (prefetch 1).
fn one_of_three_delivered(world: &WorldOnDisk, arguments: &FieldTable) -> Client {
    let mut client = world.connect();
    declare_with(&mut client, "q", true, arguments);
    for body in ["1", "2", "3"] {
        // So large that each is read by itself.
        let message = Message::new("", "q", body.repeat(50_000));
        client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
    }
    world.sync();
    client.qos(1);
    client.consume("q");
    assert_eq!(firsts(&client.bodies()), ["1"]);
    client
}

/// How each text begins.
fn firsts(bodies: &[String]) -> Vec<&str> {
    bodies.iter().map(|body| &body[..1]).collect()
}

#[test]
fn what_is_settled_while_reads_fail_stays_settled_and_the_queue_goes_on_when_they_work_again() {
    let refuse = |client: &mut Client| {
        client.tell(basic::Reject { delivery_tag: 1, requeue: false });
    };
    let ways: [fn(&mut Client); 2] = [|client| client.ack(1), refuse];
    for settle in ways {
        let mut world = WorldOnDisk::new();
        world.broker.set_time(1_000_000);
        let mut client = one_of_three_delivered(&world, &FieldTable::new());
        world.fail_reads(true);
        settle(&mut client);
        assert_eq!(world.counts("q"), (2, 0, 1), "what can't be read is still there");
        assert!(client.is_connected());
        let unread = world.broker.admin().queue("/", b"q").expect("it is there").unread;
        let unread = unread.expect("it says that it can't read");
        assert_eq!(unread.since_ms, 1_000_000);
        world.tick_all(1_001_000);
        assert_eq!(client.bodies(), Vec::<String>::new());
        world.fail_reads(false);
        world.tick_all(1_002_000);
        assert_eq!(firsts(&client.bodies()), ["2"]);
        assert_eq!(world.broker.admin().queue("/", b"q").expect("it is there").unread, None);
        world.sync();
        client.disconnect();
        world.restart();
        assert_eq!(firsts(&world.connect().pop_all("q")), ["2", "3"]);
    }
}

#[test]
fn a_queue_reads_again_at_once_when_the_clock_is_set_back() {
    let world = WorldOnDisk::new();
    world.tick_all(1_000_000_000);
    let mut client = one_of_three_delivered(&world, &FieldTable::new());
    world.fail_reads(true);
    client.ack(1);
    assert_eq!(client.bodies(), Vec::<String>::new());
    world.fail_reads(false);
    world.tick_all(1_000_000);
    assert_eq!(firsts(&client.bodies()), ["2"]);
}

#[test]
fn while_reads_fail_other_queues_go_on_and_publishes_are_taken() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let ttl = FieldTable::new().with("x-message-ttl", 60_000).with("x-max-length-bytes", 1_000_000);
    let mut client = one_of_three_delivered(&world, &ttl);
    client.declare("other");
    world.fail_reads(true);
    // The second was read ahead, to see whether it has expired.
    client.ack(1);
    assert_eq!(firsts(&client.bodies()), ["2"]);
    client.ack(2);
    client.fill("q", &["4"]);
    client.fill("other", &["in memory"]);
    assert_eq!(client.pop("other").as_deref(), Some("in memory"));
    assert_eq!(world.counts("q"), (2, 0, 1));
    world.fail_reads(false);
    world.tick_all(1_001_000);
    for body in ["3", "4"] {
        let deliveries = client.deliveries();
        let bodies: Vec<&str> = deliveries.iter().map(|one| &one.text()[..1]).collect();
        assert_eq!(bodies, [body]);
        client.ack(deliveries[0].tag);
    }
}

/// The queue `q` with two messages behind which it has gone on, as they can't be read; and a third, which its
/// consumer has.
fn two_passed_over(world: &WorldOnDisk) -> Client {
    world.broker.set_time(1_000_000);
    let mut client = one_of_three_delivered(world, &FieldTable::new());
    world.fail_reads(true);
    client.ack(1);
    client.fill("q", &["in memory"]);
    for second in 1..10 {
        world.tick_all(1_000_000 + second * 1000);
        assert_eq!(client.bodies(), Vec::<String>::new(), "the order is kept after {second} s");
    }
    world.tick_all(1_010_000);
    assert_eq!(client.bodies(), ["in memory"]);
    assert_eq!(world.counts("q"), (2, 1, 1));
    let unread = world.broker.admin().queue("/", b"q").expect("it is there").unread;
    let unread = unread.expect("it says that it can't read");
    assert_eq!((unread.since_ms, unread.passed_over), (1_000_000, 2));
    client
}

#[test]
fn a_queue_goes_on_behind_what_it_can_not_read_and_hands_that_out_when_it_can() {
    let world = WorldOnDisk::new();
    let mut client = two_passed_over(&world);
    world.fail_reads(false);
    world.tick_all(1_011_000);
    assert_eq!(world.broker.admin().queue("/", b"q").expect("it is there").unread, None);
    for (tag, body) in [(2, "2"), (3, "3")] {
        client.ack(tag);
        let delivery = client.deliveries().remove(0);
        assert_eq!((&delivery.text()[..1], delivery.redelivered), (body, false));
    }
    client.ack(4);
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn what_a_queue_can_not_read_is_among_what_is_ready_also_while_it_waits_for_the_disk() {
    let world = WorldOnDisk::new();
    let _client = two_passed_over(&world);
    let broker = &world.broker;
    let shown = || {
        let queue = broker.admin().queue("/", b"q").expect("it is there");
        (queue.ready, queue.unacked, queue.consumers, queue.is_held)
    };
    assert_eq!(shown(), (2, 1, 1, false));
    let names = world.disk().names();
    let is_segment = |name: &&PathBuf| name.extension().is_some_and(|what| what == "log");
    let segment = names.iter().find(is_segment).expect("a segment");
    let held = world.disk().hold_reads(segment).expect("it is there");
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| broker.tick(1_011_000));
        assert!(held.wait_until_reached());
        assert_eq!(shown(), (2, 1, 1, true));
        assert!(held.let_go());
        reading.join().expect("no panic");
    });
}

#[test]
fn what_a_queue_can_not_read_survives_and_is_purged_with_all_else() {
    let mut world = WorldOnDisk::new();
    let mut client = two_passed_over(&world);
    client.close_channel(1);
    client.open_channel(1);
    let (queue, if_empty) = ("q".try_into().expect("short"), true);
    let refused = client.refused(queue::Delete { queue, if_empty, ..Default::default() });
    assert!(refused.contains("not empty"), "{refused}");
    world.fail_reads(false);
    world.checkpoint();
    client.disconnect();
    world.restart();
    assert_eq!(firsts(&world.connect().pop_all("q")), ["2", "3"]);

    let world = WorldOnDisk::new();
    let mut client = two_passed_over(&world);
    client.ack(2);
    assert_eq!(client.purge("q"), Heard::Count(2));
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn a_dead_letter_that_can_not_be_read_holds_up_no_other() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let letters = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "letters");
    let mut client = one_of_three_delivered(&world, &letters);
    client.declare("letters");
    world.fail_reads(true);
    client.tell(basic::Reject { delivery_tag: 1, requeue: false });
    assert_eq!(world.counts("letters").0, 0);
    // What is in memory can be read.
    declare_with(&mut client, "q3", false, &letters);
    client.fill("q3", &["in memory"]);
    let got = client.get("q3").expect("it waits");
    client.tell(basic::Reject { delivery_tag: got.tag, requeue: false });
    assert_eq!(client.pop_all("letters"), ["in memory"]);
    world.fail_reads(false);
    world.tick_all(1_001_000);
    assert_eq!(firsts(&client.pop_all("letters")), ["1"]);
}

/// Numbers that are as long as a message is short, durable in `to`.
fn fill_durably(world: &WorldOnDisk, client: &mut Client, to: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let message = Message::new("", to, numbered(number));
        client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
    }
    world.sync();
}

/// The text of a message. That which can't be read is longer than two pages of a disk: the page in its middle has no other.
fn numbered(number: u32) -> String {
    let padding = if number == 300 { 3 * 4096 } else { 0 };
    format!("number {number:05}{}", "x".repeat(padding))
}

#[test]
fn one_unreadable_message_keeps_a_queue_from_no_other() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let mut client = publisher(&world);
    fill_durably(&world, &mut client, "q", 0..600);
    world.make_unreadable(numbered(300).as_bytes());
    let mut consumer = world.connect();
    consumer.consume("q");
    assert_eq!(consumer.bodies(), (0..300).map(numbered).collect::<Vec<_>>());
    world.tick_all(1_001_000);
    world.tick_all(1_010_000);
    assert_eq!(consumer.bodies(), (301..600).map(numbered).collect::<Vec<_>>());
    let unread = world.broker.admin().queue("/", b"q").expect("it is there").unread;
    assert_eq!(unread.map(|unread| unread.passed_over), Some(1));
}

#[test]
fn a_stream_goes_on_behind_what_it_can_not_read_and_says_so() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let unread = || world.broker.admin().queue("/", b"s").expect("it is there").unread;
    let numbers = |numbers: std::ops::Range<u32>| -> Vec<(i64, String)> {
        numbers.map(|number| (i64::from(number), numbered(number))).collect()
    };
    let reader = || {
        let mut reader = world.connect();
        reader.qos(1000);
        streams::read(&mut reader, "s", "first");
        reader
    };
    let mut client = publisher(&world);
    streams::stream(&mut client, "s");
    fill_durably(&world, &mut client, "s", 0..600);
    world.make_unreadable(numbered(300).as_bytes());
    let mut first = reader();
    assert_eq!(streams::messages(&mut first), numbers(0..300));
    for second in 1..10 {
        world.tick_all(1_000_000 + second * 1000);
        assert_eq!(streams::messages(&mut first), [], "nothing is missed after {second} s");
        let found = unread().expect("it says that it can't read");
        assert_eq!((found.since_ms, found.passed_over), (1_000_000, 0));
    }
    world.tick_all(1_010_000);
    assert_eq!(streams::messages(&mut first), []);
    assert_eq!(unread().map(|unread| unread.passed_over), Some(1));
    world.tick_all(1_011_000);
    assert_eq!(streams::messages(&mut first), numbers(301..600));
    // The next one need not wait as long.
    let mut second = reader();
    assert_eq!(streams::messages(&mut second), numbers(0..300));
    world.tick_all(1_012_000);
    assert_eq!(streams::messages(&mut second), numbers(301..600));
    world.fail_reads(false);
    (1_013..1_016).for_each(|second| world.tick_all(second * 1000));
    assert_eq!(unread(), None);
    assert_eq!(streams::messages(&mut reader()), numbers(0..600));
}
