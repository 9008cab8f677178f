//! What comes into a queue, and what has to leave it unconsumed.

use super::{Outcome, Queue};
use crate::model::Moment;
use crate::model::message::{Entry, Message};
use crate::model::settings::Overflow;

impl Queue {
    /// Takes in what is published together: handed out at once where nothing waits, and the rest in
    /// line. The queue refuses nothing that is not `refusable`.
    pub fn publish(
        &mut self,
        run: &[Entry],
        refusable: bool,
        at: &mut Moment<'_>,
    ) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        let mut waits = !self.ready.is_empty() || refusable && self.is_full_of_letters();
        for entry in run {
            outcomes.push(self.publish_one(entry, refusable, &mut waits, at)?);
        }
        self.drop_excess(at);
        self.expire(at);
        Ok(outcomes)
    }

    fn publish_one(
        &mut self,
        entry: &Entry,
        refusable: bool,
        waits: &mut bool,
        at: &mut Moment<'_>,
    ) -> Result<Outcome, String> {
        if entry.message.mark.is_some_and(|mark| self.holds_same(mark)) {
            return Ok(Outcome::Repeated);
        }
        let place = self.place(&entry.message);
        let candidates = if *waits || self.paused { Vec::new() } else { self.consumers.next() };
        if candidates.is_empty() {
            *waits = true;
            if refusable && self.is_full_for(&entry.message) {
                if self.settings.overflow == Overflow::RejectToDeadLetters {
                    self.bury(place, entry, &["maxlen"], at);
                }
                return Ok(Outcome::Refused);
            }
            self.ready.insert(place, entry.clone());
        } else {
            self.hand(place, entry.clone(), &candidates, at)?;
        }
        Ok(Outcome::Taken)
    }

    fn is_full_for(&self, message: &Message) -> bool {
        let bytes = self.held_bytes() + message.bytes as u64;
        self.settings.overflow != Overflow::DropHead
            && self.settings.is_exceeded_by(self.held() + 1, bytes)
    }

    /// Drops what is too much from the front.
    pub(super) fn drop_excess(&mut self, at: &mut Moment<'_>) {
        if self.settings.overflow != Overflow::DropHead {
            return;
        }
        let mut bytes = self.ready_bytes();
        while self.settings.is_exceeded_by(self.ready.len() + self.delayed.len(), bytes) {
            let oldest = self.ready.pop_first().or_else(|| self.delayed.pop_due(u64::MAX));
            let Some((place, entry)) = oldest else { return };
            bytes -= entry.message.bytes as u64;
            // What comes back may be too much and too old at once.
            let is_old = self.deadline_ms(&entry).is_some_and(|until_ms| until_ms <= at.now_ms);
            let reasons = if is_old { &["maxlen", "expired"][..] } else { &["maxlen"] };
            self.bury(place, &entry, reasons, at);
        }
    }

    /// Lets what is too old leave at the front.
    pub fn expire(&mut self, at: &mut Moment<'_>) {
        while let Some(first) = self.ready.first_entry() {
            let (place, entry) = (*first.key(), first.get().clone());
            if self.deadline_ms(&entry).is_none_or(|deadline_ms| deadline_ms > at.now_ms) {
                return;
            }
            self.ready.pop_first();
            self.bury(place, &entry, &["expired"], at);
        }
    }
}
