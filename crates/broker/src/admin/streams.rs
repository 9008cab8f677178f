//! Looking into streams: from an offset or a time on, and following what comes.

use super::Admin;
use super::messages::MESSAGES_MAX;
use super::shown::{MessageView, Shown};
use crate::fault::Fault;
use crate::outbox::Outbox;
use crate::queue::{Peeked, Queue};
use crate::stream::Start;
use crate::vhost::Vhost;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPage {
    /// The messages; the number of each is its offset.
    pub messages: Vec<MessageView>,
    /// The offset to go on from.
    pub next: u64,
    /// The offset of the oldest message that is left.
    pub first_offset: u64,
    /// The offset that the next message of the stream gets.
    pub next_offset: u64,
}

/// A reader of a stream as it grows.
pub struct StreamFollower {
    vhost: Arc<Vhost>,
    queue: Arc<Queue>,
    /// Woken by the stream. No list shows it.
    outbox: Arc<Outbox>,
    reader: u64,
    /// The offset of the message that comes next.
    offset: u64,
}

impl Admin {
    /// Shows messages of a stream from `start` on, `count` of those that are durable at most. Of each
    /// body `body_bytes_max` bytes at most.
    ///
    /// # Errors
    /// When the queue is not there or is no stream, or the store can't read.
    pub fn read_stream(
        &self,
        vhost: &str,
        queue: &[u8],
        start: Start,
        count: usize,
        body_bytes_max: usize,
    ) -> Result<StreamPage, Fault> {
        let (vhost, queue) = self.known_stream(vhost, queue)?;
        let offset = queue.stream().map_or(0, |stream| stream.offset_of(start, queue.now_ms()));
        read(&vhost, &queue, offset, count, Shown::new(body_bytes_max))
    }

    /// Follows a stream from `start` on.
    ///
    /// # Errors
    /// When the queue is not there or is no stream.
    pub fn follow_stream(
        &self,
        vhost: &str,
        queue: &[u8],
        start: Start,
    ) -> Result<StreamFollower, Fault> {
        let (vhost, queue) = self.known_stream(vhost, queue)?;
        let offset = queue.stream().map_or(0, |stream| stream.offset_of(start, queue.now_ms()));
        let (outbox, reader) = (self.holder(&vhost), vhost.shard().next_id());
        Ok(StreamFollower { vhost, queue, outbox, reader, offset })
    }

    fn known_stream(&self, vhost: &str, queue: &[u8]) -> Result<(Arc<Vhost>, Arc<Queue>), Fault> {
        let (vhost, queue) = self.known_queue(vhost, queue)?;
        if queue.stream().is_none() {
            let name = &queue.name;
            return Err(Fault::precondition_failed(format_args!("queue '{name}' is not a stream")));
        }
        Ok((vhost, queue))
    }
}

impl StreamFollower {
    /// The next messages, as [`Admin::read_stream`] shows them. `None` when the stream is gone.
    ///
    /// # Errors
    /// When the store can't read.
    pub fn take(
        &mut self,
        count: usize,
        body_bytes_max: usize,
        bytes_max: usize,
    ) -> Result<Option<StreamPage>, Fault> {
        let there = self.vhost.queue(self.queue.name.as_bytes());
        if !there.is_some_and(|there| Arc::ptr_eq(&there, &self.queue)) {
            return Ok(None);
        }
        let shown = Shown::new(body_bytes_max).with_room(bytes_max);
        let page = read(&self.vhost, &self.queue, self.offset, count, shown)?;
        self.offset = page.next;
        Ok(Some(page))
    }

    /// Has `waker` woken when there is something to take; at once if there is.
    pub fn wait(&self, waker: &Waker) {
        self.outbox.register(waker);
        if let Some(stream) = self.queue.stream() {
            let store = &*self.vhost.shard().store;
            stream.wake_at(self.offset, self.reader, &self.outbox, store);
        }
    }
}

impl Drop for StreamFollower {
    fn drop(&mut self) {
        if let Some(stream) = self.queue.stream() {
            stream.forget(self.reader);
        }
    }
}

impl fmt::Debug for StreamFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamFollower").field("offset", &self.offset).finish_non_exhaustive()
    }
}

fn read(
    vhost: &Vhost,
    queue: &Queue,
    offset: u64,
    count: usize,
    mut shown: Shown,
) -> Result<StreamPage, Fault> {
    let count = count.min(MESSAGES_MAX);
    let Some(stream) = queue.stream().filter(|_| count > 0) else {
        return Err(Fault::precondition_failed("a part of a stream has one message at least"));
    };
    let next = stream.read_from(offset, &*vhost.shard().store, &mut |number, message| {
        let (redelivered, held_back) = (false, false);
        let has_room = shown.add(Peeked { number, message: *message, redelivered, held_back });
        has_room && shown.messages.len() < count
    });
    Ok(StreamPage {
        next: next.map_err(|error| queue.fault(error))?,
        messages: shown.messages,
        first_offset: stream.first_offset(),
        next_offset: stream.next_offset(),
    })
}
