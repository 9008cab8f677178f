//! Messages that have been handed out and not acknowledged: who has them, and since when.

use super::shown::Shown;
use super::{Admin, MessageView};
use crate::fault::Fault;
use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::work;
use courser_codec::ShortString;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Deliveries that are looked at in one call.
pub(super) const LOOKED_AT_MAX: usize = 100_000;
/// Deliveries of a channel that are looked at while nothing can go out to its connection.
const PORTION: usize = 1000;

/// A delivery that waits for its acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnackedView {
    /// The name of the connection that has it.
    pub connection: String,
    /// The number of the channel.
    pub channel: u16,
    /// The user of the connection.
    pub user: ShortString,
    /// The consumer; none for what was polled.
    pub consumer_tag: Option<ShortString>,
    /// Its number on the channel.
    pub delivery_tag: u64,
    /// When it was delivered, to the second, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// The message, without its body; none of a stream's or of a connection's own queue, or if it has been settled by now.
    pub message: Option<MessageView>,
}

impl Admin {
    /// The deliveries of a queue that wait for an acknowledgement, the oldest first: how many there
    /// are, and those behind `skip` others, `count` at most. Of very many, some are looked at.
    ///
    /// # Errors
    /// When the queue is not there, or the store can't read.
    pub fn unacked(
        &self,
        vhost: &str,
        queue: &[u8],
        skip: usize,
        count: usize,
    ) -> Result<(usize, Vec<UnackedView>), Fault> {
        let (vhost, queue) = self.known_queue(vhost, queue)?;
        let mut found: Vec<(UnackedView, u64)> = Vec::new();
        for outbox in self.broker.monitor.registry.snapshot().starting_at(0) {
            if Arc::ptr_eq(&outbox.connection.vhost, &vhost.label) {
                add_from(outbox, &queue, &mut found);
            }
            if found.len() >= LOOKED_AT_MAX {
                break;
            }
        }
        let total = found.len();
        found.sort_by(|(one, _), (other, _)| place(one).cmp(&place(other)));
        let mut found: Vec<_> = found.into_iter().skip(skip).take(count).collect();
        if queue.stream().is_none() && queue.settings.exclusive_owner.is_none() {
            let mut shown = Shown::new(0);
            let numbers = found.iter().map(|(_, number)| *number);
            let store = &*vhost.shard().store;
            let read = queue
                .peek_unacked(numbers, store, &mut |seen| seen.is_held_back() || shown.see(seen));
            read.map_err(|error| queue.fault(error))?;
            let messages = shown.messages.into_iter().map(|message| (message.number, message));
            let mut messages: FxHashMap<u64, MessageView> = messages.collect();
            for (view, number) in &mut found {
                view.message = messages.remove(number);
            }
        }
        Ok((total, found.into_iter().map(|(view, _)| view).collect()))
    }
}

/// Where a delivery stands among the others.
fn place(view: &UnackedView) -> (Option<u64>, &str, u64) {
    (view.since_ms, &view.connection, view.delivery_tag)
}

/// Adds what the channels of a connection have of a queue, and its number there. What goes out to the connection waits for
/// a portion at most.
fn add_from(outbox: &Outbox, queue: &Arc<Queue>, found: &mut Vec<(UnackedView, u64)>) {
    let numbers = outbox.lock().channel_numbers();
    for number in numbers {
        let Some(mut looking) = Looking::at(outbox, number, queue) else { continue };
        while looking.add_some(outbox, queue, found) {}
    }
}

/// How far the deliveries of a channel have been looked at.
struct Looking {
    number: u16,
    /// The last one that has been looked at, and the last one there is.
    after: u64,
    until: u64,
    /// How many are meant and have not been found.
    wanted: u32,
}

impl Looking {
    /// Nothing if the channel has none of the queue.
    fn at(outbox: &Outbox, number: u16, queue: &Arc<Queue>) -> Option<Self> {
        let mut state = outbox.lock();
        let channel = state.channel(number)?;
        let wanted = channel.in_flight_of(queue);
        let until = channel.unacked.newest().filter(|_| wanted > 0)?;
        Some(Looking { number, after: 0, until, wanted })
    }

    /// Looks at a portion. Returns whether there is more.
    fn add_some(
        &mut self,
        outbox: &Outbox,
        queue: &Arc<Queue>,
        found: &mut Vec<(UnackedView, u64)>,
    ) -> bool {
        let connection = &outbox.connection;
        let mut state = outbox.lock();
        let Some(channel) = state.channel(self.number) else { return false };
        let before = self.after;
        for (tag, unacked) in channel.unacked.behind(before).take(PORTION) {
            work::count(1);
            if found.len() >= LOOKED_AT_MAX || self.wanted == 0 || tag > self.until {
                return false;
            }
            self.after = tag;
            let slot = channel.slot(unacked.slot).filter(|slot| Arc::ptr_eq(&slot.queue, queue));
            let Some(slot) = slot else { continue };
            let view = UnackedView {
                connection: connection.name().to_owned(),
                channel: self.number,
                user: connection.user().clone(),
                consumer_tag: slot.consumer_tag.clone(),
                delivery_tag: tag,
                since_ms: channel.times.of(tag),
                message: None,
            };
            found.push((view, unacked.sequence));
            self.wanted -= 1;
        }
        self.after > before
    }
}
