//! What a queue is asked for, by its arguments and by a policy.

/// What becomes of what is too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    #[default]
    DropHead,
    Reject,
    RejectToDeadLetters,
}

/// Settings of a queue that both arguments and policies may give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub ttl_ms: Option<u64>,
    pub expires_ms: Option<u64>,
    pub length: Option<u64>,
    pub bytes: Option<u64>,
    pub overflow: Overflow,
    pub dead_letter: Option<DeadLetter>,
    pub delivery_limit: Option<u64>,
    pub timeout_ms: Option<u64>,
    pub retry: Retry,
}

/// How long messages wait that come back, and which of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// `x-delayed-retry-type`.
    pub of: Option<&'static str>,
    pub min_ms: Option<u64>,
    pub max_ms: Option<u64>,
}

impl Retry {
    /// How long a message waits that has come back, because its client `has_failed` or unharmed; it says of itself that it
    /// has come back so often.
    pub fn wait_ms(&self, has_failed: bool, returns: u64) -> Option<u64> {
        let waits = match self.of? {
            "all" => true,
            "failed" => has_failed,
            "returned" => !has_failed,
            _ => false,
        };
        let min_ms = self.min_ms.filter(|_| waits)?;
        Some((min_ms * returns.max(1)).min(self.max_ms.unwrap_or(min_ms)))
    }
}

/// How dead letters go to their queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// With this key, instead of the message's own keys.
    pub key: Option<&'static str>,
    /// What no queue takes is kept, and tried again: asked for, and the queue refuses what is too much for it.
    pub at_least_once: bool,
}

impl Settings {
    /// These arguments together with a policy: the smaller number counts.
    pub fn with(&self, policy: &Settings) -> Settings {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Settings {
            ttl_ms: least(self.ttl_ms, policy.ttl_ms),
            expires_ms: least(self.expires_ms, policy.expires_ms),
            length: least(self.length, policy.length),
            bytes: least(self.bytes, policy.bytes),
            delivery_limit: least(self.delivery_limit, policy.delivery_limit),
            timeout_ms: least(self.timeout_ms, policy.timeout_ms),
            retry: Retry {
                of: policy.retry.of.or(self.retry.of),
                min_ms: least(self.retry.min_ms, policy.retry.min_ms),
                max_ms: least(self.retry.max_ms, policy.retry.max_ms),
            },
            overflow: self.overflow,
            dead_letter: self.dead_letter,
        }
    }

    /// Whether so many messages with so many bytes are too much.
    pub fn is_exceeded_by(&self, messages: usize, bytes: u64) -> bool {
        self.length.is_some_and(|most| messages as u64 > most)
            || self.bytes.is_some_and(|most| bytes > most)
    }
}
