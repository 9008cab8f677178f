//! The server's side of a connection.
//!
//! A driver reads from a socket, presents what it has to [`Connection::next`], acts on each [`Event`], and sends what
//! it finds in [`Connection::output`] before it takes the next event. Deliveries and other things that need no state
//! of the connection may go to the socket by another way, as long as no frame is torn apart.
//!
//! # Memory
//! A connection takes a few hundred bytes, a few dozen more for each channel, and what it is assembling: messages in
//! several frames, which grow as their bytes come, to at most [`Config::max_incomplete_bytes`] plus one message. What
//! `next` leaves in the input is at most a frame or 33 KiB, whichever is more, as long as no answer to `Login` or `Open`
//! is due.

mod ack;
mod channel;
mod close;
mod config;
mod content;
mod event;
mod handshake;
mod mode;
mod phase;
mod publish;

use std::sync::Arc;
use std::time::Instant;

use courser_codec::{FRAME_MIN_SIZE, HEARTBEAT_FRAME, Method, ShortStr, connection};

pub use config::{Config, capabilities};
pub use event::{AssembledPublish, Event, Publish, split_exchange_and_key};
pub use mode::ChannelMode;

use crate::capabilities::Capabilities;
use crate::close::CloseReason;
use crate::framer::Framer;
use crate::slots::{SlotState, Slots};
use crate::timers::{Due, Timers};
use crate::whole::Limits;
use ack::whole_ack;
use mode::Channel;
use phase::Phase;
use publish::whole_publish;

/// The server's side of one connection: bytes in, events out.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    phase: Phase,
    framer: Framer,
    limits: Limits,
    slots: Slots<Channel>,
    timers: Timers,
    output: Vec<u8>,
    frame_max: u32,
    channel_max: u16,
    capabilities: Capabilities,
    is_blocked: bool,
    /// A channel that was opened and whose client has yet to be told.
    opened: Option<u16>,
    reason: Option<Box<CloseReason>>,
}

/// What a step through the input has led to.
enum Step<'a> {
    Event(Event<'a>),
    /// Something was taken that the driver need not know of.
    Again,
    /// Nothing more can be done with this input.
    More,
}

impl Connection {
    /// A connection whose client has not sent anything yet.
    #[must_use]
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Self {
            phase: Phase::Header,
            framer: Framer::new(config.login_frame_max.max(FRAME_MIN_SIZE)),
            limits: Limits::default(),
            slots: Slots::default(),
            timers: Timers::new(now, config.handshake_timeout),
            output: Vec::new(),
            frame_max: FRAME_MIN_SIZE,
            channel_max: 0,
            capabilities: Capabilities::default(),
            is_blocked: false,
            opened: None,
            reason: None,
            config,
        }
    }

    /// Takes the next event off the front of `input`, and advances `input` behind it.
    ///
    /// `None` says that nothing can be done with what is left; it is presented again with more behind it. Which events
    /// come, and in which order, does not depend on how the bytes are split into reads, but for one thing: a body that
    /// lies in one frame is borrowed ([`Event::Publish`]) when it could be waited for, and copied
    /// ([`Event::PublishBegun`], [`Event::LargePublish`]) when not.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8], now: Instant) -> Option<Event<'a>> {
        if input.is_empty() {
            return None;
        }
        self.timers.received(now);
        if self.phase == Phase::Running && !self.framer.is_within_frame() {
            if let Some((mut publish, rest)) = whole_publish(input, self.limits)
                && let Some(slot) = self.slots.get_mut(publish.channel)
                && slot.state == SlotState::Idle
            {
                publish.confirm_seq = slot.data.next_confirm_seq();
                *input = rest;
                return Some(Event::Publish(publish));
            }
            if let Some((channel, ack, rest)) = whole_ack(input)
                && self.slots.state(channel) == SlotState::Idle
            {
                *input = rest;
                return Some(Event::Request { channel, method: Method::BasicAck(ack) });
            }
        }
        self.next_general(input)
    }

    /// The way of everything but small, plain publishes and acknowledgements.
    fn next_general<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        self.confirm_opened();
        while !input.is_empty() {
            let step = match self.phase {
                Phase::Running => self.running_step(input),
                Phase::Header => self.protocol_header_step(input),
                Phase::Starting | Phase::Tuning | Phase::Opening => self.handshake_step(input),
                Phase::LoginPending | Phase::OpenPending => Step::More,
                Phase::Closing => self.closing_step(input),
                Phase::Lingering | Phase::Refused | Phase::Closed => {
                    *input = &[];
                    Step::More
                }
            };
            match step {
                Step::Event(event) => return Some(event),
                Step::Again => {}
                Step::More => break,
            }
        }
        None
    }

    /// What the connection itself has to say. The driver takes it out, sends it, and leaves an empty buffer.
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.confirm_opened();
        &mut self.output
    }

    /// Bytes of memory that messages take which have come in part.
    #[inline]
    #[must_use]
    pub fn incomplete_bytes(&self) -> u64 {
        self.slots.content_bytes()
    }

    /// Writes a method into the output.
    pub fn transmit(&mut self, channel: u16, method: &Method<'_>) {
        method.write_frame(channel, &mut self.output);
    }

    /// When to call [`Connection::handle_timeout`], if nothing changes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Does what is due: puts a heartbeat into the output, or ends the connection because its time is up. Look at
    /// [`Connection::is_closed`] afterwards. Too early a call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.timers.due(now) {
            Due::Nothing => {}
            Due::Deadline if self.phase.is_over() => self.end(None),
            Due::Deadline => {
                let text = format!("no handshake in time (in state {})", self.phase.name());
                self.end(Some(CloseReason::silent(text)));
            }
            Due::PeerGone => {
                let text = format!(
                    "missed heartbeats from client, timeout: {}s",
                    self.timers.interval_s()
                );
                self.end(Some(CloseReason::silent(text)));
            }
            Due::Heartbeat => {
                self.output.extend_from_slice(&HEARTBEAT_FRAME);
                self.timers.sent(now);
            }
        }
    }

    /// Tells that something was sent to the client, so that no heartbeat is due for a while.
    pub fn bytes_sent(&mut self, now: Instant) {
        self.timers.sent(now);
    }

    /// Tells that the driver stops reading (`false`) or reads again (`true`). While it does not read, a silent client
    /// does not count as gone.
    pub fn set_reading(&mut self, is_reading: bool, now: Instant) {
        self.timers.watch(is_reading, now);
    }

    /// Whether the socket can be closed as soon as the output is sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether the way to the client can be shut as soon as the output is sent, while what it still sends is read until
    /// [`Connection::is_closed`]. Closing the socket over unread input would reset it, and the client might lose the
    /// output.
    #[must_use]
    pub fn is_output_over(&self) -> bool {
        self.phase == Phase::Refused
    }

    /// Whether the connection has ended or is about to; no event comes any more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.phase.is_over()
    }

    /// Why the connection has ended, once it has.
    #[must_use]
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.reason.as_deref()
    }

    /// Largest frame that may be sent, in bytes, header and end marker included.
    #[inline]
    #[must_use]
    pub fn frame_max(&self) -> u32 {
        self.frame_max
    }

    /// How many channels there may be at once.
    #[must_use]
    pub fn channel_max(&self) -> u16 {
        self.channel_max
    }

    /// Agreed interval of heartbeats in seconds, 0 for none.
    #[must_use]
    pub fn heartbeat_s(&self) -> u64 {
        self.timers.interval_s()
    }

    /// What the client announced that it can do. Known from [`Event::Login`] on.
    #[must_use]
    pub fn client_capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whether a channel is open.
    #[must_use]
    pub fn is_channel_open(&self, channel: u16) -> bool {
        self.slots.is_open(channel)
    }

    /// The mode of a channel; plain when it is not open.
    #[must_use]
    pub fn channel_mode(&self, channel: u16) -> ChannelMode {
        self.slots.get(channel).map_or(ChannelMode::Plain, |slot| slot.data.mode)
    }

    /// Tells a client that wants to know it that its publishes are not read any more. `reason` names what is short.
    /// Does nothing when it was told already.
    pub fn blocked(&mut self, reason: &str) {
        if self.phase == Phase::Running
            && self.capabilities.connection_blocked()
            && !self.is_blocked
        {
            self.is_blocked = true;
            connection::Blocked { reason: ShortStr::cut(reason) }.write_frame(0, &mut self.output);
        }
    }

    /// Tells a client that was told of a block that it is over.
    pub fn unblocked(&mut self) {
        if self.phase == Phase::Running && self.is_blocked {
            self.is_blocked = false;
            connection::Unblocked {}.write_frame(0, &mut self.output);
        }
    }
}
