//! The wake of a connection whose outbox got something: one for all that is put in until it is taken.
//! The model follows `OutboxState::claim_wake`, `Outbox::take` and `Driver::poll`.

use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::task::{Wake, Waker};

const PUBLISHERS: usize = 2;

/// In which order the connection's task takes what is there and says whom to wake.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    RegisterFirst,
    TakeFirst,
}

#[derive(Default)]
struct State {
    wire: Vec<usize>,
    wake_due: bool,
}

struct Outbox {
    state: Mutex<State>,
    /// Whom to wake, as in an `AtomicWaker`: the thread that wakes it takes it out.
    waker: Mutex<Option<Waker>>,
}

impl Outbox {
    /// A publisher puts a delivery in under the lock and wakes the connection without it.
    fn deliver(&self, delivery: usize) {
        let is_first = {
            let mut state = self.state.lock().unwrap();
            state.wire.push(delivery);
            !std::mem::replace(&mut state.wake_due, true)
        };
        if is_first {
            let waker = self.waker.lock().unwrap().take();
            waker.iter().for_each(Waker::wake_by_ref);
        }
    }

    /// The connection's task runs once.
    fn poll(&self, waker: &Waker, order: Order, sent: &mut Vec<usize>) {
        if order == Order::RegisterFirst {
            *self.waker.lock().unwrap() = Some(waker.clone());
        }
        {
            let mut state = self.state.lock().unwrap();
            sent.append(&mut state.wire);
            state.wake_due = false;
        }
        if order == Order::TakeFirst {
            *self.waker.lock().unwrap() = Some(waker.clone());
        }
    }
}

/// Whether the task is to run.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.swap(true, SeqCst);
    }
}

fn deliver_to_one_connection(order: Order) {
    loom::model(move || {
        let state = Mutex::new(State::default());
        let outbox = Arc::new(Outbox { state, waker: Mutex::new(None) });
        let publishers: Vec<_> = (0..PUBLISHERS)
            .map(|number| {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || outbox.deliver(number))
            })
            .collect();
        let woken = std::sync::Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(std::sync::Arc::clone(&woken));
        let mut sent = Vec::new();
        outbox.poll(&waker, order, &mut sent);
        for publisher in publishers {
            publisher.join().unwrap();
        }
        while woken.0.swap(false, SeqCst) {
            outbox.poll(&waker, order, &mut sent);
        }
        sent.sort_unstable();
        assert_eq!(sent, Vec::from_iter(0..PUBLISHERS), "a delivery was left lying");
    });
}

#[test]
fn one_wake_serves_for_all_deliveries_and_none_is_left_lying() {
    deliver_to_one_connection(Order::RegisterFirst);
}

#[test]
#[should_panic(expected = "a delivery was left lying")]
fn a_connection_that_registers_after_it_has_looked_sleeps_over_a_delivery() {
    deliver_to_one_connection(Order::TakeFirst);
}
