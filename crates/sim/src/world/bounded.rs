//! Queues that do not keep everything: one that refuses what it has no room for, and one whose
//! messages expire into another.

use super::World;
use crate::client::PLAIN;
use crate::history::Op;
use courser_codec::{FieldTable, Method, Properties};
use courser_store::Log;

/// A queue that refuses.
pub(super) const REFUSING: &str = "e";
/// A queue whose messages expire.
pub(super) const EXPIRING: &str = "t";
/// Where they go; nothing else does.
pub(super) const EXPIRED: &str = "u";

const LENGTH_MAX: i32 = 4;
const TTL_MS: i32 = 1000;

impl World {
    pub(super) fn declare_refusing(&mut self) {
        let arguments =
            FieldTable::new().with("x-max-length", LENGTH_MAX).with("x-overflow", "reject-publish");
        if self.running().client.declare_with(REFUSING, &arguments).is_ok() {
            self.note_topology("queue.declare-ok", Op::Declare(REFUSING.to_owned()));
        }
    }

    pub(super) fn declare_expiring(&mut self) {
        if self.running().client.declare(EXPIRED, None).is_err() {
            return;
        }
        self.note_topology("queue.declare-ok", Op::Declare(EXPIRED.to_owned()));
        let arguments = FieldTable::new()
            .with("x-message-ttl", TTL_MS)
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", EXPIRED);
        if self.running().client.declare_with(EXPIRING, &arguments).is_ok() {
            self.note_topology("queue.declare-ok", Op::Declare(EXPIRING.to_owned()));
        }
    }

    fn ready(&mut self, queue: &str) -> usize {
        let vhost = self.running().broker.vhost("/").expect("always there");
        vhost.queue(queue.as_bytes()).map_or(0, |queue| queue.status().ready)
    }

    /// Publishes to the queue that refuses; what it refuses must not be there once that is told.
    pub(super) fn publish_to_refusing(&mut self) {
        if self.is_full || !self.history.now().queues.contains_key(REFUSING) {
            return;
        }
        let persistent = !self.rng.one_in(5);
        let mut messages = Vec::new();
        for _ in 0..1 + self.rng.below(6) {
            messages.push((self.next_id * 2 + u64::from(persistent), self.rng.below(200) as usize));
            self.next_id += 1;
        }
        let before = self.ready(REFUSING);
        let properties =
            Properties { delivery_mode: persistent.then_some(2), ..Default::default() };
        let client = &mut self.running().client;
        let Ok(last) = client.publish_with(PLAIN, "", REFUSING, &messages, &properties) else {
            return self.reconnect();
        };
        let taken = self.ready(REFUSING) - before;
        let first = last + 1 - messages.len() as u64;
        let end = self.running().store.end().0;
        let logged = end != self.end_before;
        let due = if persistent && logged { end } else { 0 };
        let running = self.running();
        running.unconfirmed.push_back((last, due));
        running.refused.extend(first + taken as u64..=last);
        if !persistent || !logged {
            assert!(!persistent || taken == 0, "taken, and not in the log");
            return;
        }
        let publish = |(id, _): &(u64, usize)| Op::Publish(REFUSING.to_owned(), *id);
        let settle = |(id, _): &(u64, usize)| Op::Settle(REFUSING.to_owned(), *id);
        let refused: Vec<Op> = messages[taken..].iter().map(settle).collect();
        let published: Vec<Op> = messages.iter().map(publish).collect();
        if refused.is_empty() {
            return self.note(published);
        }
        // First the log has them all, and a moment later that some are refused.
        self.tell(|| format!("{end}: {published:?}, then {refused:?}"));
        if self.running().store.failure().is_none() {
            self.history.note(end - 1, published);
            self.history.note(end, refused);
        }
    }

    /// What should wait here, oldest first: all that is not handed out.
    fn waiting(&mut self, queue: &str) -> Vec<u64> {
        let Some(messages) = self.history.now().queues.get(queue).map(|one| one.messages.clone())
        else {
            return Vec::new();
        };
        let unacked = &self.running().unacked;
        let is_out = |id: &u64| unacked.iter().any(|(_, of, other)| of == queue && other == id);
        messages.into_iter().filter(|id| !is_out(id)).collect()
    }

    /// Notes what has expired: the oldest that waited, in their order, one after the other.
    pub(super) fn note_expired(&mut self) {
        if !self.expires {
            return;
        }
        let (expiring, expired) = (self.waiting(EXPIRING), self.waiting(EXPIRED));
        let arrived = self.ready(EXPIRED).saturating_sub(expired.len());
        let end = self.running().store.end().0;
        for (index, id) in expiring.into_iter().take(arrived).enumerate() {
            let ops =
                vec![Op::Settle(EXPIRING.to_owned(), id), Op::Publish(EXPIRED.to_owned(), id)];
            // Each takes more than a byte of the log.
            let behind = end - (arrived - 1 - index) as u64;
            self.tell(|| format!("{behind}: {ops:?}"));
            self.history.note(behind, ops);
        }
    }

    /// Has everything done that is due now.
    pub(super) fn do_what_is_due(&mut self) {
        let now_ms = self.now_ms;
        let running = self.running();
        while running.broker.tick(now_ms).is_some_and(|next_ms| next_ms <= now_ms)
            && running.store.failure().is_none()
        {}
    }

    /// Opens the channel again that an error has ended.
    pub(super) fn reconnect(&mut self) {
        let running = self.running();
        running.client.reopen();
        running.unconfirmed.clear();
        running.refused.clear();
        running.unacked.clear();
        let select = Method::ConfirmSelect(Default::default());
        running.client.request(PLAIN, &select).expect("confirms are supported");
    }
}

/// Whether only the broker itself publishes there.
pub(super) fn takes_letters_only(queue: &str) -> bool {
    queue == EXPIRED
}
