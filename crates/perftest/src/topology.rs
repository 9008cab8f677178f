//! Who publishes where, who consumes what, and so which queue should see which message.

use crate::options::Options;

/// The names and the spread of a run.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Exchange to publish to, empty for the default one.
    pub exchange: String,
    /// Names of the queues.
    pub queues: Vec<String>,
    /// For each producer the keys that its messages have in turn; with `--routing-keys`, each is followed by a number.
    pub keys: Vec<Vec<String>>,
    /// Numbers that follow each key in turn; 1 without `--routing-keys`.
    numbers: u64,
    /// Whether queues are bound with each of these numbers.
    binds_numbers: bool,
    /// For each consumer the index of its queue.
    pub consumed: Vec<usize>,
    binding_keys: Vec<String>,
    reaches_all: bool,
    reaches_one: bool,
    /// Whether each consumer gets all of its queue.
    reads_all: bool,
}

impl Topology {
    /// The spread that the options ask for: consumer `c` reads queue `c` modulo the number of queues. So do producers
    /// write; when there are fewer of them than queues, each takes its share of the queues in turn.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let count = usize::from(options.queues);
        let producers = usize::from(options.producers);
        let queues: Vec<String> = match count {
            1 => vec![options.queue.clone()],
            _ => (1..=count).map(|number| format!("{}-{number}", options.queue)).collect(),
        };
        let key_of = |queue: usize| match &options.routing_key {
            Some(routing_key) => routing_key.clone(),
            None => queues[queue].clone(),
        };
        let share = |producer: usize| match (&options.routing_key, producers < count) {
            (Some(_), _) | (None, false) => vec![producer % count],
            (None, true) => (producer..count).step_by(producers).collect(),
        };
        let keys = (0..producers).map(|producer| share(producer).into_iter().map(key_of).collect());
        let is_default = options.exchange.is_empty();
        Self {
            numbers: u64::from(options.routing_keys),
            binds_numbers: matches!(options.exchange_type.as_str(), "direct" | "topic"),
            reads_all: options.kind.stream,
            keys: keys.collect(),
            consumed: (0..usize::from(options.consumers))
                .map(|consumer| consumer % count)
                .collect(),
            binding_keys: match is_default {
                true => queues.clone(),
                false => (0..count).map(key_of).collect(),
            },
            reaches_all: !is_default
                && matches!(options.exchange_type.as_str(), "fanout" | "headers"),
            reaches_one: !is_default
                && matches!(
                    options.exchange_type.as_str(),
                    "x-consistent-hash" | "x-modulus-hash" | "x-random" | "x-local-random"
                ),
            exchange: options.exchange.clone(),
            queues,
        }
    }

    /// Whether each message reaches one queue only, of which the exchange alone knows.
    #[must_use]
    pub fn reaches_one(&self) -> bool {
        self.reaches_one
    }

    /// The keys that this queue is bound with.
    #[must_use]
    pub fn binding_keys(&self, queue: usize) -> Vec<String> {
        let key = &self.binding_keys[queue];
        match self.binds_numbers {
            true => self.numbered(key).collect(),
            false => vec![key.clone()],
        }
    }

    /// The keys that this producer's messages have, one message after the other, and then again.
    #[must_use]
    pub fn message_keys(&self, producer: usize) -> Vec<String> {
        let keys = &self.keys[producer];
        let mut all: Vec<_> = keys.iter().map(|key| self.numbered(key)).collect();
        let turns = (0..self.numbers).flat_map(|_| 0..keys.len());
        turns.filter_map(|key| all[key].next()).collect()
    }

    fn numbered<'k>(&self, key: &'k str) -> impl Iterator<Item = String> + use<'k> {
        let numbers = self.numbers;
        (1..=numbers).map(move |number| match numbers {
            1 => key.to_owned(),
            _ => format!("{key}.{number}"),
        })
    }

    /// In how many places arrivals are noted: one for each queue, or for each consumer of a stream.
    #[must_use]
    pub fn places(&self) -> usize {
        if self.reads_all { self.consumed.len() } else { self.queues.len() }
    }

    /// Where this consumer notes what arrives.
    #[must_use]
    pub fn place_of_consumer(&self, consumer: usize) -> usize {
        if self.reads_all { consumer } else { self.consumed[consumer] }
    }

    /// The queue whose messages are noted there.
    #[must_use]
    pub fn queue_of_place(&self, place: usize) -> usize {
        if self.reads_all { self.consumed[place] } else { place }
    }

    /// Whether messages stay in their queues when they are consumed.
    #[must_use]
    pub fn keeps_messages(&self) -> bool {
        self.reads_all
    }

    /// Whether a message with this number of this producer should reach this queue.
    #[must_use]
    pub fn reaches(&self, producer: usize, number: u64, queue: usize) -> bool {
        let keys = &self.keys[producer];
        let key = &keys[(number % keys.len() as u64) as usize];
        self.reaches_all || *key == self.binding_keys[queue]
    }

    /// How many of the first `published` messages of this producer should reach this queue.
    #[must_use]
    pub fn reaching(&self, producer: usize, published: u64, queue: usize) -> u64 {
        let keys = self.keys[producer].len() as u64;
        let turns = (0..keys).filter(|&turn| self.reaches(producer, turn, queue));
        turns.map(|turn| published.saturating_sub(turn).div_ceil(keys)).sum()
    }

    /// Whether this queue has consumers.
    #[must_use]
    pub fn is_consumed(&self, queue: usize) -> bool {
        self.consumed.contains(&queue)
    }
}
