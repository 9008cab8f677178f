//! `x-expires`: queues that go when they are not used.

use crate::support::{Client, Heard, World, WorldOnDisk, on_a_thread, short};
use courser_broker::Broker;
use courser_codec::{FieldTable, basic, exchange, queue};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

fn declare(client: &mut Client, expires_ms: u64) {
    let arguments = FieldTable::new().with("x-expires", expires_ms as i64).to_entries();
    let arguments = courser_codec::Table::from_entries(&arguments);
    client.call(queue::Declare { queue: short("q"), arguments, ..Default::default() });
}

#[test]
fn an_unused_queue_goes_with_its_messages() {
    let world = World::new();
    world.broker.set_time(1000);
    let mut client = world.connect();
    declare(&mut client, 500);
    client.fill("q", &["lost"]);
    assert_eq!(world.broker.tick(1499), Some(1500));
    assert!(world.has_queue("q"));
    assert_eq!(world.broker.tick(1500), None);
    assert!(!world.has_queue("q"));
}

#[test]
fn a_declare_and_a_get_renew_the_lease() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 500);
    world.broker.tick(400);
    declare(&mut client, 500);
    assert_eq!(world.broker.tick(500), Some(900));
    assert_eq!(client.get("q"), None);
    assert_eq!(world.broker.tick(900), Some(1000));
    client.call(queue::Declare { queue: short("q"), passive: true, ..Default::default() });
    assert_eq!(world.broker.tick(1000), Some(1400));
    assert!(world.has_queue("q"));
    world.broker.tick(1400);
    assert!(!world.has_queue("q"));
}

#[test]
fn a_consumer_keeps_its_queue_and_the_lease_begins_when_it_leaves() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 500);
    let tag = client.consume("q");
    for now_ms in [500, 1000, 1500] {
        assert_eq!(world.broker.tick(now_ms), Some(now_ms + 500));
    }
    world.broker.set_time(1700);
    client.cancel(&tag);
    assert_eq!(world.broker.tick(2000), Some(2200));
    assert!(world.has_queue("q"));
    world.broker.tick(2200);
    assert!(!world.has_queue("q"));
}

#[test]
fn a_lease_that_is_renewed_after_the_clock_was_ahead_ends_in_time() {
    let world = World::new();
    world.broker.tick(1_000_000_000);
    let mut client = world.connect();
    declare(&mut client, 500);
    world.broker.tick(10_000);
    declare(&mut client, 500);
    assert_eq!(world.broker.tick(10_499), Some(10_500));
    assert!(world.has_queue("q"));
    world.broker.tick(10_500);
    assert!(!world.has_queue("q"));
}

#[test]
fn a_deleted_queue_leaves_no_timer_behind() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 500);
    client.delete("q");
    assert_eq!(world.broker.tick(0), None);
}

#[test]
fn an_earlier_deadline_is_announced() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let world = World::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    world.broker.on_timer(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut client = world.connect();
    declare(&mut client, 500);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let consume = basic::Consume { queue: short("q"), ..Default::default() };
    client.consume_with(consume);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "nothing is due earlier than before");
}

#[test]
fn a_declare_that_finds_the_queue_at_the_end_of_its_lease_keeps_it() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare(&mut client, 500);
    // Nothing is due at this time, so that it is what has its turn.
    let has_begun = move |broker: &Broker| broker.first_due(0).is_some();
    let broker = Arc::clone(&world.broker);
    let mut declaring = world.connect();
    let expiring = Arc::new(Mutex::new(None));
    let started = Arc::clone(&expiring);
    // While the topology is changed, the lease ends, and no queue can be deleted.
    world.store().before_next_append(move || {
        let ticking = Arc::clone(&broker);
        let expiring = std::thread::Builder::new().spawn(move || ticking.tick(500));
        *started.lock() = Some(expiring.expect("a thread"));
        while !has_begun(&broker) {
            std::thread::yield_now();
        }
        // Without this, the thread may not have looked at the lease yet, and has nothing to ask again.
        std::thread::sleep(Duration::from_millis(50));
        let (queue, passive) = (short("q"), true);
        let declare = queue::Declare { queue, passive, ..Default::default() };
        let declared = on_a_thread(|| declaring.call(declare));
        assert!(matches!(declared, Heard::DeclareOk { .. }), "{declared:?}");
    });
    let (exchange, kind, durable) = (short("x"), short("fanout"), true);
    client.call(exchange::Declare { exchange, kind, durable, ..Default::default() });
    let expiring = expiring.lock().take().expect("it has begun");
    assert_eq!(expiring.join().expect("no panic"), Some(1000));
    assert!(world.has_queue("q"));
}
