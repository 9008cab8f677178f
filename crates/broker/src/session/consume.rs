//! Consuming: `basic.consume`, `basic.cancel`, `basic.get`, `basic.qos` and `channel.flow`.

use super::Session;
use crate::arguments::{QueueType, check_consumer, consumer_priority, consumer_timeout_ms};
use crate::direct_reply::REPLY_TO;
use crate::fault::Fault;
use crate::outbox::ChannelOut;
use crate::queue::{Consumer, NewConsumer, Poll, Polled, Poller, Queue, Taking};
use crate::vhost::clean_name;
use courser_codec::{Method, ShortString, basic, channel};
use courser_store::Lsn;
use std::sync::Arc;

impl Session {
    pub(super) fn consume(
        &mut self,
        number: u16,
        consume: &basic::Consume<'_>,
    ) -> Result<(), Fault> {
        let name = self.queue_name(number, clean_name(consume.queue))?;
        if name == *REPLY_TO {
            return self.consume_replies(number, consume);
        }
        let tag = self.consumer_tag(number, consume)?;
        let queue = self.vhost.queue_for(name.as_bytes(), self.client.connection)?;
        let arguments = crate::vhost::owned_arguments(consume.arguments)?;
        let queue_type = QueueType::of(&queue.settings.arguments);
        check_consumer(&arguments, queue_type, self.resource(&queue))?;
        let priority = consumer_priority(&arguments, self.resource(&queue))?;
        let timeout_ms = consumer_timeout_ms(&arguments, self.resource(&queue))?;
        let prefetch = self.channel(number)?.prefetch;
        let reading = self.reading(&queue, prefetch, consume, &arguments)?;
        let reply = basic::ConsumeOk { consumer_tag: tag.as_short_str() };
        let new = NewConsumer {
            outbox: &self.outbox,
            channel: number,
            tag: tag.clone(),
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            prefetch,
            priority,
            timeout_ms,
            consumers_max: self.broker.limits.consumers_per_queue_max,
            reply: &mut |out| {
                if !consume.nowait {
                    reply.write_frame(number, out);
                }
            },
        };
        queue.add_consumer(new, &self.vhost.name, &*self.shard.store, &mut self.wakes)?;
        if let Some(reading) = reading {
            self.begin_reading(number, tag.as_bytes(), &queue, reading);
        }
        Ok(())
    }

    /// The tag of a new consumer, if the channel has room for it.
    pub(super) fn consumer_tag(
        &mut self,
        number: u16,
        consume: &basic::Consume<'_>,
    ) -> Result<ShortString, Fault> {
        let tag = if consume.consumer_tag.is_empty() {
            self.broker.random_name("amq.ctag-")
        } else {
            ShortString::from(consume.consumer_tag)
        };
        let limits = &self.broker.limits;
        let (consumers_max, in_all_max) =
            (limits.consumers_per_channel_max, limits.consumers_per_connection_max);
        let mut outbox = self.outbox.lock();
        if let Some(channel) = outbox.channel(number) {
            if channel.find_consumer(tag.as_bytes()).is_some() {
                return Err(Fault::not_allowed(format_args!(
                    "attempt to reuse consumer tag '{tag}'"
                )));
            }
            if channel.consumer_count() >= consumers_max {
                return Err(Fault::precondition_failed(format_args!(
                    "consumer limit ({consumers_max}) of channel {number} reached"
                )));
            }
        }
        if self.consumers_at_most >= in_all_max {
            // Some of them may have gone.
            self.consumers_at_most = outbox.consumer_count();
            if self.consumers_at_most >= in_all_max {
                return Err(Fault::precondition_failed(format_args!(
                    "consumer limit ({in_all_max}) of the connection reached"
                )));
            }
        }
        drop(outbox);
        self.admit_held(ChannelOut::consumer_bytes(&tag) + Consumer::NEW_BYTES)?;
        self.consumers_at_most += 1;
        Ok(tag)
    }

    pub(super) fn cancel(&mut self, number: u16, cancel: &basic::Cancel<'_>) -> Result<(), Fault> {
        let found = {
            let mut outbox = self.outbox.lock();
            outbox.channel(number).and_then(|channel| {
                let index = channel.find_consumer(cancel.consumer_tag.as_bytes())?;
                let slot = channel.slot(index)?;
                Some((index, Arc::clone(&slot.queue), slot.consumer_key, slot.stream_reader))
            })
        };
        let mut gone = Lsn::default();
        if let Some((index, queue, key, reader)) = found {
            let departure = queue.remove_consumer(key, (&self.outbox, number));
            reader.and_then(|reader| self.stream_readers.remove(&reader));
            if let Some(channel) = self.outbox.lock().channel(number) {
                channel.end_consumer(index);
            }
            self.consumers_at_most = self.consumers_at_most.saturating_sub(1);
            gone = self.after_departure(&queue, departure);
        }
        let reply = Method::BasicCancelOk(basic::CancelOk { consumer_tag: cancel.consumer_tag });
        self.answer_unless(cancel.nowait, number, gone, &reply);
        Ok(())
    }

    pub(super) fn get(&mut self, number: u16, get: &basic::Get<'_>) -> Result<(), Fault> {
        let queue = self.named_queue(number, clean_name(get.queue))?;
        self.refuse_for_streams("basic.get", &queue)?;
        let (mut has_room, mut admitted) = (true, Ok(()));
        let mut with = |sequence, polled: Polled<'_>| {
            let mut outbox = self.outbox.lock();
            let is_new = |channel: &mut ChannelOut| !get.no_ack && channel.needs_slot(&queue);
            if outbox.channel(number).is_some_and(is_new) {
                admitted = self.broker.memory.admit_unacknowledged();
            }
            has_room = !self.outbox.has_no_room_for(&polled.message);
            if !has_room || admitted.is_err() {
                return Taking::Nothing;
            }
            outbox.deliver_get(number, &polled);
            if polled.sent_at != Lsn::default() {
                self.outbox.note_holding_back(true);
            }
            if let Some(channel) = outbox.channel(number) {
                let (redelivered, bytes) = (polled.redelivered, polled.message.body.len());
                channel.counts().deliveries.add_got(get.no_ack, redelivered, bytes);
            }
            match outbox.channel(number).filter(|_| !get.no_ack) {
                Some(channel) => {
                    let slot = channel.polled_slot(&queue);
                    channel.await_ack(slot, sequence, queue.now_ms());
                    Taking::UntilAcked
                }
                None => Taking::ForGood,
            }
        };
        let shard = Arc::clone(&self.shard);
        let got = loop {
            if queue.is_paused() {
                break Ok(Poll::Empty);
            }
            // Each part of what has expired takes effect by itself: others come through in between.
            let _gate = shard.gate.read();
            let poller = Poller { outbox: &self.outbox, channel: number, gets: true };
            let polled = queue.poll(poller, &*shard.store, &mut self.wakes, &mut with);
            shard.post_dead_letters(&mut self.wakes);
            if !matches!(polled, Ok(Poll::Again)) {
                break polled;
            }
        };
        admitted?;
        if got.map_err(|error| queue.fault(error))? == Poll::Empty || !has_room {
            if let Some(channel) = self.outbox.lock().channel(number) {
                channel.counts().deliveries.got_empty += 1;
            }
            self.answer_read(number, &Method::BasicGetEmpty(basic::GetEmpty {}));
        }
        Ok(())
    }

    pub(super) fn qos(&mut self, number: u16, qos: &basic::Qos) -> Result<(), Fault> {
        if qos.prefetch_size != 0 {
            let size = qos.prefetch_size;
            return Err(Fault::not_implemented(format_args!("prefetch_size!=0 ({size})")));
        }
        let prefetch = u32::from(qos.prefetch_count);
        let mut outbox = self.outbox.lock();
        if !qos.global {
            if let Some(channel) = self.channels.get_mut(number) {
                channel.prefetch = prefetch;
            }
            if let Some(channel) = outbox.channel(number) {
                channel.prefetch_each = qos.prefetch_count;
            }
        } else if let Some(channel) = outbox.channel(number) {
            channel.prefetch = prefetch;
            outbox.resume_channel(number);
        }
        outbox.put(number, |wire| basic::QosOk {}.write_frame(number, wire.bytes_mut()));
        Ok(())
    }

    /// `channel.flow`: the client stops or resumes deliveries (AMQP 0-9-1, 1.5.2.3).
    pub(super) fn flow(&mut self, number: u16, active: bool) {
        let mut outbox = self.outbox.lock();
        if let Some(channel) = outbox.channel(number)
            && std::mem::replace(&mut channel.flow_active, active) != active
            && active
        {
            outbox.resume_channel(number);
        }
        let done = channel::FlowOk { active };
        outbox.put(number, |wire| done.write_frame(number, wire.bytes_mut()));
    }

    /// The queue that a method names; an empty name stands for the last one declared.
    pub(super) fn named_queue(
        &mut self,
        number: u16,
        name: ShortString,
    ) -> Result<Arc<Queue>, Fault> {
        let name = self.queue_name(number, name)?;
        self.vhost.queue_for(name.as_bytes(), self.client.connection)
    }

    pub(super) fn queue_name(
        &mut self,
        number: u16,
        name: ShortString,
    ) -> Result<ShortString, Fault> {
        if !name.is_empty() {
            return Ok(name);
        }
        let last = self.channel(number)?.last_queue.clone();
        last.ok_or_else(|| Fault::not_found("no previously declared queue"))
    }
}
