//! An `x-delayed-message` exchange with more to send than the store takes at once, or can read now; and
//! the order in which it is sent.

use crate::deduplication_on_the_way::{declare_exchange, remembering};
use crate::delayed::{START_MS, delayed, messages_delayed, persistent, run_until, with_exchange};
use crate::recent_history_beside_others::history;
use crate::support::{BATCH_BYTES, Message, World, WorldOnDisk, declare_with, short};
use courser_codec::{FieldTable, exchange};
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A message to the delayed exchange, of so many bytes, that begins with `name`.
fn large(name: &str, bytes: usize, delay_ms: i64) -> Message {
    persistent(delayed(&format!("{name}{}", ".".repeat(bytes)), delay_ms))
}

/// The beginnings of all messages in q.
fn names_in_q(world: &World) -> Vec<String> {
    let bodies = world.connect().pop_all("q");
    bodies.iter().map(|body| body.trim_end_matches('.').to_owned()).collect()
}

#[test]
fn more_than_the_store_takes_at_once_goes_in_portions() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    let bytes = BATCH_BYTES as usize / 20;
    for nth in 0..60 {
        client.send(large(&nth.to_string(), bytes, 1000));
    }
    client.disconnect();
    world.restart();
    let appends = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&appends);
    world.store().set_faults(move |call| {
        counted.fetch_add(usize::from(call == Call::Append), Ordering::Relaxed);
        None
    });
    run_until(&world, START_MS + 1000);
    let appends = appends.load(Ordering::Relaxed);
    // One by one, until the rest fits, would take forty.
    assert!(appends < 40, "{appends} appends: two messages fit into one");
    assert_eq!(names_in_q(&world), (0..60).map(|nth| nth.to_string()).collect::<Vec<_>>());
    assert_eq!(messages_delayed(&world), 0);
}

#[test]
fn what_is_too_large_with_all_its_copies_goes_without_them() {
    let world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    for history in ["h1", "h2"] {
        let (exchange, kind) = (short(history), short("x-recent-history"));
        client.call(exchange::Declare { exchange, kind, durable: true, ..Default::default() });
        let (destination, source) = (short(history), short("x"));
        let routing_key = short("k");
        client.call(exchange::Bind { destination, source, routing_key, ..Default::default() });
    }
    client.send(large("large", BATCH_BYTES as usize / 2, 1000));
    client.send(large("small", 10, 1000));
    run_until(&world, START_MS + 1000);
    assert_eq!(names_in_q(&world), ["large", "small"]);
    client.declare("late");
    client.bind("late", "h1", "");
    assert_eq!(client.pop_all("late").len(), 1, "the history has the small one");
}

#[test]
fn what_has_been_somewhere_on_its_way_goes_without_copies_as_well() {
    let world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    declare_exchange(&mut client, "once", "fanout", &remembering(100));
    history(&mut client, "h", 20, true);
    for behind in ["once", "h"] {
        client.bind_exchange(behind, "x", "k");
    }
    client.declare("other");
    client.bind("other", "once", "");
    let first = Message::new("once", "", "first");
    client.send(first.headers(FieldTable::new().with("x-deduplication-header", "a")));
    let headers = FieldTable::new().with("x-deduplication-header", "a").with("x-delay", 1000);
    client.send(large("large", BATCH_BYTES as usize / 2, 1000).headers(headers));
    client.send(large("small", 10, 1000));
    run_until(&world, START_MS + 1000);
    assert_eq!(names_in_q(&world), ["large", "small"]);
    assert_eq!(messages_delayed(&world), 0);
}

#[test]
fn what_is_too_large_alone_stays_is_told_and_holds_up_no_other() {
    let world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    for name in ["large", "small"] {
        client.send(large(name, 10, 1000));
    }
    let appends = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&appends);
    world.store().set_faults(move |call| {
        // Both together, the first alone, and that without copies.
        let nth = (call == Call::Append).then(|| counted.fetch_add(1, Ordering::Relaxed));
        nth.is_some_and(|nth| nth < 3).then_some(StoreError::TooLarge(1 << 30))
    });
    let overdue = || world.vhost().exchange(b"x").expect("it is there").overdue();
    assert_eq!(overdue(), None);
    run_until(&world, START_MS + 1000);
    assert_eq!(names_in_q(&world), ["small"]);
    assert_eq!(messages_delayed(&world), 1);
    let told = overdue().expect("one stays");
    assert_eq!(told.since_ms, START_MS + 1000);
    let tried = appends.load(Ordering::Relaxed);
    for second in 2..60 {
        run_until(&world, START_MS + second * 1000);
    }
    assert_eq!(appends.load(Ordering::Relaxed), tried, "it fails the same way every second");
    assert_eq!(overdue(), Some(told));
    run_until(&world, START_MS + 62_000);
    assert_eq!(names_in_q(&world), ["large"]);
    assert_eq!((messages_delayed(&world), overdue()), (0, None));
}

#[test]
fn what_cannot_be_read_now_comes_later_and_holds_up_nothing_else() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    for name in ["first", "second", "third"] {
        client.send(large(name, 20, 1000));
    }
    client.disconnect();
    world.restart();
    let mut reads = 0;
    world.store().set_faults(move |call| {
        reads += u64::from(call == Call::Read);
        (call == Call::Read && reads == 1).then(|| StoreError::Failed("no luck".to_owned()))
    });
    run_until(&world, START_MS + 1000);
    assert_eq!(names_in_q(&world), ["second", "third"]);
    assert_eq!(messages_delayed(&world), 1);
    let told = world.vhost().exchange(b"x").expect("it is there").overdue().expect("one stays");
    assert!(told.why.contains("no luck"), "{}", told.why);
    run_until(&world, START_MS + 10_000);
    assert_eq!(names_in_q(&world), ["first"]);
}

#[test]
fn messages_due_at_the_same_time_leave_in_the_order_in_which_they_came() {
    for delay_ms in [10, 1000, 100_000, 20_000_000] {
        let world = WorldOnDisk::new();
        let mut client = with_exchange(&world);
        let names: Vec<String> = (0..40).map(|nth| nth.to_string()).collect();
        for (nth, name) in names.iter().enumerate() {
            let message = delayed(name, delay_ms);
            client.send(if nth % 3 == 0 { persistent(message) } else { message });
        }
        run_until(&world, START_MS + delay_ms as u64);
        assert_eq!(names_in_q(&world), names, "{delay_ms} ms");
    }
}

#[test]
fn a_shorter_delay_to_the_same_time_comes_behind_a_longer_one() {
    let world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    let due_ms = START_MS + 20_000_000;
    let sent_ms = [0, 10_000_000, 19_950_000, 19_999_000, 19_999_999];
    for sent_ms in sent_ms {
        run_until(&world, START_MS + sent_ms);
        let delay_ms = due_ms - (START_MS + sent_ms);
        client.send(persistent(delayed(&sent_ms.to_string(), delay_ms as i64)));
    }
    run_until(&world, due_ms);
    assert_eq!(names_in_q(&world), sent_ms.map(|sent_ms| sent_ms.to_string()));
}

#[test]
fn thousands_that_are_due_hold_up_no_other_timer() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let ttl = FieldTable::new().with("x-message-ttl", 150);
    declare_with(&mut client, "short-lived", false, &ttl);
    client.publish("", "short-lived", "x");
    for _ in 0..4000 {
        client.send(delayed("m", 100));
    }
    world.broker.tick(START_MS + 200);
    assert!(messages_delayed(&world) > 0, "one call does not send them all");
    assert_eq!(world.counts("short-lived").0, 0);
}
