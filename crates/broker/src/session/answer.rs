//! Answers to what a client has asked: at once, or when the store has what they tell of.

use super::Session;
use crate::outbox::Outbox;
use courser_codec::Method;
use courser_store::{Log, Lsn};

impl Session {
    /// Answers at once: behind what the channel has to say before, as ever.
    pub(super) fn reply(&mut self, number: u16, method: Method<'_>) {
        self.outbox.lock().put(number, |wire| method.write_frame(number, wire.bytes_mut()));
    }

    pub(super) fn reply_unless(&mut self, nowait: bool, number: u16, method: Method<'_>) {
        if !nowait {
            self.reply(number, method);
        }
    }

    /// Answers when the store is durable up to `lsn`. Until then everything else that the channel has
    /// to say waits behind it.
    pub(super) fn answer(&mut self, number: u16, lsn: Lsn, method: &Method<'_>) {
        let waits = put_answer(&self.outbox, &*self.shard.store, number, lsn, method);
        self.confirms.holds_answers |= waits;
    }

    pub(super) fn answer_unless(
        &mut self,
        nowait: bool,
        number: u16,
        lsn: Lsn,
        method: &Method<'_>,
    ) {
        if !nowait {
            self.answer(number, lsn, method);
        }
    }

    /// Whether some answer waits for the store, and may have others behind it.
    pub fn holds_answers(&self) -> bool {
        self.confirms.holds_answers
    }
}

/// Writes an answer. Returns whether it waits for the store.
pub(super) fn put_answer<L: Log + ?Sized>(
    outbox: &Outbox,
    log: &L,
    number: u16,
    lsn: Lsn,
    method: &Method<'_>,
) -> bool {
    let waits = lsn > log.durable();
    let mut outbox = outbox.lock();
    match waits {
        true => outbox.put_answer(number, lsn, |wire| method.write_frame(number, wire.bytes_mut())),
        false => outbox.put(number, |wire| method.write_frame(number, wire.bytes_mut())),
    }
    waits
}
