//! The purge and the deletion of a long queue: what they take besides, and what others see meanwhile.

use crate::delayed::{delayed, with_exchange};
use crate::support::{
    Client, Heard, Message, Step, WorldOnDisk, allocated_bytes, declare_with, owned, short,
};
use courser_broker::admin::NewQueue;
use courser_codec::{FieldTable, exchange, queue};
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const MESSAGES: u64 = 100_000;
/// After so long another thread is not only slow.
const STUCK: Duration = Duration::from_secs(60);

fn persistent(body: &str) -> Message {
    Message::new("", "q", body).with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Publishes a message so often.
fn fill(world: &WorldOnDisk, client: &mut Client, message: &Message, count: u64) {
    for _ in 0..count / 5000 {
        client.read(&vec![Step::Publish(1, message.clone()); 5000]);
        world.flush();
    }
}

/// A world with a queue of this type with so many persistent messages in it, and a client.
fn world(kind: &str, count: u64) -> (WorldOnDisk, Client) {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new().with("x-queue-type", kind));
    fill(&world, &mut client, &persistent("x"), count);
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
    for (kind, deletes) in [("classic", false), ("classic", true), ("stream", true)] {
        let (mut world, mut client) = world(kind, MESSAGES);
        let before = segments(&world);
        let grown = growth(&world, || {
            let done = if deletes { client.delete("q") } else { client.purge("q") };
            assert_eq!(done, Heard::Count(MESSAGES as u32));
        });
        assert!(grown < 4 * MESSAGES as i64, "{grown} bytes, {kind} {deletes}");
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

#[test]
fn the_deletion_of_a_delayed_exchange_takes_no_memory_for_each_message() {
    const DELAYED: u64 = 40_000;
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    let later = delayed("x", 3_600_000);
    let later = later.with_properties(|properties| properties.delivery_mode = Some(2));
    fill(&world, &mut client, &later, DELAYED);
    let before = segments(&world);
    let grown = growth(&world, || {
        client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    });
    assert!(!world.has_exchange("x"));
    assert!(grown < DELAYED as i64, "{grown} bytes");
    client.disconnect();
    (0..3).for_each(|_| world.checkpoint());
    let after = segments(&world);
    assert!(after < before, "{after} of {before} segments are kept");
    world.restart();
    assert!(!world.has_exchange("x"));
}

/// One that looks more often waits for ever.
const LOOKS_MAX: u64 = 5000;

/// What a purge has done.
struct Purged {
    looks_behind: u64,
    /// Looks before anything was settled.
    looks_before: u64,
    settled: u64,
}

/// Purges a queue with so many messages while the log is behind, until it is told something.
fn purge_behind(message: &Message, count: u64) -> Purged {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    fill(&world, &mut client, message, count);
    let store = Arc::clone(world.store());
    let (settled, looks_before) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (seen, before) = (Arc::clone(&settled), Arc::clone(&looks_before));
    let (watched, begin) = (Arc::downgrade(&store), store.looks_behind());
    store.set_faults(move |call| {
        if call == Call::Settle
            && seen.fetch_add(1, Ordering::Relaxed) == 0
            && let Some(store) = watched.upgrade()
        {
            before.store(store.looks_behind() - begin, Ordering::Relaxed);
            store.set_behind(false);
        }
        None
    });
    store.set_behind(true);
    let admin = world.broker.admin();
    thread::scope(|scope| {
        let purge = scope.spawn(|| admin.purge_queue("/", b"q"));
        while !purge.is_finished() {
            if store.looks_behind() - begin > LOOKS_MAX {
                store.set_behind(false);
            }
            thread::yield_now();
        }
        assert_eq!(purge.join().expect("no panic"), Ok(count as usize));
    });
    let looks_behind = store.looks_behind() - begin;
    store.set_behind(false);
    store.heal();
    client.disconnect();
    Purged {
        looks_behind,
        looks_before: looks_before.load(Ordering::Relaxed),
        settled: settled.load(Ordering::Relaxed),
    }
}

#[test]
fn a_long_purge_waits_while_the_log_is_behind() {
    const MANY: u64 = 310_000;
    let portions = MANY.div_ceil(1 << 14);
    let purged = purge_behind(&persistent("x"), MANY);
    assert_eq!(purged.settled, portions);
    assert!((50..1000).contains(&purged.looks_before), "{} looks", purged.looks_before);
    // Where it is not behind any more, each portion has one look.
    assert_eq!(purged.looks_behind - purged.looks_before, portions - 1);
}

#[test]
fn a_purge_of_what_the_log_does_not_have_waits_for_nothing() {
    const MANY: u64 = 310_000;
    let purged = purge_behind(&Message::new("", "q", "x"), MANY);
    assert_eq!((purged.settled, purged.looks_behind), (0, 0));
}

/// Messages of a purge that leave the queue together.
const PORTION: usize = 1 << 14;

#[test]
fn a_checkpoint_is_made_between_the_portions_of_a_purge_and_has_the_rest() {
    let (mut world, mut client) = world("classic", MESSAGES);
    client.disconnect();
    let ((begin, begun), (tell, told)) = (channel(), channel());
    let portions = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&portions);
    let (mut is_made, mut patience) = (false, Duration::from_millis(500));
    // The purge ends at once when the checkpoint is made; in each portion before that, a thread that waits for the gate gets the
    // time to come to that, and more of it each time: the machine may be slow.
    world.store().set_faults(move |call| {
        if call != Call::Settle {
            return None;
        }
        if seen.fetch_add(1, Ordering::Relaxed) == 0 {
            begin.send(()).expect("it is waited for");
        }
        is_made |= told.recv_timeout(patience).is_ok();
        patience *= 2;
        is_made.then(|| StoreError::Failed("on purpose".to_owned()))
    });
    let admin = world.broker.admin();
    thread::scope(|scope| {
        let purge = scope.spawn(|| admin.purge_queue("/", b"q"));
        begun.recv_timeout(STUCK).expect("the purge begins");
        world.checkpoint();
        tell.send(()).unwrap_or_default();
        let purged = purge.join().expect("no panic");
        assert!(purged.is_err(), "the checkpoint has waited for the whole purge");
    });
    world.store().set_faults(|_| None);
    let told = portions.load(Ordering::Relaxed) as usize - 1;
    world.flush();
    world.lose_power();
    assert_eq!(world.counts("q").0, MESSAGES as usize - told * PORTION);
}

#[test]
fn a_purge_without_an_answer_is_synced_however_many_portions_it_has() {
    for count in [PORTION - 1, PORTION, PORTION + 1] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &FieldTable::new());
        client.confirm_select();
        client.read(&vec![Step::Publish(1, persistent("x")); count]);
        world.flush();
        client.tell(queue::Purge { queue: short("q"), nowait: true });
        world.flush();
        drop(client);
        world.lose_power();
        assert_eq!(world.counts("q").0, 0, "{count}");
    }
}

#[test]
fn what_comes_while_a_purge_is_under_way_stays_and_expires_in_time() {
    let retried = FieldTable::new()
        .with("x-queue-type", "quorum")
        .with("x-delayed-retry-type", "all")
        .with("x-delayed-retry-min", 3_600_000);
    let kinds = [FieldTable::new(), FieldTable::new().with("x-max-priority", 5), retried];
    for arguments in kinds {
        let world = WorldOnDisk::new();
        let (mut client, mut other) = (world.connect(), world.connect());
        declare_with(&mut client, "q", true, &arguments);
        let of = |priority: u8, body: &str| {
            persistent(body).with_properties(|properties| {
                properties.delivery_mode = Some(2);
                properties.priority = Some(priority);
            })
        };
        for priority in [1, 3] {
            fill(&world, &mut client, &of(priority, "old"), 20_000);
        }
        // In a queue where it waits for its next try, and with a priority that no other has.
        client.send(of(5, "old"));
        let tag = client.get("q").expect("a message").tag;
        client.requeue(tag);
        world.flush();
        let (tell, told) = channel();
        // Before the first portion is told, another client publishes.
        world.store().before_next_append(move || {
            let late = of(5, "late").with_properties(|properties| {
                properties.delivery_mode = Some(2);
                properties.priority = Some(5);
                properties.expiration = Some(owned("1000"));
            });
            let new = (0..=5).map(|priority| of(priority, "new"));
            let new = std::iter::once(late).chain(new).map(|message| Step::Publish(1, message));
            let publish = || other.read(&new.collect::<Vec<_>>());
            thread::scope(|scope| scope.spawn(publish).join()).expect("no panic");
            tell.send(other).expect("it is waited for");
        });
        assert_eq!(client.purge("q"), Heard::Count(40_001), "{arguments:?}");
        drop(told.recv_timeout(STUCK).expect("it has begun"));
        assert_eq!(world.counts("q").0, 7, "{arguments:?}");
        world.broker.tick(2000);
        // What came first is at the head now, and its time is over.
        assert_eq!(world.counts("q").0, 6, "{arguments:?}");
        assert_eq!(client.pop_all("q"), ["new"; 6], "{arguments:?}");
    }
}

#[test]
fn others_declare_while_a_deletion_lets_go_of_what_was_in_the_queue() {
    for is_full in [false, true] {
        let (world, mut client) = world("classic", 5000);
        let ((begin, begun), (go_on, goes_on), (tell, told)) = (channel(), channel(), channel());
        world.store().before_next_release(move || {
            begin.send(()).expect("it is waited for");
            tell.send(goes_on.recv_timeout(STUCK)).expect("it is waited for");
        });
        // The log can't be told yet of the deletion.
        let mut fails = is_full;
        world.store().set_faults(move |call| {
            (call == Call::Append && mem::take(&mut fails)).then_some(StoreError::Full)
        });
        let admin = world.broker.admin();
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(admin.delete_queue("/", b"q", false, false), Ok(5000)));
            begun.recv_timeout(STUCK).expect("something is let go of");
            admin.declare_queue("/", "other", NewQueue::default()).expect("a new queue");
            go_on.send(()).unwrap_or_default();
            let waited = told.recv_timeout(STUCK).expect("it goes on");
            assert_eq!(waited, Ok(()), "the declare has waited, full: {is_full}");
        });
        client.disconnect();
    }
}
