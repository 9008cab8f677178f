//! Exchanges that keep messages, deleted while one is on its way to the log for them.

use crate::delayed;
use crate::recent_history_beside_others::history;
use crate::support::{Client, Message, WorldOnDisk, on_a_thread};
use courser_codec::FieldTable;
use std::sync::Arc;

/// How many messages the log has under any number, after one was published while its exchange `x` was being deleted.
fn left(declare: fn(&mut Client)) -> usize {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare(&mut client);
    let broker = Arc::clone(&world.broker);
    world.store().before_next_append(move || {
        on_a_thread(|| broker.admin().delete_exchange("/", b"x", false)).expect("it is there");
    });
    let message = Message::new("x", "", "m").headers(FieldTable::new().with("x-delay", 1000));
    client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
    assert_eq!(client.heard(), []);
    client.disconnect();
    let found = world.found_by_restart();
    let remembered: usize = found.queues.values().map(|index| index.positions().count()).sum();
    remembered + found.delayed.values().map(|index| index.pairs().count()).sum::<usize>()
}

#[test]
fn what_comes_too_late_for_a_history_is_not_kept_by_the_log() {
    assert_eq!(left(|client| history(client, "x", 20, true)), 0);
}

#[test]
fn what_comes_too_late_to_be_delayed_is_not_kept_by_the_log() {
    let declare = |client: &mut Client| {
        drop(delayed::declare_as(client, delayed::delayed_type("direct"), true));
    };
    assert_eq!(left(declare), 0);
}
