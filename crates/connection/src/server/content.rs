//! Messages that do not lie in the input as a whole: they are copied together, frame by frame.

use bytes::Bytes;
use courser_codec::reply_code::{
    FRAME_ERROR, NOT_IMPLEMENTED, PRECONDITION_FAILED, RESOURCE_ERROR, UNEXPECTED_FRAME,
};
use courser_codec::{ContentHeader, DecodeErrorKind, Frame, FrameKind, basic};

use super::channel::no_method_frame;
use super::event::AssembledPublish;
use super::publish::is_worth_waiting;
use super::slots::SlotState;
use super::{Connection, Event, Step};
use crate::close::Failure;
use crate::content::{Assembly, Progress};
use crate::framer::{BodyPiece, malformed_frame, unexpected_frame};

/// Class and method that errors of a content name: nothing but a publish has one here.
const PUBLISH_IDS: (u16, u16) = (basic::CLASS_ID, basic::Publish::METHOD_ID);

/// The absolute limit of a body in octets; a size above it is no message, whatever is configured.
const BODY_SIZE_MAX: u64 = 512 * 1024 * 1024;

impl Connection {
    /// A publish that the hot path did not take. Waits for more when it may still become one for it.
    pub(super) fn begin_publish<'a>(
        &mut self,
        frame: Frame<'a>,
        publish: basic::Publish<'a>,
        before: &'a [u8],
        input: &mut &'a [u8],
    ) -> Step<'a> {
        if publish.immediate {
            return self.fail(Failure::of(NOT_IMPLEMENTED, "immediate=true", PUBLISH_IDS));
        }
        if is_worth_waiting(input, frame.channel, self.limits) {
            *input = before;
            return Step::More;
        }
        self.slots.begin_content(frame.channel, Assembly::new(frame.payload));
        self.check_memory().map_or(Step::Again, |failure| self.fail(failure))
    }

    pub(super) fn content_header<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let channel = frame.channel;
        let awaits_header = self.slots.awaits_header(channel);
        if !awaits_header {
            return self.fail(self.content_out_of_order(channel));
        }
        let header = match ContentHeader::parse(frame.payload) {
            Ok(header) => header,
            Err(error) => {
                return match error.kind {
                    DecodeErrorKind::NonZeroWeight(_) => {
                        self.fail(self.content_out_of_order(channel))
                    }
                    _ => self.fail(malformed_frame(frame)),
                };
            }
        };
        if header.class_id != basic::CLASS_ID {
            let explanation = format!(
                "expected content header for class {}, got one for class {} instead",
                basic::CLASS_ID,
                header.class_id
            );
            return self.fail(Failure::of(UNEXPECTED_FRAME, explanation, PUBLISH_IDS));
        }
        let (size, size_max) = (header.body_size, self.config.max_message_bytes);
        if size > BODY_SIZE_MAX {
            let explanation =
                format!("content body size {size} exceeds maximum allowed size {BODY_SIZE_MAX}");
            return self.fail(Failure::of(FRAME_ERROR, explanation, PUBLISH_IDS));
        }
        if size > size_max {
            let explanation =
                format!("message size {size} is larger than configured max size {size_max}");
            return self
                .fail_channel(channel, Failure::of(PRECONDITION_FAILED, explanation, PUBLISH_IDS));
        }
        match self.slots.change_content(channel, |content| content.set_header(frame.payload, size))
        {
            Some(Progress::Complete) => self.end_publish(channel),
            _ => self.check_memory().map_or(Step::Again, |failure| self.fail(failure)),
        }
    }

    pub(super) fn body<'a>(&mut self, body: BodyPiece<'_>) -> Step<'a> {
        if body.channel == 0 {
            return self.fail(unexpected_frame(FrameKind::Body, body.octets));
        }
        match self.slots.state(body.channel) {
            SlotState::Closing => return Step::Again,
            SlotState::Free | SlotState::Idle => return self.fail(no_method_frame()),
            SlotState::InContent => {}
        }
        let progress = self.slots.change_content(body.channel, |content| {
            if content.awaits_header() {
                None
            } else {
                Some(content.append(body.octets, body.frame_left))
            }
        });
        match progress.flatten() {
            Some(Ok(Progress::Complete)) => self.end_publish(body.channel),
            Some(Ok(Progress::Incomplete)) => {
                self.check_memory().map_or(Step::Again, |failure| self.fail(failure))
            }
            Some(Err(too_long)) => self.fail(too_long.failure(PUBLISH_IDS)),
            None => self.fail(self.content_out_of_order(body.channel)),
        }
    }

    /// The error for a frame that is not what a message under way needs next.
    pub(super) fn content_out_of_order(&self, channel: u16) -> Failure {
        let awaits_header = self.slots.awaits_header(channel);
        let explanation = if awaits_header {
            format!(
                "expected content header for class {}, got non content header frame instead",
                basic::CLASS_ID
            )
        } else {
            "expected content body, got non content body frame instead".to_owned()
        };
        Failure::of(UNEXPECTED_FRAME, explanation, PUBLISH_IDS)
    }

    fn end_publish<'a>(&mut self, channel: u16) -> Step<'a> {
        let Some(content) = self.slots.end_content(channel) else { return Step::Again };
        let confirm_seq = self.slots.get(channel).map_or(0, |slot| slot.next_confirm_seq());
        let assembled = content.finish();
        let (exchange_and_key, mandatory) = split_method(&assembled.method);
        Step::Event(Event::LargePublish(Box::new(AssembledPublish {
            channel,
            mandatory,
            exchange_and_key,
            header: assembled.header,
            body: assembled.body,
            confirm_seq,
        })))
    }

    /// The error when incomplete messages take more memory than a connection may have for them.
    fn check_memory(&self) -> Option<Failure> {
        let (held, held_max) = (self.slots.content_bytes(), self.config.max_incomplete_bytes);
        (held > held_max).then(|| {
            let explanation = format!(
                "incomplete messages take {held} octets, more than the limit of {held_max}"
            );
            Failure::of(RESOURCE_ERROR, explanation, PUBLISH_IDS)
        })
    }
}

/// Exchange and routing key as encoded, and the mandatory flag, of a publish that was decoded before. Its payload is
/// class, method and ticket (6 octets), the two names, and an octet of flags.
fn split_method(payload: &Bytes) -> (Bytes, bool) {
    let flags_at = payload.len() - 1;
    (payload.slice(6..flags_at), payload[flags_at] & 1 != 0)
}
