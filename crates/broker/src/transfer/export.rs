//! Reading a vhost out, piece by piece, while it stands still.

use super::PIECE_BYTES;
use super::item::{Totals, put_begin, put_end, put_record};
use super::merged::{Holder, Line, Merged};
use crate::broker::Broker;
use crate::exchange::Exchange;
use crate::fault::{Fault, Resource, store_fault};
use crate::persistence::definition;
use crate::queue::Queue;
use crate::vhost::{Vhost, is_predefined};
use bytes::{Bytes, BytesMut};
use courser_store::change::QUEUES_PER_RECORD_MAX;
use courser_store::{BodySize, Location, Position, Reader, Record, StoreError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A vhost that is read out.
pub struct Export {
    broker: Arc<Broker>,
    vhost: Arc<Vhost>,
    /// Which time it is that it stands still.
    turn: u64,
    reader: Box<dyn Reader>,
    stage: Stage,
    messages: Merged,
    delayed: VecDeque<Delayed>,
    /// What has been read out and not been asked for.
    pending: BytesMut,
    totals: Totals,
    left_behind: LeftBehind,
    /// Kept for their memory: who holds a message, and by what numbers.
    held: Vec<(usize, u16)>,
    numbers: Vec<u64>,
}

/// What is read out next.
enum Stage {
    Begin,
    Policies,
    Makes(VecDeque<Made>),
    Bindings(VecDeque<Arc<Exchange>>),
    Messages,
    Delayed,
    Done,
}

/// Something that has a number in the log.
enum Made {
    Exchange(Arc<Exchange>),
    Queue(Arc<Queue>),
}

impl Made {
    fn number(&self) -> u64 {
        match self {
            Made::Exchange(exchange) => exchange.id,
            Made::Queue(queue) => queue.id,
        }
    }
}

/// Messages that wait for their time in an exchange.
struct Delayed {
    exchange: Arc<Exchange>,
    surviving: Box<dyn Iterator<Item = (Position, u64)> + Send>,
}

/// What of a vhost does not come along, as it does not survive a restart either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// Exchanges that are not durable.
    pub exchanges: u64,
    /// Queues that are not durable, with what is in them.
    pub queues: u64,
    /// Messages that are not persistent, and those of such queues.
    pub messages: u64,
    /// Messages that the disk has lost.
    pub lost: u64,
}

impl Export {
    /// Begins to read a vhost out.
    ///
    /// # Errors
    /// When it does not stand still, or has something that can't be carried.
    pub(crate) fn begin(broker: &Arc<Broker>, vhost: &Arc<Vhost>) -> Result<Self, Fault> {
        let turn = vhost.still_turn().ok_or_else(|| no_longer_still(&vhost.name))?;
        let in_motion = vhost.in_motion();
        if in_motion > 0 {
            return Err(Fault::precondition_failed(format_args!(
                "{in_motion} connections and requests are still in vhost '{}': wait until they are gone",
                vhost.name
            )));
        }
        let mut export = Export {
            broker: Arc::clone(broker),
            vhost: Arc::clone(vhost),
            turn,
            reader: vhost.shard().store.reader(),
            stage: Stage::Begin,
            messages: Merged::default(),
            delayed: VecDeque::new(),
            pending: BytesMut::new(),
            totals: Totals::default(),
            left_behind: LeftBehind::default(),
            held: Vec::new(),
            numbers: Vec::new(),
        };
        vhost.queues().iter().try_for_each(|queue| export.survey_queue(queue))?;
        vhost.exchanges().iter().for_each(|exchange| export.survey_exchange(exchange));
        Ok(export)
    }

    /// Finds out what a queue has.
    fn survey_queue(&mut self, queue: &Arc<Queue>) -> Result<(), Fault> {
        if !queue.settings.survives() {
            self.left_behind.queues += 1;
            self.left_behind.messages += queue.status().ready as u64;
            return Ok(());
        }
        if let Some(stream) = queue.stream() {
            let first_offset = stream.first_offset();
            if stream.places_from(first_offset).iter().any(|place| place.position().is_none()) {
                return self.refuse(queue, "has messages in memory only");
            }
            self.messages.add(Line::of_stream(queue, first_offset));
            return Ok(());
        }
        let held = queue.lines();
        if held.unacked > 0 {
            return self.refuse(queue, "has unacknowledged messages");
        }
        // Those that come along are taken off as they are read out.
        self.left_behind.messages += held.messages as u64;
        for line in held.lines {
            self.messages.add(Line::of_queue(queue, line));
        }
        Ok(())
    }

    fn refuse(&self, queue: &Queue, why: &str) -> Result<(), Fault> {
        let (name, vhost) = (queue.name.as_short_str(), &*self.vhost.name);
        let queue = Resource { kind: "queue", name, vhost };
        Err(Fault::precondition_failed(format_args!(
            "{queue} {why}: empty or delete it, and move the vhost again"
        )))
    }

    fn survey_exchange(&mut self, exchange: &Arc<Exchange>) {
        let is_durable = exchange.settings.durable;
        if !is_durable && !is_predefined(&exchange.name) {
            self.left_behind.exchanges += 1;
        }
        if let Some(history) = exchange.history() {
            let (positions, messages) = history.surviving();
            self.left_behind.messages += messages as u64;
            if is_durable {
                self.messages.add(Line::of_history(exchange, positions));
            }
        }
        if let Some(delay) = exchange.delay() {
            let (surviving, messages) = delay.surviving();
            self.left_behind.messages += messages as u64;
            if is_durable {
                let exchange = Arc::clone(exchange);
                self.delayed.push_back(Delayed { exchange, surviving: Box::new(surviving) });
            }
        }
    }

    /// The next piece, of a MiB at most; none when there are no more. Blocks while it reads the log.
    ///
    /// # Errors
    /// When the vhost does not stand still any more, or the log can't be read. Nothing has changed in it.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.vhost.still_turn() != Some(self.turn) || self.vhost.is_deleted() {
            return Err(no_longer_still(&self.vhost.name));
        }
        while self.pending.len() < PIECE_BYTES && !matches!(self.stage, Stage::Done) {
            self.step()?;
        }
        let bytes = self.pending.len().min(PIECE_BYTES);
        Ok((bytes > 0).then(|| self.pending.split_to(bytes).freeze()))
    }

    /// Has the vhost stand still from now on also after a restart, until it is let go on or is elsewhere: once this is
    /// durable, it can be said that it is there.
    ///
    /// # Errors
    /// When it does not stand still any more, has not been read out to its end, or that can't be kept.
    pub fn hold(self) -> Result<(), Fault> {
        let is_read = matches!(self.stage, Stage::Done) && self.pending.is_empty();
        match is_read && self.broker.hold_vhost(&self.vhost, self.turn)? {
            true => Ok(()),
            false => Err(no_longer_still(&self.vhost.name)),
        }
    }

    /// What does not come along. Complete when there are no more pieces.
    pub fn left_behind(&self) -> LeftBehind {
        self.left_behind
    }

    /// How many messages have been read out.
    pub fn messages(&self) -> u64 {
        self.totals.messages
    }

    /// Reads out one more thing, or goes on to the next kind of things.
    fn step(&mut self) -> Result<(), Fault> {
        let vhost = Arc::clone(&self.vhost);
        match &mut self.stage {
            Stage::Begin => {
                put_begin(&mut self.pending, &vhost.name).map_err(store_fault)?;
                let prefix = definition::parameter_prefix(&vhost.name);
                for (rest, value) in self.broker.kept.beginning_with(&prefix) {
                    self.define(&[&prefix[..], &rest].concat(), &value)?;
                }
                self.stage = Stage::Policies;
            }
            Stage::Policies => {
                let mut policies = Vec::new();
                vhost.for_each_policy(&mut |key, value| {
                    policies.push((key.to_vec(), value.to_vec()))
                });
                for (key, value) in policies {
                    self.define(&key, &value)?;
                }
                self.stage = Stage::Makes(makes(&vhost));
            }
            Stage::Makes(left) => match left.pop_front() {
                Some(Made::Exchange(exchange)) => {
                    let key = definition::exchange_key(&vhost.name, &exchange.name);
                    self.define(&key, &definition::exchange_value(&exchange))?;
                }
                Some(Made::Queue(queue)) => self.define_queue(&queue)?,
                None => self.stage = Stage::Bindings(vhost.exchanges().into()),
            },
            Stage::Bindings(left) => match left.pop_front() {
                Some(exchange) => {
                    let mut keys = Vec::new();
                    vhost.for_each_binding_of(&exchange, &mut |key| keys.push(key.to_vec()));
                    keys.iter().try_for_each(|key| self.define(key, &[]))?;
                }
                None => self.stage = Stage::Messages,
            },
            Stage::Messages => self.read_message()?,
            Stage::Delayed => self.read_delayed()?,
            Stage::Done => {}
        }
        Ok(())
    }

    fn define(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.totals.definitions += 1;
        put_record(&mut self.pending, &Record::Defined { key, value }).map_err(store_fault)
    }

    fn define_queue(&mut self, queue: &Queue) -> Result<(), Fault> {
        let key = definition::queue_key(&self.vhost.name, &queue.name);
        self.define(&key, &definition::queue_value(queue, queue.is_paused()))?;
        match queue.stream() {
            Some(stream) => put_record(&mut self.pending, &stream.record()).map_err(store_fault),
            None => Ok(()),
        }
    }

    /// Reads out the next message that queues hold, and what is noted of it.
    fn read_message(&mut self) -> Result<(), Fault> {
        let Some(position) = self.messages.next(QUEUES_PER_RECORD_MAX, &mut self.held) else {
            self.stage = Stage::Delayed;
            return Ok(());
        };
        let (lines, held) = (&self.messages.lines, &self.held);
        self.numbers.clear();
        self.numbers.extend(held.iter().map(|(line, _)| lines[*line].holder.number()));
        let not_from_streams = held.iter().filter(|(line, _)| !lines[*line].is_stream()).count();
        self.left_behind.messages -= not_from_streams as u64;
        let location = Location::logged(position);
        let message = match self.reader.read(&location) {
            Ok(message) => message,
            Err(StoreError::Lost(_)) if not_from_streams == held.len() => {
                // No consumer would get it here either.
                self.left_behind.lost += 1;
                return Ok(());
            }
            Err(StoreError::Lost(_)) => return self.refuse_stream(),
            Err(error) => return Err(store_fault(error)),
        };
        let holders = self.numbers.len() as u32;
        let record = Record::Message { queues: &self.numbers, holders, message };
        put_record(&mut self.pending, &record).map_err(store_fault)?;
        for (line, marks) in held {
            let Holder::Queue(queue) = &lines[*line].holder else { continue };
            if *marks != 0
                && let Some(returned) = queue.returns_of((position, *marks, BodySize::UNKNOWN))
            {
                let pairs = [(Position(0), returned.how.code()), (Position(1), returned.unharmed)];
                let returns = if returned.unharmed > 0 { &pairs[..] } else { &pairs[..1] };
                let record = Record::Returned { queue: queue.id, returns };
                put_record(&mut self.pending, &record).map_err(store_fault)?;
            }
        }
        self.totals.messages += 1;
        Ok(())
    }

    /// A message of a stream can't be read: without it, those behind it would have other offsets.
    fn refuse_stream(&self) -> Result<(), Fault> {
        let lines = self.held.iter().map(|(line, _)| &self.messages.lines[*line]);
        let stream = lines.filter(|line| line.is_stream()).find_map(|line| match &line.holder {
            Holder::Queue(queue) => {
                let first_offset = queue.stream()?.first_offset();
                Some((&queue.name, first_offset + line.taken - 1))
            }
            Holder::Exchange(_) => None,
        });
        let Some((name, offset)) = stream else { return Ok(()) };
        let stream =
            Resource { kind: "stream", name: name.as_short_str(), vhost: &self.vhost.name };
        Err(Fault::precondition_failed(format_args!(
            "the disk has lost the message with offset {offset} of {stream}: let it leave by \
             retention, or delete the stream, and move the vhost again"
        )))
    }

    /// Reads out the next message that waits for its time.
    fn read_delayed(&mut self) -> Result<(), Fault> {
        let Some(Delayed { exchange, surviving }) = self.delayed.front_mut() else {
            put_end(&mut self.pending, self.totals).map_err(store_fault)?;
            self.stage = Stage::Done;
            return Ok(());
        };
        let Some((position, due_ms)) = surviving.next() else {
            self.delayed.pop_front();
            return Ok(());
        };
        self.left_behind.messages -= 1;
        let location = Location::logged(position);
        let message = match self.reader.read(&location) {
            Err(StoreError::Lost(_)) => {
                self.left_behind.lost += 1;
                return Ok(());
            }
            read => read.map_err(store_fault)?,
        };
        let record = Record::Delayed { queue: exchange.id, due_ms, message };
        put_record(&mut self.pending, &record).map_err(store_fault)?;
        self.totals.messages += 1;
        Ok(())
    }
}

/// The exchanges and queues that survive a restart, in the order of their numbers: they get new ones in this order, by
/// which those go that are due at the same time.
fn makes(vhost: &Vhost) -> VecDeque<Made> {
    let exchanges = vhost.exchanges().into_iter().filter(|one| vhost.defines(one));
    let queues = vhost.queues().into_iter().filter(|queue| queue.settings.survives());
    let mut all: Vec<Made> = exchanges.map(Made::Exchange).chain(queues.map(Made::Queue)).collect();
    all.sort_unstable_by_key(Made::number);
    all.into()
}

fn no_longer_still(name: &str) -> Fault {
    Fault::precondition_failed(format_args!(
        "vhost '{name}' does not stand still any more, so it can't be moved: begin again"
    ))
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("vhost", &self.vhost.name).finish_non_exhaustive()
    }
}
