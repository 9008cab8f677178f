//! Answers to what a client has asked: at once, or when the store has what they tell of, and no other machine has come to
//! lead meanwhile.

use super::Session;
use crate::outbox::wire::WireBuffer;
use crate::outbox::{Outbox, Until};
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

    /// Answers when the store is durable up to `lsn`, and what is read of its state is current. Until then everything else that
    /// the channel has to say waits behind it.
    pub(super) fn answer(&mut self, number: u16, lsn: Lsn, method: &Method<'_>) {
        put_answer(&self.outbox, &*self.shard.store, number, lsn, method);
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

    /// Answers with what was read of messages, when that is current.
    pub(super) fn answer_read(&mut self, number: u16, method: &Method<'_>) {
        let store = &*self.shard.store;
        let until = Until::read(store, &self.vhost.removals, || store.end());
        put_until(&self.outbox, store, number, until, method);
    }

    /// Has what the channel says next wait until what was read before of definitions is current: why it is closed, what is routed
    /// nowhere.
    pub fn hold_answer(&mut self, number: u16) {
        let store = &*self.shard.store;
        let until = Until::read(store, &self.vhost.removals, || self.vhost.logged());
        if until.waits_for(store) {
            let mut state = self.outbox.lock();
            state.put_answer(number, until, |_| ());
            self.outbox.note_holding_back(true);
        }
    }

    /// Whether something waits for the store, and may have answers behind it.
    pub fn holds_back(&self) -> bool {
        self.outbox.holds_back()
    }
}

/// Writes an answer, which may have to wait for the store.
pub(super) fn put_answer<L: Log + ?Sized>(
    outbox: &Outbox,
    log: &L,
    number: u16,
    lsn: Lsn,
    method: &Method<'_>,
) {
    put_until(outbox, log, number, Until::told(log, lsn), method);
}

fn put_until<L: Log + ?Sized>(
    outbox: &Outbox,
    log: &L,
    number: u16,
    until: Until,
    method: &Method<'_>,
) {
    let waits = until.waits_for(log);
    let mut state = outbox.lock();
    let write = |wire: &mut WireBuffer| method.write_frame(number, wire.bytes_mut());
    if waits {
        state.put_answer(number, until, write);
        outbox.note_holding_back(true);
    } else {
        state.put(number, write);
    }
}
