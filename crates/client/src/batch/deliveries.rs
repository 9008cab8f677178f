//! What a handler gets to see.

use courser_codec::{RawProperties, ShortStr, basic};
use courser_connection::client::{Delivery as Incoming, DeliveryMethod};

use crate::message::raw_properties;

/// Messages for one consumer, one behind the other, borrowed from a read.
pub struct Deliveries<'a> {
    incoming: &'a [Incoming<'a>],
    answers: &'a mut Vec<Answer>,
}

/// An acknowledgement that a handler has asked for; sent when it returns.
pub(crate) enum Answer {
    Ack(basic::Ack),
    Nack(basic::Nack),
}

/// A message in a read.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryView<'a> {
    deliver: basic::Deliver<'a>,
    header: &'a [u8],
    body: &'a [u8],
}

impl<'a> Deliveries<'a> {
    pub(crate) fn new(incoming: &'a [Incoming<'a>], answers: &'a mut Vec<Answer>) -> Self {
        Self { incoming, answers }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.incoming.len()
    }

    /// Whether there are none; a handler is not called then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.incoming.is_empty()
    }

    /// The messages in their order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = DeliveryView<'a>> + use<'a> {
        self.incoming.iter().filter_map(|incoming| match incoming.method {
            DeliveryMethod::Deliver(deliver) => {
                Some(DeliveryView { deliver, header: incoming.header, body: incoming.body })
            }
            DeliveryMethod::GetOk(_) | DeliveryMethod::Return(_) => None,
        })
    }

    /// Acknowledges the message with this tag; with `multiple` also all before it on the channel.
    pub fn ack(&mut self, delivery_tag: u64, multiple: bool) {
        self.answers.push(Answer::Ack(basic::Ack { delivery_tag, multiple }));
    }

    /// Acknowledges all messages of the channel up to the last one of these.
    pub fn ack_all(&mut self) {
        if let Some(last) = self.iter().last() {
            self.ack(last.delivery_tag(), true);
        }
    }

    /// Refuses the message with this tag; with `multiple` also all before it on the channel.
    pub fn nack(&mut self, delivery_tag: u64, multiple: bool, requeue: bool) {
        self.answers.push(Answer::Nack(basic::Nack { delivery_tag, multiple, requeue }));
    }
}

impl<'a> DeliveryView<'a> {
    /// The number to acknowledge it by.
    #[inline]
    #[must_use]
    pub fn delivery_tag(&self) -> u64 {
        self.deliver.delivery_tag
    }

    /// Whether it was delivered before.
    #[inline]
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.deliver.redelivered
    }

    /// The exchange that it was published to.
    #[inline]
    #[must_use]
    pub fn exchange(&self) -> ShortStr<'a> {
        self.deliver.exchange
    }

    /// The routing key that it was published with.
    #[inline]
    #[must_use]
    pub fn routing_key(&self) -> ShortStr<'a> {
        self.deliver.routing_key
    }

    /// The properties, undecoded.
    #[must_use]
    pub fn properties(&self) -> RawProperties<'a> {
        raw_properties(self.header)
    }

    /// The body.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}
