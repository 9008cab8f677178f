//! What leaves a queue unconsumed, and waits in it as long as no queue takes it.

use super::{Place, Queue};
use crate::model::message::Entry;
use crate::model::settings::Overflow;
use crate::model::{Letter, Moment};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// How long letters wait for another try.
const RETRY_MS: u64 = 1000;
/// Letters that are tried again at once.
const RETRIED_AT_ONCE: usize = 256;

/// Letters that no queue has taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Stranded {
    letters: VecDeque<Letter>,
    /// How many were not posted yet, and how large they are.
    unposted: usize,
    unposted_bytes: u64,
    retry_ms: Option<u64>,
}

impl Stranded {
    /// These are about to be posted.
    fn expect<'a>(&mut self, letters: impl IntoIterator<Item = &'a Letter>) {
        for letter in letters {
            self.unposted += 1;
            self.unposted_bytes += letter.entry.message.bytes as u64;
        }
    }
}

impl Queue {
    pub(super) fn bury(
        &mut self,
        place: Place,
        entry: &Entry,
        reasons: &[&'static str],
        at: &mut Moment<'_>,
    ) {
        let Some(to) = self.settings.dead_letter else { return };
        let mut letter = entry.message.letter(self.name, reasons);
        letter.redelivered = entry.failed;
        let message = Rc::new(letter);
        let (from, entry) = (self.name, entry.clone());
        let letter = Letter { to, from, place, entry, message };
        self.stranded.expect([&letter]);
        at.letters.push_back(letter);
    }

    /// One of its letters is posted, whatever comes of it.
    pub fn letter_is_posted(&mut self, letter: &Letter) {
        let Stranded { unposted, unposted_bytes, .. } = &mut self.stranded;
        *unposted = unposted.saturating_sub(1);
        *unposted_bytes = unposted_bytes.saturating_sub(letter.entry.message.bytes as u64);
    }

    /// How many messages count for what it refuses.
    pub(super) fn held(&self) -> usize {
        let waiting = self.ready.len() + self.delayed.len();
        waiting + self.stranded.letters.len() + self.stranded.unposted
    }

    /// How large these are.
    pub(super) fn held_bytes(&self) -> u64 {
        let stranded = self.stranded.letters.iter();
        let stranded: u64 = stranded.map(|letter| letter.entry.message.bytes as u64).sum();
        self.ready_bytes() + stranded + self.stranded.unposted_bytes
    }

    /// Whether it refuses what it has no room for.
    pub fn may_refuse(&self) -> bool {
        self.settings.overflow != Overflow::DropHead
    }

    /// Whether it drops what is in front where there is no room.
    pub fn may_drop(&self) -> bool {
        let is_limited = self.settings.length.is_some() || self.settings.bytes.is_some();
        is_limited && self.settings.overflow == Overflow::DropHead
    }

    /// Whether it has no room for one more message, however small.
    pub fn refuses_next(&self) -> bool {
        self.may_refuse() && self.settings.is_exceeded_by(self.held() + 1, self.held_bytes())
    }

    /// Whether letters that it keeps leave no room: then it refuses also what a consumer waits for.
    pub(super) fn is_full_of_letters(&self) -> bool {
        let keeps = self.settings.dead_letter.is_some_and(|to| to.at_least_once);
        keeps && self.has_letters() && self.refuses_next()
    }

    fn has_letters(&self) -> bool {
        !self.stranded.letters.is_empty() || self.stranded.unposted > 0
    }

    /// No queue takes a letter.
    pub fn strand(&mut self, letter: Letter, now_ms: u64) {
        self.stranded.letters.push_back(letter);
        self.retry_at(now_ms + RETRY_MS);
    }

    /// A letter has found its way, and so may those that have not.
    pub fn letter_has_gone(&mut self, now_ms: u64) {
        if !self.stranded.letters.is_empty() {
            self.retry_at(now_ms);
        }
    }

    fn retry_at(&mut self, at_ms: u64) {
        let before_ms = self.stranded.retry_ms;
        self.stranded.retry_ms = before_ms.into_iter().chain([at_ms]).min();
    }

    /// When letters are tried again.
    pub(super) fn retry_ms(&self) -> Option<u64> {
        self.stranded.retry_ms
    }

    /// Whether letters wait.
    pub fn has_stranded(&self) -> bool {
        !self.stranded.letters.is_empty()
    }

    /// Takes the letters that are to be tried again now.
    pub fn take_stranded(&mut self, now_ms: u64) -> Vec<Letter> {
        if self.stranded.retry_ms.is_none_or(|retry_ms| retry_ms > now_ms) {
            return Vec::new();
        }
        self.stranded.retry_ms = None;
        let count = self.stranded.letters.len().min(RETRIED_AT_ONCE);
        let letters: Vec<Letter> = self.stranded.letters.drain(..count).collect();
        self.stranded.expect(&letters);
        if !self.stranded.letters.is_empty() {
            self.retry_at(now_ms + RETRY_MS);
        }
        letters
    }

    /// Whether one of these letters waits for another try.
    pub fn has_letter(&self, ids: &BTreeSet<u64>) -> bool {
        self.stranded.letters.iter().any(|letter| ids.contains(&letter.message.id))
    }

    /// Takes letters that wait for another try, by the numbers of their messages.
    pub fn take_letters(&mut self, is_meant: impl Fn(u64) -> bool) -> Vec<Letter> {
        let all = std::mem::take(&mut self.stranded.letters);
        let (taken, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|letter| is_meant(letter.message.id));
        self.stranded.letters = left.into();
        self.stranded.expect(&taken);
        taken
    }

    /// Has what waits be the messages with these numbers, in their order, if they are as many, and were there or have come.
    pub fn exchange(&mut self, ids: &[u64], mut entries: BTreeMap<u64, Entry>) {
        entries.extend(self.ready.values().map(|entry| (entry.message.id, entry.clone())));
        let in_order: Vec<Entry> = ids.iter().filter_map(|id| entries.remove(id)).collect();
        if in_order.len() == self.ready.len() {
            self.ready.values_mut().zip(in_order).for_each(|(entry, now)| *entry = now);
        }
    }

    /// Letters that wait are gone.
    pub(super) fn forget_stranded(&mut self) {
        self.stranded.letters.clear();
    }

    /// The broker starts again: letters are ordinary messages once more.
    pub(super) fn return_stranded(&mut self) {
        let Stranded { letters, .. } = std::mem::take(&mut self.stranded);
        self.ready.extend(letters.into_iter().map(|letter| (letter.place, letter.entry)));
    }
}
