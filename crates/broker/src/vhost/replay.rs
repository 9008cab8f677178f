//! Sending what an exchange remembers to what has just been bound to it.

use super::Vhost;
use crate::arguments::same_table;
use crate::exchange::history::History;
use crate::exchange::{BindingKey, Destination, Exchange};
use crate::fault::Fault;
use crate::posting::{InternalPublish, post_in_parts};
use crate::wakes::Wakes;
use crate::work::Budget;
use courser_store::StoreError;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Messages of a history, and bytes of them, that are read at once: one message at least.
const READ_AT_ONCE: usize = 1024;
const READ_BYTES: usize = 1 << 20;
/// Steps that the routes of messages take that are sent at once, and what goes to the queues of these; one route more may be
/// begun.
const STEPS_AT_ONCE: u64 = 1 << 20;

/// A binding that has just been made, of an exchange that remembers messages.
pub(super) struct Bound {
    pub exchange: Arc<Exchange>,
    pub history: Arc<History>,
    pub destination: Destination,
    pub key: BindingKey,
    /// The numbers of what the exchange remembered just before: what has come since takes the binding.
    pub remembered: Range<u64>,
}

/// Bindings whose histories are being sent, and that no client has been told of: one whose history can't be sent is removed.
#[derive(Default)]
pub(super) struct Replays(Mutex<Vec<Arc<Bound>>>);

impl Replays {
    /// Adds one.
    pub fn begin(&self, bound: Bound) -> Arc<Bound> {
        let bound = Arc::new(bound);
        self.0.lock().push(Arc::clone(&bound));
        bound
    }

    /// Another client is told of this binding: it stays whatever becomes of the history. The caller holds the write lock.
    pub fn take_over(&self, exchange: &Exchange, destination: &Destination, key: &BindingKey) {
        self.0.lock().retain(|bound| {
            bound.exchange.id != exchange.id
                || bound.destination.id() != destination.id()
                || bound.key.routing_key != key.routing_key
                || !same_table(&bound.key.arguments, &key.arguments)
        });
    }

    /// Removes one. Returns whether it was there, that is, whether no other client has been told of the binding.
    pub fn end(&self, bound: &Arc<Bound>) -> bool {
        let mut all = self.0.lock();
        let at = all.iter().position(|one| Arc::ptr_eq(one, bound));
        at.map(|at| all.swap_remove(at)).is_some()
    }
}

impl Vhost {
    /// Sends what an exchange remembers to what has just been bound to it: in portions, between which others
    /// get their turns, and `may_go_on` is asked.
    ///
    /// # Errors
    /// When the store fails, the vhost goes or stands still, or it may not go on.
    pub(super) fn replay(
        &self,
        bound: &Bound,
        wakes: &mut Wakes,
        may_go_on: &dyn Fn() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Bound { history, destination, remembered, .. } = bound;
        let (mut unsent, mut numbers) = (VecDeque::new(), remembered.clone());
        // A portion for one queue is small: its consumers, who are needed to end an alarm, may still come. There may be very many
        // queues behind an exchange.
        let mut is_small = matches!(destination, Destination::Queue(_));
        while !(unsent.is_empty() && numbers.is_empty()) {
            if !std::mem::take(&mut is_small) {
                self.refuse_if_deleted()?;
                self.refuse_if_still()?;
                may_go_on().map_err(|fault| self.cut_short(&bound.exchange, fault))?;
            }
            if unsent.is_empty() {
                // No checkpoint waits for a disk that is read.
                unsent = read_some(history, &mut numbers)?;
            }
            let gate = self.shard.gate.read();
            let sent = post_in_parts(self, self.route_some(&mut unsent, bound), wakes);
            self.shard.post_dead_letters(wakes);
            drop(gate);
            // What consumers take meanwhile needs no place.
            wakes.wake_all();
            sent?;
        }
        Ok(())
    }

    /// Says of what does not go on what it has left out.
    fn cut_short(&self, exchange: &Exchange, fault: Fault) -> Fault {
        let Fault { code, explanation } = fault;
        let exchange = self.exchange_resource(&exchange.name);
        Fault::new(
            code,
            format_args!(
                "{explanation}; not all that {exchange} remembers is sent: bind again later"
            ),
        )
    }

    /// Finds the ways of the first of `unsent`, of as many as go on at once.
    fn route_some(
        &self,
        unsent: &mut VecDeque<InternalPublish>,
        Bound { exchange, destination, .. }: &Bound,
    ) -> Vec<InternalPublish> {
        let (now_ms, budget) = (self.shard.timers.now_ms(), Budget::of_steps(STEPS_AT_ONCE));
        let mut routed = Vec::new();
        while let Some(publish) = unsent.pop_front() {
            routed.extend(match destination {
                Destination::Queue(queue) => Some(publish.sent_to(queue, exchange, now_ms)),
                Destination::Exchange(next) => publish.arriving_at(next, self, now_ms),
            });
            if budget.is_spent() {
                break;
            }
        }
        routed
    }
}

/// Copies of the first messages of these numbers that are still remembered; leaves the numbers of the others.
fn read_some(
    history: &History,
    numbers: &mut Range<u64>,
) -> Result<VecDeque<InternalPublish>, StoreError> {
    let (mut messages, mut bytes) = (VecDeque::new(), 0);
    history.read(numbers, &mut |message| {
        bytes += message.header.len() + message.body.len();
        messages.push_back(InternalPublish::unrouted(message));
        bytes < READ_BYTES && messages.len() < READ_AT_ONCE
    })?;
    Ok(messages)
}
