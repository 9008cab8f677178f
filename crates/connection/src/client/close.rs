//! The end of a connection, from either side.

use std::time::Instant;

use courser_codec::{FrameKind, Method, ShortStr, connection};

use super::phase::Phase;
use super::{Connection, Event, Step};
use crate::close::{CloseReason, ClosedBy, Failure};
use crate::framer::Piece;

impl Connection {
    /// Closes the connection; 200 is the code of a close on purpose. The server has
    /// [`close_timeout`](super::Config::close_timeout) to answer; then, [`Connection::is_closed`] is true, and there is
    /// no event. Before the connection is open, it ends at once.
    pub fn close(&mut self, code: u16, text: &str, now: Instant) {
        self.timers.set_now(now);
        let text = ShortStr::cut(text);
        self.close_for(CloseReason {
            by: ClosedBy::Local,
            code,
            text: text.to_string(),
            class_id: 0,
            method_id: 0,
        });
    }

    fn close_for(&mut self, reason: CloseReason) {
        match self.phase {
            Phase::Closing | Phase::Closed => return,
            // The server has said nothing yet, and may not speak this protocol.
            Phase::Starting => return self.end(Some(reason)),
            Phase::Tuning | Phase::Opening | Phase::Running => {}
        }
        let close = connection::Close {
            reply_code: reason.code,
            reply_text: reason.short_text(),
            class_id: reason.class_id,
            method_id: reason.method_id,
        };
        close.write_frame(0, &mut self.output);
        self.drop_channels();
        self.phase = Phase::Closing;
        self.timers.set_deadline(self.config.close_timeout);
        self.reason = Some(Box::new(reason));
    }

    /// Ends the connection for an error in the input.
    pub(super) fn fail<'a>(&mut self, failure: Failure) -> Step<'a> {
        self.close_for(failure.into_reason());
        self.closed_event()
    }

    /// Ends the connection for an error behind which the input cannot be understood.
    pub(super) fn fail_for_good<'a>(&mut self, failure: Failure) -> Step<'a> {
        self.close_for(failure.into_reason());
        self.end(None);
        self.closed_event()
    }

    /// The server has sent `connection.close`.
    pub(super) fn closed_by_server<'a>(&mut self, close: connection::Close<'_>) -> Step<'a> {
        connection::CloseOk {}.write_frame(0, &mut self.output);
        let reason = CloseReason::from_peer(
            close.reply_code,
            close.reply_text,
            close.class_id,
            close.method_id,
        );
        self.end(Some(reason));
        self.closed_event()
    }

    /// Ends the connection at once.
    pub(super) fn end(&mut self, reason: Option<CloseReason>) {
        self.phase = Phase::Closed;
        self.timers.clear_deadline();
        self.drop_channels();
        if let Some(reason) = reason {
            self.reason = Some(Box::new(reason));
        }
    }

    fn drop_channels(&mut self) {
        self.timers.stop_heartbeats();
        self.slots.clear();
        self.free_channels = Vec::new();
        self.resolving = None;
    }

    pub(super) fn closed_event<'a>(&self) -> Step<'a> {
        match &self.reason {
            Some(reason) => Step::Event(Event::Closed(reason.clone())),
            None => Step::More,
        }
    }

    /// Takes input after `connection.close` was sent: only the server's end of it counts.
    pub(super) fn closing_step<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        let frame = match self.framer.next(input) {
            Piece::Frame(frame) => frame,
            Piece::Body(_) => return Step::Again,
            Piece::More => return Step::More,
            Piece::Broken(_) => {
                self.end(None);
                return Step::Again;
            }
        };
        if frame.kind == FrameKind::Method && frame.channel == 0 {
            match Method::decode(frame.payload) {
                Ok(Method::ConnectionCloseOk(_)) => {
                    self.is_close_answered = true;
                    self.end(None);
                }
                Ok(Method::ConnectionClose(_)) => {
                    // Both sides close at once; with both answers due, nothing is left to wait for.
                    connection::CloseOk {}.write_frame(0, &mut self.output);
                    self.end(None);
                }
                _ => {}
            }
        }
        Step::Again
    }
}
