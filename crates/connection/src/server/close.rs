//! The end of a connection, from either side.

use std::time::{Duration, Instant};

use courser_codec::{FrameKind, Method, channel, connection, reply_code};

use super::phase::Phase;
use super::{Connection, Event, Step};
use crate::close::{CloseReason, Failure};
use crate::framer::Piece;

impl Connection {
    /// Reports an error on a channel: `channel.close` goes into the output, and what the client sends on the channel
    /// is thrown away until its `channel.close-ok`. An error whose code ends connections ends the connection.
    ///
    /// `explanation` is what follows the code's name in the reply text; class and method are those that failed. Does
    /// nothing when the channel is not open.
    pub fn channel_error(
        &mut self,
        channel: u16,
        code: u16,
        explanation: &str,
        (class_id, method_id): (u16, u16),
        now: Instant,
    ) {
        let failure = Failure::of(code, explanation, (class_id, method_id));
        if reply_code::closes_connection(code) {
            self.timers.set_now(now);
            self.close_for(failure);
        } else if self.is_channel_open(channel) {
            self.close_channel_for(channel, failure);
        }
    }

    /// Reports an error of the connection: `connection.close` goes into the output, and the client has
    /// [`close_timeout`](super::Config::close_timeout) to answer. Parameters are those of
    /// [`Connection::channel_error`].
    pub fn connection_error(
        &mut self,
        code: u16,
        explanation: &str,
        (class_id, method_id): (u16, u16),
        now: Instant,
    ) {
        self.timers.set_now(now);
        self.close_for(Failure::of(code, explanation, (class_id, method_id)));
    }

    /// Ends the connection because an operator or the server's own end wants it (320), for example with
    /// `broker forced connection closure with reason 'shutdown'`.
    pub fn shutdown(&mut self, explanation: &str, now: Instant) {
        self.connection_error(reply_code::CONNECTION_FORCED, explanation, (0, 0), now);
    }

    /// Ends the connection for an error. One that is over already stays as it is.
    pub(super) fn close_for(&mut self, failure: Failure) {
        if self.phase.is_over() {
            return;
        }
        let reason = failure.into_reason();
        if self.phase == Phase::Header {
            // Before the protocol header, a client does not know what a frame is.
            return self.end(Some(reason));
        }
        let close = connection::Close {
            reply_code: reason.code,
            reply_text: reason.short_text(),
            class_id: reason.class_id,
            method_id: reason.method_id,
        };
        close.write_frame(0, &mut self.output);
        self.leave(Phase::Closing, self.config.close_timeout);
        self.reason = Some(Box::new(reason));
    }

    /// Ends the connection for an error in the input.
    pub(super) fn fail<'a>(&mut self, failure: Failure) -> Step<'a> {
        self.close_for(failure);
        self.closed_event()
    }

    /// Ends the connection for an error behind which the input cannot be understood.
    pub(super) fn fail_for_good<'a>(&mut self, failure: Failure) -> Step<'a> {
        self.close_for(failure);
        self.leave(Phase::Lingering, self.config.linger_timeout);
        self.closed_event()
    }

    /// Ends the connection at once for an error that the client is not told.
    pub(super) fn fail_in_silence<'a>(&mut self, failure: Failure) -> Step<'a> {
        self.end(Some(failure.into_reason()));
        self.closed_event()
    }

    /// The client has sent `connection.close`.
    pub(super) fn closed_by_client<'a>(&mut self, close: connection::Close<'_>) -> Step<'a> {
        connection::CloseOk {}.write_frame(0, &mut self.output);
        self.leave(Phase::Lingering, self.config.linger_timeout);
        let reason = CloseReason::from_peer(
            close.reply_code,
            close.reply_text,
            close.class_id,
            close.method_id,
        );
        self.reason = Some(Box::new(reason));
        self.closed_event()
    }

    /// Moves on to a last phase and drops what only a connection in use needs.
    pub(super) fn leave(&mut self, phase: Phase, timeout: Duration) {
        self.phase = phase;
        self.timers.set_deadline(timeout);
        self.timers.stop_heartbeats();
        self.slots.clear();
    }

    /// Ends the connection at once.
    pub(super) fn end(&mut self, reason: Option<CloseReason>) {
        self.phase = Phase::Closed;
        self.timers.clear_deadline();
        self.timers.stop_heartbeats();
        self.slots.clear();
        if let Some(reason) = reason {
            self.reason = Some(Box::new(reason));
        }
    }

    fn closed_event<'a>(&self) -> Step<'a> {
        match &self.reason {
            Some(reason) => Step::Event(Event::Closed(reason.clone())),
            None => Step::More,
        }
    }

    /// Takes input after `connection.close` was sent: only the client's end of it counts.
    pub(super) fn closing_step<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        let frame = match self.framer.next(input) {
            Piece::Frame(frame) => frame,
            Piece::Body(_) => return Step::Again,
            Piece::More => return Step::More,
            Piece::Broken(_) => {
                self.leave(Phase::Lingering, self.config.linger_timeout);
                return Step::Again;
            }
        };
        if frame.kind == FrameKind::Method && frame.channel == 0 {
            match Method::decode(frame.payload) {
                Ok(Method::ConnectionCloseOk(_)) => self.end(None),
                Ok(Method::ConnectionClose(_)) => {
                    // Both sides close at once. The client may not answer once it has its close-ok.
                    connection::CloseOk {}.write_frame(0, &mut self.output);
                    self.leave(Phase::Lingering, self.config.linger_timeout);
                }
                _ => {}
            }
        }
        Step::Again
    }

    /// Closes a channel for an error on it, and throws away what comes on it from now on.
    pub(super) fn close_channel_for(&mut self, channel: u16, failure: Failure) -> Box<CloseReason> {
        let reason = failure.into_reason();
        let close = channel::Close {
            reply_code: reason.code,
            reply_text: reason.short_text(),
            class_id: reason.class_id,
            method_id: reason.method_id,
        };
        close.write_frame(channel, &mut self.output);
        self.slots.begin_closing(channel);
        Box::new(reason)
    }

    /// Closes a channel for an error in the input.
    pub(super) fn fail_channel<'a>(&mut self, channel: u16, failure: Failure) -> Step<'a> {
        let reason = self.close_channel_for(channel, failure);
        Step::Event(Event::ChannelClosed { channel, reason })
    }
}
