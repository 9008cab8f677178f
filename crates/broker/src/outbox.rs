//! What a connection has yet to send, and what its client has yet to acknowledge.
//!
//! The outbox is where other connections' publishes meet a consumer: whoever holds a queue's lock
//! may lock the outbox of one of its consumers, check the consumer's credit, give the delivery its
//! tag and encode it. Lock order: queue, then outbox; never the other way round.

use crate::channels::Channels;
use crate::fault::Fault;
use crate::queue::{Polled, Queue};
use crate::unacked::{Unacked, UnackedList};
use crate::wire::{Delivery, WireBuffer};
use atomic_waker::AtomicWaker;
use courser_codec::ShortString;
use courser_store::MessageRef;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// One connection's outgoing side.
#[derive(Debug)]
pub struct Outbox {
    state: Mutex<OutboxState>,
    waker: AtomicWaker,
    high_bytes: usize,
    /// Some channel has a fault that its connection has yet to close it for.
    has_faults: AtomicBool,
    /// Whether the client wants to hear of consumers that the broker cancels.
    pub(crate) cancel_notify: bool,
}

/// The part of an [`Outbox`] behind its lock.
#[derive(Debug)]
pub struct OutboxState {
    wire: WireBuffer,
    channels: Channels<ChannelOut>,
    frame_max: usize,
    /// How much of what waits is deliveries to consumers.
    deliveries_bytes: usize,
    /// Somebody has put something in and has taken it on himself to wake the connection.
    wake_due: bool,
    closed: bool,
    /// Queues that have more for this connection once it has sent what it has.
    stalled: Vec<Arc<Queue>>,
    /// A delivery that this connection's limits make impossible; ends the connection.
    undeliverable: Option<String>,
}

/// What comes with the octets that are taken out of an outbox.
#[derive(Debug, Default)]
pub struct Taken {
    /// Queues that were waiting for this and have to be asked for more.
    pub stalled: Vec<Arc<Queue>>,
    /// Why the connection has to end: something can't be delivered within its limits.
    pub undeliverable: Option<String>,
}

/// Why a consumer can be given nothing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Its prefetch is used up, or the client stopped the flow: an ack or a flow will release it.
    NoCredit,
    /// Its connection has enough to send: draining the outbox will release it.
    OutboxFull,
    /// It is gone.
    Gone,
}

/// The deliveries of one open channel.
#[derive(Debug)]
pub(crate) struct ChannelOut {
    next_tag: u64,
    pub unacked: UnackedList,
    /// `basic.qos` with global=true: the limit for all consumers together, 0 for none.
    pub prefetch: u32,
    in_flight: u32,
    pub flow_active: bool,
    slots: Vec<Option<Slot>>,
    /// Why its connection has to close it.
    fault: Option<Fault>,
}

/// A queue that this channel takes from: one for each consumer, and one for each queue polled.
#[derive(Debug)]
pub(crate) struct Slot {
    pub queue: Arc<Queue>,
    /// The tag of the consumer; none for `basic.get`.
    pub consumer_tag: Option<ShortString>,
    /// Key of the consumer in its queue, once it has been added there.
    pub consumer_key: u32,
    pub no_ack: bool,
    prefetch: u32,
    in_flight: u32,
    /// The consumer is gone; the slot stays for the deliveries not yet acknowledged.
    ended: bool,
}

impl Outbox {
    /// An empty outbox that takes deliveries until it holds `high_bytes` octets.
    pub fn new(frame_max: usize, high_bytes: usize, cancel_notify: bool) -> Arc<Self> {
        Arc::new(Outbox {
            state: Mutex::new(OutboxState {
                wire: WireBuffer::default(),
                channels: Channels::default(),
                frame_max,
                deliveries_bytes: 0,
                wake_due: false,
                closed: false,
                stalled: Vec::new(),
                undeliverable: None,
            }),
            waker: AtomicWaker::new(),
            high_bytes,
            has_faults: AtomicBool::new(false),
            cancel_notify,
        })
    }

    /// Locks the outbox. Nobody may take a queue's lock while holding it.
    pub fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }

    /// Locks the outbox if nobody else has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, OutboxState>> {
        self.state.try_lock()
    }

    /// Asks to be woken when there is something to send or to look at.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Wakes the connection's task.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Takes what is to be sent into `wire`, which must be empty, leaving its memory in exchange.
    pub fn take(&self, wire: &mut WireBuffer) -> Taken {
        let mut state = self.lock();
        state.take_wire(wire);
        Taken {
            stalled: std::mem::take(&mut state.stalled),
            undeliverable: state.undeliverable.take(),
        }
    }

    /// The channels that are to be closed for what has been found elsewhere, and why. To be asked
    /// whenever the connection's task runs.
    #[inline]
    pub fn take_faults(&self) -> Vec<(u16, Fault)> {
        if !self.has_faults.load(Ordering::Relaxed)
            || !self.has_faults.swap(false, Ordering::AcqRel)
        {
            return Vec::new();
        }
        let mut state = self.lock();
        let channels = state.channels.iter_mut();
        channels.filter_map(|(number, channel)| Some((number, channel.fault.take()?))).collect()
    }

    /// Has a channel closed by its connection, which has to be woken for it.
    pub(crate) fn fail_channel(&self, number: u16, fault: Fault) {
        if let Some(channel) = self.lock().channel(number) {
            channel.fault = Some(fault);
            self.has_faults.store(true, Ordering::Release);
        }
    }

    /// Whether it holds so many answers that its client should not be read until it takes them.
    /// Deliveries do not count: they are bounded, and a client may send a lot before it takes more.
    pub fn is_full_of_answers(&self) -> bool {
        let state = self.lock();
        state.wire.len() - state.deliveries_bytes >= self.high_bytes
    }

    /// Gives back the memory that an idle connection need not hold.
    pub fn release_memory(&self) {
        let mut state = self.lock();
        if state.wire.is_empty() {
            state.wire.release();
        }
    }

    /// Takes note of the connection's end: from now on every delivery is refused.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wire.release();
        state.deliveries_bytes = 0;
        state.stalled = Vec::new();
    }

    pub(crate) fn high_bytes(&self) -> usize {
        self.high_bytes
    }
}

impl Wake for Outbox {
    fn wake(self: Arc<Self>) {
        self.waker.wake();
    }
}

impl OutboxState {
    /// Where the connection's own replies go, between the deliveries.
    pub fn wire_mut(&mut self) -> &mut WireBuffer {
        &mut self.wire
    }

    /// Takes what is to be sent into `wire`, which must be empty, leaving its memory in exchange.
    fn take_wire(&mut self, wire: &mut WireBuffer) {
        std::mem::swap(&mut self.wire, wire);
        self.deliveries_bytes = 0;
        self.wake_due = false;
    }

    /// As [`Outbox::take`], if octets are all there is to be taken.
    pub(crate) fn take_plain(&mut self, wire: &mut WireBuffer) -> bool {
        let plain = self.stalled.is_empty() && self.undeliverable.is_none();
        if plain {
            self.take_wire(wire);
        }
        plain
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.wire.is_empty()
    }

    /// The largest frame that may be sent, as negotiated.
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// Whether the connection has something to look at.
    pub(crate) fn has_news(&self) -> bool {
        !self.wire.is_empty() || self.undeliverable.is_some()
    }

    /// True for the first to put something in since the connection last took it: he has to wake it.
    pub(crate) fn claim_wake(&mut self) -> bool {
        !std::mem::replace(&mut self.wake_due, true)
    }

    pub(crate) fn open_channel(&mut self, number: u16) {
        self.channels.insert(number, ChannelOut::new());
    }

    pub(crate) fn close_channel(&mut self, number: u16) -> Option<Box<ChannelOut>> {
        self.channels.remove(number)
    }

    #[inline]
    pub(crate) fn channel(&mut self, number: u16) -> Option<&mut ChannelOut> {
        self.channels.get_mut(number)
    }

    /// Whether the consumer in this slot can be given a message now.
    #[inline]
    pub(crate) fn check(
        &mut self,
        number: u16,
        slot: u32,
        high_bytes: usize,
    ) -> Result<(), Blocked> {
        if self.closed {
            return Err(Blocked::Gone);
        }
        let full = self.wire.len() >= high_bytes;
        let channel = self.channel(number).ok_or(Blocked::Gone)?;
        channel.check_credit(slot)?;
        if full { Err(Blocked::OutboxFull) } else { Ok(()) }
    }

    /// Remembers to ask `queue` for more when this outbox has been drained.
    pub(crate) fn stall(&mut self, queue: &Arc<Queue>) {
        if !self.stalled.iter().any(|known| Arc::ptr_eq(known, queue)) {
            self.stalled.push(Arc::clone(queue));
        }
    }

    /// Encodes a delivery for the consumer in `slot`, which [`OutboxState::check`] has found ready.
    /// Returns false when the message can't be put into frames that this client accepts.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        number: u16,
        slot: u32,
        message: &MessageRef<'_>,
        redelivered: bool,
    ) -> bool {
        let frame_max = self.frame_max;
        if !WireBuffer::fits(message, frame_max) {
            self.undeliverable = Some(format!(
                "a content header of {} octets does not fit frame_max {frame_max}",
                message.header.len(),
            ));
            return false;
        }
        let Some(channel) = self.channels.get_mut(number) else { return false };
        let tag = channel.next_tag;
        channel.next_tag += 1;
        let consumer_tag = match channel.slots.get(slot as usize) {
            Some(Some(slot)) => slot.consumer_tag.as_ref().map_or(&[][..], ShortString::as_bytes),
            _ => return false,
        };
        let delivery = Delivery { tag, redelivered };
        let before = self.wire.len();
        self.wire.put_delivery(number, consumer_tag, delivery, message, frame_max);
        self.deliveries_bytes += self.wire.len() - before;
        true
    }

    /// Encodes the reply to a `basic.get`.
    pub(crate) fn deliver_get(&mut self, number: u16, polled: &Polled<'_>) {
        let frame_max = self.frame_max;
        let Some(channel) = self.channel(number) else { return };
        let delivery = Delivery { tag: channel.next_tag, redelivered: polled.redelivered };
        channel.next_tag += 1;
        let left = u32::try_from(polled.left).unwrap_or(u32::MAX);
        self.wire.put_get_ok(number, delivery, left, &polled.message, frame_max);
    }
}

impl Slot {
    /// Deliveries that wait for an acknowledgement.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

impl ChannelOut {
    fn new() -> Self {
        ChannelOut {
            next_tag: 1,
            unacked: UnackedList::default(),
            prefetch: 0,
            in_flight: 0,
            flow_active: true,
            slots: Vec::new(),
            fault: None,
        }
    }

    #[inline]
    fn check_credit(&self, slot: u32) -> Result<(), Blocked> {
        let slot = self.slot(slot).filter(|slot| !slot.ended).ok_or(Blocked::Gone)?;
        let used_up = slot.prefetch != 0 && slot.in_flight >= slot.prefetch
            || self.prefetch != 0 && self.in_flight >= self.prefetch && !slot.no_ack
            || !self.flow_active;
        if used_up { Err(Blocked::NoCredit) } else { Ok(()) }
    }

    /// Notes that the latest delivery waits for an acknowledgement.
    #[inline]
    pub(crate) fn await_ack(&mut self, slot_index: u32, sequence: u64) {
        let tag = self.next_tag - 1;
        self.unacked.push(tag, Unacked { slot: slot_index, sequence });
        if let Some(Some(slot)) = self.slots.get_mut(slot_index as usize) {
            slot.in_flight += 1;
            if slot.consumer_tag.is_some() {
                self.in_flight += 1;
            }
        }
    }

    /// Takes a settled delivery out of the accounts of its slot. Returns the queue it came from
    /// and the key of its consumer there.
    #[inline]
    pub(crate) fn settled(&mut self, slot_index: u32) -> Option<(&Arc<Queue>, Option<u32>)> {
        let slot = self.slots.get_mut(slot_index as usize)?.as_mut()?;
        slot.in_flight -= 1;
        if slot.consumer_tag.is_some() {
            self.in_flight -= 1;
        }
        let key = slot.consumer_tag.as_ref().filter(|_| !slot.ended).map(|_| slot.consumer_key);
        Some((&slot.queue, key))
    }

    /// Frees a slot that has ended, if this was the last acknowledgement it waited for.
    #[inline]
    pub(crate) fn free_if_done(&mut self, slot_index: u32) {
        if let Some(slot) = self.slots.get_mut(slot_index as usize)
            && slot.as_ref().is_some_and(|slot| slot.ended && slot.in_flight == 0)
        {
            *slot = None;
        }
    }

    /// Frees the slots that have ended and wait for no acknowledgement any more.
    pub(crate) fn sweep_slots(&mut self) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|slot| slot.ended && slot.in_flight == 0) {
                *slot = None;
            }
        }
    }

    pub(crate) fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)?.as_ref()
    }

    pub(crate) fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// The consumers on this channel.
    pub(crate) fn consumers(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten().filter(|slot| !slot.ended && slot.consumer_tag.is_some())
    }

    /// The slot of the live consumer with this tag.
    pub(crate) fn find_consumer(&self, tag: &[u8]) -> Option<u32> {
        let found = self.slots.iter().position(|slot| {
            slot.as_ref().is_some_and(|slot| {
                !slot.ended
                    && slot.consumer_tag.as_ref().is_some_and(|known| known.as_bytes() == tag)
            })
        });
        found.map(|index| index as u32)
    }

    /// A slot for a new consumer.
    pub(crate) fn add_consumer(
        &mut self,
        queue: &Arc<Queue>,
        tag: ShortString,
        no_ack: bool,
        prefetch: u32,
    ) -> u32 {
        self.add_slot(Slot {
            queue: Arc::clone(queue),
            consumer_tag: Some(tag),
            consumer_key: 0,
            no_ack,
            prefetch: if no_ack { 0 } else { prefetch },
            in_flight: 0,
            ended: false,
        })
    }

    /// The slot for messages polled from `queue`.
    pub(crate) fn polled_slot(&mut self, queue: &Arc<Queue>) -> u32 {
        let known = self.slots.iter().position(|slot| {
            slot.as_ref()
                .is_some_and(|slot| slot.consumer_tag.is_none() && Arc::ptr_eq(&slot.queue, queue))
        });
        match known {
            Some(index) => index as u32,
            None => self.add_slot(Slot {
                queue: Arc::clone(queue),
                consumer_tag: None,
                consumer_key: 0,
                no_ack: false,
                prefetch: 0,
                in_flight: 0,
                ended: true,
            }),
        }
    }

    /// Ends the consumer in a slot: nothing more is delivered, what is unacked stays.
    pub(crate) fn end_consumer(&mut self, index: u32) {
        if let Some(slot) = self.slot_mut(index) {
            slot.ended = true;
        }
        self.sweep_slots();
    }

    fn add_slot(&mut self, slot: Slot) -> u32 {
        match self.slots.iter().position(Option::is_none) {
            Some(index) => {
                self.slots[index] = Some(slot);
                index as u32
            }
            None => {
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as u32
            }
        }
    }
}
