//! What the queues of the model hold.

use super::{Place, QUEUES};
use std::collections::{BTreeMap, BTreeSet};

/// Where a message stands in its queue: the n-th that was published to it.
pub type Position = u64;

#[derive(Clone, Copy, Debug)]
pub struct Consumer {
    pub place: Place,
    pub queue: usize,
    pub no_ack: bool,
    /// 0 is no limit.
    pub prefetch: u16,
}

/// A delivery that waits for an acknowledgement.
#[derive(Clone, Debug)]
pub struct Unacked {
    pub queue: usize,
    pub position: Position,
    /// None when it was polled.
    pub consumer: Option<String>,
}

#[derive(Debug, Default)]
pub struct ModelQueue {
    /// Bodies of all messages ever published to it.
    pub bodies: Vec<String>,
    pub ready: BTreeSet<Position>,
    /// Those that were delivered before.
    pub seen: BTreeSet<Position>,
}

#[derive(Debug)]
pub struct Channel {
    /// `basic.qos` with global=true.
    pub prefetch: u16,
    pub flow: bool,
    pub unacked: BTreeMap<u64, Unacked>,
    pub next_tag: u64,
}

impl Default for Channel {
    fn default() -> Self {
        Channel { prefetch: 0, flow: true, unacked: BTreeMap::new(), next_tag: 1 }
    }
}

/// All that the broker should know.
#[derive(Debug, Default)]
pub struct Model {
    pub queues: [ModelQueue; QUEUES.len()],
    pub channels: BTreeMap<Place, Channel>,
    /// By tag, which is unique in a run.
    pub consumers: BTreeMap<String, Consumer>,
}

impl Model {
    pub fn channel(&mut self, place: Place) -> &mut Channel {
        self.channels.entry(place).or_default()
    }

    pub fn publish(&mut self, queue: usize, body: String) {
        let queue = &mut self.queues[queue];
        queue.ready.insert(queue.bodies.len() as Position);
        queue.bodies.push(body);
    }

    /// Takes delivery tags off a channel: one, or all up to it.
    pub fn settle(&mut self, place: Place, tag: u64, multiple: bool) -> Vec<Unacked> {
        let unacked = &mut self.channel(place).unacked;
        if multiple {
            let rest = unacked.split_off(&(tag + 1));
            std::mem::replace(unacked, rest).into_values().collect()
        } else {
            unacked.remove(&tag).into_iter().collect()
        }
    }

    pub fn requeue(&mut self, returned: Vec<Unacked>) {
        for one in returned {
            self.queues[one.queue].ready.insert(one.position);
        }
    }

    pub fn close_channel(&mut self, place: Place) {
        self.consumers.retain(|_, consumer| consumer.place != place);
        let channel = self.channels.remove(&place).unwrap_or_default();
        self.requeue(channel.unacked.into_values().collect());
    }

    /// Notes that a message of a queue was delivered. Returns its position.
    pub fn deliver(
        &mut self,
        place: Place,
        queue: usize,
        consumer: Option<&str>,
        no_ack: bool,
        seen: &Seen<'_>,
    ) -> Position {
        let state = &mut self.queues[queue];
        let found = state.ready.iter().copied().find(|at| state.bodies[*at as usize] == seen.body);
        let position = found.unwrap_or_else(|| {
            panic!("'{}' was delivered and does not wait in queue {queue}", seen.body)
        });
        state.ready.remove(&position);
        let again = state.seen.contains(&position);
        assert_eq!(seen.redelivered, again, "the mark of '{}'", seen.body);
        if !no_ack {
            state.seen.insert(position);
        }
        let channel = self.channel(place);
        assert_eq!(seen.tag, channel.next_tag, "tags count the deliveries of a channel");
        channel.next_tag += 1;
        if !no_ack {
            let consumer = consumer.map(str::to_owned);
            channel.unacked.insert(seen.tag, Unacked { queue, position, consumer });
        }
        position
    }

    /// Whether a consumer could take one more message.
    pub fn has_credit(&self, tag: &str) -> bool {
        let consumer = &self.consumers[tag];
        let Some(channel) = self.channels.get(&consumer.place) else { return true };
        let held = |of: &dyn Fn(&str) -> bool| {
            let consumers = channel.unacked.values().filter_map(|one| one.consumer.as_deref());
            consumers.filter(|tag| of(tag)).count() as u16
        };
        let below = |limit: u16, held: u16| limit == 0 || held < limit;
        channel.flow
            && below(channel.prefetch, held(&|_| true))
            && (consumer.no_ack || below(consumer.prefetch, held(&|one| one == tag)))
    }

    /// Ready, unacknowledged and consumers of a queue.
    pub fn counts(&self, queue: usize) -> (usize, usize, usize) {
        let unacked = self.channels.values().flat_map(|channel| channel.unacked.values());
        (
            self.queues[queue].ready.len(),
            unacked.filter(|one| one.queue == queue).count(),
            self.consumers.values().filter(|consumer| consumer.queue == queue).count(),
        )
    }
}

/// A delivery as a client saw it.
#[derive(Debug)]
pub struct Seen<'a> {
    pub body: &'a str,
    pub tag: u64,
    pub redelivered: bool,
}
