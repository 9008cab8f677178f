//! Consumers of streams: their readers live here, in the session of their connection.

use super::Session;
use crate::fault::{Fault, Resource};
use crate::queue::Queue;
use crate::stream::{self, Filter, Pumped, Start, StreamReader};
use crate::work::{self, Budget};
use courser_codec::{FieldTable, basic};
use std::sync::Arc;

/// The time between looks at what readers keep.
const READERS_LOOKED_AT_MS: u64 = 1000;

/// Where and how a stream is to be read.
pub(super) type Reading = (Start, Option<Filter>);

impl Session {
    /// Checks what a consumer asks for that has to do with streams. Returns how to read, if the
    /// queue is one.
    pub(super) fn reading(
        &self,
        queue: &Queue,
        prefetch: u32,
        consume: &basic::Consume<'_>,
        arguments: &FieldTable,
    ) -> Result<Option<Reading>, Fault> {
        if queue.stream().is_none() {
            return Ok(None);
        }
        let resource = self.resource(queue);
        stream::check_consumer(prefetch, consume.no_ack, &resource)?;
        let start = Start::parse(arguments, self.broker.now_ms(), &resource)?;
        Ok(Some((start, Filter::parse(arguments, &self.broker.memory, &resource)?)))
    }

    /// Begins to read for a consumer that its queue, a stream, has taken in: the end of the batch
    /// brings the first messages.
    pub(super) fn begin_reading(
        &mut self,
        number: u16,
        tag: &[u8],
        queue: &Arc<Queue>,
        (start, filter): Reading,
    ) {
        let Some(stream) = queue.stream() else { return };
        let offset = stream.offset_of(start, queue.now_ms());
        let id = self.shard.next_id();
        let place = self.outbox.lock().channel(number).and_then(|channel| {
            let index = channel.find_consumer(tag)?;
            let slot = channel.slot_mut(index)?;
            slot.stream_offset = offset;
            slot.stream_reader = Some(id);
            Some((number, index, slot.consumer_key))
        });
        let Some(place) = place else { return };
        let memory = &self.broker.memory;
        let reader = StreamReader::new(id, queue, place, offset, filter, memory);
        self.stream_readers.insert(id, reader);
    }

    /// Hands consumers of streams what they can take, if something has happened since that was done last
    /// that lets one of them take more. There may be many, with much to read: when the budget is spent, the
    /// next turn goes on where this one ends.
    pub(super) fn pump_streams(&mut self, budget: &Budget) {
        if self.stream_readers.is_empty() {
            return;
        }
        self.give_back_unused();
        if self.outbox.take_woken() | std::mem::take(&mut self.readers_due) {
            self.readers_left = self.stream_readers.len();
        }
        while self.readers_left > 0 && !budget.is_spent() {
            self.readers_left -= 1;
            let mut later = self.stream_readers.range(self.next_reader..);
            let next = later.next().or_else(|| self.stream_readers.first_key_value());
            let Some((&id, _)) = next else { break };
            self.next_reader = id + 1;
            work::count(1);
            self.pump_stream(id, budget);
        }
        if self.readers_left > 0 {
            self.outbox.wake_to_go_on();
        }
    }

    /// Gives back what readers keep that read nothing any more, while their connection does other things.
    fn give_back_unused(&mut self) {
        let now_ms = self.broker.now_ms();
        if now_ms >= self.readers_looked_at_ms {
            self.readers_looked_at_ms = now_ms + READERS_LOOKED_AT_MS;
            work::count(self.stream_readers.len());
            self.stream_readers.values_mut().for_each(StreamReader::keep_memory);
        }
    }

    /// Hands the consumer of one reader what it can take. Called without the shard's gate; `pump_streams` is to be called
    /// afterwards.
    pub(super) fn pump_stream(&mut self, id: u64, budget: &Budget) {
        let Session { stream_readers, outbox, shard, wakes, .. } = self;
        let Some(reader) = stream_readers.get_mut(&id) else { return };
        match reader.pump(outbox, &*shard.store, wakes, budget) {
            Pumped::Waits => {}
            Pumped::HasMore => self.readers_left = stream_readers.len(),
            Pumped::Gone => drop(stream_readers.remove(&id)),
        }
        if wakes.has_traced() {
            let _gate = shard.gate.read();
            shard.post_dead_letters(wakes);
        }
    }

    /// Gives back the memory that an idle connection need not hold.
    pub fn release_memory(&mut self) {
        self.outbox.release_memory();
        self.wakes.release_memory();
        // They keep queues that have been deleted.
        self.forget_routes(self.routes.generation());
        self.acknowledged.retain(|(_, settled)| !settled.is_empty());
        self.stream_readers.values_mut().for_each(StreamReader::release_memory);
    }

    /// Refuses what can't be done with a stream.
    pub(super) fn refuse_for_streams(&self, what: &str, queue: &Queue) -> Result<(), Fault> {
        if queue.stream().is_none() {
            return Ok(());
        }
        let resource = self.resource(queue);
        Err(Fault::not_implemented(format_args!(
            "{what} not supported by stream queues {resource}"
        )))
    }

    pub(super) fn resource<'a>(&'a self, queue: &'a Queue) -> Resource<'a> {
        Resource { kind: "queue", name: queue.name.as_short_str(), vhost: &self.vhost.name }
    }
}
