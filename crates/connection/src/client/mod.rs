//! The client's side of a connection.
//!
//! A driver connects a socket, sends what it finds in [`Connection::output`] (the protocol header is there from the
//! start), presents what it reads to [`Connection::next`], and acts on each [`Event`]. Channels are opened, requests made
//! and messages published by functions that write into the output or into a buffer of the driver's.
//!
//! # Memory
//! A connection takes a few hundred bytes, a few dozen more for each channel, a run of
//! numbers for confirms that come out of order, and what it is assembling: messages in several frames, which grow as
//! their bytes come, to at most [`Config::max_incomplete_bytes`] plus one message. What `next` leaves in the input is
//! at most a frame or 33 KiB, whichever is more.

mod channel;
mod close;
mod config;
mod confirms;
mod content;
mod delivery;
mod event;
mod handshake;
mod phase;
mod publish;

use std::sync::Arc;
use std::time::Instant;

use courser_codec::{FRAME_MIN_SIZE, FieldTable, HEARTBEAT_FRAME, PROTOCOL_HEADER};

pub use channel::{OpenChannelError, RequestError};
pub use config::{Config, capabilities};
pub use event::{AssembledDelivery, Delivery, DeliveryMethod, Event};
pub use publish::{PublishError, write_body};

use crate::capabilities::Capabilities;
use crate::close::CloseReason;
use crate::framer::Framer;
use crate::slots::{SlotState, Slots};
use crate::timers::{Due, Timers};
use crate::whole::Limits;
use confirms::{Confirms, Resolving};
use delivery::whole_delivery;
use phase::Phase;

/// The client's side of one connection: bytes in, events out, requests in, bytes out.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    phase: Phase,
    framer: Framer,
    limits: Limits,
    slots: Slots<Channel>,
    /// Numbers below the highest that are free again.
    free_channels: Vec<u16>,
    /// A confirm of many publishes that could not be told in one event.
    resolving: Option<Resolving>,
    timers: Timers,
    output: Vec<u8>,
    frame_max: u32,
    channel_max: u16,
    server_properties: FieldTable,
    capabilities: Capabilities,
    reason: Option<Box<CloseReason>>,
    /// The server has answered this side's `connection.close`.
    is_close_answered: bool,
}

/// What a client keeps of a channel.
#[derive(Debug, Default)]
struct Channel {
    /// Set in confirm mode.
    confirms: Option<Box<Confirms>>,
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
    /// A connection whose first bytes are in the output.
    #[must_use]
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Self {
            phase: Phase::Starting,
            framer: Framer::new(config.frame_max.max(FRAME_MIN_SIZE)),
            limits: Limits::default(),
            slots: Slots::default(),
            free_channels: Vec::new(),
            resolving: None,
            timers: Timers::new(now, config.handshake_timeout),
            output: PROTOCOL_HEADER.to_vec(),
            frame_max: FRAME_MIN_SIZE,
            channel_max: 0,
            server_properties: FieldTable::new(),
            capabilities: Capabilities::default(),
            reason: None,
            is_close_answered: false,
            config,
        }
    }

    /// Takes the next event off the front of `input`, and advances `input` behind it.
    ///
    /// `None` says that nothing can be done with what is left; it is presented again with more behind it. Which events
    /// come, and in which order, does not depend on how the bytes are split into reads, but for one thing: a body that
    /// lies in one frame is borrowed ([`Event::Delivery`]) when it could be waited for, and copied
    /// ([`Event::LargeDelivery`]) when not.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8], now: Instant) -> Option<Event<'a>> {
        if let Some(event) = self.resolve() {
            return Some(event);
        }
        if input.is_empty() {
            return None;
        }
        self.timers.received(now);
        if self.phase == Phase::Running
            && !self.framer.is_within_frame()
            && let Some((delivery, rest)) = whole_delivery(input, self.limits)
            && let Some(slot) = self.slots.get_mut(delivery.channel)
            && slot.state == SlotState::Idle
        {
            *input = rest;
            return Some(Event::Delivery(delivery));
        }
        self.next_general(input)
    }

    /// The way of everything but small messages.
    fn next_general<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        while !input.is_empty() {
            let step = match self.phase {
                Phase::Running => self.running_step(input),
                Phase::Starting | Phase::Tuning | Phase::Opening => self.handshake_step(input),
                Phase::Closing => self.closing_step(input),
                Phase::Closed => {
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

    /// What there is to send. The driver takes it out, sends it, and leaves an empty buffer.
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
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
                    "missed heartbeats from server, timeout: {}s",
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

    /// Tells that something was sent to the server, so that no heartbeat is due for a while.
    pub fn bytes_sent(&mut self, now: Instant) {
        self.timers.sent(now);
    }

    /// Tells that the driver stops reading (`false`) or reads again (`true`). While it does not read, a silent server
    /// does not count as gone.
    pub fn set_reading(&mut self, is_reading: bool, now: Instant) {
        self.timers.watch(is_reading, now);
    }

    /// Whether the connection is in use.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether a login is under way. A server that ends the stream now has most likely refused it.
    #[must_use]
    pub fn is_logging_in(&self) -> bool {
        self.phase == Phase::Tuning
    }

    /// Whether the socket can be closed as soon as the output is sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
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

    /// Whether the server has answered this side's `connection.close`: then it has had everything that was sent before.
    #[must_use]
    pub fn is_close_answered(&self) -> bool {
        self.is_close_answered
    }

    /// Largest frame that may be sent, in bytes, header and end marker included.
    #[inline]
    #[must_use]
    pub fn frame_max(&self) -> u32 {
        self.frame_max
    }

    /// Highest channel number.
    #[must_use]
    pub fn channel_max(&self) -> u16 {
        self.channel_max
    }

    /// Agreed interval of heartbeats in seconds, 0 for none.
    #[must_use]
    pub fn heartbeat_s(&self) -> u64 {
        self.timers.interval_s()
    }

    /// What the server said of itself; empty until it has.
    #[must_use]
    pub fn server_properties(&self) -> &FieldTable {
        &self.server_properties
    }

    /// What the server announced that it can do.
    #[must_use]
    pub fn server_capabilities(&self) -> Capabilities {
        self.capabilities
    }
}
