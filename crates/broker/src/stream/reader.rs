//! A consumer's way through a stream.

use super::Filter;
use super::content::put_offset;
use crate::counts::Handed;
use crate::kept_reader::{KeptReader, UNUSED_MS};
use crate::memory::{Charge, Memory, Use};
use crate::outbox::{Blocked, Outbox, OutboxState, Turn};
use crate::queue::{Queue, is_too_early};
use crate::wakes::Wakes;
use crate::work::{self, Budget};
use courser_store::critical::{self, Within};
use courser_store::{Location, Lsn, MessageRef, Position, Reader, Store, StoreError};
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// Messages that a reader looks at before others on its connection get their turn.
const MESSAGES_PER_TURN: usize = 1024;
/// What it costs to look up the places of messages, and to come to the first of them.
const LOOK_UP_STEPS: usize = 64;

/// Reads a stream for one consumer. While it has seen everything it holds next to nothing; while it
/// is behind, the places of up to a page of messages and a block of the log.
pub(crate) struct StreamReader {
    /// Unlike that of any other reader.
    id: u64,
    queue: Arc<Queue>,
    channel: u16,
    slot: u32,
    key: u32,
    /// The offset of the message that comes next.
    offset: u64,
    filter: Option<Filter>,
    /// The places of the messages from `offset` on.
    ahead: VecDeque<Location>,
    reader: KeptReader,
    /// When it has read last.
    read_ms: u64,
    /// The stream wakes this reader's connection when there is a message with this offset.
    asleep_until: Option<u64>,
    /// The position of a message whose durability it waits for.
    awaited: Option<Position>,
    /// The last content header sent.
    header: Vec<u8>,
    /// Nothing is read before this time, as something could not be read.
    reads_at_ms: u64,
    /// Since when it has not been able to read anything.
    held_up_since_ms: Option<u64>,
    /// What it uses itself.
    _charge: Charge,
}

/// How things stand with a reader after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// Its consumer is gone.
    Gone,
    /// It is woken when it can go on.
    Waits,
    /// It could go on at once, if it were not the turn of others.
    HasMore,
}

/// Where a turn ended.
enum Stop {
    /// The places looked up are used up.
    Ahead,
    /// The consumer can take no more for now.
    Blocked,
}

/// What a reader uses: a place in a tree whose nodes are half full, and among those that the next message wakes.
const READER_BYTES: usize = 2 * size_of::<(u64, StreamReader)>() + 64;

impl StreamReader {
    /// A reader from `offset` on for the consumer in a slot of a channel.
    pub fn new(
        id: u64,
        queue: &Arc<Queue>,
        (channel, slot, key): (u16, u32, u32),
        offset: u64,
        filter: Option<Filter>,
        memory: &Arc<Memory>,
    ) -> Self {
        StreamReader {
            id,
            queue: Arc::clone(queue),
            channel,
            slot,
            key,
            offset,
            filter,
            ahead: VecDeque::new(),
            reader: KeptReader::new(memory),
            read_ms: 0,
            asleep_until: None,
            awaited: None,
            header: Vec::new(),
            reads_at_ms: 0,
            held_up_since_ms: None,
            _charge: memory.charge(Use::Channels, READER_BYTES),
        }
    }

    /// Gives back the memory that reading ahead has taken.
    pub fn release_memory(&mut self) {
        self.reader.close();
        self.ahead = VecDeque::new();
        self.header = Vec::new();
    }

    /// Counts what it keeps for its next turn; or gives it back, where memory is short or it has read nothing for a while.
    pub fn keep_memory(&mut self) {
        let now_ms = self.queue.now_ms();
        if self.reader.take_used() {
            self.read_ms = now_ms;
        }
        let places = self.ahead.capacity() * size_of::<Location>();
        let is_used = now_ms < self.read_ms.saturating_add(UNUSED_MS);
        if !is_used || !self.reader.count(places + self.header.capacity()) {
            self.release_memory();
        }
    }

    /// Hands its consumer what it can take and what is durable, until its turn is over or the
    /// `budget` of its connection is spent. Sees to it that the connection is woken when there is more to come.
    pub fn pump(
        &mut self,
        outbox: &Arc<Outbox>,
        store: &dyn Store,
        wakes: &mut Wakes,
        budget: &Budget,
    ) -> Pumped {
        // A checkpoint waits for no reader.
        critical::assert_outside("a stream is read");
        if is_too_early(self.reads_at_ms, self.queue.now_ms()) {
            return self.waits(outbox);
        }
        let pumped = self.pump_now(outbox, store, wakes, budget).unwrap_or_else(|error| {
            // The queue wakes this connection when it is to be tried again.
            self.release_memory();
            let since_ms = *self.held_up_since_ms.get_or_insert(self.queue.now_ms());
            let (reads_at_ms, goes_on) = self.queue.read_again(self.offset, since_ms, &error);
            self.reads_at_ms = reads_at_ms;
            self.offset += u64::from(goes_on);
            Pumped::Waits
        });
        self.keep_memory();
        pumped
    }

    fn pump_now(
        &mut self,
        outbox: &Arc<Outbox>,
        store: &dyn Store,
        wakes: &mut Wakes,
        budget: &Budget,
    ) -> Result<Pumped, StoreError> {
        let queue = Arc::clone(&self.queue);
        let Some(stream) = queue.stream() else { return Ok(Pumped::Gone) };
        let mut left = MESSAGES_PER_TURN;
        loop {
            if self.asleep_until.is_some_and(|offset| offset == stream.next_offset()) {
                return Ok(self.waits(outbox));
            }
            self.asleep_until = None;
            match self.check(outbox) {
                Ok(()) => {}
                Err(Blocked::Gone) => return Ok(Pumped::Gone),
                Err(_) => return Ok(Pumped::Waits),
            }
            if queue.is_paused() {
                return Ok(Pumped::Waits);
            }
            if self.ahead.is_empty() {
                self.asleep_until = stream.sleep(self.id, self.offset, outbox);
                if self.asleep_until.is_some() {
                    self.release_memory();
                    return Ok(Pumped::Waits);
                }
                self.offset = stream.look_up(self.offset, &mut self.ahead);
                work::count(LOOK_UP_STEPS);
            }
            if !self.is_durable(outbox, store) {
                return Ok(Pumped::Waits);
            }
            if left == 0 || budget.is_spent() {
                return Ok(Pumped::HasMore);
            }
            if let Stop::Blocked = self.hand_out(&mut left, outbox, store, wakes, budget)? {
                return Ok(Pumped::Waits);
            }
        }
    }

    /// Whether the consumer can take a message; its connection asks for more when it has room.
    fn check(&self, outbox: &Arc<Outbox>) -> Result<(), Blocked> {
        let high_bytes = outbox.high_bytes();
        let mut state = outbox.lock();
        if !self.is_alive(&mut state) {
            return Err(Blocked::Gone);
        }
        let checked = state.check(self.channel, self.slot, high_bytes);
        if checked == Err(Blocked::OutboxFull) {
            state.stall(Turn::Reader(self.id));
        }
        checked
    }

    /// How things stand while nothing is to be read.
    fn waits(&self, outbox: &Outbox) -> Pumped {
        if self.is_alive(&mut outbox.lock()) { Pumped::Waits } else { Pumped::Gone }
    }

    fn is_alive(&self, outbox: &mut OutboxState) -> bool {
        let slot = outbox.channel(self.channel).and_then(|channel| channel.slot(self.slot));
        slot.is_some_and(|slot| {
            slot.stream_reader == Some(self.id)
                && Arc::ptr_eq(&slot.queue, &self.queue)
                && slot.consumer_key == self.key
        })
    }

    /// Whether the next message is durable; if not, its connection is woken when it is.
    fn is_durable(&mut self, outbox: &Arc<Outbox>, store: &dyn Store) -> bool {
        let Some(position) = self.ahead.front().and_then(Location::position) else { return true };
        if position.is_before(store.durable()) {
            self.awaited = None;
            return true;
        }
        if self.awaited != Some(position) {
            self.awaited = Some(position);
            store.when_durable(position.durable_at(), Waker::from(Arc::clone(outbox)).into());
        }
        false
    }

    /// Hands out what it has looked up, as far as it is durable and the consumer can take it. The outbox is
    /// locked while one message after the other is handed out, and not while none passes the filter.
    fn hand_out(
        &mut self,
        left: &mut usize,
        outbox: &Arc<Outbox>,
        store: &dyn Store,
        wakes: &mut Wakes,
        budget: &Budget,
    ) -> Result<Stop, StoreError> {
        let Some(stream) = self.queue.stream() else { return Ok(Stop::Blocked) };
        let durable = store.durable();
        let reader = self.reader.open(store);
        let (high_bytes, traced) = (outbox.high_bytes(), self.queue.is_traced());
        let mut stop = Ok(Stop::Ahead);
        let mut handed = Handed::default();
        let mut locked: Option<(MutexGuard<'_, OutboxState>, Within)> = None;
        while *left > 0
            && !budget.is_spent()
            && let Some(place) = self.ahead.front()
            && place.position().is_none_or(|position| position.is_before(durable))
        {
            let can_take =
                |out: &mut OutboxState| out.check(self.channel, self.slot, high_bytes).is_ok();
            if locked.as_mut().is_some_and(|(out, _)| !can_take(out)) {
                // The caller finds out why.
                break;
            }
            if self.offset < stream.first_offset() {
                self.ahead.clear();
                break;
            }
            *left -= 1;
            if !reader.is_at_hand(place) {
                // Others need the outbox while the disk is waited for.
                locked = None;
            }
            let offset = self.offset;
            let is_kept = || offset >= stream.first_offset();
            match read_wanted(reader, place, &is_kept, self.filter.as_ref()) {
                Err(error) => {
                    stop = Err(error);
                    break;
                }
                Ok(None) => locked = None,
                Ok(Some(message)) => {
                    let was_locked = locked.is_some();
                    let (out, _) = locked.get_or_insert_with(|| outbox.lock_to_deliver());
                    if !was_locked && !can_take(out) {
                        break;
                    }
                    if outbox.defers(out, &message, high_bytes) {
                        // The caller finds out that it is full.
                        break;
                    }
                    put_offset(message.header, self.offset, &mut self.header);
                    let message = MessageRef { header: &self.header, ..message };
                    if out.deliver((self.channel, self.slot), &message, false, Lsn::default()) {
                        if let Some(channel) = out.channel(self.channel) {
                            channel.await_ack(self.slot, self.offset, self.queue.now_ms());
                        }
                        handed.add(message.body.len(), false);
                        if traced {
                            self.queue.trace(outbox, self.channel, &message, false, wakes);
                        }
                    } else if out.fits(self.header.len()) {
                        stop = Ok(Stop::Blocked);
                        break;
                    } else {
                        // It must not stop those behind it either.
                        self.queue.count_unfit();
                        locked = None;
                    }
                }
            }
            self.held_up_since_ms = None;
            self.ahead.pop_front();
            self.offset += 1;
        }
        let out = locked.map_or_else(|| outbox.lock(), |(out, _)| out);
        self.note_handed(&handed, out, outbox, wakes);
        stop
    }

    /// Notes how far it has come, and has the connection send what it was handed.
    fn note_handed(
        &self,
        handed: &Handed,
        mut out: MutexGuard<'_, OutboxState>,
        outbox: &Arc<Outbox>,
        wakes: &mut Wakes,
    ) {
        if let Some(channel) = out.channel(self.channel) {
            if let Some(slot) = channel.slot_mut(self.slot) {
                slot.stream_offset = self.offset;
            }
            if handed.messages > 0 {
                channel.counts().deliveries.add_handed(false, handed);
            }
        }
        if out.has_news() && out.claim_wake() {
            wakes.push(outbox);
        }
        drop(out);
        if handed.messages > 0 {
            self.queue.count_read(handed, wakes);
        }
    }
}

/// The message at a place, if it passes the filter and has neither left the stream, as `is_kept` says, nor been lost.
fn read_wanted<'r>(
    reader: &'r mut dyn Reader,
    place: &'r Location,
    is_kept: &dyn Fn() -> bool,
    filter: Option<&Filter>,
) -> Result<Option<MessageRef<'r>>, StoreError> {
    let message = match place.in_memory() {
        Some(message) => message,
        None => match reader.read_while(place, is_kept) {
            Ok(message) => message,
            // It must not stop those behind it.
            Err(StoreError::Lost(_)) => return Ok(None),
            Err(error) => return Err(error),
        },
    };
    work::count_read(message.header.len() + message.body.len());
    Ok(filter.is_none_or(|filter| filter.wants(message.header)).then_some(message))
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        if let Some(stream) = self.queue.stream() {
            stream.forget(self.id);
        }
    }
}
