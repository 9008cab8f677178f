//! A message, and what it says of its way.

use crate::wire::Delivery;
use std::rc::Rc;

/// A message as it was published, or as a dead letter.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The number in its body.
    pub id: u64,
    /// The size of its body.
    pub bytes: usize,
    /// What it takes in a log, at most.
    pub stored_bytes_max: usize,
    pub persistent: bool,
    pub priority: u8,
    /// `expiration`.
    pub ttl_ms: Option<u64>,
    /// What identifies it for deduplication.
    pub mark: Option<u8>,
    /// It names another key that consumers see.
    pub has_cc: bool,
    /// What its first delivery says of an earlier one; none where either may be said.
    pub redelivered: Option<bool>,
    /// The latest first.
    pub deaths: Vec<Death>,
}

/// Why a message left a queue unconsumed, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub queue: &'static str,
    /// Any of these may be given.
    pub reasons: Vec<&'static str>,
    pub count: u64,
}

impl Message {
    /// What becomes of it when it dies in `queue`.
    pub fn letter(&self, queue: &'static str, reasons: &[&'static str]) -> Self {
        let mut letter = self.clone();
        letter.ttl_ms = None;
        let is_same = |one: &Death| one.queue == queue && one.reasons == reasons;
        let known = letter.deaths.iter().position(is_same);
        let death = match known {
            Some(at) => {
                let death = letter.deaths.remove(at);
                Death { count: death.count + 1, ..death }
            }
            None => Death { queue, reasons: reasons.to_vec(), count: 1 },
        };
        letter.deaths.insert(0, death);
        letter
    }
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub struct Entry {
    pub message: Rc<Message>,
    /// When its life began, if that is known.
    pub stamp_ms: Option<u64>,
    /// Whether it has been delivered before; none where either may be said.
    pub redelivered: Option<bool>,
    /// Whether a client may have failed on it; none where either may be said.
    pub failed: Option<bool>,
    /// How often it has come back, where that is counted.
    pub returns: u64,
    /// Until it is delivered, it may have come back so often as well.
    pub returns_or: Option<u64>,
}

impl Entry {
    pub fn new(message: &Rc<Message>, stamp_ms: Option<u64>) -> Self {
        let (message, redelivered) = (Rc::clone(message), message.redelivered);
        Entry { message, stamp_ms, redelivered, failed: redelivered, returns: 0, returns_or: None }
    }

    /// It may as well be as `other`, which is the same message.
    pub fn leave_open(&mut self, other: &Entry) {
        self.returns_or = Some(other.returns).filter(|returns| *returns != self.returns);
        let message = Rc::make_mut(&mut self.message);
        for (death, other) in message.deaths.iter_mut().zip(&other.message.deaths) {
            let more = other.reasons.iter().filter(|one| !death.reasons.contains(one));
            let more: Vec<_> = more.copied().collect();
            death.reasons.extend(more);
        }
    }

    /// Whether a delivery says of the message what there is to say.
    pub fn check(&mut self, delivery: &Delivery) -> Result<(), String> {
        let returns = delivery.returns.unwrap_or(0);
        if self.returns_or.take() == Some(returns) {
            self.returns = returns;
        }
        let message = &self.message;
        let died = |(death, found): (&Death, &(String, String, u64))| {
            let (queue, reason, count) = found;
            let is_reason = death.reasons.iter().any(|one| one == reason);
            death.queue == queue && is_reason && death.count == *count
        };
        let died_so = message.deaths.len() == delivery.deaths.len()
            && message.deaths.iter().zip(&delivery.deaths).all(died);
        let is_right = [
            ("bytes", delivery.bytes == message.bytes),
            ("redelivered", self.redelivered.is_none_or(|is| is == delivery.redelivered)),
            ("x-death", died_so),
            ("x-delivery-count", returns == self.returns),
            ("CC", delivery.has_cc == message.has_cc),
            ("BCC", !delivery.has_bcc),
        ];
        match is_right.iter().find(|(_, right)| !right) {
            None => Ok(()),
            Some((what, _)) => Err(format!("{what} of {delivery:?} is wrong for {self:?}")),
        }
    }
}
