//! Taking away what a consumer has kept for too long.

use super::ChannelOut;
use crate::queue::Queue;
use std::sync::Arc;

impl ChannelOut {
    /// Has what came through this slot of `queue` taken away, if it is any and that has not begun. Returns the consumer's key.
    pub(crate) fn begin_to_take_away(&mut self, queue: &Arc<Queue>, index: u32) -> Option<u32> {
        let slot = self.slot_mut(index).filter(|slot| Arc::ptr_eq(&slot.queue, queue))?;
        let begins = slot.in_flight > 0 && !std::mem::replace(&mut slot.is_overdue, true);
        begins.then_some(slot.consumer_key)
    }

    /// What came through such a slot returns to its queue, the newest first: its numbers there are added to `numbers`. Looks at `most`
    /// deliveries. Returns at how many it has looked, and whether there are more. Until the client settles what has been taken,
    /// without effect, that counts for the limit of the whole channel.
    pub(crate) fn take_away(
        &mut self,
        queue: &Arc<Queue>,
        index: u32,
        most: usize,
        numbers: &mut Vec<u64>,
    ) -> (usize, bool) {
        // The client may have settled the rest meanwhile, or closed the channel: then this slot is another's.
        let slot = self.slots.get_mut(index as usize).and_then(Option::as_mut);
        let slot = slot.filter(|slot| slot.is_overdue && Arc::ptr_eq(&slot.queue, queue));
        let Some(slot) = slot else { return (0, false) };
        let Some(tags) = &mut slot.tags else { return (0, false) };
        let first = tags.len().saturating_sub(most);
        let (looked_at, before) = (tags.len() - first, numbers.len());
        numbers.extend(tags.drain(first..).filter_map(|tag| self.unacked.take_away(tag, index)));
        slot.in_flight -= (numbers.len() - before) as u32;
        if first == 0 {
            self.tag_places -= tags.capacity();
            *tags = Vec::new();
        }
        self.free_if_done(index);
        self.count_memory();
        (looked_at, first > 0)
    }
}
