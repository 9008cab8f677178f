//! What is more than the log takes at once is removed all the same, for good.

use crate::support::{BATCH_BYTES, Client, Heard, Message, WorldOnDisk, declare_with, short};
use courser_broker::VhostLimits;
use courser_broker::admin::{Admin, NewQueue};
use courser_codec::{FieldTable, Table, exchange, queue};
use courser_journal::testing::Call;
use courser_store::{Log, Lsn, StoreError};
use std::sync::{Arc, Mutex};

const ARGUMENT_BYTES: usize = 32_000;

/// More than go into a batch.
const BINDINGS: usize = BATCH_BYTES as usize / ARGUMENT_BYTES + 1;
/// No batch of a removal is larger.
const PART_BYTES: u64 = 5 << 20;

fn declare<'m>(passive: bool) -> exchange::Declare<'m> {
    let (exchange, kind) = (short("x"), short("direct"));
    exchange::Declare { exchange, kind, durable: true, passive, ..Default::default() }
}

/// A durable queue `q` with a message, bound so often to a durable exchange `x`.
fn bound(world: &WorldOnDisk, bindings: usize) -> Client {
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.send(Message::new("", "q", "x").with_properties(|of| of.delivery_mode = Some(2)));
    client.call(declare(false));
    let text = "x".repeat(ARGUMENT_BYTES);
    for nth in 0..bindings {
        let entries = FieldTable::new().with("text", format!("{nth} {text}").as_str()).to_entries();
        let (queue, arguments) = (short("q"), Table::from_entries(&entries));
        let bind = queue::Bind { queue, exchange: short("x"), arguments, ..Default::default() };
        assert_eq!(client.call(bind), Heard::Done("queue.bind-ok"));
    }
    world.flush();
    client
}

fn delete_exchange(admin: &Admin) -> bool {
    admin.delete_exchange("/", b"x", false).is_ok()
}

fn delete_queue(admin: &Admin) -> bool {
    admin.delete_queue("/", b"q", false, false).is_ok()
}

fn bindings(world: &WorldOnDisk) -> usize {
    let bindings = world.broker.admin().bindings_from("/", b"x", &mut |_| true);
    bindings.map_or(0, |bindings| bindings.len())
}

#[test]
fn an_exchange_with_more_bindings_than_go_into_a_batch_stays_deleted() {
    let mut world = WorldOnDisk::new();
    let mut client = bound(&world, BINDINGS);
    let delete = exchange::Delete { exchange: short("x"), ..Default::default() };
    assert_eq!(client.call(delete), Heard::Done("exchange.delete-ok"));
    assert_eq!(client.pop_all("q"), ["x"]);
    client.disconnect();
    for _ in 0..2 {
        world.restart();
        let mut client = world.connect();
        assert!(client.refused(declare(true)).starts_with("404 "));
        // Nor does another one of its name have its bindings.
        client.call(declare(false));
        client.publish("x", "", "nowhere");
        assert_eq!(client.pop("q"), None);
        client.call(delete);
        client.disconnect();
    }
}

#[test]
fn a_large_removal_goes_into_the_log_in_parts_and_waits_before_each_where_that_is_behind() {
    for (delete, many) in
        [(delete_exchange as fn(&Admin) -> bool, true), (delete_queue, true), (delete_queue, false)]
    {
        let world = WorldOnDisk::new();
        let mut client = bound(&world, if many { BINDINGS } else { 3 });
        let store = Arc::clone(world.store());
        let (watched, ends) = (Arc::downgrade(&store), Arc::<Mutex<Vec<Lsn>>>::default());
        let seen = Arc::clone(&ends);
        store.set_faults(move |call| {
            if call == Call::Append
                && let Some(store) = watched.upgrade()
            {
                seen.lock().expect("no panic").push(store.end());
            }
            None
        });
        store.set_behind(true);
        let looks = store.looks_behind();
        assert!(delete(&world.broker.admin()));
        let looks = store.looks_behind() - looks;
        store.set_behind(false);
        store.heal();
        let mut ends = ends.lock().expect("no panic").clone();
        let parts = ends.len();
        ends.push(store.end());
        let largest = ends.windows(2).map(|ends| ends[1].0 - ends[0].0).max();
        assert!(largest.is_some_and(|largest| largest < PART_BYTES), "{largest:?}");
        match many {
            true => assert!(parts > 1 && looks > 50 * parts as u64, "{looks} looks, {parts} parts"),
            false => assert_eq!((parts, looks), (1, 0)),
        }
        client.disconnect();
    }
}

#[test]
fn what_a_crash_leaves_of_a_large_removal_is_whole_and_is_removed_by_another_try() {
    let removals = [delete_exchange as fn(&Admin) -> bool, delete_queue];
    for (removes_queue, delete) in removals.into_iter().enumerate() {
        for told in 0.. {
            let mut world = WorldOnDisk::new();
            let mut client = bound(&world, BINDINGS);
            let mut appends = 0;
            world.store().set_faults(move |call| {
                appends += usize::from(call == Call::Append);
                let fails = call == Call::Append && appends > told;
                fails.then(|| StoreError::Failed("on purpose".to_owned()))
            });
            let is_told = delete(&world.broker.admin());
            world.store().heal();
            world.flush();
            world.crash(|| client.disconnect());
            let is_there = [world.has_exchange("x"), world.has_queue("q")];
            if is_told {
                assert_eq!(is_there, [removes_queue == 1, removes_queue == 0]);
                assert_eq!(bindings(&world), 0);
                assert!(told > 1, "it is in one part");
                break;
            }
            // What it was about, and what that has: some bindings less.
            assert_eq!(is_there, [true; 2], "{told} parts");
            assert_eq!(world.counts("q").0, 1);
            let left = bindings(&world);
            assert!(if told == 0 { left == BINDINGS } else { left < BINDINGS }, "{left}");
            assert!(delete(&world.broker.admin()));
            world.restart();
            let is_there = [world.has_exchange("x"), world.has_queue("q")];
            assert_eq!(is_there, [removes_queue == 1, removes_queue == 0]);
            assert_eq!(bindings(&world), 0);
        }
    }
}

#[test]
fn a_vhost_whose_deletion_has_failed_is_deleted_by_another_try() {
    let mut world = WorldOnDisk::new();
    world.broker.define_vhost("v", VhostLimits::default()).expect("a vhost");
    let admin = world.broker.admin();
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("v", "q", queue).expect("a queue");
    let mut appends = 0;
    world.store().set_faults(move |call| {
        // The queue goes, and the vhost does not.
        appends += usize::from(call == Call::Append);
        (call == Call::Append && appends > 1).then_some(StoreError::TooLarge(7))
    });
    assert!(admin.delete_vhost("v").is_err());
    world.store().heal();
    admin.delete_vhost("v").expect("it goes on");
    drop(admin);
    world.restart();
    assert!(world.broker.vhost("v").is_none());
}
