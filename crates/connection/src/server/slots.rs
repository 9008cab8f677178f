//! The channels of a connection, by number.

use crate::content::Assembly;

/// What a channel number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// No channel.
    Free,
    /// An open channel that expects a method.
    Idle,
    /// An open channel in the middle of a message.
    InContent,
    /// A channel that the server has closed; the client has not said `channel.close-ok` yet.
    Closing,
}

/// What counts on a channel besides plain publishes and acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelMode {
    /// Neither confirms nor transactions.
    Plain,
    /// Publishes are confirmed (`confirm.select`).
    Confirm,
    /// Publishes and acknowledgements are transactional (`tx.select`).
    Transaction,
}

/// A channel, or a number that may become one.
#[derive(Debug)]
pub(super) struct Slot {
    pub state: SlotState,
    pub mode: ChannelMode,
    /// Number of the last publish in confirm mode.
    pub confirm_seq: u64,
    /// Set in state [`SlotState::InContent`] alone.
    pub content: Option<Box<Assembly>>,
}

impl Slot {
    const FREE: Self =
        Self { state: SlotState::Free, mode: ChannelMode::Plain, confirm_seq: 0, content: None };

    /// Counts a publish: its number in confirm mode, else 0.
    #[inline]
    pub fn next_confirm_seq(&mut self) -> u64 {
        if self.mode == ChannelMode::Confirm {
            self.confirm_seq += 1;
        }
        self.confirm_seq
    }
}

/// Slots by channel number. Their table grows to the highest number that was opened, and no client opens one above the
/// agreed channel_max: 24 octets a number.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Channel n is at n - 1.
    by_number: Vec<Slot>,
    in_use: u16,
    /// Memory that incomplete messages take, in octets.
    content_bytes: u64,
}

impl Slots {
    /// The slot of a channel, if its number was ever in use. Channel 0 has none.
    #[inline]
    pub fn get(&mut self, channel: u16) -> Option<&mut Slot> {
        self.by_number.get_mut(usize::from(channel).wrapping_sub(1))
    }

    pub fn state(&self, channel: u16) -> SlotState {
        self.by_number
            .get(usize::from(channel).wrapping_sub(1))
            .map_or(SlotState::Free, |slot| slot.state)
    }

    pub fn mode(&self, channel: u16) -> ChannelMode {
        self.by_number
            .get(usize::from(channel).wrapping_sub(1))
            .map_or(ChannelMode::Plain, |slot| slot.mode)
    }

    /// Numbers that are not free.
    pub fn in_use(&self) -> u16 {
        self.in_use
    }

    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Makes a channel of a free number, which is not 0.
    pub fn open(&mut self, channel: u16) {
        let number = usize::from(channel);
        if self.by_number.len() < number {
            self.by_number.resize_with(number, || Slot::FREE);
        }
        self.by_number[number - 1] = Slot { state: SlotState::Idle, ..Slot::FREE };
        self.in_use += 1;
    }

    /// Frees a number.
    pub fn free(&mut self, channel: u16) {
        self.end_content(channel);
        if let Some(slot) = self.get(channel).filter(|slot| slot.state != SlotState::Free) {
            *slot = Slot::FREE;
            self.in_use -= 1;
        }
    }

    /// Throws away what a channel had, and waits for its `channel.close-ok`.
    pub fn begin_closing(&mut self, channel: u16) {
        self.end_content(channel);
        if let Some(slot) = self.get(channel) {
            *slot = Slot { state: SlotState::Closing, ..Slot::FREE };
        }
    }

    /// Forgets all channels.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Begins a message on an idle channel.
    pub fn begin_content(&mut self, channel: u16, content: Assembly) {
        self.content_bytes += content.held_bytes();
        if let Some(slot) = self.get(channel) {
            slot.state = SlotState::InContent;
            slot.content = Some(Box::new(content));
        }
    }

    /// Whether the message under way on a channel still lacks its content header.
    pub fn awaits_header(&self, channel: u16) -> bool {
        let slot = self.by_number.get(usize::from(channel).wrapping_sub(1));
        slot.and_then(|slot| slot.content.as_ref()).is_some_and(|content| content.awaits_header())
    }

    /// Changes a message that is under way, and keeps count of the memory it takes.
    pub fn change_content<R>(
        &mut self,
        channel: u16,
        change: impl FnOnce(&mut Assembly) -> R,
    ) -> Option<R> {
        let content = self.get(channel)?.content.as_mut()?;
        let before = content.held_bytes();
        let result = change(content);
        let after = content.held_bytes();
        self.content_bytes = self.content_bytes - before + after;
        Some(result)
    }

    /// Takes a message out; its channel is idle again.
    pub fn end_content(&mut self, channel: u16) -> Option<Assembly> {
        let slot = self.get(channel)?;
        let content = slot.content.take()?;
        slot.state = SlotState::Idle;
        self.content_bytes -= content.held_bytes();
        Some(*content)
    }
}
