//! Which messages have arrived, and so which are lost.
//!
//! Every message carries its producer and its number. For each queue and producer there is one bit a message, set when
//! it arrives. What the producer got a confirm for and what never arrives is lost; what was refused, returned or is
//! still unconfirmed is not expected.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::ranges::Ranges;
use crate::topology::Topology;

/// The books of a run. Consumers mark arrivals through an [`Arrivals`] of their own.
pub struct Ledger {
    topology: Topology,
    published: Vec<AtomicU64>,
    exempt: Vec<Mutex<Ranges>>,
    /// By place, a queue or the consumer of a stream, then by producer.
    arrived: Vec<Vec<Mutex<Arrived>>>,
}

#[derive(Default)]
struct Arrived {
    words: Vec<u64>,
    duplicates: u64,
}

impl Arrived {
    fn set(&mut self, word: u64, bits: u64) {
        let at = word as usize;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.duplicates += u64::from((self.words[at] & bits).count_ones());
        self.words[at] |= bits;
    }

    fn has(&self, number: u64) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

impl Ledger {
    /// Empty books.
    #[must_use]
    pub fn new(topology: Topology) -> Self {
        let producers = topology.keys.len();
        let row = || (0..producers).map(|_| Mutex::default()).collect();
        Self {
            published: (0..producers).map(|_| AtomicU64::new(0)).collect(),
            exempt: (0..producers).map(|_| Mutex::default()).collect(),
            arrived: (0..topology.places()).map(|_| row()).collect(),
            topology,
        }
    }

    /// This producer is about to publish `count` more messages.
    pub fn publishing(&self, producer: usize, count: u64) {
        self.published[producer].fetch_add(count, Relaxed);
    }

    /// So many of them were not published after all.
    pub fn not_published(&self, producer: usize, count: u64) {
        self.published[producer].fetch_sub(count, Relaxed);
    }

    /// Whether this producer has published so many. If not, a message with this number is none of this run.
    #[must_use]
    pub fn has_published(&self, producer: usize, number: u64) -> bool {
        self.published.get(producer).is_some_and(|published| number < published.load(Relaxed))
    }

    /// These messages of this producer need not arrive: nacked, returned, or unconfirmed at the end.
    pub fn excuse(&self, producer: usize, numbers: std::ops::RangeInclusive<u64>) {
        self.exempt[producer].lock().add(numbers);
    }

    /// How many arrivals there should be in all queues that are consumed, when nothing is lost.
    #[must_use]
    pub fn expected(&self) -> u64 {
        if self.topology.reaches_one() {
            let published = self.published.iter().map(|published| published.load(Relaxed));
            let exempt = self.exempt.iter().map(|exempt| exempt.lock().count());
            return published.sum::<u64>().saturating_sub(exempt.sum());
        }
        let queues = (0..self.topology.places()).map(|place| self.topology.queue_of_place(place));
        let consumed = queues.filter(|&queue| self.topology.is_consumed(queue));
        consumed.map(|queue| self.expected_in(queue)).sum()
    }

    fn expected_in(&self, queue: usize) -> u64 {
        let of_producer = |producer: usize| {
            let published = self.published[producer].load(Relaxed);
            let exempt = self.exempt[producer].lock().count();
            let reaching = self.topology.reaching(producer, published, queue);
            // Exempt messages of a producer with several keys go by all of them; only their number is known here.
            reaching.saturating_sub(exempt)
        };
        (0..self.published.len()).map(of_producer).sum()
    }

    /// How many messages have not arrived where they should, and how many arrived twice.
    #[must_use]
    pub fn balance(&self) -> Balance {
        let mut balance = Balance::default();
        for (producer, published) in self.published.iter().enumerate() {
            let published = published.load(Relaxed);
            let mut exempt = self.exempt[producer].lock();
            exempt.sort();
            if self.topology.reaches_one() {
                let arrived: Vec<_> =
                    self.arrived.iter().map(|queue| queue[producer].lock()).collect();
                balance.duplicates += arrived.iter().map(|queue| queue.duplicates).sum::<u64>();
                let is_missing = |&number: &u64| {
                    !arrived.iter().any(|queue| queue.has(number)) && !exempt.contains(number)
                };
                balance.missing += (0..published).filter(is_missing).count() as u64;
                continue;
            }
            for (place, arrived) in self.arrived.iter().enumerate() {
                let queue = self.topology.queue_of_place(place);
                let arrived = arrived[producer].lock();
                balance.duplicates += arrived.duplicates;
                if self.topology.is_consumed(queue) {
                    let is_missing = |&number: &u64| {
                        !arrived.has(number)
                            && self.topology.reaches(producer, number, queue)
                            && !exempt.contains(number)
                    };
                    balance.missing += (0..published).filter(is_missing).count() as u64;
                }
            }
        }
        balance
    }
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Messages that should have arrived in a queue and did not, over all queues.
    pub missing: u64,
    /// Messages that arrived once more.
    pub duplicates: u64,
}

/// One consumer's notes, entered into the [`Ledger`] in words of 64 messages.
pub struct Arrivals {
    place: usize,
    /// By producer: a word's index and its bits.
    pending: Vec<(u64, u64)>,
}

impl Arrivals {
    /// For a consumer that notes at this place: its queue, or itself if it reads a stream.
    #[must_use]
    pub fn new(ledger: &Ledger, place: usize) -> Self {
        Self { place, pending: vec![(0, 0); ledger.published.len()] }
    }

    /// A message with this number of this producer has arrived. False if that producer has not published so many:
    /// then it is no message of this run.
    #[inline]
    pub fn mark(&mut self, ledger: &Ledger, producer: usize, number: u64) -> bool {
        let Some(pending) = self.pending.get_mut(producer) else { return false };
        let (word, bit) = (number / 64, 1 << (number % 64));
        // A second arrival within the word has to be seen as one.
        if pending.0 != word || pending.1 & bit != 0 {
            if !ledger.has_published(producer, number) {
                return false;
            }
            enter(ledger, self.place, producer, pending);
            pending.0 = word;
        }
        pending.1 |= bit;
        true
    }

    /// Enters what is noted.
    pub fn flush(&mut self, ledger: &Ledger) {
        for (producer, pending) in self.pending.iter_mut().enumerate() {
            enter(ledger, self.place, producer, pending);
        }
    }
}

fn enter(ledger: &Ledger, place: usize, producer: usize, pending: &mut (u64, u64)) {
    if pending.1 != 0 {
        ledger.arrived[place][producer].lock().set(pending.0, pending.1);
        pending.1 = 0;
    }
}
