//! The purge and the deletion of a long queue: what they take besides, and what others see meanwhile.

use crate::support::{Client, Heard, Message, Step, WorldOnDisk, allocated_bytes, declare_with};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const MESSAGES: u64 = 100_000;

fn persistent(body: &str) -> Message {
    Message::new("", "q", body).with_properties(|properties| properties.delivery_mode = Some(2))
}

/// A world with a queue of persistent messages in it, and a client.
fn world() -> (WorldOnDisk, Client) {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    for _ in 0..MESSAGES / 5000 {
        client.read(&vec![Step::Publish(1, persistent("x")); 5000]);
        world.flush();
    }
    (world, client)
}

fn segments(world: &WorldOnDisk) -> usize {
    let names = world.disk().names();
    names.iter().filter(|name| name.extension().is_some_and(|what| what == "log")).count()
}

/// How much memory this thread has had at most when it told the log something in `call`, more than it had before.
fn growth(world: &WorldOnDisk, call: impl FnOnce()) -> i64 {
    let most = Arc::new(AtomicI64::new(0));
    let (seen, before) = (Arc::clone(&most), allocated_bytes());
    world.store().set_faults(move |call| {
        if matches!(call, Call::Append | Call::Settle) {
            seen.fetch_max(allocated_bytes() - before, Ordering::Relaxed);
        }
        None
    });
    call();
    world.store().set_faults(|_| None);
    most.load(Ordering::Relaxed)
}

#[test]
fn neither_a_purge_nor_a_deletion_takes_memory_for_each_message() {
    for deletes in [false, true] {
        let (mut world, mut client) = world();
        let before = segments(&world);
        let grown = growth(&world, || {
            let done = if deletes { client.delete("q") } else { client.purge("q") };
            assert_eq!(done, Heard::Count(MESSAGES as u32));
        });
        assert!(grown < 4 * MESSAGES as i64, "{grown} bytes, {deletes}");
        client.disconnect();
        (0..3).for_each(|_| world.checkpoint());
        let after = segments(&world);
        assert!(after < before, "{after} of {before} segments are kept");
        world.restart();
        match deletes {
            true => assert!(!world.has_queue("q")),
            false => assert_eq!(world.counts("q"), (0, 0, 0)),
        }
    }
}

#[test]
fn a_purge_lets_others_have_their_turn_while_it_forgets_what_is_noted() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    let apart = FieldTable::new().with("x-message-deduplication", true);
    declare_with(&mut client, "q", true, &apart);
    let numbered = |nth: i32| {
        let headers = FieldTable::new().with("x-deduplication-header", nth);
        Step::Publish(1, persistent("x").headers(headers))
    };
    for part in 0..8 {
        let all: Vec<_> = (part * 5000..(part + 1) * 5000).map(numbered).collect();
        client.read(&all);
        world.flush();
    }
    let used = {
        let broker = Arc::clone(&world.broker);
        move || broker.admin().queue("/", b"q").expect("it is there").memory_bytes
    };
    let (before, between) = (used(), Arc::new(AtomicU64::new(0)));
    let (seen, look) = (Arc::clone(&between), used.clone());
    world.store().set_faults(move |call| {
        if call == Call::Settle && seen.load(Ordering::Relaxed) == 0 {
            seen.store(look(), Ordering::Relaxed);
        }
        None
    });
    assert_eq!(client.purge("q"), Heard::Count(40_000));
    world.store().set_faults(|_| None);
    let (between, after) = (between.load(Ordering::Relaxed), used());
    // At first some of it is forgotten, and most of it when another could do something in the queue.
    assert!(
        before > 1_000_000 && between > 1_000_000 && after < 200_000,
        "{before} {between} {after}"
    );
    let headers = FieldTable::new().with("x-deduplication-header", 39_999);
    client.send(persistent("new").headers(headers));
    assert_eq!(client.pop_all("q"), ["new"]);
}
