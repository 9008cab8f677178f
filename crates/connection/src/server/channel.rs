//! Frames of a connection in use: methods on channel 0 and on channels.

use courser_codec::reply_code::{CHANNEL_ERROR, COMMAND_INVALID, NOT_ALLOWED};
use courser_codec::{Frame, FrameKind, Method, channel};

use super::phase::Phase;
use super::{Connection, Event, Step};
use crate::close::{CloseReason, Failure};
use crate::framer::{Piece, decode_failure, malformed_frame, unexpected_frame};
use crate::methods::is_request;
use crate::slots::{SlotState, no_method_frame};

impl Connection {
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
            (FrameKind::Heartbeat, _) => self.fail(if frame.payload.is_empty() {
                unexpected_frame(frame)
            } else {
                malformed_frame(frame)
            }),
            (FrameKind::Method, SlotState::Idle) => self.channel_method(frame, before, input),
            (FrameKind::Header, SlotState::InContent) => self.content_header(frame),
            (FrameKind::Method, SlotState::Free | SlotState::Opening) => {
                self.method_on_free_channel(frame)
            }
            (FrameKind::Method, SlotState::Closing) => self.method_on_closing_channel(frame),
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
            Ok(Method::ConnectionClose(close)) => self.closed_by_client(close),
            Ok(method @ Method::ConnectionUpdateSecret(_)) => {
                Step::Event(Event::Request { channel: 0, method })
            }
            Ok(method) => self.fail(self.unexpected_method(&method)),
            Err(error) => self.fail(decode_failure(error, frame.payload)),
        }
    }

    /// A number that is no channel yet: `channel.open` makes it one.
    fn method_on_free_channel<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let channel = frame.channel;
        if let Err(failure) = self.check_channel_count() {
            return self.fail(failure);
        }
        match Method::decode(frame.payload) {
            Ok(Method::ChannelOpen(_)) => {
                self.slots.open(channel, SlotState::Idle);
                self.opened = Some(channel);
                Step::Event(Event::ChannelOpened { channel })
            }
            Ok(method) => {
                let ids = (method.class_id(), method.method_id());
                self.fail(Failure::of(CHANNEL_ERROR, "expected 'channel.open'", ids))
            }
            Err(error) => self.fail(decode_failure(error, frame.payload)),
        }
    }

    /// Answers the last `channel.open`, unless the driver has ended the connection for it.
    #[inline]
    pub(super) fn confirm_opened(&mut self) {
        if let Some(channel) = self.opened.take()
            && self.phase == Phase::Running
        {
            channel::OpenOk {}.write_frame(channel, &mut self.output);
        }
    }

    /// What is agreed limits how many channels there are, not how they are numbered.
    fn check_channel_count(&self) -> Result<(), Failure> {
        let (channel_max, in_use) = (self.channel_max, self.slots.in_use());
        if in_use >= channel_max {
            let explanation = format!(
                "number of channels opened ({in_use}) has reached the negotiated channel_max ({channel_max})"
            );
            return Err(Failure::new(NOT_ALLOWED, explanation));
        }
        Ok(())
    }

    /// Everything but the end of the channel was sent before the client knew of it, and is not acted on.
    fn method_on_closing_channel<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        match Method::decode(frame.payload) {
            Ok(Method::ChannelCloseOk(_)) => self.slots.free(frame.channel),
            Ok(Method::ChannelClose(_)) => {
                channel::CloseOk {}.write_frame(frame.channel, &mut self.output)
            }
            _ => {}
        }
        Step::Again
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
        match method {
            Method::BasicPublish(publish) => self.begin_publish(frame, publish, before, input),
            Method::ChannelClose(close) => {
                channel::CloseOk {}.write_frame(channel, &mut self.output);
                self.slots.free(channel);
                let reason = CloseReason::from_peer(
                    close.reply_code,
                    close.reply_text,
                    close.class_id,
                    close.method_id,
                );
                Step::Event(Event::ChannelClosed { channel, reason: Box::new(reason) })
            }
            Method::ChannelOpen(_) => {
                let ids = (method.class_id(), method.method_id());
                self.fail(Failure::of(CHANNEL_ERROR, "second 'channel.open' seen", ids))
            }
            // Answers to what a server may ask, without a meaning here.
            Method::ChannelFlowOk(_) | Method::BasicCancelOk(_) => Step::Again,
            Method::ConfirmSelect(_)
            | Method::TxSelect(_)
            | Method::TxCommit(_)
            | Method::TxRollback(_) => {
                let Some(slot) = self.slots.get_mut(channel) else { return Step::Again };
                match slot.data.switch_mode(&method) {
                    Ok(()) => Step::Event(Event::Request { channel, method }),
                    Err(failure) => self.fail_channel(channel, failure),
                }
            }
            method if is_request(&method) => Step::Event(Event::Request { channel, method }),
            method => {
                let ids = (method.class_id(), method.method_id());
                self.fail(Failure::of(COMMAND_INVALID, "unimplemented method", ids))
            }
        }
    }
}
