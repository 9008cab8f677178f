//! The features that are combined, and what a row of the covering arrays asks for.

use crate::array::{Factors, Row, covering};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

/// A feature: a factor of the covering arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    QueueType,
    Priorities,
    SingleActive,
    ConsumerPriorities,
    QueueTtl,
    MessageTtl,
    Limit,
    LimitBy,
    Expires,
    DeadLetters,
    AtLeastOnce,
    DeliveryLimit,
    DelayedRetry,
    ConsumerTimeout,
    Deduplication,
    Delayed,
    Transactions,
    Confirms,
    Mandatory,
    Copies,
    Edges,
    Alternate,
    Chain,
    Hash,
    Policy,
    Pause,
    VhostLimit,
    UserLimits,
    Reader,
    Retention,
    Restart,
    Commits,
}

use Feature::*;

/// Each feature with the names of its values. The first value of each is the plain one.
const FEATURES: [(Feature, &str, &[&str]); 32] = [
    (QueueType, "type", &["classic", "quorum", "stream"]),
    (Priorities, "priorities", ON),
    (SingleActive, "single-active", ON),
    (ConsumerPriorities, "consumer-priorities", ON),
    (QueueTtl, "queue-ttl", ON),
    (MessageTtl, "message-ttl", ON),
    (Limit, "limit", &["none", "drop-head", "reject-publish", "reject-publish-dlx"]),
    (LimitBy, "limit-by", &["count", "bytes"]),
    (Expires, "expires", ON),
    (DeadLetters, "dead-letters", &["none", "plain", "drop-head", "reject-publish"]),
    (AtLeastOnce, "at-least-once", ON),
    (DeliveryLimit, "delivery-limit", ON),
    (DelayedRetry, "delayed-retry", &["none", "failed", "returned", "all"]),
    (ConsumerTimeout, "consumer-timeout", ON),
    (Deduplication, "deduplication", &["none", "presence", "queue", "exchange"]),
    (Delayed, "delayed", ON),
    (Transactions, "transactions", ON),
    (Confirms, "confirms", ON),
    (Mandatory, "mandatory", ON),
    (Copies, "copies", &["none", "cc", "bcc"]),
    (Edges, "edges", ON),
    (Alternate, "alternate", ON),
    (Chain, "chain", ON),
    (Hash, "hash", ON),
    (Policy, "policy", ON),
    (Pause, "pause", ON),
    (VhostLimit, "vhost-limit", ON),
    (UserLimits, "user-limits", ON),
    (Reader, "reader", ON),
    (Retention, "retention", &["none", "size", "age"]),
    (Restart, "restart", &["none", "clean", "kill", "power", "lost-tail", "torn"]),
    (Commits, "commits", &["none", "awaited", "early"]),
];

const ON: &[&str] = &["off", "on"];

/// What a stream does not have.
const NOT_OF_STREAMS: [Feature; 12] = [
    Priorities,
    SingleActive,
    QueueTtl,
    Limit,
    Expires,
    DeadLetters,
    AtLeastOnce,
    DeliveryLimit,
    DelayedRetry,
    ConsumerTimeout,
    Hash,
    Commits,
];

/// The values of the queue type.
const CLASSIC: usize = 0;
const STREAM: usize = 2;

/// Whether a queue of this type can't have this value of this feature.
fn is_not_of(queue_type: usize, (feature, value): (usize, usize)) -> bool {
    match queue_type {
        CLASSIC => feature == DelayedRetry as usize && value > 0,
        STREAM => is_no_streams((feature, value)),
        _ => false,
    }
}

/// Whether a stream can't have this value of this feature.
fn is_no_streams((feature, value): (usize, usize)) -> bool {
    let of_queues = NOT_OF_STREAMS.iter().any(|one| *one as usize == feature);
    let in_queue = feature == Deduplication as usize && (1..3).contains(&value);
    of_queues && value > 0 || in_queue
}

/// Which features are on, and how.
#[derive(Clone, PartialEq, Eq)]
pub struct Features(Row);

impl Features {
    /// The rows that hold all combinations of any three features.
    pub fn rows() -> &'static [Features] {
        static ROWS: LazyLock<Vec<Features>> = LazyLock::new(Features::covering);
        &ROWS
    }

    fn covering() -> Vec<Features> {
        let sizes: Vec<usize> = FEATURES.iter().map(|(.., values)| values.len()).collect();
        let forbids = |one: (usize, usize), other: (usize, usize)| {
            one.0 == QueueType as usize && is_not_of(one.1, other)
        };
        let factors = Factors { sizes: &sizes, forbids: &forbids };
        covering(&factors, 3).into_iter().map(Features).collect()
    }

    /// Whether a feature is not plain.
    pub fn has(&self, feature: Feature) -> bool {
        self.0[feature as usize] > 0
    }

    /// The name of its value.
    pub fn value(&self, feature: Feature) -> &'static str {
        FEATURES[feature as usize].2[self.0[feature as usize]]
    }

    /// Whether other machines have copies of the log. One that takes over knows more than a restart of which messages had been
    /// handed out, so that is not combined.
    pub fn has_copies(&self) -> bool {
        self.has(Commits) && !self.has(Restart)
    }

    /// Whether the queue under test is a stream.
    pub fn is_stream(&self) -> bool {
        self.value(QueueType) == "stream"
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type={}", self.value(QueueType))?;
        for (feature, name, _) in &FEATURES[1..] {
            if self.has(*feature) {
                write!(f, " {name}={}", self.value(*feature))?;
            }
        }
        Ok(())
    }
}

/// Every combination of values of three features that may stand together.
#[test]
fn every_triple_of_values_is_in_a_row() {
    let rows = Features::rows();
    let count = FEATURES.len();
    let mut missing = 0;
    for (one, two) in (0..count).flat_map(|one| (one + 1..count).map(move |two| (one, two))) {
        for three in two + 1..count {
            let held: BTreeSet<_> =
                rows.iter().map(|Features(row)| (row[one], row[two], row[three])).collect();
            let values = |factor: usize| 0..FEATURES[factor].2.len();
            let all = values(one).flat_map(|a| values(two).map(move |b| (a, b)));
            let all = all.flat_map(|(a, b)| values(three).map(move |c| (a, b, c)));
            let may_be = |(a, b, c): &(usize, usize, usize)| {
                let items = [(one, *a), (two, *b), (three, *c)];
                let (first, value) = items[0];
                first != QueueType as usize
                    || !items[1..].iter().any(|item| is_not_of(value, *item))
            };
            missing += all.filter(may_be).filter(|values| !held.contains(values)).count();
        }
    }
    assert_eq!(missing, 0, "triples that are in no row");
}

#[test]
fn the_features_stand_in_the_order_of_their_numbers() {
    assert!(FEATURES.iter().enumerate().all(|(at, (feature, ..))| *feature as usize == at));
}
