//! Messages and bindings in the log whose queue has no definition: a crash came between the deletion of the queue and the end of
//! what was published to it meanwhile, or behind a checkpoint that had the bindings and not the queue any more.

use crate::support::{Message, WorldOnDisk, declare_with, on_a_thread};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::stream::PageLimits;
use courser_store::{MessageRef, Record, Recovered, StoreError};
use std::sync::Arc;

/// How many messages a log has, under whatever number.
fn messages(found: &Recovered) -> usize {
    let mut count = 0;
    found.for_each_position(&mut |_| count += 1);
    count
}

#[test]
fn what_comes_to_a_queue_while_it_is_deleted_is_dropped_after_a_crash() {
    for is_copy in [false, true] {
        let mut world = if is_copy { WorldOnDisk::on_copy() } else { WorldOnDisk::new() };
        let mut client = world.connect();
        for queue in ["gone", "kept"] {
            declare_with(&mut client, queue, true, &FieldTable::new());
        }
        let message =
            |queue| Message::new("", queue, "m").with_properties(|of| of.delivery_mode = Some(2));
        client.send(message("kept"));
        let broker = Arc::clone(&world.broker);
        world.store().before_next_append(move || {
            on_a_thread(|| broker.admin().delete_queue("/", b"gone", false, false))
                .expect("it is there");
        });
        // The crash comes before the log knows that the queue has not taken the message.
        world.store().set_faults(|call| {
            (call == Call::Settle).then(|| StoreError::Failed("the crash".into()))
        });
        client.send(message("gone"));
        client.disconnect();
        world.restart();
        assert_eq!(world.restored.ownerless, 1);
        assert_eq!(messages(&world.found_by_restart()), 1, "others with the log can free it, too");
        assert_eq!((world.restored.ownerless, world.restored.messages), (0, 1));
        assert_eq!(world.counts("kept"), (1, 0, 0));
    }
}

#[test]
fn what_is_under_any_number_without_a_definition_is_dropped() {
    let message = MessageRef {
        address: b"\0\x01q",
        header: b"\0<\0\0\0\0\0\0\0\0\0\x01\0\0",
        body: b"m",
        ..MessageRef::default()
    };
    let delayed = Record::Delayed { queue: 9, due_ms: 1, message };
    let stream = Record::Stream { queue: 10, first_offset: 0, pages: PageLimits::default() };
    let to_both = Record::Message { queues: &[8, 10], holders: 2, message };
    let mut world = WorldOnDisk::of(&[delayed, stream, to_both]);
    assert_eq!((world.restored.ownerless, world.restored.messages), (3, 0));
    let found = world.found_by_restart();
    assert!(found.queues.is_empty() && found.delayed.is_empty() && found.streams.is_empty());
}

#[test]
fn a_binding_that_finds_no_queue_does_not_come_back_with_one_of_that_name() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.bind("q", "amq.direct", "k");
    client.disconnect();
    let found = world.found_by_restart();
    let without_queue = found.definitions.iter().filter(|(key, _)| key.first() == Some(&b'b'));
    let records: Vec<_> =
        without_queue.map(|(key, value)| Record::Defined { key, value }).collect();
    assert_eq!(records.len(), 1);
    let mut world = WorldOnDisk::of(&records);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    client.publish("amq.direct", "k", "m");
    assert_eq!(world.counts("q"), (0, 0, 0));
    client.disconnect();
}
