//! Frames of a connection in use, and requests: channels opened and closed, methods both ways.

use courser_codec::reply_code::{CHANNEL_ERROR, COMMAND_INVALID};
use courser_codec::{Frame, FrameKind, Method, ShortStr, channel};

use super::confirms::Resolving;
use super::event::DeliveryMethod;
use super::phase::Phase;
use super::{Connection, Event, Step};
use crate::close::{CloseReason, ClosedBy, Failure};
use crate::framer::{Piece, decode_failure, malformed_frame, unexpected_frame};
use crate::methods::{is_reply, is_request};
use crate::slots::{SlotState, no_method_frame};

/// Why a channel cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenChannelError {
    /// The connection is not in use, or not any more.
    #[error("the connection is not open")]
    NotConnected,
    /// All channel numbers are taken.
    #[error("all {channel_max} channels of the connection are in use")]
    NoneFree {
        /// Highest channel number.
        channel_max: u16,
    },
}

/// Why a request cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The channel is not open, or not any more.
    #[error("channel {channel} is not open")]
    NotOpen {
        /// Its number.
        channel: u16,
    },
    /// The method is none that a client may send as it likes.
    #[error("{name} is not a request")]
    NotARequest {
        /// Name of the method.
        name: &'static str,
    },
}

impl Connection {
    /// Asks for a channel: `channel.open` goes into the output. [`Event::ChannelOpened`] or [`Event::ChannelClosed`]
    /// follows.
    ///
    /// # Errors
    /// When the connection is not in use, or has no channel number left.
    pub fn open_channel(&mut self) -> Result<u16, OpenChannelError> {
        if self.phase != Phase::Running {
            return Err(OpenChannelError::NotConnected);
        }
        let highest = self.slots.highest();
        let channel = match self.free_channels.pop() {
            Some(channel) => channel,
            None if highest < self.channel_max => highest + 1,
            None => return Err(OpenChannelError::NoneFree { channel_max: self.channel_max }),
        };
        self.slots.open(channel, SlotState::Opening);
        channel::Open {}.write_frame(channel, &mut self.output);
        Ok(channel)
    }

    /// Closes a channel; 200 is the code of a close on purpose. [`Event::ChannelClosed`] follows, and nothing of the
    /// channel before it. Does nothing when the channel is not open.
    pub fn close_channel(&mut self, channel: u16, code: u16, text: &str) {
        if !self.slots.is_open(channel) {
            return;
        }
        let close = channel::Close {
            reply_code: code,
            reply_text: ShortStr::cut(text),
            class_id: 0,
            method_id: 0,
        };
        close.write_frame(channel, &mut self.output);
        self.slots.begin_closing(channel);
    }

    /// Sends a method of the classes exchange, queue, basic, tx or confirm (all but `basic.publish`), `channel.flow`, or
    /// on channel 0 `connection.update-secret`: it goes into the output. `confirm.select` makes publishes count.
    ///
    /// # Errors
    /// When the channel is not open, or the method is none of these.
    pub fn request(&mut self, channel: u16, method: &Method<'_>) -> Result<(), RequestError> {
        if channel == 0 {
            if !matches!(method, Method::ConnectionUpdateSecret(_)) {
                return Err(RequestError::NotARequest { name: method.name() });
            }
            if self.phase != Phase::Running {
                return Err(RequestError::NotOpen { channel });
            }
        } else {
            if !is_request(method) {
                return Err(RequestError::NotARequest { name: method.name() });
            }
            let is_open = self.slots.is_open(channel);
            let Some(slot) = self.slots.get_mut(channel).filter(|_| is_open) else {
                return Err(RequestError::NotOpen { channel });
            };
            if matches!(method, Method::ConfirmSelect(_)) {
                slot.data.confirms.get_or_insert_default();
            }
        }
        method.write_frame(channel, &mut self.output);
        Ok(())
    }

    /// Whether a channel is open.
    #[must_use]
    pub fn is_channel_open(&self, channel: u16) -> bool {
        self.slots.is_open(channel)
    }

    pub(super) fn running_step<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        let before = *input;
        let frame = match self.framer.next(input) {
            Piece::Frame(frame) => frame,
            Piece::Body(body) => return self.body(&body),
            Piece::More => return Step::More,
            Piece::Broken(failure) => return self.fail_for_good(failure),
        };
        if frame.channel == 0 {
            return self.connection_frame(frame);
        }
        match (frame.kind, self.slots.state(frame.channel)) {
            (FrameKind::Heartbeat, _) => self.fail(unexpected_frame(frame)),
            (FrameKind::Method, SlotState::Idle) => self.channel_method(frame, before, input),
            (FrameKind::Header, SlotState::InContent) => self.content_header(frame),
            (FrameKind::Method, SlotState::Opening) => self.method_on_opening_channel(frame),
            (FrameKind::Method, SlotState::Closing) => self.method_on_closing_channel(frame),
            (FrameKind::Method, SlotState::Free) => self.method_on_free_channel(frame),
            (_, SlotState::Closing) => Step::Again,
            (_, SlotState::InContent) => self.fail(self.slots.out_of_order(frame.channel)),
            (_, SlotState::Free | SlotState::Opening | SlotState::Idle) => {
                self.fail(no_method_frame())
            }
        }
    }

    fn connection_frame<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        match frame.kind {
            FrameKind::Heartbeat if frame.payload.is_empty() => return Step::Again,
            FrameKind::Heartbeat => return self.fail(malformed_frame(frame)),
            FrameKind::Header | FrameKind::Body => {
                return self.fail(unexpected_frame(frame));
            }
            FrameKind::Method => {}
        }
        match Method::decode(frame.payload) {
            Ok(Method::ConnectionClose(close)) => self.closed_by_server(close),
            Ok(Method::ConnectionBlocked(blocked)) => {
                Step::Event(Event::Blocked { reason: blocked.reason })
            }
            Ok(Method::ConnectionUnblocked(_)) => Step::Event(Event::Unblocked),
            Ok(method @ Method::ConnectionUpdateSecretOk(_)) => {
                Step::Event(Event::Reply { channel: 0, method })
            }
            Ok(method) => self.fail(self.unexpected_method(&method)),
            Err(error) => self.fail(decode_failure(error, frame.payload)),
        }
    }

    fn method_on_opening_channel<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let channel = frame.channel;
        match Method::decode(frame.payload) {
            Ok(Method::ChannelOpenOk(_)) => {
                if let Some(slot) = self.slots.get_mut(channel) {
                    slot.state = SlotState::Idle;
                }
                Step::Event(Event::ChannelOpened { channel })
            }
            Ok(Method::ChannelClose(close)) => self.channel_closed_by_server(channel, close),
            // Both sides had closed a channel with this number at once; this is the late answer.
            Ok(Method::ChannelCloseOk(_)) => Step::Again,
            Ok(method) => self.fail(not_open(channel, &method)),
            Err(error) => self.fail(decode_failure(error, frame.payload)),
        }
    }

    fn method_on_free_channel<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        match Method::decode(frame.payload) {
            Ok(Method::ChannelCloseOk(_)) => Step::Again,
            Ok(method) => self.fail(not_open(frame.channel, &method)),
            Err(error) => self.fail(decode_failure(error, frame.payload)),
        }
    }

    /// Everything but the end of the channel was sent before the server knew of it, and is not acted on.
    fn method_on_closing_channel<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let channel = frame.channel;
        match Method::decode(frame.payload) {
            Ok(Method::ChannelCloseOk(_)) => {
                self.free_channel(channel);
                let reason = CloseReason {
                    by: ClosedBy::Local,
                    code: courser_codec::reply_code::REPLY_SUCCESS,
                    text: String::new(),
                    class_id: 0,
                    method_id: 0,
                };
                Step::Event(Event::ChannelClosed { channel, reason: Box::new(reason) })
            }
            Ok(Method::ChannelClose(close)) => self.channel_closed_by_server(channel, close),
            _ => Step::Again,
        }
    }

    fn channel_closed_by_server<'a>(
        &mut self,
        channel: u16,
        close: channel::Close<'_>,
    ) -> Step<'a> {
        channel::CloseOk {}.write_frame(channel, &mut self.output);
        self.free_channel(channel);
        let reason = CloseReason::from_peer(
            close.reply_code,
            close.reply_text,
            close.class_id,
            close.method_id,
        );
        Step::Event(Event::ChannelClosed { channel, reason: Box::new(reason) })
    }

    fn free_channel(&mut self, channel: u16) {
        self.slots.free(channel);
        self.free_channels.push(channel);
    }

    /// A method on an open channel. `before` is the input with its frame still in it.
    fn channel_method<'a>(
        &mut self,
        frame: Frame<'a>,
        before: &'a [u8],
        input: &mut &'a [u8],
    ) -> Step<'a> {
        let channel = frame.channel;
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(error) => return self.fail(decode_failure(error, frame.payload)),
        };
        if DeliveryMethod::from_method(&method).is_some() {
            return self.begin_delivery(frame, before, input);
        }
        match method {
            Method::BasicAck(ack) => {
                self.confirmed(channel, method, ack.delivery_tag, ack.multiple, true)
            }
            Method::BasicNack(nack) => {
                self.confirmed(channel, method, nack.delivery_tag, nack.multiple, false)
            }
            Method::ChannelClose(close) => self.channel_closed_by_server(channel, close),
            Method::ChannelFlow(flow) => {
                channel::FlowOk { active: flow.active }.write_frame(channel, &mut self.output);
                Step::Event(Event::Flow { channel, is_active: flow.active })
            }
            method if is_reply(&method) => Step::Event(Event::Reply { channel, method }),
            method => {
                let ids = (method.class_id(), method.method_id());
                self.fail(Failure::of(COMMAND_INVALID, "unimplemented method", ids))
            }
        }
    }

    /// A confirm, of which each publish is told once; on a channel without confirms it is told as it is.
    fn confirmed<'a>(
        &mut self,
        channel: u16,
        method: Method<'a>,
        seq: u64,
        multiple: bool,
        is_ack: bool,
    ) -> Step<'a> {
        let Some(confirms) =
            self.slots.get_mut(channel).and_then(|slot| slot.data.confirms.as_mut())
        else {
            return Step::Event(Event::Reply { channel, method });
        };
        if multiple {
            self.resolving = Some(Resolving::new(channel, seq, is_ack));
            return self.resolve().map_or(Step::Again, Step::Event);
        }
        if confirms.resolve_one(seq) {
            Step::Event(Event::Confirm { channel, first: seq, last: seq, is_ack })
        } else {
            Step::Again
        }
    }

    /// Tells the next part of a confirm that answers many publishes.
    #[inline]
    pub(super) fn resolve<'a>(&mut self) -> Option<Event<'a>> {
        let resolving = self.resolving?;
        let confirms =
            self.slots.get_mut(resolving.channel).and_then(|slot| slot.data.confirms.as_mut());
        let run = confirms.and_then(|confirms| confirms.resolve_run(&resolving));
        let Some((first, last)) = run else {
            self.resolving = None;
            return None;
        };
        Some(Event::Confirm { channel: resolving.channel, first, last, is_ack: resolving.is_ack })
    }
}

fn not_open(channel: u16, method: &Method<'_>) -> Failure {
    let ids = (method.class_id(), method.method_id());
    Failure::of(CHANNEL_ERROR, format!("channel {channel} is not open"), ids)
}
