//! A start knows of each message what its queue has to know, and reads none, however many there are.

use crate::deduplication_by_presence::apart;
use crate::support::{Client, Message, Step, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, basic};
use courser_store::StoreError;

/// What a start begins with.
#[derive(Clone, Copy, Debug)]
enum From {
    Log,
    Checkpoint,
    CheckpointAndLog,
}

/// Restarts with 60 messages in the queue.
fn restart_with_messages(world: &mut WorldOnDisk, from: From) {
    let mut client = world.connect();
    fill(&mut client, 0..40);
    if matches!(from, From::CheckpointAndLog) {
        world.checkpoint();
    }
    fill(&mut client, 40..60);
    client.disconnect();
    match from {
        From::Checkpoint => world.restart_from_checkpoint(),
        From::Log | From::CheckpointAndLog => world.restart(),
    }
}

/// Publishes messages named by their number, with a priority of the number modulo 7, or none for each 7th.
fn fill(client: &mut Client, numbers: std::ops::Range<u8>) {
    let message = |number: u8| {
        Message::new("", "q", number.to_string()).with_properties(|properties| {
            properties.priority = (!number.is_multiple_of(7)).then_some(number % 7);
            properties.delivery_mode = Some(2);
        })
    };
    let steps: Vec<_> = numbers.map(|number| Step::Publish(1, message(number))).collect();
    client.read(&steps);
}

/// What a queue with these priorities has of `0..count`, in its order.
fn in_order(count: u8, level: impl Fn(Option<u8>) -> u8) -> Vec<String> {
    let mut numbers: Vec<u8> = (0..count).collect();
    let level = |number: u8| level((!number.is_multiple_of(7)).then_some(number % 7));
    numbers.sort_by_key(|number| std::cmp::Reverse(level(*number)));
    numbers.iter().map(u8::to_string).collect()
}

/// Arguments, and the level of a priority.
type Kind = (FieldTable, fn(Option<u8>) -> u8);

fn kinds() -> [Kind; 2] {
    [
        (FieldTable::new().with("x-queue-type", "quorum"), |said| said.unwrap_or(4)),
        (FieldTable::new().with("x-max-priority", 5), |said| said.unwrap_or(0).min(5)),
    ]
}

#[test]
fn messages_are_in_the_places_of_their_priorities_and_none_was_read() {
    for (arguments, level) in kinds() {
        for from in [From::Log, From::Checkpoint, From::CheckpointAndLog] {
            for mut world in [WorldOnDisk::new(), WorldOnDisk::on_copy()] {
                let mut client = world.connect();
                declare_with(&mut client, "q", true, &arguments);
                client.disconnect();
                restart_with_messages(&mut world, from);
                assert_eq!(world.store().reads(), 0, "{arguments:?}, {from:?}");
                let mut client = world.connect();
                let bodies = client.pop_all("q");
                assert_eq!(bodies, in_order(60, level), "{arguments:?}, {from:?}");
            }
        }
    }
}

#[test]
fn the_checkpoint_of_an_earlier_version_has_them_read_once() {
    for (arguments, level) in kinds() {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &arguments);
        fill(&mut client, 0..40);
        client.disconnect();
        world.restart_without_sizes();
        assert_eq!(world.store().reads(), 40);
        world.restart_from_checkpoint();
        assert_eq!(world.store().reads(), 0);
        let mut client = world.connect();
        assert_eq!(client.pop_all("q"), in_order(40, level), "{arguments:?}");
    }
}

#[test]
fn a_start_on_a_store_that_can_not_be_read_any_more_reads_no_further() {
    let failed = || StoreError::Failed("the disk is gone".into());
    for (error, reads) in [(StoreError::Unread("busy".into()), 80), (failed(), 1)] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &FieldTable::new().with("x-max-priority", 5));
        fill(&mut client, 0..40);
        client.disconnect();
        assert_eq!(world.restart_without_sizes_and_reads(error), reads);
        assert_eq!(world.counts("q"), (40, 0, 0));
    }
}

/// Publishes messages, each of which says a letter of itself, or nothing.
fn fill_apart(client: &mut Client, ids: &str) {
    let message = |id: char| {
        let message = Message::new("", "q", id.to_string());
        let message = match id {
            '-' => message,
            id => message.headers(FieldTable::new().with("x-deduplication-header", id.to_string())),
        };
        message.with_properties(|properties| properties.delivery_mode = Some(2))
    };
    let steps: Vec<_> = ids.chars().map(|id| Step::Publish(1, message(id))).collect();
    client.read(&steps);
}

#[test]
fn no_two_of_the_same_come_together_and_none_was_read() {
    for from in [From::Log, From::Checkpoint, From::CheckpointAndLog] {
        for mut world in [WorldOnDisk::new(), WorldOnDisk::on_copy()] {
            let mut client = world.connect();
            declare_with(&mut client, "q", true, &apart());
            fill_apart(&mut client, "ab-c");
            if matches!(from, From::CheckpointAndLog) {
                world.checkpoint();
            }
            fill_apart(&mut client, "d-bef");
            world.flush();
            client.get("q").expect("a message");
            client.ack(1);
            client.disconnect();
            for _ in 0..2 {
                match from {
                    From::Checkpoint => world.restart_from_checkpoint(),
                    From::Log | From::CheckpointAndLog => world.restart(),
                }
                assert_eq!(world.store().reads(), 0, "{from:?}");
            }
            let mut client = world.connect();
            fill_apart(&mut client, "fedcba-");
            world.flush();
            assert_eq!(client.pop_all("q").concat(), "b-cd-efa-", "{from:?}");
        }
    }
}

#[test]
fn the_checkpoint_of_an_earlier_version_has_those_read_once_that_are_held_apart() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &apart());
    fill_apart(&mut client, "ab-c");
    client.disconnect();
    world.restart_without_sizes();
    assert_eq!(world.store().reads(), 4);
    world.restart_from_checkpoint();
    assert_eq!(world.store().reads(), 0);
    let mut client = world.connect();
    fill_apart(&mut client, "cd");
    assert_eq!(client.pop_all("q").concat(), "ab-cd");
}

#[test]
fn a_dead_letter_that_has_not_arrived_is_there_again_and_is_not_read_for_that() {
    let arguments = apart()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "nowhere yet")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &arguments);
    for ids in ["a-", "a"] {
        fill_apart(&mut client, ids);
        for _ in ids.chars() {
            let delivery_tag = client.get("q").expect("a message").tag;
            client.tell(basic::Reject { delivery_tag, requeue: false });
        }
    }
    fill_apart(&mut client, "ab");
    client.disconnect();
    world.restart_from_checkpoint();
    assert_eq!(world.store().reads(), 0);
    let mut client = world.connect();
    fill_apart(&mut client, "ab-");
    assert_eq!(client.pop_all("q").concat(), "a-aab-");
}
