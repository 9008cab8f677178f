//! The channels of a connection, by number, and the messages that are under way on them.

use std::collections::BTreeMap;

use courser_codec::basic;
use courser_codec::reply_code::{FRAME_ERROR, RESOURCE_ERROR, UNEXPECTED_FRAME};

use crate::close::Failure;
use crate::content::{Assembly, Progress};
use crate::framer::{BodyPiece, unexpected_body};

/// What a channel number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// No channel.
    Free,
    /// A channel that this side has asked for.
    Opening,
    /// An open channel that expects a method.
    Idle,
    /// An open channel in the middle of a message.
    InContent,
    /// A channel that this side has closed; the peer has not said `channel.close-ok` yet.
    Closing,
}

/// A channel, or a number that may become one. `D` is what a side of the connection keeps of it.
#[derive(Debug)]
pub(crate) struct Slot<D> {
    pub state: SlotState,
    pub data: D,
    /// Set in state [`SlotState::InContent`] alone.
    content: Option<Box<Assembly>>,
}

/// Numbers from here on are not found by index. What the index takes stays, and no limit counts it, so it is small.
const HIGH_NUMBERS: u16 = 64;

/// Slots by channel number. A client may use any number however few channels it opens, so what they take depends on
/// the channels in use, not on their numbers.
#[derive(Debug)]
pub(crate) struct Slots<D> {
    /// Channel n is at n - 1: grows to the highest number below [`HIGH_NUMBERS`] that was in use.
    low: Vec<Slot<D>>,
    /// None of them is free.
    high: BTreeMap<u16, Slot<D>>,
    /// Highest number that was ever in use.
    highest: u16,
    in_use: u16,
    /// Memory that incomplete messages take, in bytes.
    content_bytes: u64,
}

/// What a body frame, or a piece of one, has led to.
pub(crate) enum BodyOutcome {
    /// The message is complete.
    Complete,
    /// Nothing to tell.
    Again,
    /// The frame must not come here.
    Failed(Failure),
}

impl<D> Default for Slots<D> {
    fn default() -> Self {
        Self { low: Vec::new(), high: BTreeMap::new(), highest: 0, in_use: 0, content_bytes: 0 }
    }
}

impl<D: Default> Slots<D> {
    /// The slot of a channel, if its number was ever in use. Channel 0 has none.
    #[inline]
    pub fn get_mut(&mut self, channel: u16) -> Option<&mut Slot<D>> {
        match self.low.get_mut(usize::from(channel).wrapping_sub(1)) {
            Some(slot) => Some(slot),
            None => self.high.get_mut(&channel),
        }
    }

    #[inline]
    pub fn get(&self, channel: u16) -> Option<&Slot<D>> {
        match self.low.get(usize::from(channel).wrapping_sub(1)) {
            Some(slot) => Some(slot),
            None => self.high.get(&channel),
        }
    }

    pub fn state(&self, channel: u16) -> SlotState {
        self.get(channel).map_or(SlotState::Free, |slot| slot.state)
    }

    pub fn is_open(&self, channel: u16) -> bool {
        matches!(self.state(channel), SlotState::Idle | SlotState::InContent)
    }

    /// Numbers that are not free.
    pub fn in_use(&self) -> u16 {
        self.in_use
    }

    /// Highest number that was ever in use.
    pub fn highest(&self) -> u16 {
        self.highest
    }

    /// Makes a channel of a free number, which is not 0.
    pub fn open(&mut self, channel: u16, state: SlotState) {
        let slot = Slot { state, ..Slot::free() };
        if channel >= HIGH_NUMBERS {
            self.high.insert(channel, slot);
        } else {
            let number = usize::from(channel);
            if self.low.len() < number {
                self.low.resize_with(number, Slot::free);
            }
            self.low[number - 1] = slot;
        }
        self.highest = self.highest.max(channel);
        self.in_use += 1;
    }

    /// Frees a number.
    pub fn free(&mut self, channel: u16) {
        self.end_content(channel);
        if let Some(slot) = self.get_mut(channel).filter(|slot| slot.state != SlotState::Free) {
            *slot = Slot::free();
            self.in_use -= 1;
            self.high.remove(&channel);
        }
    }

    /// Throws away what a channel had, and waits for its `channel.close-ok`.
    pub fn begin_closing(&mut self, channel: u16) {
        self.end_content(channel);
        if let Some(slot) = self.get_mut(channel) {
            *slot = Slot { state: SlotState::Closing, ..Slot::free() };
        }
    }

    /// Forgets all channels.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Begins a message on an idle channel; `method` is the payload of its method frame.
    pub fn begin_content(&mut self, channel: u16, method: &[u8]) {
        if let Some(slot) = self.get_mut(channel) {
            let content = Box::new(Assembly::new(method));
            let held = content.held_bytes();
            slot.state = SlotState::InContent;
            slot.content = Some(content);
            self.content_bytes += held;
        }
    }

    /// The message under way on a channel.
    pub fn content(&self, channel: u16) -> Option<&Assembly> {
        self.get(channel)?.content.as_deref()
    }

    /// Gives the content header to the message under way, which waits for it.
    pub fn set_header(&mut self, channel: u16, payload: &[u8], body_size: u64) -> Option<Progress> {
        self.change_content(channel, |content| content.set_header(payload, body_size))
    }

    /// Gives a body frame, or a piece of one, to the message that it belongs to.
    pub fn take_body(&mut self, body: &BodyPiece<'_>) -> BodyOutcome {
        let channel = body.channel;
        match self.state(channel) {
            _ if channel == 0 => {
                return BodyOutcome::Failed(unexpected_body(body));
            }
            SlotState::Closing => return BodyOutcome::Again,
            SlotState::Free | SlotState::Opening | SlotState::Idle => {
                return BodyOutcome::Failed(no_method_frame());
            }
            SlotState::InContent => {}
        }
        if self.content(channel).is_none_or(Assembly::awaits_header) {
            return BodyOutcome::Failed(self.out_of_order(channel));
        }
        match self.change_content(channel, |content| content.append(body.bytes, body.frame_left)) {
            Some(Some(Progress::Complete)) => BodyOutcome::Complete,
            Some(Some(Progress::Incomplete)) => BodyOutcome::Again,
            Some(None) | None => {
                let explanation = "content body frame exceeds remaining content size";
                BodyOutcome::Failed(Failure::of(
                    FRAME_ERROR,
                    explanation,
                    self.content_ids(channel),
                ))
            }
        }
    }

    /// Takes a message out; its channel is idle again.
    pub fn end_content(&mut self, channel: u16) -> Option<Assembly> {
        let slot = self.get_mut(channel)?;
        let content = slot.content.take()?;
        slot.state = SlotState::Idle;
        self.content_bytes -= content.held_bytes();
        Some(*content)
    }

    /// Changes a message that is under way, and keeps count of the memory it takes.
    fn change_content<R>(
        &mut self,
        channel: u16,
        change: impl FnOnce(&mut Assembly) -> R,
    ) -> Option<R> {
        let content = self.get_mut(channel)?.content.as_mut()?;
        let before = content.held_bytes();
        let result = change(content);
        let after = content.held_bytes();
        self.content_bytes = self.content_bytes - before + after;
        Some(result)
    }

    /// Class and method that the message under way began with.
    pub fn content_ids(&self, channel: u16) -> (u16, u16) {
        self.content(channel).map_or((0, 0), Assembly::ids)
    }

    /// The error for a frame that is not what the message under way needs next.
    pub fn out_of_order(&self, channel: u16) -> Failure {
        let explanation = if self.content(channel).is_some_and(Assembly::awaits_header) {
            format!(
                "expected content header for class {}, got non content header frame instead",
                basic::CLASS_ID
            )
        } else {
            "expected content body, got non content body frame instead".to_owned()
        };
        Failure::of(UNEXPECTED_FRAME, explanation, self.content_ids(channel))
    }

    /// Bytes of memory that incomplete messages take.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// The error when incomplete messages take more than `held_max` bytes of memory.
    pub fn check_memory(&self, held_max: u64) -> Result<(), Failure> {
        let held = self.content_bytes;
        if held <= held_max {
            return Ok(());
        }
        let explanation =
            format!("incomplete messages take {held} bytes, more than the limit of {held_max}");
        Err(Failure::new(RESOURCE_ERROR, explanation))
    }
}

impl<D: Default> Slot<D> {
    fn free() -> Self {
        Self { state: SlotState::Free, data: D::default(), content: None }
    }
}

/// The error for a content frame without a method before it.
pub(crate) fn no_method_frame() -> Failure {
    Failure::new(UNEXPECTED_FRAME, "expected method frame, got non method frame instead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_channel_takes_little_memory_whatever_its_number() {
        let mut slots = Slots::<u64>::default();
        for number in [1, HIGH_NUMBERS - 1, HIGH_NUMBERS, 2047, u16::MAX] {
            slots.open(number, SlotState::Idle);
            assert!(slots.is_open(number) && slots.in_use() == 1, "{number}");
            let size_bytes = slots.low.capacity() * size_of::<Slot<u64>>();
            assert!(size_bytes <= 4096, "{number}: {size_bytes}");
            slots.free(number);
            assert!(!slots.is_open(number) && slots.high.is_empty(), "{number}");
        }
    }
}
