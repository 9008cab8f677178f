//! A stream: everything stays as long as it may, and every reader gets all of it in order.

use super::message::Message;
use super::{ChannelId, Held, Moment};
use std::rc::Rc;

/// The least bytes, messages and milliseconds that may leave a stream together.
const PIECE_BYTES: usize = 4096;
const PIECE_LEN: usize = 1024;
const PIECE_MS: u64 = 1000;

/// What a stream keeps at least. It may hold one piece more, or have let go of one piece too many.
#[derive(Clone, Copy, Debug, Default)]
pub enum Retention {
    #[default]
    All,
    Bytes(u64),
    AgeMs(u64),
}

#[derive(Clone, Debug)]
struct Reader {
    channel: ChannelId,
    next: usize,
    prefetch: u64,
    in_flight: u64,
}

/// A queue that is a stream.
#[derive(Clone, Debug)]
pub struct Stream {
    pub name: &'static str,
    retention: Retention,
    /// All that ever came, and when.
    messages: Vec<(Rc<Message>, u64)>,
    /// The offset of the oldest message that is left, as it was seen.
    first: usize,
    readers: Vec<Reader>,
    pub paused: bool,
}

impl Stream {
    pub fn new(name: &'static str, retention: Retention) -> Self {
        let (messages, first, readers, paused) = Default::default();
        Stream { name, retention, messages, first, readers, paused }
    }

    pub fn len(&self) -> usize {
        self.messages.len().saturating_sub(self.first)
    }

    /// How many have ever come.
    pub fn came(&self) -> usize {
        self.messages.len()
    }

    pub fn first(&self) -> usize {
        self.first
    }

    /// The offset of the oldest message is this.
    pub fn see_first(&mut self, first: usize) {
        self.first = first;
    }

    pub fn reader_channels(&self) -> Vec<ChannelId> {
        self.readers.iter().map(|reader| reader.channel).collect()
    }

    pub fn publish(
        &mut self,
        run: impl Iterator<Item = Rc<Message>>,
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        self.messages.extend(run.map(|message| (message, at.now_ms)));
        self.feed(at)
    }

    /// A reader begins at an offset.
    pub fn consume(
        &mut self,
        channel: ChannelId,
        next: usize,
        prefetch: u64,
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        self.readers.push(Reader { channel, next, prefetch, in_flight: 0 });
        self.feed(at)
    }

    pub fn remove_reader(&mut self, channel: ChannelId) {
        self.readers.retain(|reader| reader.channel != channel);
    }

    /// A reader is done with some messages, whatever it says of them.
    pub fn settle(
        &mut self,
        channel: ChannelId,
        count: u64,
        at: &mut Moment<'_>,
    ) -> Result<(), String> {
        let reader = self.readers.iter_mut().find(|reader| reader.channel == channel);
        reader.into_iter().for_each(|reader| reader.in_flight -= count);
        self.feed(at)
    }

    pub fn pause(&mut self, on: bool, at: &mut Moment<'_>) -> Result<(), String> {
        self.paused = on;
        self.feed(at)
    }

    /// Every reader with credit gets the next message that is left, and finds its offset in it.
    fn feed(&mut self, at: &mut Moment<'_>) -> Result<(), String> {
        if self.paused {
            return Ok(());
        }
        for reader in &mut self.readers {
            while reader.in_flight < reader.prefetch && reader.next < self.messages.len() {
                let (message, _) = &self.messages[reader.next];
                let delivery = at.observed.take_delivery(reader.channel, message.id);
                let (name, id, offset) = (self.name, message.id, reader.next as u64);
                let Some(delivery) = delivery else {
                    if reader.next < self.first {
                        reader.next += 1;
                        continue;
                    }
                    if at.observed.nothing_is_durable {
                        break;
                    }
                    let channel = reader.channel;
                    return Err(format!("{channel:?} should get message {id} of stream {name}"));
                };
                if delivery.offset != Some(offset) || delivery.bytes != message.bytes {
                    return Err(format!("{delivery:?} is not message {id} at {offset} of {name}"));
                }
                let held = Held { queue: name, place: None };
                at.channels.hold(reader.channel, delivery.tag, held);
                reader.in_flight += 1;
                reader.next += 1;
            }
        }
        Ok(())
    }

    /// Whether it has let go of what it may, and of nothing else.
    pub fn check(&self, now_ms: u64) -> Result<(), String> {
        let Stream { name, retention, messages, first, .. } = self;
        let kept = messages.get(*first..).unwrap_or_default();
        let last_gone = first.checked_sub(1).and_then(|last| messages.get(last));
        let is_right = match *retention {
            Retention::All => *first == 0,
            Retention::Bytes(most) => {
                let most = most as usize;
                let gone = last_gone.map_or(most, |(one, _)| one.stored_bytes_max.max(PIECE_BYTES));
                let kept_bytes_max: usize = kept.iter().map(|(one, _)| one.stored_bytes_max).sum();
                let kept_bytes: usize = kept.iter().map(|(one, _)| one.bytes).sum();
                let newest = kept.iter().rev().take(PIECE_LEN).map(|(one, _)| one.bytes).max();
                let newest = newest.unwrap_or(0).max(PIECE_BYTES);
                kept_bytes_max + gone + PIECE_BYTES >= most
                    && kept_bytes <= most + newest + PIECE_BYTES
            }
            Retention::AgeMs(most) => {
                // What has begun a piece waits for its end, and then for the clock.
                let late_ms = most + 2 * PIECE_MS;
                let too_early = last_gone.is_some_and(|(_, at_ms)| at_ms + most > now_ms);
                let too_late = kept.first().is_some_and(|(_, at_ms)| at_ms + late_ms < now_ms);
                !too_early && !too_late
            }
        };
        let oldest = kept.first().map(|(_, at_ms)| at_ms);
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "{name} begins with {first} of {} at {now_ms}, from {oldest:?}, with {retention:?}",
                messages.len()
            )),
        }
    }

    /// The broker starts again, and no client reads.
    pub fn restart(&mut self) {
        self.readers.clear();
    }
}
