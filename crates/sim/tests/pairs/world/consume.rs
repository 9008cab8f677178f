//! Consumers that come: alone, or several of one connection that share what it can be sent.

use super::World;
use crate::broker::{CONSUMERS, PLAIN};
use crate::features::Feature;
use crate::model::{Consumer, Path};
use crate::operation::{Batch, NewConsumer};
use crate::topology::{OTHER, WORK};
use courser_codec::{FieldTable, Method, Table, basic};
use courser_sim::short;

/// Where one queue has filled what a connection can be sent, so much may come before the next queue has
/// its turn: twice what an outbox holds, with the message that fills it.
const BEFORE_ITS_TURN_BYTES: usize = 2 * (512 + 128) * 1024;
/// Messages of [`LARGE_BYTES`] that are more than that.
const LARGE_COUNT: usize = 20;
const LARGE_BYTES: usize = 100_000;
/// The places of two consumers of one connection.
const TOGETHER: [usize; 2] = [0, 2];

impl World {
    pub(super) fn consume(&mut self, new: &NewConsumer) -> Result<(), String> {
        if !self.may_consume(new) {
            return Ok(());
        }
        let offset = self.ask_for_deliveries(new)?;
        self.listen()?;
        self.add_consumer(new, offset)
    }

    fn may_consume(&self, new: &NewConsumer) -> bool {
        let channel = CONSUMERS[new.slot];
        let has_one = self.model.consumer_channels().any(|(_, one)| one == channel);
        let holds = self.model.channels.hold_of_gone.contains(&channel)
            || self.model.channels.tags().iter().any(|(one, _)| *one == channel);
        // Readers of streams ask for more all the time.
        let is_stopped = self.model.streams.contains_key(new.queue)
            && self.model.channels.stopped.contains(&channel);
        !has_one && !holds && !is_stopped && self.model.exists(new.queue)
    }

    fn prefetch(&self, new: &NewConsumer) -> u16 {
        // Streams ask for one.
        match self.model.streams.contains_key(new.queue) {
            true if new.prefetch == 0 => u16::MAX,
            _ => new.prefetch,
        }
    }

    /// Sends what makes a consumer. Returns where in a stream it begins.
    fn ask_for_deliveries(&mut self, new: &NewConsumer) -> Result<usize, String> {
        let (queue, channel, prefetch) = (new.queue, CONSUMERS[new.slot], self.prefetch(new));
        let stream = self.model.streams.get(queue);
        let is_stream = stream.is_some();
        // From the beginning, or from the middle.
        let middle = stream.map_or(0, |stream| stream.first() + stream.len() / 2);
        let offset = if new.priority < 0 { middle } else { 0 };
        let is_global = new.is_global && !is_stream;
        for global in [false, true] {
            let prefetch_count = if global == is_global { prefetch } else { 0 };
            let qos = basic::Qos { prefetch_size: 0, prefetch_count, global };
            self.send(channel, &Method::BasicQos(qos))?;
        }
        let mut arguments = FieldTable::new();
        if new.priority != 0 && !is_stream {
            arguments = arguments.with("x-priority", new.priority);
        }
        if is_stream {
            arguments = arguments.with("x-stream-offset", offset as i64);
        }
        let entries = arguments.to_entries();
        let consume = basic::Consume {
            queue: short(queue),
            consumer_tag: short("c"),
            no_ack: new.no_ack && !is_stream,
            arguments: Table::from_entries(&entries),
            ..Default::default()
        };
        self.send(channel, &Method::BasicConsume(consume))?;
        Ok(offset)
    }

    fn add_consumer(&mut self, new: &NewConsumer, offset: usize) -> Result<(), String> {
        let (queue, channel, prefetch) = (new.queue, CONSUMERS[new.slot], self.prefetch(new));
        let prefetch = u64::from(prefetch);
        if self.model.streams.contains_key(queue) {
            return self
                .model
                .with_stream(queue, |stream, at| stream.consume(channel, offset, prefetch, at));
        }
        let consumer = Consumer {
            channel,
            priority: new.priority,
            prefetch,
            is_global: new.is_global,
            no_ack: new.no_ack,
            in_flight: 0,
            stopped: self.model.channels.stopped.contains(&channel),
        };
        self.model.with_queue(queue, |queue, at| queue.consume(consumer, at))
    }

    /// A queue has more than a connection can be sent at once, and another one a single message: both
    /// have consumers there, and take turns.
    pub(super) fn take_turns(&mut self) -> Result<(), String> {
        let consumer =
            |at: usize, queue| NewConsumer { slot: TOGETHER[at], queue, ..Default::default() };
        let both = [consumer(0, WORK), consumer(1, OTHER)];
        let is_busy =
            self.model.consumer_channels().any(|(queue, _)| queue == WORK || queue == OTHER);
        // Where the consumer's connection is full, large letters wait in their queue: one that has no room for them refuses
        // some, which are lost or come later, or drops them.
        let is_limited =
            matches!(self.features.value(Feature::DeadLetters), "reject-publish" | "drop-head");
        if is_busy || is_limited || !both.iter().all(|new| self.may_consume(new)) {
            return Ok(());
        }
        let large =
            Batch { channel: PLAIN, bytes: LARGE_BYTES, count: LARGE_COUNT, ..Batch::default() };
        self.publish(&large)?;
        self.publish(&Batch { path: Path::Other, bytes: 8, count: 1, ..large })?;
        self.compare()?;
        let offsets = [self.ask_for_deliveries(&both[0])?, self.ask_for_deliveries(&both[1])?];
        self.listen()?;
        let before_bytes = self.model.observed.bytes_before(CONSUMERS[TOGETHER[1]]);
        for (new, offset) in both.iter().zip(offsets) {
            self.add_consumer(new, offset)?;
        }
        match before_bytes {
            0..=BEFORE_ITS_TURN_BYTES => Ok(()),
            _ => Err(format!("{before_bytes} bytes come before the turn of the other queue")),
        }
    }
}
