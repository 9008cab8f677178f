//! What clients do.

use super::World;
use crate::broker::{CONFIRMS, PUBLISHER, TX};
use crate::contents::Extra;
use crate::features::Feature;
use crate::model::{ChannelId, Message, Path, Publish, Settlement, Stream};
use crate::operation::{Batch, HEADER_MAX};
use crate::topology::{OTHER, WORK};
use courser_broker::Fault;
use courser_codec::{Method, basic, channel};
use courser_sim::short;
use std::rc::Rc;

/// What a commit may publish: half of what a connection can be sent at once, as it may get that from two queues.
const COMMIT_BYTES_MAX: usize = 256 * 1024;

impl World {
    pub(super) fn publish(&mut self, batch: &Batch) -> Result<(), String> {
        if batch.path == Path::Brief && !self.model.exchanges.has_brief
            || self.fills_a_commit(batch)
        {
            return Ok(());
        }
        let publishes = self.messages(batch, self.next_id);
        self.next_id += batch.count as u64;
        let more_keys = match self.features.value(Feature::Copies) {
            _ if batch.more_keys == 0 => None,
            "bcc" => Some("BCC"),
            _ => Some("CC"),
        };
        let Batch { more_keys: repeated, header_bytes, has_long_key, .. } = *batch;
        let extra = Extra { more_keys, repeated, header_bytes, has_long_key };
        let first = self.running().publish(batch.channel, &publishes, &extra);
        if header_bytes > HEADER_MAX {
            let Err(Fault { code: 406, .. }) = first else {
                return Err(format!("a header of {header_bytes} bytes is taken: {first:?}"));
            };
            return self.close_channel((PUBLISHER, batch.channel));
        }
        let first = first.map_err(|why| format!("a publish is refused: {why}"))?;
        self.listen()?;
        if batch.channel == TX {
            self.model.channels.transaction.publishes.extend(publishes);
            return Ok(());
        }
        self.learn(batch.path, publishes[0].message.id);
        let taken = self.model.publish(&publishes)?;
        if self.model.observed.nothing_is_durable {
            self.model.observed.take_early_confirms();
        } else if batch.channel == CONFIRMS {
            let answers = self.model.observed.take_confirms(first, batch.count as u64)?;
            if answers != taken {
                return Err(format!("confirmed: {answers:?}, expected: {taken:?}"));
            }
        }
        Ok(())
    }

    /// Whether with these messages a commit would have more than a connection can be sent at once: what comes behind would
    /// wait in its queue, where a limit may drop it.
    fn fills_a_commit(&self, batch: &Batch) -> bool {
        let begun = self.model.channels.transaction.publishes.iter();
        let begun: usize = begun.map(|publish| publish.message.bytes).sum();
        batch.channel == TX && begun + batch.count * batch.bytes > COMMIT_BYTES_MAX
    }

    /// The messages of a batch, with numbers from this one on.
    pub(super) fn messages(&self, batch: &Batch, first_id: u64) -> Vec<Publish> {
        (first_id..).take(batch.count).map(|id| self.message(batch, id)).collect()
    }

    fn message(&self, batch: &Batch, id: u64) -> Publish {
        let message = Message {
            id,
            bytes: batch.bytes,
            stored_bytes_max: batch.bytes + batch.header_bytes + 10 * batch.more_keys + 1000,
            persistent: batch.persistent,
            priority: batch.priority,
            ttl_ms: batch.ttl_ms,
            mark: batch.mark,
            has_cc: batch.more_keys > 0 && self.features.value(Feature::Copies) == "cc",
            redelivered: Some(false),
            deaths: Vec::new(),
        };
        Publish {
            path: batch.path,
            message: Rc::new(message),
            has_more_keys: batch.more_keys > 0,
            mandatory: self.features.has(Feature::Mandatory),
            delay_ms: batch.delay_ms,
        }
    }

    /// Takes note of the queue that a consistent hash has chosen, the first time that a key is used.
    fn learn(&mut self, path: Path, id: u64) {
        let Path::Hash(key) = path else { return };
        if self.model.exchanges.hashed.contains_key(&key) {
            return;
        }
        let is_in_other =
            self.model.observed.has_delivery(id, &self.model.queues[OTHER].consumer_channels())
                || self.ids(OTHER).is_ok_and(|ids| ids.iter().any(|(other, _)| *other == id));
        let queue = if is_in_other || !self.model.exists(WORK) { OTHER } else { WORK };
        self.model.exchanges.hashed.insert(key, queue);
    }

    pub(super) fn get(&mut self, queue: usize, channel: u16, no_ack: bool) -> Result<(), String> {
        if channel == TX && self.model.observed.nothing_is_durable {
            // What follows a commit may wait as long as that does.
            return Ok(());
        }
        let names: Vec<_> = self.model.queues.keys().copied().collect();
        let name = names[queue % names.len()];
        let get = basic::Get { queue: short(name), no_ack };
        self.send((PUBLISHER, channel), &Method::BasicGet(get))?;
        self.listen()?;
        self.model.with_queue(name, |queue, at| queue.get((PUBLISHER, channel), no_ack, at))
    }

    /// A channel asks for nothing more, or for more again. Readers of streams are left alone.
    pub(super) fn flow(&mut self, channel: ChannelId, active: bool) -> Result<(), String> {
        let reads = |stream: &Stream| stream.reader_channels().contains(&channel);
        if self.features.is_stream() || self.model.streams.values().any(reads) {
            return Ok(());
        }
        self.send(channel, &Method::ChannelFlow(channel::Flow { active }))?;
        self.listen()?;
        self.model.flow(channel, active)
    }

    pub(super) fn recover(&mut self, which: usize) -> Result<(), String> {
        let tags = self.model.channels.tags();
        if tags.is_empty() {
            return Ok(());
        }
        let (channel, _) = tags[which % tags.len()];
        let recover = basic::Recover { requeue: true };
        self.send(channel, &Method::BasicRecover(recover))?;
        self.listen()?;
        let held = self.model.channels.take(channel, u64::MAX - 1, true);
        self.model.settle(channel, &held, Settlement::Requeue { counts: false })
    }

    pub(super) fn cancel(&mut self, which: usize) -> Result<(), String> {
        let consumers: Vec<_> = self.model.consumer_channels().collect();
        if consumers.is_empty() {
            return Ok(());
        }
        let (name, channel) = consumers[which % consumers.len()];
        let cancel = basic::Cancel { consumer_tag: short("c"), nowait: false };
        self.send(channel, &Method::BasicCancel(cancel))?;
        self.listen()?;
        if let Some(stream) = self.model.streams.get_mut(name) {
            stream.remove_reader(channel);
            return Ok(());
        }
        self.model.with_queue(name, |queue, at| queue.cancel(channel, at))
    }

    pub(super) fn settle(
        &mut self,
        which: usize,
        multiple: bool,
        settlement: Settlement,
    ) -> Result<(), String> {
        let tags = self.model.channels.tags();
        if tags.is_empty() {
            return Ok(());
        }
        let (channel, delivery_tag) = tags[which % tags.len()];
        let requeue = matches!(settlement, Settlement::Requeue { .. });
        let settlement = match settlement {
            // Only a nack may be of several.
            Settlement::Requeue { .. } => Settlement::Requeue { counts: !multiple },
            Settlement::Reject { .. } => Settlement::Reject { counts: !multiple },
            other => other,
        };
        let method = match (settlement, multiple) {
            (Settlement::Ack, _) => Method::BasicAck(basic::Ack { delivery_tag, multiple }),
            (_, false) => Method::BasicReject(basic::Reject { delivery_tag, requeue }),
            (_, true) => Method::BasicNack(basic::Nack { delivery_tag, multiple, requeue }),
        };
        self.send(channel, &method)?;
        self.listen()?;
        let held = self.model.channels.take(channel, delivery_tag, multiple);
        if channel == (PUBLISHER, TX) {
            let settled = held.into_iter().map(|(tag, one)| (tag, one, settlement));
            self.model.channels.transaction.settled.extend(settled);
            return Ok(());
        }
        self.model.settle(channel, &held, settlement)
    }

    pub(super) fn commit(&mut self) -> Result<(), String> {
        let channel = (PUBLISHER, TX);
        let committed = self.running().send(channel, &Method::TxCommit(Default::default()));
        self.listen()?;
        if self.model.may_commit() {
            let publishes = self.model.channels.transaction.publishes.clone();
            publishes.iter().for_each(|one| self.learn(one.path, one.message.id));
        }
        let all_taken = self.model.commit(channel)?;
        if self.model.observed.nothing_is_durable {
            // It may have heard of it, or may hear of it later.
            self.model.observed.take_closed();
            return self.close_channel(channel);
        }
        let closed = self.model.observed.take_closed();
        let is_refused = committed.is_err() || !closed.is_empty();
        if is_refused == all_taken {
            return Err(format!("all taken: {all_taken}, yet {committed:?} and {closed:?}"));
        }
        if all_taken { Ok(()) } else { self.close_channel(channel) }
    }
}
