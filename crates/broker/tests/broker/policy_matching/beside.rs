//! What is declared and deleted beside changes of policies, which are measured meanwhile.

use super::{LARGEST, MEANWHILE, MOST, US_PER_STEP, after_looks, limits, name, policy};
use crate::support::{World, WorldOnDisk, on_a_thread, short};
use courser_broker::admin::NewQueue;
use courser_broker::{Policy, PolicyKind, steps};
use courser_codec::{FieldTable, queue};
use courser_journal::testing::Call;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Has this happen each time that this thread looks at its time, so many times.
fn at_each_look(times: usize, event: Rc<dyn Fn()>) {
    MEANWHILE.set((times > 0).then(|| {
        Box::new(move || {
            at_each_look(times - 1, Rc::clone(&event));
            event();
        }) as Box<dyn FnOnce()>
    }));
}

fn with_expires(policy: Policy, ms: u64) -> Policy {
    Policy { definition: FieldTable::new().with("expires", ms as i64), ..policy }
}

#[test]
fn a_declare_is_not_matched_anew_each_time_that_policies_change() {
    let world = World::with(limits(Duration::MAX));
    let other = |nth: u64| with_expires(policy("other", "^(a|b|q)", 0), 1_000_000 + nth);
    world.set_matched(other(0)).expect("a good policy");
    let (looks, changes) =
        (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::<JoinHandle<()>>::new())));
    let event = {
        let (looks, changes, broker) =
            (Rc::clone(&looks), Rc::clone(&changes), Arc::clone(&world.broker));
        Rc::new(move || {
            looks.set(looks.get() + 1);
            let (broker, (changed, is_changed)) = (Arc::clone(&broker), channel());
            // Now one, now the other.
            let nth = looks.get();
            let next = Policy { priority: (nth % 2) as i64, ..other(nth) };
            let change = Builder::new().spawn(move || {
                broker.set_policy("/", PolicyKind::User, next).expect("a good policy");
                changed.send(()).ok();
            });
            changes.borrow_mut().push(change.expect("a thread"));
            // It is done, or waits for the declare.
            is_changed.recv_timeout(Duration::from_millis(100)).ok();
        })
    };
    at_each_look(100, event.clone());
    world.declare_matched("q", true).expect("a queue");
    at_each_look(100, event);
    world.declare_exchange_matched("e").expect("an exchange");
    MEANWHILE.set(None);
    changes.take().into_iter().for_each(|change| change.join().expect("no panic"));
    assert!(looks.get() <= 10, "{} looks at the time", looks.get());
    let queue = world.vhost().queue(b"q").expect("it is there");
    let policies = world.vhost().policies(PolicyKind::User);
    let expires = policies[0].definition.get("expires").and_then(|value| value.as_integer());
    assert_eq!(
        queue.traits().and_then(|traits| traits.expires_ms).map(|ms| ms as i64),
        expires,
        "it follows the last change"
    );
}

/// `all` hides the costly policies, which take too long with more than five names.
fn hidden(world: &World) {
    world.set_matched(policy("all", ".*", 1)).expect("it takes no time");
    world.set_all_costly();
}

#[test]
fn names_that_are_gone_again_keep_no_policies_from_being_changed() {
    let world = World::with(limits(MOST));
    hidden(&world);
    (0..4).for_each(|nth| world.declare_matched(&name(nth), true).expect("it takes no time"));
    let broker = Arc::clone(&world.broker);
    // When two of those that are there have been matched.
    let event = move || {
        on_a_thread(|| {
            let admin = broker.admin();
            let queue = NewQueue { durable: true, ..NewQueue::default() };
            for nth in 4..12 {
                admin.declare_queue("/", &name(nth), queue.clone()).expect("it takes no time");
                admin.delete_queue("/", name(nth).as_bytes(), false, false).expect("it is there");
            }
        });
    };
    after_looks(4, Box::new(event));
    world.clear_matched("all").expect("there are no more than before");
    assert_eq!(world.fill().0, 5, "they count for nothing");
}

#[test]
fn names_that_go_while_policies_change_count_no_more() {
    let world = World::with(limits(MOST));
    hidden(&world);
    (0..8).for_each(|nth| world.declare_matched(&name(nth), true).expect("it takes no time"));
    world.clear_matched("all").expect_err("they are too many");
    let broker = Arc::clone(&world.broker);
    // When four of them have been matched.
    let event = move || {
        on_a_thread(|| {
            let delete =
                |nth: usize| broker.admin().delete_queue("/", name(nth).as_bytes(), false, false);
            (0..6).for_each(|nth| assert_eq!(delete(nth).expect("it is there"), 0));
        });
    };
    after_looks(8, Box::new(event));
    world.clear_matched("all").expect("what is left takes no longer than it may");
    world.fill();
    assert_eq!(world.vhost().queues().len(), 5);
}

#[test]
fn a_policy_that_is_set_again_as_it_is_does_nothing() {
    let world = WorldOnDisk::with(limits(MOST));
    world.set_all_costly();
    world.fill();
    let appends = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&appends);
    world.store().set_faults(move |call| {
        count.fetch_add(usize::from(call == Call::Append), Ordering::Relaxed);
        None
    });
    let again = policy("costly-3", LARGEST, 0);
    let before = steps();
    for _ in 0..3 {
        world.set_matched(again.clone()).expect("nothing changes");
    }
    assert_eq!((appends.load(Ordering::Relaxed), steps() - before), (0, 0));
    world.set_matched(with_expires(again, 7)).expect("it says something else");
    assert_eq!(appends.load(Ordering::Relaxed), 1);
    assert!(steps() > before);
}

#[test]
fn what_was_noted_while_the_machine_was_busy_refuses_nothing_for_ever() {
    let world = World::with(limits(MOST));
    world.set_all_costly();
    US_PER_STEP.set(2);
    let (noted, _) = world.fill();
    assert!(noted < 5, "{noted}");
    US_PER_STEP.set(1);
    // Each that is refused has some of the others matched again.
    (0..10).for_each(|_| drop(world.fill()));
    assert_eq!(world.fill().0, 5, "as many as if it had never been busy");
    // What is matched again while it is busy counts as before.
    US_PER_STEP.set(4);
    (0..10).for_each(|_| drop(world.fill()));
    US_PER_STEP.set(1);
    world.delete_matched(&name(2));
    assert_eq!(world.fill().0, 5);
    // One that is refused has not all of them matched again.
    let before = steps();
    world.declare_matched(&name(5), true).expect_err("there is no room");
    let taken = steps() - before;
    assert!(taken < 150_000, "{taken} steps: its own twice, and two others");
}

#[test]
fn one_that_finds_time_at_last_is_not_matched_twice() {
    let world = World::with(limits(MOST));
    world.set_all_costly();
    let before = steps();
    world.declare_matched(&name(0), true).expect("there is room");
    let own = steps() - before;
    US_PER_STEP.set(2);
    let (noted, _) = world.fill();
    US_PER_STEP.set(1);
    let before = steps();
    world.declare_matched(&name(noted), true).expect("the others take less than was noted");
    // Itself, and one of the others, which makes enough room.
    let taken = (steps() - before) as f64 / own as f64;
    assert!(taken > 1.5 && taken < 2.5, "{taken} matches");
}

#[test]
fn a_declare_takes_long_while_costly_policies_are_announced() {
    let world = World::with(limits(MOST));
    for nth in 0..3 {
        world.set_matched(policy(&format!("costly-{nth}"), LARGEST, 0)).expect("there is room");
    }
    let mut client = world.connect();
    let new = || queue::Declare { queue: short("new"), ..Default::default() };
    assert!(!client.takes_long(new()));
    let client = Rc::new(RefCell::new(client));
    let (taking, seen) = (Rc::clone(&client), Rc::new(Cell::new(false)));
    let takes_long = Rc::clone(&seen);
    let event = move || takes_long.set(taking.borrow_mut().takes_long(new()));
    after_looks(0, Box::new(event));
    world.set_matched(policy("costly-3", LARGEST, 0)).expect("there is room");
    assert!(seen.get(), "it would be matched with three of them, and with four");
    assert!(!client.borrow_mut().takes_long(new()));
}
