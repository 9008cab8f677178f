//! How many messages have come and gone. The numbers only rise; a reader who asks twice has a rate.
//!
//! Nothing is looked up and no lock is taken to count a message. What happens to a queue or a channel
//! is added to numbers behind the lock that is held anyway; what concerns a whole vhost is collected in
//! the [`Tally`] of a batch, and added to shared numbers once at its end.

mod published;
mod tally;

pub use published::{MessageSizes, SIZE_LIMITS};
pub(crate) use published::{PublishTally, SharedSizes};
pub(crate) use tally::Tally;

use crate::arguments::QueueType;
use crate::dead_letter::Reason;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($(#[$doc:meta])* $plain:ident, $shared:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $plain {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl AddAssign<&$plain> for $plain {
            #[inline]
            fn add_assign(&mut self, more: &$plain) {
                $(self.$field += more.$field;)*
            }
        }

        /// The same numbers where several threads add to them.
        #[derive(Debug, Default)]
        pub(crate) struct $shared {
            $($field: AtomicU64,)*
        }

        impl $shared {
            pub fn add(&self, more: &$plain) {
                $(if more.$field != 0 {
                    self.$field.fetch_add(more.$field, Ordering::Relaxed);
                })*
            }

            pub fn read(&self) -> $plain {
                $plain { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counts! {
    /// What clients have published.
    PublishCounts, SharedPublishCounts {
        /// Messages published; in a transaction when it is committed.
        published,
        /// Bytes of their bodies.
        published_bytes,
        /// Of the messages, those on channels in confirm mode.
        to_confirm,
        /// Messages that the broker has confirmed (`basic.ack`).
        confirmed,
        /// Messages that the broker has refused (`basic.nack`).
        refused,
        /// Messages that no queue got, and that went back to their publishers.
        returned,
        /// Messages that no queue got, and that their publishers did not want back.
        dropped,
    }
}

counts! {
    /// What clients have got, and what they have said to it.
    DeliveryCounts, SharedDeliveryCounts {
        /// Messages to consumers that acknowledge.
        delivered,
        /// Messages to consumers that do not.
        delivered_no_ack,
        /// Answers to `basic.get` that have to be acknowledged.
        got,
        /// Answers to `basic.get` that have not.
        got_no_ack,
        /// `basic.get`s of an empty queue.
        got_empty,
        /// Of all these messages, those that had been delivered before.
        redelivered,
        /// Messages acknowledged.
        acknowledged,
        /// Bytes of the bodies of all messages delivered or got.
        delivered_bytes,
    }
}

counts! {
    /// Messages that have left their queues otherwise than by being consumed.
    DeadCounts, SharedDeadCounts {
        /// Their time was over.
        expired,
        /// There were more than there may be.
        max_len,
        /// Consumers have refused them for good.
        rejected,
        /// They have come back too often.
        delivery_limit,
    }
}

counts! {
    /// What has passed through an exchange that clients publish to.
    ExchangeCounts, SharedExchangeCounts {
        /// Messages published to it.
        published_in,
        /// Copies of them that went to queues.
        published_out,
    }
}

impl DeliveryCounts {
    /// All messages delivered or got.
    pub fn handed_out(&self) -> u64 {
        self.delivered + self.delivered_no_ack + self.got + self.got_no_ack
    }

    /// Counts what one consumer has been given in one go.
    #[inline]
    pub(crate) fn add_handed(&mut self, no_ack: bool, handed: &Handed) {
        *(if no_ack { &mut self.delivered_no_ack } else { &mut self.delivered }) += handed.messages;
        self.redelivered += handed.redelivered;
        self.delivered_bytes += handed.bytes;
    }

    /// Counts an answer to `basic.get`.
    pub(crate) fn add_got(&mut self, no_ack: bool, redelivered: bool, bytes: usize) {
        *(if no_ack { &mut self.got_no_ack } else { &mut self.got }) += 1;
        self.redelivered += u64::from(redelivered);
        self.delivered_bytes += bytes as u64;
    }
}

impl SharedDeadCounts {
    pub fn add_one(&self, reason: Reason) {
        let mut one = DeadCounts::default();
        *match reason {
            Reason::Expired => &mut one.expired,
            Reason::MaxLen => &mut one.max_len,
            Reason::Rejected => &mut one.rejected,
            Reason::DeliveryLimit => &mut one.delivery_limit,
        } = 1;
        self.add(&one);
    }
}

/// What a consumer has been given in one go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handed {
    pub messages: u64,
    pub redelivered: u64,
    pub bytes: u64,
}

impl Handed {
    #[inline]
    pub fn add(&mut self, body_bytes: usize, redelivered: bool) {
        self.messages += 1;
        self.redelivered += u64::from(redelivered);
        self.bytes += body_bytes as u64;
    }
}

/// What has happened to the messages of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Messages that came to it, from wherever.
    pub published: u64,
    /// Bytes of their bodies.
    pub published_bytes: u64,
    /// What clients got of it.
    pub deliveries: DeliveryCounts,
    /// When one last came, was asked for or given to a client, or was settled by one: milliseconds since
    /// 1970, and 0 before that has happened.
    pub used_ms: u64,
}

/// What has happened on a channel, or on all channels of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounts {
    /// What its client has published.
    pub publishes: PublishCounts,
    /// What its client has got.
    pub deliveries: DeliveryCounts,
}

impl AddAssign<&ChannelCounts> for ChannelCounts {
    fn add_assign(&mut self, more: &ChannelCounts) {
        self.publishes += &more.publishes;
        self.deliveries += &more.deliveries;
    }
}

/// What has happened to the messages of all queues of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeCounts {
    /// What clients got of them.
    pub deliveries: DeliveryCounts,
    /// Messages that went to a dead-letter exchange.
    pub dead_lettered: DeadCounts,
    /// Messages whose queue had none.
    pub discarded: DeadCounts,
}

impl AddAssign<&TypeCounts> for TypeCounts {
    fn add_assign(&mut self, more: &TypeCounts) {
        self.deliveries += &more.deliveries;
        self.dead_lettered += &more.dead_lettered;
        self.discarded += &more.discarded;
    }
}

/// The types of queue that messages are counted by; those of direct replies are `volatile`.
pub const COUNTED_TYPES: [&str; 4] = ["classic", "quorum", "stream", "volatile"];

/// The place of the queues of direct replies among those types.
pub(crate) const VOLATILE: u8 = 3;

/// The place of a type of queue among those types.
pub(crate) fn place_of(queue_type: QueueType) -> u8 {
    match queue_type {
        QueueType::Classic => 0,
        QueueType::Quorum => 1,
        QueueType::Stream => 2,
    }
}

/// What has happened to the messages of a vhost, or of the broker, since the broker's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// What clients have published.
    pub publishes: PublishCounts,
    /// Copies that went to queues, dead letters and what the broker publishes itself included.
    pub routed: u64,
    types: [TypeCounts; COUNTED_TYPES.len()],
}

impl MessageCounts {
    /// By type of queue, in the order of [`COUNTED_TYPES`].
    pub fn by_type(&self) -> impl Iterator<Item = (&'static str, &TypeCounts)> {
        COUNTED_TYPES.into_iter().zip(&self.types)
    }

    /// What clients have got, of all types of queue together.
    pub fn deliveries(&self) -> DeliveryCounts {
        let mut all = DeliveryCounts::default();
        self.types.iter().for_each(|one| all += &one.deliveries);
        all
    }
}

impl AddAssign<&MessageCounts> for MessageCounts {
    fn add_assign(&mut self, more: &MessageCounts) {
        self.publishes += &more.publishes;
        self.routed += more.routed;
        self.types.iter_mut().zip(&more.types).for_each(|(one, more)| *one += more);
    }
}

/// The numbers of a vhost. Away from whatever else its sessions read.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct VhostCounts {
    pub publishes: SharedPublishCounts,
    routed: AtomicU64,
    types: [SharedTypeCounts; COUNTED_TYPES.len()],
}

#[derive(Debug, Default)]
struct SharedTypeCounts {
    deliveries: SharedDeliveryCounts,
    dead_lettered: SharedDeadCounts,
    discarded: SharedDeadCounts,
}

impl VhostCounts {
    pub fn read(&self) -> MessageCounts {
        let types = self.types.each_ref().map(|one| TypeCounts {
            deliveries: one.deliveries.read(),
            dead_lettered: one.dead_lettered.read(),
            discarded: one.discarded.read(),
        });
        let routed = self.routed.load(Ordering::Relaxed);
        MessageCounts { publishes: self.publishes.read(), routed, types }
    }
}
