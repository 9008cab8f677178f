//! A message, and what it says of its way.

use crate::wire::Delivery;
use std::rc::Rc;

/// Stands between two reasons of which either may be given.
const OR: &str = " or ";

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
    /// The latest first.
    pub deaths: Vec<Death>,
}

/// Why a message left a queue unconsumed, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub queue: &'static str,
    pub reason: &'static str,
    pub count: u64,
}

impl Message {
    /// What becomes of it when it dies in `queue`. A letter that has a key of its own forgets the
    /// others.
    pub fn letter(&self, queue: &'static str, reason: &'static str, has_key: bool) -> Self {
        let mut letter = self.clone();
        letter.ttl_ms = None;
        letter.has_cc &= !has_key;
        let known = letter.deaths.iter().position(|one| one.queue == queue && one.reason == reason);
        let death = match known {
            Some(at) => {
                let death = letter.deaths.remove(at);
                Death { count: death.count + 1, ..death }
            }
            None => Death { queue, reason, count: 1 },
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
    /// How often it has come back, where that is counted.
    pub returns: u64,
}

impl Entry {
    pub fn new(message: &Rc<Message>, stamp_ms: Option<u64>) -> Self {
        Entry { message: Rc::clone(message), stamp_ms, redelivered: Some(false), returns: 0 }
    }

    /// Whether a delivery says of the message what there is to say.
    pub fn check(&self, delivery: &Delivery) -> Result<(), String> {
        let message = &self.message;
        let died = |(death, found): (&Death, &(String, String, u64))| {
            let (queue, reason, count) = found;
            let is_reason = death.reason.split(OR).any(|one| one == reason);
            death.queue == queue && is_reason && death.count == *count
        };
        let died_so = message.deaths.len() == delivery.deaths.len()
            && message.deaths.iter().zip(&delivery.deaths).all(died);
        let is_right = [
            ("bytes", delivery.bytes == message.bytes),
            ("redelivered", self.redelivered.is_none_or(|is| is == delivery.redelivered)),
            ("x-death", died_so),
            ("x-delivery-count", delivery.returns.unwrap_or(0) == self.returns),
            ("CC", delivery.has_cc == message.has_cc),
            ("BCC", !delivery.has_bcc),
        ];
        match is_right.iter().find(|(_, right)| !right) {
            None => Ok(()),
            Some((what, _)) => Err(format!("{what} of {delivery:?} is wrong for {self:?}")),
        }
    }
}
