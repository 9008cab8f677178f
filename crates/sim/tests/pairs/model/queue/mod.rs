//! A queue: what waits in which order, who has what, and who gets the next message.

mod intake;
mod letters;
mod retry;
mod time;

use super::consumers::{Consumer, Consumers};
use super::deduplication::Marks;
use super::message::{Entry, Message};
use super::settings::{Retry, Settings};
use super::{ChannelId, Held, Moment};
use letters::Stranded;
use retry::Delayed;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A place in a queue: the highest level first, then in the order of arrival.
pub type Place = (Reverse<u8>, u64);

/// How a queue looks at priorities.
#[derive(Clone, Copy, Debug)]
pub enum Levels {
    None,
    UpTo(u8),
    /// Those of a quorum queue: up to 31, and 4 for what says nothing.
    Quorum,
}

/// What a queue is and stays, whatever policies say.
#[derive(Clone, Debug)]
pub struct Kind {
    pub levels: Levels,
    pub single_active: bool,
    /// A quorum queue.
    pub is_quorum: bool,
    /// It never holds two messages with the same mark.
    pub holds_no_two: bool,
    /// How many marks it remembers.
    pub marks: Option<usize>,
}

/// What became of a publish in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Taken,
    Refused,
    /// It was there before.
    Repeated,
}

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    Ack,
    /// `basic.nack`, and, which says that the client failed, `basic.reject`.
    Reject {
        counts: bool,
    },
    /// `basic.nack` and `basic.recover`, and, which counts, `basic.reject` and the end of a channel.
    Requeue {
        counts: bool,
    },
}

/// A message that is handed out.
#[derive(Clone, Debug)]
struct Taken {
    entry: Entry,
    holder: ChannelId,
    since_ms: u64,
    /// There was a consumer timeout when it was handed out, and ever since.
    is_timed: bool,
}

/// A queue that is no stream.
#[derive(Clone, Debug)]
pub struct Queue {
    pub name: &'static str,
    kind: Kind,
    arguments: Settings,
    settings: Settings,
    ready: BTreeMap<Place, Entry>,
    taken: BTreeMap<Place, Taken>,
    delayed: Delayed,
    next: u64,
    consumers: Consumers,
    pub paused: bool,
    /// From when on those live that say of no other beginning.
    since_ms: u64,
    used_ms: u64,
    marks: Option<Marks>,
    stranded: Stranded,
}

impl Queue {
    pub fn new(name: &'static str, kind: Kind, arguments: Settings, now_ms: u64) -> Self {
        let consumers = Consumers::new(kind.single_active, kind.is_quorum);
        let marks = kind.marks.map(Marks::new);
        let settings = arguments.clone();
        let (ready, taken, delayed) = Default::default();
        let (next, paused, since_ms, used_ms) = (0, false, now_ms, now_ms);
        Queue {
            name,
            kind,
            arguments,
            settings,
            ready,
            taken,
            delayed,
            next,
            consumers,
            paused,
            since_ms,
            used_ms,
            marks,
            stranded: Stranded::default(),
        }
    }

    /// What waits, the next first.
    pub fn ready(&self) -> impl Iterator<Item = &Entry> {
        self.ready.values()
    }

    /// What waits may as well be as in `other`, where the same waits.
    pub fn leave_open(&mut self, other: &Queue) {
        let both = self.ready.values_mut().zip(other.ready.values());
        both.for_each(|(one, other)| one.leave_open(other));
    }

    /// Whether it has the message with this number.
    pub fn has(&self, id: u64) -> bool {
        let taken = self.taken.values().map(|one| &one.entry);
        let mut all = self.ready.values().chain(taken).chain(self.delayed.entries());
        all.any(|entry| entry.message.id == id)
    }

    /// How many messages wait, how many wait for their next try, how many are handed out, and how many consumers
    /// there are.
    pub fn counts(&self) -> (usize, usize, usize, usize) {
        (self.ready.len(), self.delayed.len(), self.taken.len(), self.consumers.len())
    }

    pub fn consumer_channels(&self) -> Vec<ChannelId> {
        self.consumers.channels()
    }

    /// Whether a consumer has what it gets for good.
    pub fn hands_out_for_good(&self) -> bool {
        self.consumers.take_for_good()
    }

    /// Whether messages for it say when they were published.
    pub fn stamps(&self) -> bool {
        self.settings.ttl_ms.is_some()
    }

    fn place(&mut self, message: &Message) -> Place {
        let level = match self.kind.levels {
            Levels::None => 0,
            Levels::UpTo(highest) => message.priority.min(highest),
            Levels::Quorum if message.priority == 0 => 4,
            Levels::Quorum => message.priority.min(31),
        };
        self.next += 1;
        (Reverse(level), self.next)
    }

    fn ready_bytes(&self) -> u64 {
        let all = self.ready.values().chain(self.delayed.entries());
        all.map(|entry| entry.message.bytes as u64).sum()
    }

    /// Whether it drops what it has had.
    pub fn screens(&self) -> bool {
        self.has_marks() || self.kind.holds_no_two
    }

    /// Whether it remembers marks.
    pub fn has_marks(&self) -> bool {
        self.marks.is_some()
    }

    /// Whether it has had a message with this mark.
    pub fn has_had(&self, mark: u8) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.has(mark))
    }

    /// It has taken a message with this mark.
    pub fn remember(&mut self, mark: u8) {
        self.marks.iter_mut().for_each(|marks| marks.remember(mark));
    }

    /// Whether it has a message with this mark, and holds no two.
    pub fn holds_same(&self, mark: u8) -> bool {
        let taken = self.taken.values().map(|one| &one.entry);
        let mut all = self.ready.values().chain(taken).chain(self.delayed.entries());
        self.kind.holds_no_two && all.any(|entry| entry.message.mark == Some(mark))
    }

    /// Hands out what waits to consumers that can take it, and finds fault where one that can got nothing.
    fn feed(&mut self, at: &mut Moment<'_>) -> Result<(), String> {
        loop {
            // Also without messages: it may be another one's turn from now on.
            let candidates = self.consumers.next();
            self.expire(at);
            if self.paused || candidates.is_empty() {
                return Ok(());
            }
            let Some((place, entry)) = self.ready.pop_first() else { return Ok(()) };
            self.hand(place, entry, &candidates, at)?;
        }
    }

    /// Hands a message to the one of `candidates` that was seen to get it.
    fn hand(
        &mut self,
        place: Place,
        mut entry: Entry,
        candidates: &[Consumer],
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        let id = entry.message.id;
        let found = candidates
            .iter()
            .find_map(|one| Some((one, at.observed.take_delivery(one.channel, id)?)));
        let Some((consumer, delivery)) = found else {
            let channels: Vec<_> = candidates.iter().map(|one| one.channel).collect();
            let queue = self.name;
            return Err(format!("message {id} of {queue} should go to one of {channels:?}"));
        };
        entry.check(&delivery)?;
        if consumer.no_ack {
            return Ok(());
        }
        let held = Held { queue: self.name, place: Some(place) };
        at.channels.hold(consumer.channel, delivery.tag, held);
        if let Some(consumer) = self.consumers.get_mut(consumer.channel) {
            consumer.in_flight += 1;
        }
        self.take(place, entry, consumer.channel, at.now_ms);
        Ok(())
    }

    fn take(&mut self, place: Place, entry: Entry, holder: ChannelId, now_ms: u64) {
        let is_timed = self.settings.timeout_ms.is_some();
        self.taken.insert(place, Taken { entry, holder, since_ms: now_ms, is_timed });
    }

    /// `basic.get`.
    pub fn get(
        &mut self,
        holder: ChannelId,
        no_ack: bool,
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        if self.paused {
            return at.observed.take_empty(self.name);
        }
        self.used_ms = at.now_ms;
        self.expire(at);
        let Some((place, mut entry)) = self.ready.pop_first() else {
            return at.observed.take_empty(self.name);
        };
        let with_expired = self.ready.len();
        self.expire(at);
        let id = entry.message.id;
        let Some(delivery) = at.observed.take_delivery(holder, id) else {
            return Err(format!("basic.get of {} does not give message {id}", self.name));
        };
        entry.check(&delivery)?;
        // What has expired behind the message may be counted as long as it has not left.
        let left = self.ready.len()..=with_expired;
        if !delivery.left.is_some_and(|found| left.contains(&(found as usize))) {
            return Err(format!("{delivery:?}, but {left:?} messages are left"));
        }
        if !no_ack {
            let held = Held { queue: self.name, place: Some(place) };
            at.channels.hold(holder, delivery.tag, held);
            self.take(place, entry, holder, at.now_ms);
        }
        Ok(())
    }

    /// Deliveries come back from their channel, in the order of their tags.
    pub fn settle(
        &mut self,
        places: &[Place],
        settlement: Settlement,
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        for place in places {
            let Some(taken) = self.taken.remove(place) else {
                return Err(format!("{place:?} of {} is settled twice", self.name));
            };
            if let Some(consumer) = self.consumers.get_mut(taken.holder) {
                consumer.in_flight -= 1;
            }
            match settlement {
                Settlement::Ack => {}
                Settlement::Reject { counts } => {
                    let mut entry = taken.entry;
                    entry.failed = if counts { Some(true) } else { entry.failed };
                    self.bury(*place, &entry, &["rejected"], at);
                }
                Settlement::Requeue { counts } => self.put_back(*place, taken.entry, counts, at),
            }
        }
        if let Settlement::Requeue { .. } = settlement {
            self.drop_excess(at);
        }
        self.feed(at)
    }

    fn put_back(&mut self, place: Place, mut entry: Entry, counts: bool, at: &mut Moment<'_>) {
        entry.failed = if counts { Some(true) } else { entry.failed };
        if let Some(limit) = self.settings.delivery_limit.filter(|_| counts) {
            if entry.returns >= limit {
                return self.bury(place, &entry, &["delivery_limit"], at);
            }
            entry.returns += 1;
        }
        entry.redelivered = Some(true);
        match self.settings.retry.wait_ms(counts, entry.returns) {
            Some(wait_ms) => self.delayed.insert(at.now_ms + wait_ms, place, entry),
            None => drop(self.ready.insert(place, entry)),
        }
    }

    /// Everything that waits goes, also for a queue that takes its letters.
    pub fn purge(&mut self) {
        self.ready.clear();
        self.delayed.clear();
        self.forget_stranded();
    }

    pub fn consume(&mut self, consumer: Consumer, at: &mut Moment<'_>) -> Result<(), String> {
        self.consumers.add(consumer);
        self.feed(at)
    }

    /// A consumer goes; what it has not settled stays with its channel.
    pub fn cancel(&mut self, channel: ChannelId, at: &mut Moment<'_>) -> Result<(), String> {
        self.remove_consumer(channel, at.now_ms);
        self.feed(at)
    }

    /// The same, and no other consumer gets anything yet.
    pub fn remove_consumer(&mut self, channel: ChannelId, now_ms: u64) {
        let before = self.consumers.len();
        self.consumers.remove(channel);
        if before > 0 && self.consumers.len() == 0 {
            self.used_ms = now_ms;
        }
    }

    /// The channel of a consumer asks for nothing more, or for more again.
    pub fn stop_consumer(
        &mut self,
        channel: ChannelId,
        stopped: bool,
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        if let Some(consumer) = self.consumers.get_mut(channel) {
            consumer.stopped = stopped;
        }
        self.feed(at)
    }

    pub fn pause(&mut self, on: bool, at: &mut Moment<'_>) -> Result<(), String> {
        self.paused = on;
        self.feed(at)
    }

    /// It is declared once more.
    pub fn touch(&mut self, now_ms: u64) {
        self.used_ms = now_ms;
    }

    /// From now on it has this policy.
    pub fn set_policy(&mut self, policy: &Settings, at: &mut Moment<'_>) -> Result<(), String> {
        let mut settings = self.arguments.with(policy);
        if !self.kind.is_quorum {
            settings.retry = Retry::default();
        }
        if settings == self.settings {
            return Ok(());
        }
        if self.settings.ttl_ms.is_none() {
            self.since_ms = at.now_ms;
        }
        self.settings = settings;
        self.used_ms = at.now_ms;
        if self.settings.timeout_ms.is_none() {
            self.taken.values_mut().for_each(|taken| taken.is_timed = false);
        }
        self.drop_excess(at);
        self.feed(at)
    }
}
