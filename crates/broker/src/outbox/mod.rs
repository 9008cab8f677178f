//! What a connection has yet to send, and what its client has yet to acknowledge.
//!
//! The outbox is where other connections' publishes meet a consumer: the holder of a queue's lock
//! may lock the outbox of one of its consumers, check the consumer's credit, give the delivery its
//! tag and encode it. Lock order: queue, then outbox; never the other way round.

mod channel;
mod deliver;
mod delivery_times;
mod held;
mod room;
mod shortage;
mod slot;
mod stalled;
mod take_away;
mod unacked;
mod until;
mod waking;
pub mod wire;

pub(crate) use channel::ChannelOut;
pub(crate) use delivery_times::DeliveryTimes;
pub(crate) use shortage::Shortage;
pub(crate) use slot::Slot;
pub use stalled::Stalled;
pub(crate) use stalled::Turn;
pub(crate) use unacked::{NO_SLOT, Unacked, UnackedList};
pub(crate) use until::{Next, Until};

use crate::channels::Channels;
use crate::counts::ChannelCounts;
use crate::fault::Fault;
use crate::memory::{Charge, Memory};
use crate::monitor::{Connection, ConnectionState};
use crate::outbox::wire::WireBuffer;
use crate::work;
use atomic_waker::AtomicWaker;
use courser_store::Waiter;
use courser_store::blocking::Lock;
use courser_store::critical::{self, Section, Within};
use held::Held;
pub(crate) use held::Unsent;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One connection's outgoing side.
#[derive(Debug)]
pub struct Outbox {
    state: Lock<OutboxState>,
    waker: AtomicWaker,
    /// The connection has been woken since it last looked whether its readers of streams can go on.
    has_woken: AtomicBool,
    high_bytes: usize,
    /// The books in which it counts, if any.
    memory: Option<Arc<Memory>>,
    /// Something waits for the store.
    holds_back: AtomicBool,
    /// Some channel has a fault that its connection has yet to close it for.
    has_faults: AtomicBool,
    /// Whether the client wants to hear of consumers that the broker cancels.
    pub(crate) cancel_notify: bool,
    /// What an operator can see of the connection.
    pub(crate) connection: Connection,
}

/// The part of an [`Outbox`] behind its lock.
#[derive(Debug)]
pub struct OutboxState {
    wire: WireBuffer,
    /// What waits for the store, and what comes behind it.
    held: Option<Box<Held>>,
    /// What the store notifies then, if not the connection's task.
    waiter: Option<Waiter>,
    channels: Channels<ChannelOut>,
    frame_max: usize,
    /// How much of what waits is deliveries to consumers.
    deliveries_bytes: usize,
    /// A thread has put something in and is going to wake the connection.
    wake_due: bool,
    closed: bool,
    /// What has more for this connection once it has sent what it has.
    stalled: Stalled,
    stalled_charge: Charge,
    /// How far what is being sent exceeds what may wait here.
    ahead: usize,
    /// Where it stands among those that wait for room, if it does.
    turn: Option<u64>,
    /// What happened on channels that are closed, if anything.
    closed_counts: Option<Box<ChannelCounts>>,
    /// Why the connection has to be closed.
    fault: Option<Fault>,
}

/// What comes with the bytes that are taken out of an outbox.
#[derive(Debug, Default)]
pub struct Taken {
    /// What was waiting for this and has to be asked for more.
    pub stalled: Stalled,
}

/// Why a consumer can be given nothing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Its prefetch is used up, or the client stopped the flow: an ack or a flow will release it.
    NoCredit,
    /// The limit for all consumers of its channel is used up: its channel will release it, or another one.
    Starved,
    /// Its connection has enough to send: draining the outbox will release it.
    OutboxFull,
    /// It is gone.
    Gone,
}

impl Outbox {
    /// An empty outbox that takes deliveries until it holds `high_bytes` bytes; what it uses is counted by `charge`.
    pub(crate) fn new(
        frame_max: usize,
        high_bytes: usize,
        cancel_notify: bool,
        connection: Connection,
        charge: Charge,
    ) -> Arc<Self> {
        let (memory, stalled_charge) = (charge.memory().cloned(), charge.another());
        Arc::new(Outbox {
            memory,
            state: Lock::new(OutboxState {
                wire: WireBuffer::counted(charge),
                held: None,
                waiter: None,
                channels: Channels::default(),
                frame_max,
                deliveries_bytes: 0,
                wake_due: false,
                closed: false,
                stalled: Stalled::default(),
                stalled_charge,
                ahead: 0,
                turn: None,
                closed_counts: None,
                fault: None,
            }),
            waker: AtomicWaker::new(),
            has_woken: AtomicBool::new(false),
            holds_back: AtomicBool::new(false),
            high_bytes,
            has_faults: AtomicBool::new(false),
            cancel_notify,
            connection,
        })
    }

    /// Locks the outbox. No queue's lock may be taken while it is held.
    pub fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }

    /// Locks the outbox to put deliveries into it, for which no disk is waited for meanwhile.
    pub(crate) fn lock_to_deliver(&self) -> (MutexGuard<'_, OutboxState>, Within) {
        (self.lock(), critical::enter(Section::Outbox))
    }

    /// Locks the outbox if it is not locked.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, OutboxState>> {
        self.state.try_lock()
    }

    /// Takes what is to be sent into `wire`, which must be empty, leaving its memory in exchange.
    pub fn take(&self, wire: &mut WireBuffer) -> Taken {
        let mut state = self.lock();
        state.take_wire(wire);
        state.ahead = wire.len().saturating_sub(self.high_bytes);
        self.note_room(&mut state);
        // What waits for the store has to be sent before there is room, and a lot that is larger than usual.
        if state.is_full(self.high_bytes()) {
            return Taken::default();
        }
        Taken { stalled: state.take_stalled() }
    }

    /// The channels that are to be closed for what has been found elsewhere, and why; channel 0 for
    /// the whole connection. To be asked whenever the connection's task runs.
    #[inline]
    pub fn take_faults(&self) -> Vec<(u16, Fault)> {
        if !self.has_faults.load(Ordering::Relaxed)
            || !self.has_faults.swap(false, Ordering::AcqRel)
        {
            return Vec::new();
        }
        let mut state = self.lock();
        let connection = state.fault.take().map(|fault| (0, fault));
        let channels = state.channels.iter_mut();
        let failed = channels.filter_map(|(number, channel)| Some((number, channel.fault.take()?)));
        connection.into_iter().chain(failed).collect()
    }

    /// Has its connection closed, for a fault that ends connections.
    pub(crate) fn fail_connection(&self, fault: Fault) {
        debug_assert!(fault.closes_connection());
        self.connection.set_state(ConnectionState::Closing);
        self.lock().fault = Some(fault);
        self.note_faults();
        self.wake();
    }

    /// Refuses what takes long when its connection is to be closed.
    pub(crate) fn refuse_if_failed(&self) -> Result<(), Fault> {
        self.lock().fault.clone().map_or(Ok(()), Err)
    }

    /// Has a channel closed by its connection, which has to be woken for it. Returns whether it is
    /// there.
    pub(crate) fn fail_channel(&self, number: u16, fault: Fault) -> bool {
        let is_there = self.lock().fail_channel(number, fault);
        if is_there {
            self.note_faults();
        }
        is_there
    }

    /// Has the connection look for channels that have a fault.
    pub(crate) fn note_faults(&self) {
        self.has_faults.store(true, Ordering::Release);
    }

    /// Whether it holds so many answers that its client should not be read until it takes them.
    /// Deliveries do not count: they are bounded, and a client may send a lot before it takes more.
    pub fn is_full_of_answers(&self) -> bool {
        let state = self.lock();
        let held = state.held.as_ref().map_or(0, |held| held.answers_bytes());
        state.wire.len() - state.deliveries_bytes + held >= self.high_bytes
    }

    /// Gives back the memory that an idle connection need not hold.
    pub fn release_memory(&self) {
        let mut state = self.lock();
        if state.wire.is_empty() {
            state.wire.release();
        }
    }

    /// Takes note of the connection's end: from now on every delivery is refused, and nothing is sent. What was held back is
    /// kept until its channels are closed, which have not been sent it.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wire.release();
        state.waiter = None;
        state.deliveries_bytes = 0;
        drop(state.take_stalled());
        self.leave_line(&mut state);
    }

    /// Forgets what was held back: all channels are closed.
    pub(crate) fn forget_held(&self) {
        self.lock().held = None;
    }

    /// Whether it takes no more deliveries until some have been sent.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().is_full(self.high_bytes())
    }

    /// Has `waiter` notified, in the place of the connection's task, when the store is durable.
    pub(crate) fn notify(&self, waiter: Waiter) {
        self.lock().waiter = Some(waiter);
    }
}

impl OutboxState {
    /// Takes what is to be sent into `wire`, which must be empty, leaving its memory in exchange.
    fn take_wire(&mut self, wire: &mut WireBuffer) {
        self.wire.swap(wire);
        self.deliveries_bytes = 0;
        self.ahead = 0;
        self.wake_due = false;
    }

    /// As [`Outbox::take`], if bytes are all there is to be taken.
    pub(crate) fn take_plain(&mut self, wire: &mut WireBuffer) -> bool {
        let plain = self.stalled.is_empty();
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

    /// Whether a content header of so many bytes fits a frame of the client's.
    pub(crate) fn fits(&self, header_len: usize) -> bool {
        WireBuffer::fits(header_len, self.frame_max)
    }

    /// The numbers of the channels that are open.
    pub(crate) fn channel_numbers(&self) -> Vec<u16> {
        self.channels.numbers()
    }

    /// Whether the connection has something to look at.
    pub(crate) fn has_news(&self) -> bool {
        !self.wire.is_empty()
    }

    /// True for the first to put something in since the connection last took it: he has to wake it.
    pub(crate) fn claim_wake(&mut self) -> bool {
        !std::mem::replace(&mut self.wake_due, true)
    }

    /// Gives a channel a fault, for which its connection has to close it. Returns whether the channel is there.
    pub(crate) fn fail_channel(&mut self, number: u16, fault: Fault) -> bool {
        let channel = self.channel(number);
        channel.map(|channel| channel.fault = Some(fault)).is_some()
    }

    pub(crate) fn open_channel(&mut self, number: u16, unacked_max: u32, memory: &Arc<Memory>) {
        self.channels.insert(number, ChannelOut::new(unacked_max, memory));
    }

    /// The consumers on all channels.
    pub(crate) fn consumer_count(&mut self) -> usize {
        let channels = self.channels.iter_mut().inspect(|_| work::count(1));
        channels.map(|(_, channel)| channel.consumer_count()).sum()
    }

    /// The deliveries on all channels that wait for an acknowledgement.
    pub(crate) fn unacked_count(&mut self) -> usize {
        self.channels.iter_mut().map(|(_, channel)| channel.unacked.len()).sum()
    }

    /// Ends a channel. Returns what is left of it, and which of its deliveries were not sent.
    pub(crate) fn close_channel(&mut self, number: u16) -> Option<(Box<ChannelOut>, Unsent)> {
        let closed = self.channels.remove(number)?;
        let unsent = self.forget_deliveries(number);
        let counted = closed.counted();
        if counted != ChannelCounts::default() {
            *self.closed_counts.get_or_insert_default().as_mut() += &counted;
        }
        Some((closed, unsent))
    }

    /// What has happened on all its channels, those that are closed included.
    pub(crate) fn counted(&mut self) -> ChannelCounts {
        let mut all = self.closed_counts.as_deref().copied().unwrap_or_default();
        self.channels.iter_mut().for_each(|(_, channel)| all += &channel.counted());
        all
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
        let full = self.is_full(high_bytes);
        let channel = self.channel(number).ok_or(Blocked::Gone)?;
        channel.check_credit(slot)?;
        if full { Err(Blocked::OutboxFull) } else { Ok(()) }
    }

    /// The same for the next message of a run, behind the same lock: what a delivery can't change is
    /// not looked at again. Without acknowledgements it uses up no credit.
    #[inline]
    pub(crate) fn check_again(
        &mut self,
        number: u16,
        slot: u32,
        no_ack: bool,
        high_bytes: usize,
    ) -> Result<(), Blocked> {
        if self.is_full(high_bytes) {
            // A lack of credit counts before that.
            return self.check(number, slot, high_bytes);
        }
        if no_ack {
            return Ok(());
        }
        self.channel(number).ok_or(Blocked::Gone)?.check_credit(slot)
    }
}
