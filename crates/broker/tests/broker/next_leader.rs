//! What the next leader knows of messages that clients have had.

use crate::commits::{fill, world, world_with};
use crate::long_headers::with_header;
use crate::support::{Client, WorldOnDisk};
use courser_codec::FieldTable;

/// A consumer of `q` at the next leader, and what it gets: bodies, and whether they are redelivered.
fn found(world: &WorldOnDisk) -> (Client, Vec<(String, bool)>) {
    let mut next = world.connect();
    next.consume("q");
    world.flush();
    let deliveries = next.deliveries();
    let seen = deliveries.iter().map(|one| (one.text().to_owned(), one.redelivered)).collect();
    (next, seen)
}

fn owned<const N: usize>(expected: [(&str, bool); N]) -> [(String, bool); N] {
    expected.map(|(text, redelivered)| (text.to_owned(), redelivered))
}

#[test]
fn the_next_leader_marks_as_redelivered_what_the_log_was_told_to_be_handed_out() {
    for has_checkpoint in [false, true] {
        let (mut world, mut publisher, mut consumer) = world();
        fill(&mut publisher, "q", &["1", "2", "3", "4"]);
        world.flush();
        consumer.qos(2);
        consumer.consume("q");
        assert_eq!(consumer.bodies(), ["1", "2"]);
        consumer.ack(1);
        assert_eq!(consumer.bodies(), ["3"]);
        world.flush();
        if has_checkpoint {
            world.checkpoint();
        }
        world.crash(|| drop((publisher, consumer)));
        let (_next, seen) = found(&world);
        assert_eq!(seen, owned([("2", true), ("3", true), ("4", false)]), "{has_checkpoint}");
    }
}

#[test]
fn what_was_handed_out_counts_for_no_delivery_limit() {
    let (mut world, mut publisher, mut consumer) =
        world_with(&FieldTable::new().with("x-delivery-limit", 1));
    fill(&mut publisher, "q", &["1", "2", "3"]);
    world.flush();
    consumer.consume("q");
    assert_eq!(consumer.bodies(), ["1", "2", "3"]);
    consumer.fail_on(2);
    assert_eq!(consumer.bodies(), ["2"]);
    consumer.ack(1);
    world.flush();
    world.crash(|| drop((publisher, consumer)));
    let (mut next, seen) = found(&world);
    assert_eq!(seen, owned([("2", true), ("3", true)]));
    next.fail_on(1);
    next.fail_on(2);
    world.flush();
    assert_eq!(next.bodies(), ["3"], "the other one has come back before");
}

#[test]
fn it_marks_as_redelivered_what_has_come_back() {
    for has_checkpoint in [false, true] {
        let (mut world, mut publisher, mut consumer) = world();
        fill(&mut publisher, "q", &["1", "2", "3"]);
        world.flush();
        consumer.qos(2);
        consumer.consume("q");
        assert_eq!(consumer.bodies(), ["1", "2"]);
        consumer.close_channel(1);
        world.flush();
        if has_checkpoint {
            world.checkpoint();
        }
        world.crash(|| drop((publisher, consumer)));
        let (_next, seen) = found(&world);
        assert_eq!(seen, owned([("1", true), ("2", true), ("3", false)]), "{has_checkpoint}");
    }
}

#[test]
fn what_no_client_could_be_given_is_not_redelivered() {
    let (mut world, mut publisher, consumer) = world();
    drop(consumer);
    let mut small = world.connect_with_frame_max(4096);
    small.consume("q");
    let long = with_header("q", "long", 5000);
    publisher.send(long.with_properties(|properties| properties.delivery_mode = Some(2)));
    world.flush();
    assert_eq!(world.counts("q"), (0, 1, 1), "it is set aside");
    assert_eq!(small.bodies(), Vec::<String>::new());
    world.checkpoint();
    world.crash(|| drop((publisher, small)));
    let (_next, seen) = found(&world);
    assert_eq!(seen, owned([("long", false)]));
}

#[test]
fn it_is_told_so_again_when_it_makes_a_checkpoint_itself() {
    let (mut world, mut publisher, mut consumer) = world();
    fill(&mut publisher, "q", &["1", "2"]);
    world.flush();
    consumer.qos(1);
    consumer.consume("q");
    assert_eq!(consumer.bodies(), ["1"]);
    consumer.close_channel(1);
    world.flush();
    world.crash(|| drop((publisher, consumer)));
    world.checkpoint();
    world.crash(|| ());
    let (_next, seen) = found(&world);
    assert_eq!(seen, owned([("1", true), ("2", false)]));
}

#[test]
fn a_message_that_comes_back_on_and_on_is_told_of_once() {
    let (world, mut publisher, mut consumer) = world();
    fill(&mut publisher, "q", &["1"]);
    world.flush();
    consumer.consume("q");
    assert_eq!(consumer.bodies(), ["1"]);
    consumer.requeue(1);
    assert_eq!(consumer.bodies(), ["1"]);
    let end = world.log_end();
    for tag in 2..10 {
        consumer.requeue(tag);
        assert_eq!(consumer.bodies(), ["1"]);
    }
    assert_eq!(world.log_end(), end);
}
