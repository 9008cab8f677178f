//! What a broker promises, in as few words as possible: what waits where and in which order, who has
//! what, who gets the next message, what becomes of it otherwise, and what is due when.
//!
//! The model is told each operation together with everything that clients were sent meanwhile. Where
//! more than one thing may happen, as with two consumers of the same priority, it takes what happened
//! if that is one of them. What should have been sent and was not is an error, and so is what was sent
//! and should not have been.

mod channels;
mod consumers;
mod deduplication;
mod exchange;
mod message;
mod observed;
mod publishing;
mod queue;
mod settings;
mod stream;

pub use channels::{Channels, Held};
pub use consumers::Consumer;
pub use exchange::{Exchanges, Path};
pub use message::{Entry, Message};
pub use observed::Observed;
pub use queue::{Kind, Levels, Place, Queue, Settlement};
pub use settings::{DeadLetter, Overflow, Retry, Settings};
pub use stream::{Retention, Stream};

use crate::topology::{DEAD, WORK};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A connection and a channel of it.
pub type ChannelId = (usize, u16);

/// What a change of a queue happens in.
pub struct Moment<'a> {
    pub now_ms: u64,
    pub observed: &'a mut Observed,
    pub channels: &'a mut Channels,
    /// What has died, the oldest first.
    pub letters: &'a mut VecDeque<Letter>,
}

/// A message that has left its queue unconsumed.
#[derive(Clone, Debug)]
pub struct Letter {
    pub to: DeadLetter,
    pub from: &'static str,
    /// What it was there, and where, if it has to return.
    pub place: Place,
    pub entry: Entry,
    /// What it has become.
    pub message: Rc<Message>,
}

/// A publish.
#[derive(Clone, Debug)]
pub struct Publish {
    pub path: Path,
    pub message: Rc<Message>,
    /// It names a further key, in CC or in BCC.
    pub has_more_keys: bool,
    pub mandatory: bool,
    pub delay_ms: Option<u64>,
}

/// Everything that the broker is expected to have.
#[derive(Clone, Default)]
pub struct Model {
    pub queues: BTreeMap<&'static str, Queue>,
    pub streams: BTreeMap<&'static str, Stream>,
    pub exchanges: Exchanges,
    pub channels: Channels,
    pub observed: Observed,
    pub now_ms: u64,
    /// The policy of the queue under test.
    pub policy: Settings,
    letters: VecDeque<Letter>,
    /// The numbers of letters that were seen to arrive, in their order, and are not known of yet.
    arrived: Vec<u64>,
    /// There were some when this was looked for last: those that are not among them found no room.
    some_arrived: bool,
    /// Since this was last asked, letters have found their way that had waited: whether they are before or behind others
    /// that came at the same time is not promised.
    letters_had_waited: bool,
    /// The letters that have come since then, by their numbers: the first may have had to make room for the last.
    passed: BTreeMap<u64, Entry>,
    /// Within a commit, letters that wait for another try go on waiting, unless they were seen to arrive: that is a timer's,
    /// and what the commit returns to their queue may take the room.
    commits: bool,
    /// Queues take what they have no room for: the log has it already.
    pub refuses_nothing: bool,
    /// Where the log ends in between, how many more letters it lets leave their queues.
    pub letters_left: Option<usize>,
    /// How many letters have left their queues.
    pub letters_gone: usize,
}

impl Model {
    /// A broker without any queue.
    pub fn new(now_ms: u64) -> Self {
        Model { now_ms, ..Model::default() }
    }

    /// Whether a queue or stream of this name is there.
    pub fn exists(&self, name: &str) -> bool {
        self.queues.contains_key(name) || self.streams.contains_key(name)
    }

    /// The consumers and readers there are: queue and channel.
    pub fn consumer_channels(&self) -> impl Iterator<Item = (&'static str, ChannelId)> {
        let queues = self.queues.iter().map(|(name, queue)| (*name, queue.consumer_channels()));
        let streams = self.streams.iter().map(|(name, stream)| (*name, stream.reader_channels()));
        let all = queues.chain(streams);
        all.flat_map(|(name, channels)| channels.into_iter().map(move |channel| (name, channel)))
    }

    /// These letters wait where letters go, or were delivered from there. Where the first have to make room for the
    /// last, too few are seen.
    pub fn see_letters(&mut self, waiting: impl Iterator<Item = u64>) {
        let dead = self.queues.get(DEAD).filter(|dead| !dead.may_drop());
        let all = self.observed.letters().chain(waiting);
        self.arrived = dead.map_or(Vec::new(), |dead| all.filter(|id| !dead.has(*id)).collect());
        self.some_arrived = !self.arrived.is_empty();
    }

    /// What waits where letters go: if some of them had waited, any of those that have come may be there, in any order.
    pub fn follow_letters(&mut self, found: &[u64]) {
        let passed = std::mem::take(&mut self.passed);
        if std::mem::take(&mut self.letters_had_waited)
            && let Some(dead) = self.queues.get_mut(DEAD)
        {
            dead.exchange(found, passed);
        }
    }

    /// Does something with a queue that is no stream, and sends what dies on its way.
    pub fn with_queue<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Queue, &mut Moment<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let Model { queues, observed, channels, letters, now_ms, .. } = self;
        let queue = queues.get_mut(name).ok_or_else(|| format!("there is no queue {name}"))?;
        let done = change(queue, &mut Moment { now_ms: *now_ms, observed, channels, letters })?;
        self.post()?;
        Ok(done)
    }

    /// The same with a stream.
    pub fn with_stream<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Stream, &mut Moment<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let Model { streams, observed, channels, letters, now_ms, .. } = self;
        let stream = streams.get_mut(name).ok_or_else(|| format!("there is no stream {name}"))?;
        change(stream, &mut Moment { now_ms: *now_ms, observed, channels, letters })
    }

    /// Settles deliveries of a channel: each queue does so with its own together.
    pub fn settle(
        &mut self,
        channel: ChannelId,
        held: &[(u64, Held)],
        settlement: Settlement,
    ) -> Result<(), String> {
        let mut places = BTreeMap::<&'static str, Vec<Place>>::new();
        let mut offsets = BTreeMap::<&'static str, u64>::new();
        for (_, one) in held {
            match one.place {
                Some(place) => places.entry(one.queue).or_default().push(place),
                None => *offsets.entry(one.queue).or_default() += 1,
            }
        }
        for (name, count) in offsets {
            self.with_stream(name, |stream, at| stream.settle(channel, count, at))?;
        }
        for (name, places) in places {
            self.with_queue(name, |queue, at| queue.settle(&places, settlement, at))?;
        }
        Ok(())
    }

    /// Closes channels together: their consumers end, and what they hold returns.
    pub fn close_channels(
        &mut self,
        channels: &[ChannelId],
        transactional: ChannelId,
    ) -> Result<(), String> {
        let mut held = Vec::new();
        for channel in channels {
            for queue in self.queues.values_mut() {
                queue.remove_consumer(*channel, self.now_ms);
            }
            self.streams.values_mut().for_each(|stream| stream.remove_reader(*channel));
            held.extend(self.channels.take_all(*channel, *channel == transactional));
        }
        let returned: Vec<_> = held.into_iter().filter(|(_, one)| one.place.is_some()).collect();
        let first = channels.first().copied().unwrap_or_default();
        self.settle(first, &returned, Settlement::Requeue { counts: true })?;
        // Where nothing returns, it may be another consumer's turn all the same.
        let names: Vec<_> = self.queues.keys().copied().collect();
        names.into_iter().try_for_each(|name| {
            self.with_queue(name, |queue, at| {
                let paused = queue.paused;
                queue.pause(paused, at)
            })
        })
    }

    /// A channel asks for nothing more, or for more again.
    pub fn flow(&mut self, channel: ChannelId, active: bool) -> Result<(), String> {
        match active {
            true => self.channels.stopped.remove(&channel),
            false => self.channels.stopped.insert(channel),
        };
        let names: Vec<_> = self.queues.keys().copied().collect();
        names.into_iter().try_for_each(|name| {
            self.with_queue(name, |queue, at| queue.stop_consumer(channel, !active, at))
        })
    }

    /// Whether the exchanges of all that waits for a commit are there: otherwise nothing of it takes effect.
    pub fn may_commit(&self) -> bool {
        let has_gone = |one: &Publish| one.path == Path::Brief && !self.exchanges.has_brief;
        !self.channels.transaction.publishes.iter().any(has_gone)
    }

    /// A commit. Returns whether everything was taken; then its channel goes on.
    pub fn commit(&mut self, channel: ChannelId) -> Result<bool, String> {
        if !self.may_commit() {
            // Nothing takes effect.
            self.channels.roll_back(channel);
            return Ok(false);
        }
        let transaction = std::mem::take(&mut self.channels.transaction);
        let is_kept = |one: &Publish| one.path == Path::Later && one.delay_ms.is_some();
        let (kept_for_later, at_once): (Vec<_>, Vec<_>) =
            transaction.publishes.into_iter().partition(is_kept);
        self.commits = true;
        let all_taken = self.publish_together(&at_once)?;
        self.publish_each(&kept_for_later)?;
        let both = [true, false];
        let rejects = both.map(|counts| Settlement::Reject { counts });
        let requeues = both.map(|counts| Settlement::Requeue { counts });
        for wanted in [Settlement::Ack].into_iter().chain(rejects).chain(requeues) {
            let those = transaction.settled.iter().filter(|(.., settlement)| *settlement == wanted);
            let those: Vec<_> = those.map(|(tag, held, _)| (*tag, held.clone())).collect();
            self.settle(channel, &those, wanted)?;
            self.post()?;
        }
        self.commits = false;
        self.post()?;
        if all_taken {
            self.observed.take_commit()?;
        }
        Ok(all_taken)
    }

    /// A queue is gone with all that is in it. Its consumers are told.
    pub fn delete_queue(&mut self, name: &'static str) -> Result<(), String> {
        let consumers = match self.queues.remove(name) {
            Some(queue) => queue.consumer_channels(),
            None => self.streams.remove(name).map_or_else(Vec::new, |one| one.reader_channels()),
        };
        self.channels.forget_queue(name);
        if name == WORK {
            self.exchanges.hashed.clear();
        }
        consumers.into_iter().try_for_each(|channel| self.observed.take_cancel(channel))
    }

    /// When something is due.
    pub fn next_ms(&self) -> Option<u64> {
        let queues = self.queues.values().filter_map(Queue::next_ms);
        queues.chain(self.exchanges.next_ms()).min()
    }

    /// Does what is due now. Returns the channels that are to be closed, as they have had a message for too long.
    pub fn tick(&mut self) -> Result<Vec<ChannelId>, String> {
        let names: Vec<_> = self.queues.keys().copied().collect();
        for name in names {
            if self.queues[name].end_ms().is_some_and(|end_ms| end_ms <= self.now_ms) {
                self.delete_queue(name)?;
                continue;
            }
            self.with_queue(name, |queue, at| {
                queue.expire(at);
                Ok(())
            })?;
        }
        self.publish_due()?;
        let names: Vec<_> = self.queues.keys().copied().collect();
        for name in names {
            self.with_queue(name, Queue::cancel_overdue)?;
            self.with_queue(name, Queue::retry_due)?;
        }
        let overdue = self.queues.values().flat_map(|queue| queue.overdue(self.now_ms));
        let mut overdue: Vec<_> = overdue.collect();
        overdue.sort_unstable();
        overdue.dedup();
        Ok(overdue)
    }

    /// Publishes what was delayed until now.
    pub fn publish_due(&mut self) -> Result<(), String> {
        let due = self.exchanges.take_due(self.now_ms);
        self.publish_together(&due)?;
        self.post()
    }

    /// No consumer gets anything any more.
    pub fn forget_consumers(&mut self) {
        self.queues.values_mut().for_each(Queue::forget_consumers);
        self.streams.values_mut().for_each(Stream::restart);
    }

    /// What waits may as well be as in `other`, where the same waits.
    pub fn leave_open(&mut self, other: &Model) {
        for (name, queue) in &mut self.queues {
            other.queues.get(name).into_iter().for_each(|other| queue.leave_open(other));
        }
    }

    /// The direct exchange begins anew to remember marks, as many as this, and so do queues.
    pub fn forget_marks(&mut self, marks: Option<usize>) {
        self.exchanges.remember(marks);
        self.queues.values_mut().for_each(Queue::forget_marks);
    }

    /// The broker was stopped and has started again. The direct exchange begins anew to remember marks,
    /// as many as this. What was delayed until then may come before what is too much or too old leaves.
    pub fn restart(&mut self, marks: Option<usize>, due_comes_first: bool) -> Result<(), String> {
        self.channels.forget_all();
        self.exchanges.restart(marks);
        self.streams.values_mut().for_each(Stream::restart);
        let now_ms = self.now_ms;
        self.queues.values_mut().for_each(|queue| queue.restart(now_ms));
        if due_comes_first {
            self.publish_due()?;
        }
        let Model { queues, observed, channels, letters, now_ms, .. } = self;
        for queue in queues.values_mut() {
            queue.tidy_up(&mut Moment { now_ms: *now_ms, observed, channels, letters });
        }
        self.post()?;
        self.tick().map(drop)
    }
}
