//! The end of a connection: its channels close at once, and its exclusive queues go in turns.

use super::Session;
use crate::outbox::wire::WireBuffer;
use crate::work::Budget;

impl Session {
    /// The connection is over: closes its channels and removes its exclusive queues.
    pub fn close(&mut self) {
        self.end_channels();
        while !self.end(&mut Budget::begin()) {}
    }

    /// The connection is over: closes its channels. What was still to be sent is appended to `tail`, and counts there. Its
    /// exclusive queues are left to [`Session::end`].
    pub fn close_quietly(&mut self, tail: &mut WireBuffer) {
        let mut last = WireBuffer::default();
        drop(self.outbox.take(&mut last));
        tail.append(last);
        self.end_channels();
    }

    fn end_channels(&mut self) {
        // From here on nothing is delivered, also not what one channel returns to consumers on another.
        self.outbox.close();
        let numbers = self.channels.numbers();
        self.close_channels(&numbers);
        self.outbox.forget_held();
        self.broker.let_go(self.pacing.alarm_turn.take());
        self.incomplete.set(0);
        self.unread.set(0);
    }

    /// Removes the exclusive queues of a connection whose channels are closed, as far as `budget` goes:
    /// there may be many. Returns whether nothing is left of it.
    pub fn end(&mut self, budget: &mut Budget) -> bool {
        let connection = self.client.connection;
        while let Some(queue) = self.vhost.exclusive.take_first(connection) {
            self.delete_queue(&queue);
            budget.note_request();
            if budget.is_spent() || self.takes_long_to_go_on() {
                break;
            }
        }
        self.wakes.wake_all();
        let is_done = self.vhost.exclusive.first(connection).is_none();
        if is_done {
            self.broker.monitor.forget(&self.outbox, self.broker.now_ms());
        }
        self.broker.check_alarms();
        is_done
    }
}
