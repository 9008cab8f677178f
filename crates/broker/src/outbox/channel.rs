//! The deliveries of one open channel: its consumers, their credit, and what is unacknowledged.

use super::room::tag_bytes;
use super::{Blocked, DeliveryTimes, NO_SLOT, Slot, Stalled, Turn, Unacked, UnackedList};
use crate::counts::ChannelCounts;
use crate::fault::Fault;
use crate::keyed::KeyedMap;
use crate::memory::{Charge, Memory, Use};
use crate::queue::{Freed, Queue};
use crate::work;
use courser_codec::ShortString;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The deliveries of one open channel.
#[derive(Debug)]
pub(crate) struct ChannelOut {
    pub(super) next_tag: u64,
    pub unacked: UnackedList,
    /// When they were delivered.
    pub times: DeliveryTimes,
    /// `basic.qos` with global=true: the limit for all consumers together, 0 for none.
    pub prefetch: u32,
    in_flight: u32,
    pub flow_active: bool,
    /// Publishes on it are confirmed.
    pub confirms: bool,
    pub transactional: bool,
    /// `basic.qos` with global=false: the limit for each consumer made from now on.
    pub prefetch_each: u16,
    pub(super) slots: Vec<Option<Slot>>,
    /// Tags that the slots have room for.
    pub(super) tag_places: usize,
    /// Slots that were in use and are not.
    free: Vec<u32>,
    /// The slots of consumers by their tags.
    by_tag: KeyedMap<ShortString, u32>,
    /// The slots of queues that were polled, by their numbers.
    polled: FxHashMap<u64, u32>,
    /// Queues whose consumers were given nothing while a limit for the whole channel held.
    pub(super) starved: Stalled,
    /// What tags of consumers use.
    pub(super) names_bytes: usize,
    /// What it and its consumers use.
    pub(super) charge: Charge,
    /// What the books of its deliveries use.
    pub(super) books_charge: Charge,
    /// How much consumers may leave unacknowledged, whatever the limit of the client.
    pub(super) unacked_max: u32,
    /// There once there is anything to count.
    counts: Option<Box<ChannelCounts>>,
    /// Why its connection has to close it.
    pub(super) fault: Option<Fault>,
}

/// Room for so many tags of a consumer's deliveries is kept once they are settled.
const KEPT_TAGS: usize = 1024;

impl ChannelOut {
    pub(super) fn new(unacked_max: u32, memory: &Arc<Memory>) -> Self {
        let mut new = ChannelOut {
            next_tag: 1,
            unacked: UnackedList::default(),
            times: DeliveryTimes::default(),
            prefetch: 0,
            in_flight: 0,
            flow_active: true,
            confirms: false,
            transactional: false,
            prefetch_each: 0,
            slots: Vec::new(),
            tag_places: 0,
            names_bytes: 0,
            free: Vec::new(),
            by_tag: KeyedMap::default(),
            polled: FxHashMap::default(),
            starved: Stalled::default(),
            charge: memory.charge(Use::Channels, 0),
            books_charge: memory.charge(Use::Sessions, 0),
            unacked_max,
            counts: None,
            fault: None,
        };
        new.count_memory();
        new
    }

    /// Where to count what happens on it.
    #[inline]
    pub(crate) fn counts(&mut self) -> &mut ChannelCounts {
        self.counts.get_or_insert_default()
    }

    /// What has been counted so far.
    pub(crate) fn counted(&self) -> ChannelCounts {
        self.counts.as_deref().copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn check_credit(&mut self, index: u32) -> Result<(), Blocked> {
        let slot = self.slot(index).filter(|slot| !slot.ended).ok_or(Blocked::Gone)?;
        // An acknowledgement, or the flow, releases it.
        if slot.is_used_up() || !self.flow_active {
            return Err(Blocked::NoCredit);
        }
        if self.is_used_up() {
            let turn = Turn::of(&slot.queue);
            self.starve(turn);
            return Err(Blocked::Starved);
        }
        Ok(())
    }

    /// Whether the limit for the whole channel is reached. It holds for consumers without
    /// acknowledgements too, whose deliveries do not count.
    #[inline]
    fn is_used_up(&self) -> bool {
        self.in_flight >= self.unacked_max || self.prefetch != 0 && self.in_flight >= self.prefetch
    }

    /// Whether the limit for the whole channel leaves room for a consumer of this queue, which waits for it
    /// otherwise.
    pub(crate) fn has_room_for(&mut self, queue: &Arc<Queue>) -> bool {
        if self.is_used_up() {
            self.starve(Turn::of(queue));
            return false;
        }
        // Its flow has all consumers asked when it goes on.
        self.flow_active
    }

    /// Has the consumers of a queue wait for their turn to use the limit of the whole channel.
    #[cold]
    fn starve(&mut self, turn: Turn) {
        let used = self.starved.used_bytes();
        self.starved.push(turn);
        if self.starved.used_bytes() != used {
            self.count_memory();
        }
    }

    /// Whether consumers may wait for their turn to use the limit of the whole channel.
    #[inline]
    pub(crate) fn has_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// The queue whose turn it is, if the limit of the whole channel leaves room: it has to be asked for more.
    pub(crate) fn next_starved(&mut self) -> Option<Arc<Queue>> {
        if self.is_used_up() {
            return None;
        }
        loop {
            work::count(1);
            if let Turn::Queue(queue) = self.starved.pop()?
                && let Some(queue) = queue.upgrade()
            {
                return Some(queue);
            }
        }
    }

    /// Notes that the latest delivery waits for an acknowledgement since `now_ms`.
    #[inline]
    pub(crate) fn await_ack(&mut self, slot_index: u32, sequence: u64, now_ms: u64) {
        if self.times.is_due(now_ms) {
            self.times.note(self.next_tag - 1, now_ms, self.unacked.oldest());
            self.count_memory();
        }
        let tag = self.next_tag - 1;
        if self.unacked.push(tag, Unacked { slot: slot_index, sequence }) {
            self.count_memory();
        }
        if let Some(Some(slot)) = self.slots.get_mut(slot_index as usize) {
            slot.in_flight += 1;
            if slot.consumer_tag.is_some() {
                self.in_flight += 1;
            }
            if let Some(tags) = &mut slot.tags {
                let places = tags.capacity();
                tags.push(tag);
                if tags.capacity() != places {
                    self.tag_places += tags.capacity() - places;
                    self.count_memory();
                }
            }
        }
    }

    /// Takes a settled delivery out of the accounts of its slot. Returns the queue it came from, and what
    /// that means for its consumer there.
    #[inline]
    pub(crate) fn settled(&mut self, slot_index: u32) -> Option<(&Arc<Queue>, Freed)> {
        if self.unacked.has_changed() {
            self.count_memory();
        }
        if slot_index == NO_SLOT {
            self.in_flight -= 1;
            return None;
        }
        let shares = self.prefetch != 0;
        let slot = self.slots.get_mut(slot_index as usize)?.as_mut()?;
        let was_used_up = slot.is_used_up();
        slot.in_flight -= 1;
        if slot.consumer_tag.is_some() {
            self.in_flight -= 1;
        }
        let has_old_tags = slot.has_old_tags();
        let freed = match slot.consumer_tag.is_some() && !slot.ended {
            true if !shares => Freed::MayHaveMore(slot.consumer_key),
            true if was_used_up => Freed::MayHaveTurn(slot.consumer_key),
            _ => Freed::Nothing,
        };
        if let Freed::MayHaveTurn(_) = freed {
            let turn = Turn::of(&slot.queue);
            self.starve(turn);
        }
        if has_old_tags {
            self.sweep_tags(slot_index);
        }
        Some((&self.slot(slot_index)?.queue, freed))
    }

    /// Drops the tags of a slot's deliveries that are settled.
    #[cold]
    fn sweep_tags(&mut self, index: u32) {
        let tags = self.slot_mut(index).and_then(|slot| slot.tags.take());
        let Some(mut tags) = tags else { return };
        let places = tags.capacity();
        work::count(tags.len());
        let oldest = self.unacked.oldest();
        tags.retain(|tag| {
            oldest.is_some_and(|oldest| *tag >= oldest) && self.unacked.contains(*tag)
        });
        if tags.capacity() > KEPT_TAGS + 4 * tags.len() {
            tags.shrink_to(2 * tags.len());
            self.tag_places -= places - tags.capacity();
            self.count_memory();
        }
        if let Some(slot) = self.slot_mut(index) {
            slot.tags = Some(tags);
        }
    }

    /// Frees a slot that has ended, if this was the last acknowledgement it waited for.
    #[inline]
    pub(crate) fn free_if_done(&mut self, index: u32) {
        if let Some(Some(slot)) = self.slots.get(index as usize)
            && slot.ended
            && slot.in_flight == 0
        {
            self.free(index);
        }
    }

    fn free(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::take) else { return };
        if slot.consumer_tag.is_none() {
            self.polled.remove(&slot.queue.id);
        }
        self.tag_places -= slot.tags.map_or(0, |tags| tags.capacity());
        let name_bytes = slot.consumer_tag.as_ref().map_or(0, tag_bytes);
        self.names_bytes -= name_bytes;
        self.free.push(index);
        if self.free.len() == self.slots.len() {
            self.free = Vec::new();
            self.slots = Vec::new();
            self.starved = Stalled::default();
            self.polled = FxHashMap::default();
            self.by_tag = KeyedMap::default();
        }
        if name_bytes > 0 || self.slots.is_empty() {
            self.count_memory();
        }
    }

    pub(crate) fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)?.as_ref()
    }

    pub(crate) fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// Deliveries of a queue that wait for an acknowledgement.
    pub(crate) fn in_flight_of(&self, queue: &Arc<Queue>) -> u32 {
        let slots = self.slots.iter().flatten().filter(|slot| Arc::ptr_eq(&slot.queue, queue));
        slots.map(|slot| slot.in_flight).sum()
    }

    /// The consumers on this channel.
    pub(crate) fn consumers(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.slots.iter().inspect(|_| work::count(1)).flatten();
        slots.filter(|slot| !slot.ended && slot.consumer_tag.is_some())
    }

    pub(crate) fn consumer_count(&self) -> usize {
        self.by_tag.len()
    }

    /// The slot of the live consumer with this tag.
    pub(crate) fn find_consumer(&self, tag: &[u8]) -> Option<u32> {
        self.by_tag.get(tag).copied()
    }

    /// A slot for a new consumer.
    pub(crate) fn add_consumer(
        &mut self,
        queue: &Arc<Queue>,
        tag: ShortString,
        no_ack: bool,
        prefetch: u32,
    ) -> u32 {
        let index = self.add_slot(Slot {
            queue: Arc::clone(queue),
            consumer_tag: Some(tag.clone()),
            consumer_key: 0,
            stream_offset: 0,
            stream_reader: None,
            no_ack,
            prefetch: if no_ack { 0 } else { prefetch },
            in_flight: 0,
            tags: (!no_ack && queue.takes_away()).then(Vec::new),
            is_overdue: false,
            ended: false,
        });
        self.names_bytes += tag_bytes(&tag);
        self.by_tag.insert(tag, index);
        self.count_memory();
        index
    }

    /// Whether it takes one more slot to poll from `queue`.
    pub(crate) fn needs_slot(&self, queue: &Queue) -> bool {
        !self.polled.contains_key(&queue.id)
    }

    /// The slot for messages polled from `queue`.
    pub(crate) fn polled_slot(&mut self, queue: &Arc<Queue>) -> u32 {
        if let Some(known) = self.polled.get(&queue.id) {
            return *known;
        }
        let index = self.add_slot(Slot {
            queue: Arc::clone(queue),
            consumer_tag: None,
            consumer_key: 0,
            stream_offset: 0,
            stream_reader: None,
            no_ack: false,
            prefetch: 0,
            in_flight: 0,
            tags: None,
            is_overdue: false,
            ended: true,
        });
        self.polled.insert(queue.id, index);
        index
    }

    /// Ends the consumer in a slot: nothing more is delivered, what is unacked stays.
    pub(crate) fn end_consumer(&mut self, index: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(index as usize)
            && !std::mem::replace(&mut slot.ended, true)
            && let Some(tag) = &slot.consumer_tag
        {
            self.by_tag.remove(tag);
        }
        self.free_if_done(index);
    }

    fn add_slot(&mut self, slot: Slot) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(slot);
                index
            }
            None => {
                let capacity = self.slots.capacity();
                self.slots.push(Some(slot));
                if self.slots.capacity() != capacity {
                    self.count_memory();
                }
                (self.slots.len() - 1) as u32
            }
        }
    }
}
