//! What clients and operators do: random operations that make sense with the features of a row. Each
//! says all that it needs by itself, so that any of them can be left out.

use crate::broker::{CONFIRMS, CONSUMERS, GETS, IDLE, PLAIN, Stop, TX};
use crate::features::{Feature, Features};
use crate::model::{Path, Settlement};
use crate::topology::{DEAD, DELAYS_MS, EXPIRATIONS_MS, LOG, OTHER, POLICIES, WORK};
use crate::wire::FRAME_MAX;
use courser_journal::testing::Rng;

/// The longest content header that may be published: what a frame takes, without the room for what the
/// broker adds.
pub const HEADER_MAX: usize = FRAME_MAX - 8 - 4096;
/// How often a further key is named where that is at the edge: nearly as often as there is room for.
const COPIES_MAX: usize = 12_000;

/// A publish of some messages that take the same way.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub channel: u16,
    pub path: Path,
    pub count: usize,
    pub bytes: usize,
    pub persistent: bool,
    pub priority: u8,
    pub ttl_ms: Option<u64>,
    pub mark: Option<u8>,
    pub delay_ms: Option<u64>,
    /// Further keys, all the same: how many.
    pub more_keys: usize,
    /// The size of the content header at least.
    pub header_bytes: usize,
    /// It has the longest key there can be, where keys decide.
    pub has_long_key: bool,
}

/// A consumer that comes.
#[derive(Clone, Debug, Default)]
pub struct NewConsumer {
    /// The channel, by its number in [`CONSUMERS`].
    pub slot: usize,
    pub queue: &'static str,
    pub prefetch: u16,
    /// The prefetch is one for the whole channel.
    pub is_global: bool,
    pub priority: i64,
    pub no_ack: bool,
}

/// One thing that happens. What it names by a number is, of those that are there, the one that the
/// number comes to.
#[derive(Clone, Debug)]
pub enum Operation {
    Publish(Batch),
    Get {
        queue: usize,
        channel: u16,
        no_ack: bool,
    },
    Consume(NewConsumer),
    /// Two queues have more than their consumers, of one connection, can be sent at once.
    TakeTurns,
    /// A channel asks for nothing more for a while, or for more again.
    Flow {
        which: usize,
        on: bool,
    },
    /// Everything that a channel has not settled returns.
    Recover(usize),
    Cancel(usize),
    Settle {
        which: usize,
        multiple: bool,
        settlement: Settlement,
    },
    Commit,
    Rollback,
    Wait {
        seconds: u64,
    },
    /// The policy with this number, or none any more.
    Policy(Option<usize>),
    Pause(bool),
    Purge(usize),
    CloseChannel(usize),
    Disconnect(usize),
    /// The queue under test is declared, anew or once more.
    Declare,
    Delete,
    /// The exchange that comes and goes does so.
    Brief,
    /// The queue for dead letters is deleted, or declared again.
    DeadQueue,
    /// A further queue is declared or deleted.
    Extra(usize),
    /// An idle connection comes or goes.
    IdleConnection(usize),
    /// An idle channel comes or goes.
    IdleChannel(u16),
    Restart {
        how: Stop,
        with_checkpoint: bool,
    },
    /// The broker stops while the log has none of these yet, as does a leader of whose last changes no
    /// other node has heard.
    LoseTail(Vec<Operation>, Stop),
    /// The broker stops in the middle of an operation, when the log has some of what it appends.
    Tear {
        operation: Box<Operation>,
        appends: u64,
        how: Stop,
    },
}

impl Operation {
    /// Whether it is one that the log may lose: no restart, and nothing that operators have changed.
    fn may_be_lost(&self) -> bool {
        use Operation::*;
        !matches!(
            self,
            Restart { .. }
                | LoseTail(..)
                | Tear { .. }
                | Policy(_)
                | Brief
                | Extra(_)
                | Pause(_)
                | IdleConnection(_)
                | IdleChannel(_)
        )
    }
}

/// Operations of a row for one seed.
pub fn draw(features: &Features, rng: &mut Rng) -> Vec<Operation> {
    let mut operations = Vec::new();
    let many = 30 + rng.below(50);
    while (operations.len() as u64) < many {
        match rng.below(40) {
            0 => expire_many(features, rng, &mut operations),
            1 => hand_over(rng, &mut operations),
            3 if rng.one_in(6) => operations.push(Operation::TakeTurns),
            2 if features.has(Feature::Transactions) => transact(features, rng, &mut operations),
            4 if features.has(Feature::DelayedRetry) => fail_again(rng, &mut operations),
            _ => operations.push(draw_one(features, rng)),
        }
    }
    operations
}

fn draw_one(features: &Features, rng: &mut Rng) -> Operation {
    let on = |feature| features.has(feature);
    match rng.below(100) {
        0..30 => Operation::Publish(batch(features, rng)),
        30..36 => {
            let in_tx = on(Feature::Transactions) && rng.one_in(2);
            let channel = if in_tx { TX } else { GETS };
            Operation::Get { queue: rng.below(5) as usize, channel, no_ack: rng.one_in(3) }
        }
        36..44 => consume(features, rng),
        44..46 => Operation::Cancel(number(rng)),
        46..66 => Operation::Settle {
            which: number(rng),
            multiple: rng.one_in(3),
            settlement: settlement(rng),
        },
        66..68 if on(Feature::Transactions) => Operation::Commit,
        68 if on(Feature::Transactions) => Operation::Rollback,
        69..78 => Operation::Wait { seconds: [1, 1, 2, 3, 5, 10][rng.below(6) as usize] },
        78..82 if on(Feature::Policy) => {
            let policy = rng.below(POLICIES as u64 + 3) as usize;
            Operation::Policy((policy < POLICIES).then_some(policy))
        }
        82..85 if on(Feature::Pause) => Operation::Pause(rng.one_in(2)),
        85 => Operation::Purge(number(rng)),
        86 => match rng.below(3) {
            0 => Operation::CloseChannel(number(rng)),
            1 => Operation::Recover(number(rng)),
            _ => Operation::Flow { which: number(rng), on: rng.one_in(2) },
        },
        87 => Operation::Disconnect(1 + rng.below(2) as usize),
        88..90 => Operation::Declare,
        90 if rng.one_in(3) => Operation::Delete,
        91 if on(Feature::Transactions) || on(Feature::Mandatory) => Operation::Brief,
        98..100 if on(Feature::UserLimits) => match rng.one_in(2) {
            true => Operation::IdleConnection(rng.below(2) as usize),
            false => Operation::IdleChannel(IDLE + rng.below(2) as u16),
        },
        96..98 if on(Feature::DeadLetters) => Operation::DeadQueue,
        92..94 if on(Feature::VhostLimit) => Operation::Extra(rng.below(3) as usize),
        94..96 if on(Feature::Restart) => restart(features, rng),
        _ => Operation::Publish(batch(features, rng)),
    }
}

fn number(rng: &mut Rng) -> usize {
    rng.below(1 << 16) as usize
}

fn settlement(rng: &mut Rng) -> Settlement {
    let counts = true;
    let (reject, requeue) = (Settlement::Reject { counts }, Settlement::Requeue { counts });
    [Settlement::Ack, Settlement::Ack, reject, requeue][rng.below(4) as usize]
}

fn restart(features: &Features, rng: &mut Rng) -> Operation {
    let crash = if rng.one_in(2) { Stop::Kill } else { Stop::Power };
    match features.value(Feature::Restart) {
        "lost-tail" => {
            let count = 1 + rng.below(4);
            let all = (0..count).map(|_| draw_one(features, rng)).filter(Operation::may_be_lost);
            return Operation::LoseTail(all.collect(), crash);
        }
        "torn" => {
            let operation = Box::new(match rng.below(6) {
                0 => Operation::Settle {
                    which: number(rng),
                    multiple: false,
                    settlement: settlement(rng),
                },
                1 => Operation::Get { queue: rng.below(5) as usize, channel: GETS, no_ack: true },
                2 => Operation::Purge(number(rng)),
                _ => {
                    let batch = batch(features, rng);
                    let channel = if batch.channel == TX { PLAIN } else { batch.channel };
                    Operation::Publish(Batch { channel, ..batch })
                }
            });
            return Operation::Tear { operation, appends: rng.below(3), how: crash };
        }
        _ => {}
    }
    let how = match features.value(Feature::Restart) {
        "kill" => Stop::Kill,
        "power" => Stop::Power,
        _ => Stop::Clean,
    };
    Operation::Restart { how, with_checkpoint: rng.one_in(2) }
}

fn consume(features: &Features, rng: &mut Rng) -> Operation {
    let with_priority = features.has(Feature::ConsumerPriorities);
    Operation::Consume(NewConsumer {
        slot: rng.below(CONSUMERS.len() as u64) as usize,
        queue: match rng.below(10) {
            0 => OTHER,
            1 if features.has(Feature::DeadLetters) => DEAD,
            2 if features.has(Feature::Reader) => LOG,
            _ => WORK,
        },
        prefetch: [0, 1, 1, 2, 5, u16::MAX][rng.below(6) as usize],
        is_global: rng.one_in(4),
        priority: if with_priority { rng.below(3) as i64 - 1 } else { 0 },
        no_ack: rng.one_in(5),
    })
}

/// A batch whose size and number are drawn from the edges as often as from the middle.
fn batch(features: &Features, rng: &mut Rng) -> Batch {
    let on = |feature| features.has(feature);
    let mut paths = vec![Path::Name, Path::Direct, Path::Direct];
    let more = [
        (on(Feature::Alternate) || on(Feature::Mandatory), Path::Unbound),
        (on(Feature::Chain), Path::Chain),
        (on(Feature::Hash), Path::Hash(rng.below(8) as u8)),
        (on(Feature::Delayed), Path::Later),
        (on(Feature::Transactions) || on(Feature::Mandatory), Path::Brief),
    ];
    paths.extend(more.into_iter().filter(|(is_on, _)| *is_on).map(|(_, path)| path));
    let mut channels = vec![PLAIN];
    channels.extend(on(Feature::Confirms).then_some(CONFIRMS));
    channels.extend(on(Feature::Transactions).then_some(TX));
    let path = paths[rng.below(paths.len() as u64) as usize];
    let marked = on(Feature::Deduplication) && !rng.one_in(3);
    let is_large = rng.one_in(30);
    let count = match rng.below(24) {
        _ if marked || is_large || matches!(path, Path::Hash(_)) => 1,
        0 => [255, 256, 257, 511, 512][rng.below(5) as usize],
        1..6 => 2 + rng.below(6) as usize,
        _ => 1,
    };
    // With the eight bytes of a frame, one byte less, as many and one byte more than a frame takes; and
    // likewise than the queue has room for.
    // What is due at once is sent on in portions, and only the order within each is promised.
    let count = if path == Path::Later { count.min(100) } else { count };
    let bytes = match is_large {
        true => [FRAME_MAX - 9, FRAME_MAX - 8, FRAME_MAX - 7, 2 * (FRAME_MAX - 8) + 1]
            [rng.below(4) as usize],
        false => [8, 8, 20, 200, 499, 500, 501, 999, 1000, 1001][rng.below(10) as usize],
    };
    // Where a key leads is seen by where the first message with it waits.
    let expirations = match path {
        Path::Hash(_) => &EXPIRATIONS_MS[..2],
        _ => &EXPIRATIONS_MS[..],
    };
    let with_copies = on(Feature::Copies) && rng.one_in(2);
    let is_at_edge = on(Feature::Edges) && rng.one_in(3);
    Batch {
        channel: channels[rng.below(channels.len() as u64) as usize],
        path,
        count,
        bytes: if count > 10 { 8 } else { bytes },
        persistent: !rng.one_in(3),
        priority: [0, 0, 0, 0, 1, 2, 3, 4, 5, 31, 255][rng.below(11) as usize],
        ttl_ms: (on(Feature::MessageTtl) && rng.one_in(2))
            .then(|| expirations[rng.below(expirations.len() as u64) as usize]),
        mark: marked.then(|| rng.below(5) as u8),
        delay_ms: (path == Path::Later && !rng.one_in(6)).then(|| DELAYS_MS[rng.below(3) as usize]),
        more_keys: match with_copies {
            true if is_at_edge && count == 1 && rng.one_in(4) => COPIES_MAX,
            true => 1 + rng.below(2) as usize,
            false => 0,
        },
        header_bytes: match is_at_edge && count == 1 && rng.one_in(3) {
            true => HEADER_MAX - 1 + rng.below(3) as usize,
            false => 0,
        },
        has_long_key: is_at_edge,
    }
}

/// A live message in front of many that expire, for a consumer that takes one at a time.
fn expire_many(features: &Features, rng: &mut Rng, operations: &mut Vec<Operation>) {
    let persistent = rng.one_in(2);
    let plain = Batch { channel: PLAIN, count: 2, bytes: 8, persistent, ..Batch::default() };
    let (slot, queue) = (rng.below(6) as usize, WORK);
    let consumer = NewConsumer { slot, queue, prefetch: 1, ..Default::default() };
    operations.push(Operation::Consume(consumer));
    operations.push(Operation::Publish(plain.clone()));
    let ttl_ms = features.has(Feature::MessageTtl).then_some(EXPIRATIONS_MS[0]);
    let count = [255, 256, 257, 300, 511, 512, 513][rng.below(7) as usize];
    operations.push(Operation::Publish(Batch { count, ttl_ms, ..plain.clone() }));
    operations.push(Operation::Publish(Batch { count: 3, ..plain }));
    operations.push(Operation::Wait { seconds: 3 });
    for _ in 0..3 {
        let (which, settlement) = (number(rng), settlement(rng));
        operations.push(Operation::Settle { which, multiple: false, settlement });
    }
}

/// A consumer that holds a message while others come that go before it.
fn hand_over(rng: &mut Rng, operations: &mut Vec<Operation>) {
    for (slot, priority) in [(rng.below(3) as usize, 0), (3 + rng.below(3) as usize, 1)] {
        let new = NewConsumer { slot, queue: WORK, prefetch: 1, priority, ..Default::default() };
        operations.push(Operation::Consume(new));
    }
    for _ in 0..2 {
        let (which, settlement) = (number(rng), settlement(rng));
        operations.push(Operation::Settle { which, multiple: true, settlement });
    }
}

/// A consumer that fails on the same messages again and again, and waits for them meanwhile.
fn fail_again(rng: &mut Rng, operations: &mut Vec<Operation>) {
    let plain = Batch { channel: PLAIN, count: 2, bytes: 8, persistent: true, ..Batch::default() };
    let slot = rng.below(6) as usize;
    let consumer = NewConsumer { slot, queue: WORK, prefetch: 2, ..Default::default() };
    operations.push(Operation::Consume(consumer));
    operations.push(Operation::Publish(plain));
    for seconds in [2, 3, 5, 5] {
        for _ in 0..2 {
            let (which, settlement) = (number(rng), Settlement::Requeue { counts: true });
            operations.push(Operation::Settle { which, multiple: false, settlement });
        }
        operations.push(Operation::Wait { seconds });
    }
}

/// A few publishes and settlements, and the end of their transaction; the exchange of some may have gone
/// in between.
fn transact(features: &Features, rng: &mut Rng, operations: &mut Vec<Operation>) {
    for _ in 0..1 + rng.below(4) {
        let batch = Batch { channel: TX, ..batch(features, rng) };
        operations.push(Operation::Publish(batch));
    }
    operations.push(Operation::Get { queue: 0, channel: TX, no_ack: false });
    operations.push(Operation::Settle {
        which: number(rng),
        multiple: true,
        settlement: settlement(rng),
    });
    if rng.one_in(2) {
        operations.push(Operation::Brief);
    }
    operations.push(Operation::Commit);
}
