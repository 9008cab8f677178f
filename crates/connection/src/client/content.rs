//! Messages that do not lie in the input as a whole: they are copied together, frame by frame.

use courser_codec::reply_code::RESOURCE_ERROR;
use courser_codec::{Frame, Method};

use super::event::{AssembledDelivery, DeliveryMethod};
use super::{Connection, Event, Step};
use crate::close::Failure;
use crate::content::{Assembly, HeaderError, Progress, check_header};
use crate::framer::BodyPiece;
use crate::slots::BodyOutcome;
use crate::whole::is_worth_waiting;

impl Connection {
    /// A message that the hot path did not take. Waits for more when it may still become one for it.
    pub(super) fn begin_delivery<'a>(
        &mut self,
        frame: Frame<'a>,
        before: &'a [u8],
        input: &mut &'a [u8],
    ) -> Step<'a> {
        if is_worth_waiting(input, frame.channel, self.limits) {
            *input = before;
            return Step::More;
        }
        self.slots.begin_content(frame.channel, frame.payload);
        self.check_memory()
    }

    pub(super) fn content_header<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let channel = frame.channel;
        if !self.slots.content(channel).is_some_and(Assembly::awaits_header) {
            return self.fail(self.slots.out_of_order(channel));
        }
        let ids = self.slots.content_ids(channel);
        let size = match check_header(frame, ids) {
            Ok(header) => header.body_size,
            Err(HeaderError::OutOfOrder) => return self.fail(self.slots.out_of_order(channel)),
            Err(HeaderError::Failed(failure)) => return self.fail(failure),
        };
        let size_max = self.config.max_message_bytes;
        if size > size_max {
            let explanation =
                format!("message size {size} is larger than configured max size {size_max}");
            return self.fail(Failure::of(RESOURCE_ERROR, explanation, ids));
        }
        match self.slots.set_header(channel, frame.payload, size) {
            Some(Progress::Complete) => self.end_delivery(channel),
            _ => self.check_memory(),
        }
    }

    pub(super) fn body<'a>(&mut self, body: &BodyPiece<'_>) -> Step<'a> {
        match self.slots.take_body(body) {
            BodyOutcome::Complete => self.end_delivery(body.channel),
            BodyOutcome::Again => self.check_memory(),
            BodyOutcome::Failed(failure) => self.fail(failure),
        }
    }

    fn end_delivery<'a>(&mut self, channel: u16) -> Step<'a> {
        let Some(content) = self.slots.end_content(channel) else { return Step::Again };
        let assembled = content.finish();
        // It was decoded before the content began.
        let method = Method::decode(&assembled.method).ok();
        let Some(method) = method.as_ref().and_then(DeliveryMethod::from_method) else {
            return Step::Again;
        };
        let delivery = AssembledDelivery::new(channel, &method, assembled.header, assembled.body);
        Step::Event(Event::LargeDelivery(Box::new(delivery)))
    }

    fn check_memory<'a>(&mut self) -> Step<'a> {
        match self.slots.check_memory(self.config.max_incomplete_bytes) {
            Ok(()) => Step::Again,
            Err(failure) => self.fail(failure),
        }
    }
}
