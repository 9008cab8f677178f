//! The messages that leave a queue for its dead-letter exchange, until they have arrived there.

use super::amounts::Amounts;
use super::backlog::FAILED;
use super::logged::{Entry, logged};
use super::settle::Settling;
use super::{DeadLetterTo, Queue, State};
use crate::dead_letter::{LETTERS_AT_ONCE, Reason};
use crate::memory::Charge;
use crate::routing::Namespace;
use crate::timers::{Timer, TimerKind};
use crate::wakes::Wakes;
use crate::work;
use courser_store::{Location, Position, Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What a letter takes in the books, which are maps with free places.
const LETTER_BYTES: usize = 2 * (size_of::<(u64, Dead)>() + size_of::<Letter>());
/// How long letters wait that could not be delivered.
const RETRY_MS: u64 = 1000;
/// How long a letter waits that is too large for the log by its way: by then that may be another one.
const TOO_LARGE_RETRY_MS: u64 = 60_000;
/// Letters that are tried again at once.
const RETRIED_AT_ONCE: usize = 256;

/// A message that has left its queue, and has yet to arrive elsewhere.
#[derive(Debug)]
pub(crate) struct Letter {
    /// Its number in the queue's books.
    pub number: u64,
    pub location: Location,
    pub reason: Reason,
}

impl Letter {
    /// Whether a client may have failed on it: so RabbitMQ has `redelivered` say of a dead letter.
    pub fn is_redelivered(&self) -> bool {
        self.location.marks() & FAILED != 0
    }
}

/// Books of messages that have left the queue and are not settled yet: a restart before that has
/// to find them in it.
#[derive(Debug, Default)]
pub(super) struct Dying {
    /// Those that are posted, or about to be.
    under_way: BTreeMap<u64, Dead>,
    /// Those that could not be delivered: they are tried again when the timer fires, the first first.
    stranded: BTreeMap<u64, Dead>,
    /// The same of those that were too large for the log: each is tried again when its own time has come.
    too_large: BTreeMap<u64, Dead>,
    /// How large both are.
    stranded_amounts: Amounts,
    /// Those that nothing posts yet, in the order in which they left.
    unposted: VecDeque<Letter>,
    next_number: u64,
    amounts: Amounts,
    retry: Timer,
    charge: Charge,
}

#[derive(Debug)]
struct Dead {
    location: Location,
    /// Its level in the queue: where a restart finds it.
    rank: u8,
    reason: Reason,
    /// If it is too large, it is not tried again before.
    not_before_ms: u64,
}

impl Dying {
    /// Empty books, whose memory is charged.
    pub fn new(charge: Charge) -> Self {
        Dying { charge, ..Dying::default() }
    }

    /// Bytes of memory that these books use.
    pub fn used_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// Counts the room for so many letters as there are.
    fn count_memory(&mut self) {
        let room = if self.len() == 0 { 0 } else { self.len().next_power_of_two() };
        self.charge.set(room * LETTER_BYTES);
    }

    pub fn len(&self) -> usize {
        self.under_way.len() + self.stranded.len() + self.too_large.len()
    }

    /// How large they are.
    pub fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// Above the number of each that there is.
    pub fn end(&self) -> u64 {
        self.next_number
    }

    /// Takes one of those that nothing posts now and that have a number below `end`.
    pub fn pop_stranded(&mut self, end: u64) -> Option<Location> {
        let may_go = |number, _: &Dead| number < end;
        let (_, Dead { location, .. }) = pop_first_if(&mut self.stranded, may_go)
            .or_else(|| pop_first_if(&mut self.too_large, may_go))?;
        self.stranded_amounts.sub(&location);
        self.amounts.sub(&location);
        self.count_memory();
        Some(location)
    }

    /// Has some posted that may be tried again. Those that are too large and the others take turns: neither leave the others none,
    /// however many they are.
    fn post_due(&mut self, now_ms: u64) {
        let is_due = |_, dead: &Dead| dead.not_before_ms <= now_ms;
        for turn in 0..RETRIED_AT_ONCE {
            let due = match turn % 2 {
                0 => {
                    pop_first_if(&mut self.too_large, is_due).or_else(|| self.stranded.pop_first())
                }
                _ => {
                    self.stranded.pop_first().or_else(|| pop_first_if(&mut self.too_large, is_due))
                }
            };
            let Some((number, dead)) = due else { break };
            self.stranded_amounts.sub(&dead.location);
            let (location, reason) = (dead.location.clone(), dead.reason);
            self.unposted.push_back(Letter { number, location, reason });
            self.under_way.insert(number, dead);
        }
    }

    /// A letter that is under way could not be delivered. It comes behind the others: there may be a way for these.
    fn strand(&mut self, number: u64) {
        if let Some((last, dead)) = self.end_way(number) {
            self.stranded.insert(last, dead);
        }
    }

    /// A letter that is under way is too large for the log.
    fn keep_too_large(&mut self, number: u64, not_before_ms: u64) {
        if let Some((last, dead)) = self.end_way(number) {
            self.too_large.insert(last, Dead { not_before_ms, ..dead });
        }
    }

    /// Takes a letter that is under way and has not arrived, with a number behind all others.
    fn end_way(&mut self, number: u64) -> Option<(u64, Dead)> {
        let dead = self.under_way.remove(&number)?;
        self.stranded_amounts.add(&dead.location);
        Some((self.next_number(), dead))
    }

    /// When there are some to be tried again.
    fn next_retry_ms(&self, now_ms: u64) -> Option<u64> {
        let first = self.too_large.first_key_value().map(|(_, dead)| dead.not_before_ms);
        let earliest_ms = now_ms.saturating_add(RETRY_MS);
        match self.stranded.is_empty() {
            false => Some(earliest_ms),
            true => first.map(|not_before_ms| not_before_ms.max(earliest_ms)),
        }
    }

    /// How many could not be delivered, and bytes of their bodies, with one that is under way.
    pub fn stranded_with(&self, number: u64) -> (usize, u64) {
        let mut amounts = self.stranded_amounts;
        self.under_way.get(&number).into_iter().for_each(|dead| amounts.add(&dead.location));
        (self.stranded.len() + self.too_large.len() + 1, amounts.known_bytes())
    }

    pub fn locations(&self) -> impl Iterator<Item = &Location> {
        self.all().map(|dead| &dead.location)
    }

    /// Those that are in the log, and their levels.
    pub fn logged(&self) -> impl Iterator<Item = (u8, Entry)> {
        self.all().filter_map(|dead| Some((dead.rank, logged(&dead.location)?)))
    }

    /// Whether some of those that are posted in one go are in the log.
    pub fn are_some_logged(&self) -> bool {
        self.locations().take(LETTERS_AT_ONCE).any(|location| location.in_memory().is_none())
    }

    fn all(&self) -> impl Iterator<Item = &Dead> {
        self.under_way.values().chain(self.stranded.values()).chain(self.too_large.values())
    }

    fn next_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }
}

/// Takes the first of a line, if that may go.
fn pop_first_if(
    line: &mut BTreeMap<u64, Dead>,
    may_go: impl Fn(u64, &Dead) -> bool,
) -> Option<(u64, Dead)> {
    let first = line.first_entry()?;
    may_go(*first.key(), first.get()).then(|| first.remove_entry())
}

impl Queue {
    /// Where its vhost is, unless the broker is about to end.
    pub(crate) fn namespace(&self) -> Option<Arc<dyn Namespace>> {
        self.namespace.upgrade()
    }

    /// Where its dead letters go.
    pub(crate) fn dead_letter_to(&self) -> Option<Arc<DeadLetterTo>> {
        self.state.lock().traits.as_ref()?.dead_letter.clone()
    }

    /// A message leaves the queue, and its level there, unconsumed: for the dead-letter exchange, or for good.
    pub(super) fn bury(
        self: &Arc<Self>,
        state: &mut State,
        (rank, location): (u8, Location),
        reason: Reason,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) {
        let is_letter = state.traits.as_ref().is_some_and(|traits| traits.dead_letter.is_some());
        self.count_dead(reason, is_letter, wakes);
        if !is_letter {
            if let Some(notes) = &mut state.notes {
                notes.leave_to_settle(&location);
            }
            return settling.add(location);
        }
        state.leave_as_letter(&location);
        let number = state.dying.next_number();
        state.dying.amounts.add(&location);
        let dead = Dead { location: location.clone(), rank, reason, not_before_ms: 0 };
        state.dying.under_way.insert(number, dead);
        state.dying.unposted.push_back(Letter { number, location, reason });
        state.dying.count_memory();
        wakes.push_lettered(self);
    }

    /// Letters are posted by one thread at a time, which holds this.
    pub(crate) fn lock_posting(&self) -> MutexGuard<'_, ()> {
        self.posting.lock()
    }

    /// Takes some of the letters that are to be posted, the oldest first.
    pub(crate) fn take_letters(&self, most: usize) -> Vec<Letter> {
        let mut state = self.state.lock();
        let unposted = &mut state.dying.unposted;
        let some = unposted.len().min(most);
        let letters = unposted.drain(..some).collect();
        if unposted.is_empty() {
            unposted.shrink_to(0);
        }
        letters
    }

    /// Leaves letters that were taken for the next time, the first first.
    pub(crate) fn leave_letters(&self, letters: Vec<Letter>) {
        let mut state = self.state.lock();
        if state.deleted {
            return;
        }
        letters.into_iter().rev().for_each(|letter| state.dying.unposted.push_front(letter));
    }

    /// The ascending positions of dead letters that are in the log.
    pub(crate) fn dead_positions(&self, numbers: &[u64]) -> Vec<Position> {
        let state = self.state.lock();
        let dead = numbers.iter().filter_map(|number| state.dying.under_way.get(number));
        let mut positions: Vec<_> = dead.filter_map(|dead| dead.location.position()).collect();
        drop(state);
        positions.sort_unstable();
        positions
    }

    /// Lets go of dead letters. `in_log` says that the log knows of it already.
    pub(crate) fn forget_dead(
        &self,
        numbers: &[u64],
        in_log: bool,
        store: &dyn Store,
    ) -> Result<(), StoreError> {
        let (mut settling, mut state) = (Settling::default(), self.state.lock());
        work::count(numbers.len());
        for number in numbers {
            if let Some(dead) = state.dying.under_way.remove(number) {
                state.dying.amounts.sub(&dead.location);
                settling.add(dead.location);
            }
        }
        state.dying.count_memory();
        state.leave_letters(&settling.positions);
        drop(state);
        if in_log {
            store.release(&settling.positions);
            return Ok(());
        }
        self.settle(settling, Sync::Later, store)
    }

    /// Keeps dead letters that can't be delivered now, to try it again later.
    pub(crate) fn strand_dead(&self, numbers: &[u64]) {
        let mut state = self.state.lock();
        let dying = &mut state.dying;
        numbers.iter().for_each(|number| dying.strand(*number));
        self.retry_after(RETRY_MS, dying);
    }

    /// Keeps a dead letter that is too large for the log, to try it again when its way may be another one.
    pub(crate) fn keep_too_large(&self, number: u64) {
        let mut state = self.state.lock();
        let not_before_ms = self.timers.now_ms().saturating_add(TOO_LARGE_RETRY_MS);
        state.dying.keep_too_large(number, not_before_ms);
        self.retry_after(TOO_LARGE_RETRY_MS, &mut state.dying);
    }

    fn retry_after(&self, wait_ms: u64, dying: &mut Dying) {
        let deadline_ms = self.timers.now_ms().saturating_add(wait_ms);
        if dying.retry.deadline_ms().is_none_or(|at| deadline_ms < at) {
            let key = (self.id, TimerKind::DeadLetters);
            self.timers.arm(&mut dying.retry, deadline_ms, key, self.timed());
        }
    }

    /// There are more letters than are posted in one go: the rest follows at once.
    pub(crate) fn post_more_soon(&self) {
        let mut state = self.state.lock();
        if !state.dying.unposted.is_empty() {
            self.retry_after(0, &mut state.dying);
        }
    }

    /// There was a way for some letters: those that could not be delivered before may find it as well, but for those that are too
    /// large for theirs.
    pub(crate) fn retry_dead_soon(&self) {
        let mut state = self.state.lock();
        if !state.dying.stranded.is_empty() {
            self.retry_after(0, &mut state.dying);
        }
    }

    /// Has letters posted that were left, and some of those that could not be delivered before.
    pub(super) fn retry_dead(self: &Arc<Self>, fired_ms: u64, wakes: &mut Wakes) {
        let now_ms = self.timers.now_ms();
        let mut state = self.state.lock();
        let dying = &mut state.dying;
        dying.retry.fired(fired_ms);
        if dying.unposted.is_empty() {
            dying.post_due(now_ms);
        }
        if !dying.unposted.is_empty() {
            wakes.push_lettered(self);
        }
        if let Some(next_ms) = dying.next_retry_ms(now_ms) {
            self.retry_after(next_ms - now_ms, dying);
        }
    }

    /// The queue is gone, and its dead letters with it.
    pub(super) fn take_dying(&self, state: &mut State) -> Dying {
        self.timers.disarm(&mut state.dying.retry, (self.id, TimerKind::DeadLetters));
        std::mem::take(&mut state.dying)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_store::BodySize;

    fn dead(position: usize) -> Dead {
        let (position, body) = (Position(position as u64), BodySize::UNKNOWN);
        let location = Location::Log { position, body, marks: 0 };
        Dead { location, rank: 0, reason: Reason::Rejected, not_before_ms: 0 }
    }

    #[test]
    fn letters_that_are_too_large_and_others_leave_each_other_turns() {
        let few = 2;
        for (too_large, stranded) in [(RETRIED_AT_ONCE, few), (few, RETRIED_AT_ONCE)] {
            let mut dying = Dying::default();
            let all = (0..too_large + stranded).map(|at| (at as u64, dead(at)));
            let mut all = all.inspect(|(_, dead)| dying.stranded_amounts.add(&dead.location));
            dying.too_large.extend(all.by_ref().take(too_large));
            dying.stranded.extend(all);
            dying.post_due(1);
            assert_eq!(dying.unposted.len(), RETRIED_AT_ONCE);
            let left = (dying.too_large.len(), dying.stranded.len());
            assert_eq!(left, if too_large > few { (few, 0) } else { (0, few) });
        }
    }
}
