//! Messages that do not lie in the input as a whole: they are copied together, frame by frame.

use bytes::Bytes;
use courser_codec::reply_code::{NOT_IMPLEMENTED, PRECONDITION_FAILED};
use courser_codec::{Frame, basic};

use super::event::AssembledPublish;
use super::{Connection, Event, Step};
use crate::close::Failure;
use crate::content::{Assembly, HeaderError, Progress, check_header};
use crate::framer::BodyPiece;
use crate::slots::BodyOutcome;
use crate::whole::is_worth_waiting;

/// Class and method that errors of a content name: nothing but a publish has one here.
const PUBLISH_IDS: (u16, u16) = (basic::CLASS_ID, basic::Publish::METHOD_ID);

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
        self.slots.begin_content(frame.channel, frame.payload);
        match self.check_memory() {
            Step::Again => Step::Event(Event::PublishBegun { channel: frame.channel, publish }),
            failed => failed,
        }
    }

    pub(super) fn content_header<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let channel = frame.channel;
        if !self.slots.content(channel).is_some_and(Assembly::awaits_header) {
            return self.fail(self.slots.out_of_order(channel));
        }
        let size = match check_header(frame, PUBLISH_IDS) {
            Ok(header) => header.body_size,
            Err(HeaderError::OutOfOrder) => return self.fail(self.slots.out_of_order(channel)),
            Err(HeaderError::Failed(failure)) => return self.fail(failure),
        };
        let size_max = self.config.max_message_bytes;
        if size > size_max {
            let explanation =
                format!("message size {size} is larger than configured max size {size_max}");
            return self
                .fail_channel(channel, Failure::of(PRECONDITION_FAILED, explanation, PUBLISH_IDS));
        }
        match self.slots.set_header(channel, frame.payload, size) {
            Some(Progress::Complete) => self.end_publish(channel),
            _ => self.check_memory(),
        }
    }

    pub(super) fn body<'a>(&mut self, body: &BodyPiece<'_>) -> Step<'a> {
        match self.slots.take_body(body) {
            BodyOutcome::Complete => self.end_publish(body.channel),
            BodyOutcome::Again => self.check_memory(),
            BodyOutcome::Failed(failure) => self.fail(failure),
        }
    }

    fn end_publish<'a>(&mut self, channel: u16) -> Step<'a> {
        let Some(content) = self.slots.end_content(channel) else { return Step::Again };
        let confirm_seq =
            self.slots.get_mut(channel).map_or(0, |slot| slot.data.next_confirm_seq());
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

    fn check_memory<'a>(&mut self) -> Step<'a> {
        match self.slots.check_memory(self.config.max_incomplete_bytes) {
            Ok(()) => Step::Again,
            Err(failure) => self.fail(failure),
        }
    }
}

/// Exchange and routing key as encoded, and the mandatory flag, of a publish that was decoded before. Its payload is
/// class, method and ticket (6 bytes), the two names, and a byte of flags.
fn split_method(payload: &Bytes) -> (Bytes, bool) {
    let flags_at = payload.len() - 1;
    (payload.slice(6..flags_at), payload[flags_at] & 1 != 0)
}
