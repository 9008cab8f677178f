//! The exchanges and queues of a row: their names, what they are declared with, and what the model
//! takes that for.

use crate::features::{Feature, Features};
use crate::model::{DeadLetter, Kind, Levels, Overflow, Queue, Retention, Retry, Settings, Stream};
use courser_codec::{FieldTable, FieldValue};

/// The queue under test.
pub const WORK: &str = "work";
/// A plain queue beside it.
pub const OTHER: &str = "other";
/// Where dead letters go.
pub const DEAD: &str = "dead";
/// What finds no queue.
pub const SPILL: &str = "spill";
/// A stream that gets what the queue under test gets.
pub const LOG: &str = "log";

/// The direct exchange in front of the queues.
pub const DIRECT: &str = "in";
/// The key that most queues are bound with.
pub const KEY: &str = "k";
/// Another one, as long as a key can be.
pub const LONG_KEY: &str = match std::str::from_utf8(&[b'k'; 255]) {
    Ok(key) => key,
    Err(_) => KEY,
};
/// An exchange that everything passes on its way to [`DIRECT`].
pub const CHAIN: &str = "front";
/// A consistent hash.
pub const HASH: &str = "hash";
/// The exchange that delays.
pub const LATER: &str = "later";
/// The exchange that comes and goes.
pub const BRIEF: &str = "brief";
/// The exchange for what finds no queue.
pub const ALTERNATE: &str = "alternate";
/// The exchange for dead letters.
pub const LETTERS: &str = "letters";

/// A key of the consistent hash.
pub type HashKey = u8;

/// How many marks an exchange or a queue remembers.
pub const MARKS: usize = 3;

/// No two things are due at the same millisecond by chance: operations happen at whole seconds, and
/// each of these adds milliseconds of its own.
pub const TTL_MS: u64 = 4001;
pub const EXPIRATIONS_MS: [u64; 3] = [2007, 5007, 0];
pub const DELAYS_MS: [u64; 3] = [1061, 3061, 8061];
pub const TIMEOUT_MS: u64 = 6113;
const QUORUM_TIMEOUT_MS: u64 = 1_800_000;
pub const EXPIRES_MS: u64 = 9307;
/// How long what comes back waits, at least, with each time that it has come back, and at most.
pub const RETRY_MS: u64 = 1433;
pub const RETRY_MAX_MS: u64 = 4297;

const LENGTH_MAX: u64 = 4;
const BYTES_MAX: u64 = 1000;
const STREAM_BYTES_MAX: u64 = 20_000;
const STREAM_AGE_S: u64 = 7;
const DELIVERY_LIMIT: u64 = 2;

/// Which of [`policies`] limits the bytes.
pub const BYTES_POLICY: usize = 2;

/// How many [`policies`] there are.
pub const POLICIES: usize = 10;

/// The policies that come and go.
pub fn policies() -> [(FieldTable, Settings); POLICIES] {
    let plain = Settings::default();
    let one = |key: &str, value: u64| FieldTable::new().with(key, value as i64);
    let retried = |of: &'static str, min_ms: u64| {
        let definition = one("delayed-retry-min", min_ms).with("delayed-retry-type", of);
        let retry = Retry { of: Some(of), min_ms: Some(min_ms), max_ms: None };
        (definition, Settings { retry, ..Settings::default() })
    };
    [
        (one("message-ttl", 2503), Settings { ttl_ms: Some(2503), ..plain.clone() }),
        (one("max-length", 2), Settings { length: Some(2), ..plain.clone() }),
        (one("max-length-bytes", 500), Settings { bytes: Some(500), ..plain.clone() }),
        (one("consumer-timeout", 2719), Settings { timeout_ms: Some(2719), ..plain.clone() }),
        (one("delivery-limit", 1), Settings { delivery_limit: Some(1), ..plain.clone() }),
        (one("expires", 5909), Settings { expires_ms: Some(5909), ..plain.clone() }),
        (one("max-length", 0), Settings { length: Some(0), ..plain.clone() }),
        (one("delivery-limit", 0), Settings { delivery_limit: Some(0), ..plain }),
        retried("all", 1621),
        retried("disabled", 1621),
    ]
}

/// A queue: what it is declared with, and what it is then.
pub struct Declared {
    pub name: &'static str,
    pub arguments: FieldTable,
    /// None of a stream.
    pub kind: Option<Kind>,
    pub settings: Settings,
    /// Of a stream.
    pub retention: Retention,
}

impl Declared {
    /// The queue in the model, if it is no stream.
    pub fn queue(&self, now_ms: u64) -> Option<Queue> {
        let kind = self.kind.clone()?;
        Some(Queue::new(self.name, kind, self.settings.clone(), now_ms))
    }

    /// The stream in the model, if it is one.
    pub fn stream(&self) -> Option<Stream> {
        self.kind.is_none().then(|| Stream::new(self.name, self.retention))
    }
}

const PLAIN: Kind = Kind {
    levels: Levels::None,
    single_active: false,
    is_quorum: false,
    holds_no_two: false,
    marks: None,
};

/// All queues of a row.
pub fn queues(features: &Features) -> Vec<Declared> {
    let plain = |name| Declared {
        name,
        arguments: FieldTable::new(),
        kind: Some(PLAIN),
        settings: Settings::default(),
        retention: Retention::default(),
    };
    let mut all = vec![work(features), plain(OTHER)];
    if features.has(Feature::DeadLetters) {
        let mut dead = plain(DEAD);
        let overflow = features.value(Feature::DeadLetters);
        if overflow != "plain" {
            dead.arguments = FieldTable::new().with("x-max-length", 3).with("x-overflow", overflow);
            dead.settings.length = Some(3);
            dead.settings.overflow = overflow_of(overflow);
        }
        all.push(dead);
    }
    if features.has(Feature::Alternate) {
        all.push(plain(SPILL));
    }
    if features.has(Feature::Reader) {
        all.push(stream(LOG, features));
    }
    all
}

fn stream(name: &'static str, features: &Features) -> Declared {
    let arguments = FieldTable::new().with("x-queue-type", "stream");
    let (arguments, retention) = match features.value(Feature::Retention) {
        "size" => {
            let most = Retention::Bytes(STREAM_BYTES_MAX);
            (arguments.with("x-max-length-bytes", STREAM_BYTES_MAX as i64), most)
        }
        "age" => {
            let age = format!("{STREAM_AGE_S}s");
            (arguments.with("x-max-age", age), Retention::AgeMs(STREAM_AGE_S * 1000))
        }
        _ => (arguments, Retention::All),
    };
    Declared { name, arguments, kind: None, settings: Settings::default(), retention }
}

fn overflow_of(name: &str) -> Overflow {
    match name {
        "reject-publish" => Overflow::Reject,
        "reject-publish-dlx" => Overflow::RejectToDeadLetters,
        _ => Overflow::DropHead,
    }
}

/// The queue under test.
pub fn work(features: &Features) -> Declared {
    let queue_type = features.value(Feature::QueueType);
    let mut arguments = FieldTable::new().with("x-queue-type", queue_type);
    if features.is_stream() {
        return stream(WORK, features);
    }
    let is_quorum = queue_type == "quorum";
    let mut kind = Kind { is_quorum, ..PLAIN };
    let mut settings = Settings::default();
    kind.levels = if is_quorum { Levels::Quorum } else { Levels::None };
    settings.delivery_limit = is_quorum.then_some(20);
    settings.timeout_ms = is_quorum.then_some(QUORUM_TIMEOUT_MS);
    let mut give = |name: &str, value: FieldValue| {
        arguments = std::mem::take(&mut arguments).with(name, value);
    };
    if features.has(Feature::Priorities) {
        give("x-max-priority", 3.into());
        kind.levels = Levels::UpTo(3);
    }
    if features.value(Feature::Commits) == "early" {
        give("x-deliver-before-commit", true.into());
    }
    if features.has(Feature::SingleActive) {
        give("x-single-active-consumer", true.into());
        kind.single_active = true;
    }
    if features.has(Feature::QueueTtl) {
        give("x-message-ttl", (TTL_MS as i64).into());
        settings.ttl_ms = Some(TTL_MS);
    }
    if features.has(Feature::Limit) {
        let by_bytes = features.value(Feature::LimitBy) == "bytes";
        let (name, most) =
            if by_bytes { ("x-max-length-bytes", BYTES_MAX) } else { ("x-max-length", LENGTH_MAX) };
        give(name, (most as i64).into());
        give("x-overflow", features.value(Feature::Limit).into());
        if by_bytes {
            settings.bytes = Some(most)
        } else {
            settings.length = Some(most)
        }
        settings.overflow = overflow_of(features.value(Feature::Limit));
    }
    if features.has(Feature::Expires) {
        give("x-expires", (EXPIRES_MS as i64).into());
        settings.expires_ms = Some(EXPIRES_MS);
    }
    let limit = features.value(Feature::Limit);
    let keeps_letters = matches!(limit, "none" | "reject-publish");
    let at_least_once = features.has(Feature::AtLeastOnce) && keeps_letters;
    if at_least_once && limit == "none" {
        // A policy may bound it.
        give("x-overflow", "reject-publish".into());
        settings.overflow = Overflow::Reject;
    }
    match features.value(Feature::DeadLetters) {
        "none" => {}
        "drop-head" => {
            // Through an exchange, with the message's own keys.
            give("x-dead-letter-exchange", LETTERS.into());
            settings.dead_letter = Some(DeadLetter { key: None, at_least_once });
        }
        _ => {
            give("x-dead-letter-exchange", "".into());
            give("x-dead-letter-routing-key", DEAD.into());
            settings.dead_letter = Some(DeadLetter { key: Some(DEAD), at_least_once });
        }
    }
    if features.has(Feature::AtLeastOnce) {
        give("x-dead-letter-strategy", "at-least-once".into());
    }
    if features.has(Feature::DeliveryLimit) {
        give("x-delivery-limit", (DELIVERY_LIMIT as i64).into());
        settings.delivery_limit = Some(DELIVERY_LIMIT);
    }
    if features.has(Feature::DelayedRetry) {
        let of = features.value(Feature::DelayedRetry);
        give("x-delayed-retry-type", of.into());
        give("x-delayed-retry-min", (RETRY_MS as i64).into());
        give("x-delayed-retry-max", (RETRY_MAX_MS as i64).into());
        settings.retry = Retry { of: Some(of), min_ms: Some(RETRY_MS), max_ms: Some(RETRY_MAX_MS) };
    }
    if features.has(Feature::ConsumerTimeout) {
        give("x-consumer-timeout", (TIMEOUT_MS as i64).into());
        settings.timeout_ms = Some(TIMEOUT_MS);
    }
    match features.value(Feature::Deduplication) {
        "presence" => {
            give("x-message-deduplication", true.into());
            kind.holds_no_two = true;
        }
        "queue" => {
            give("x-message-deduplication", true.into());
            give("x-cache-size", (MARKS as i64).into());
            kind.marks = Some(MARKS);
        }
        _ => {}
    }
    let retention = Retention::default();
    Declared { name: WORK, arguments, kind: Some(kind), settings, retention }
}
