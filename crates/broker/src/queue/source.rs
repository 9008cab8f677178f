//! Where the next message for a consumer comes from: what is being published right now, or what
//! has been waiting.

use super::backlog::REDELIVERED;
use super::commits::Commits;
use super::expiry::{EXPIRED_AT_ONCE, Moment, UNCONSUMED_BYTES_AT_ONCE};
use super::message_notes::MessageNotes;
use super::ready::Ready;
use super::returns::put_counts;
use crate::posting::PublishRun;
use crate::work;
use courser_store::{BodySize, Location, Lsn, MessageRef, Position, Reader, Store, StoreError};

/// Messages in the order in which consumers shall get them.
pub(crate) trait Source {
    fn is_empty(&self) -> bool;

    /// Sees to it that the next message can be kept until it is acknowledged. It may wait for the disk.
    fn prepare_keep(&mut self) -> Result<(), StoreError>;

    /// Whether a look at the next message does not wait for the disk.
    fn is_at_hand(&self) -> bool;

    /// Has it at hand from now on, for which it may wait for the disk.
    fn fetch(&mut self) -> Result<(), StoreError>;

    /// The next message.
    fn peek(&mut self) -> Result<Option<Next<'_>>, StoreError>;

    /// Moves past a message whose time to live is over.
    fn pass_expired(&mut self);

    /// Moves past a message that is lost. Returns its position in the log.
    fn pass_lost(&mut self) -> Option<Position>;

    /// Moves past a message that needs no acknowledgement. Returns its position, if it is in the
    /// log.
    fn pass(&mut self) -> Option<Position>;

    /// Moves past a message that does: its place in the queue, and where it is kept.
    fn take(&mut self) -> Option<(u64, Location)>;

    /// Moves past a message that fits the frames of no consumer whose turn it could be, as [`Source::take`].
    fn pass_unfit(&mut self) -> Option<(u64, Location)>;

    /// How far the log is committed; none if that does not matter.
    fn commits(&self) -> Option<&Commits<'_>>;
}

/// The message that comes next.
pub(crate) struct Next<'a> {
    pub message: MessageRef<'a>,
    /// It has been delivered before.
    pub redelivered: bool,
    /// Its time to live is over.
    pub expired: bool,
    /// How far the log has to be durable until it may be sent.
    pub sent_at: Lsn,
}

/// A run of messages just published. Transient ones are copied into the store only if they have to
/// wait.
pub(crate) struct Publishing<'a, 'm> {
    pub run: &'a mut PublishRun<'m>,
    pub next: usize,
    pub store: &'a dyn Store,
    /// Gives out sequence numbers; empty while messages are handed over directly.
    pub ready: &'a mut Ready,
    pub commits: Option<Commits<'a>>,
}

impl Source for Publishing<'_, '_> {
    #[inline]
    fn is_empty(&self) -> bool {
        self.next >= self.run.len()
    }

    #[inline]
    fn prepare_keep(&mut self) -> Result<(), StoreError> {
        self.run.keep_from(self.next, self.store)
    }

    #[inline]
    fn is_at_hand(&self) -> bool {
        true
    }

    fn fetch(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<Next<'_>>, StoreError> {
        let message = self.run.message(self.next);
        let redelivered = self.run.is_redelivered();
        let sent_at = match &self.commits {
            Some(commits) => commits.awaited_by(self.run.logged_at(self.next)),
            None => Lsn::default(),
        };
        Ok(message.map(|message| Next { message, redelivered, expired: false, sent_at }))
    }

    fn pass_expired(&mut self) {
        debug_assert!(false, "what is published right now lives");
    }

    fn pass_lost(&mut self) -> Option<Position> {
        debug_assert!(false, "what is published right now is there");
        self.pass()
    }

    #[inline]
    fn pass(&mut self) -> Option<Position> {
        let position = self.run.position(self.next);
        self.next += 1;
        position
    }

    fn take(&mut self) -> Option<(u64, Location)> {
        let location = self.run.location(self.next, self.store)?;
        let sequence = self.ready.pass_by(|| self.run.message(self.next));
        self.next += 1;
        Some((sequence, location))
    }

    fn pass_unfit(&mut self) -> Option<(u64, Location)> {
        self.take()
    }

    fn commits(&self) -> Option<&Commits<'_>> {
        self.commits.as_ref()
    }
}

/// What has been waiting in the queue.
pub(crate) struct Waiting<'a> {
    pub ready: &'a mut Ready,
    pub reader: &'a mut dyn Reader,
    /// There if something may expire.
    pub moment: Option<Moment>,
    /// What has expired, and its level.
    pub expired: Vec<(u8, Location)>,
    /// How many messages have expired or were lost.
    pub unconsumed: usize,
    /// Bytes that were read of what has expired, or fits the frames of no consumer.
    pub unconsumed_bytes: usize,
    /// The header of a message that has come back to a queue that counts that.
    pub header: Vec<u8>,
    /// The queue is a quorum queue.
    pub is_quorum: bool,
    /// What the queue knows of some of them besides.
    pub notes: Option<&'a mut MessageNotes>,
    /// How large the body of the message is that was peeked at last.
    pub seen: BodySize,
    /// How many bytes were read of it.
    pub seen_bytes: usize,
    pub commits: Option<Commits<'a>>,
}

impl Waiting<'_> {
    /// No client gets the message that was peeked at last.
    fn note_unconsumed(&mut self) {
        work::count_read(self.seen_bytes);
        self.unconsumed_bytes += self.seen_bytes;
    }
}

impl Source for Waiting<'_> {
    #[inline]
    fn is_empty(&self) -> bool {
        self.ready.is_empty()
            || self.unconsumed >= EXPIRED_AT_ONCE
            || self.unconsumed_bytes >= UNCONSUMED_BYTES_AT_ONCE
    }

    fn prepare_keep(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    #[inline]
    fn is_at_hand(&self) -> bool {
        self.ready.front().is_none_or(|(_, location)| self.reader.is_at_hand(location))
    }

    fn fetch(&mut self) -> Result<(), StoreError> {
        match self.ready.front() {
            Some((_, location)) => self.reader.read(location).map(drop),
            None => Ok(()),
        }
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<Next<'_>>, StoreError> {
        let Some((_, location)) = self.ready.front() else { return Ok(None) };
        let marks = location.marks();
        let mut message = match location.in_memory() {
            Some(message) => message,
            None => self.reader.read(location)?,
        };
        self.seen = BodySize::of(message.body.len());
        self.seen_bytes = message.header.len() + message.body.len();
        let expired = self.moment.is_some_and(|moment| moment.is_over_for(&message));
        let place = (location, self.notes.as_deref());
        if put_counts(&message, place, self.is_quorum, &mut self.header) {
            message.header = &self.header;
        }
        let sent_at = match &self.commits {
            Some(commits) => commits.awaited_by(location.position()),
            None => Lsn::default(),
        };
        Ok(Some(Next { message, redelivered: marks & REDELIVERED != 0, expired, sent_at }))
    }

    fn pass_expired(&mut self) {
        if let Some((number, location)) = self.take() {
            self.expired.push((self.ready.rank_of(number), location));
        }
        self.note_unconsumed();
        self.unconsumed += 1;
    }

    fn pass_lost(&mut self) -> Option<Position> {
        self.unconsumed += 1;
        self.pass()
    }

    fn pass(&mut self) -> Option<Position> {
        let (_, location) = self.ready.pop()?;
        if let Some(notes) = &mut self.notes {
            notes.leave_to_settle(&location);
        }
        location.position()
    }

    fn take(&mut self) -> Option<(u64, Location)> {
        let (number, mut location) = self.ready.pop()?;
        // It has been read just now.
        location.set_body_size(self.seen);
        Some((number, location))
    }

    fn pass_unfit(&mut self) -> Option<(u64, Location)> {
        self.note_unconsumed();
        self.take()
    }

    fn commits(&self) -> Option<&Commits<'_>> {
        self.commits.as_ref()
    }
}
