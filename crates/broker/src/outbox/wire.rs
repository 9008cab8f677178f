//! Encoded frames on their way to a socket.
//!
//! Small parts are copied one behind the other into a single buffer; large bodies are chained in
//! between without a copy, to go out by a vectored write.

use crate::memory::Charge;
use bytes::Bytes;
use courser_store::MessageRef;
use std::io::IoSlice;

const FRAME_METHOD: u8 = 1;
const FRAME_HEADER: u8 = 2;
const FRAME_BODY: u8 = 3;
const FRAME_END: u8 = 0xce;
/// Type, channel, size and end marker.
const FRAME_OVERHEAD: usize = 8;

const BASIC_RETURN: [u8; 4] = [0, 60, 0, 50];
const BASIC_DELIVER: [u8; 4] = [0, 60, 0, 60];
const BASIC_GET_OK: [u8; 4] = [0, 60, 0, 71];

/// Buffers larger than this are given back to the allocator when they have been sent.
const KEPT_CAPACITY_BYTES: usize = 1024 * 1024;

/// Frames to be sent, in order.
#[derive(Debug, Default)]
pub struct WireBuffer {
    bytes: Vec<u8>,
    /// Bodies that belong in front of the byte of `bytes` at the given offset.
    shared: Vec<(usize, Bytes)>,
    shared_bytes: usize,
    /// What it uses itself, where that is counted: from the outbox on that it was taken from. Shared bodies count for themselves.
    charge: Charge,
}

impl WireBuffer {
    /// An empty one whose memory counts.
    pub(super) fn counted(charge: Charge) -> Self {
        WireBuffer { charge, ..WireBuffer::default() }
    }

    /// Swaps this one, which counts, for another one, which counts from now on.
    pub(super) fn swap(&mut self, other: &mut Self) {
        std::mem::swap(self, other);
        self.count_as(&other.charge);
    }

    /// Another charge for what counts where that does.
    pub(super) fn another_charge(&self) -> Charge {
        self.charge.another()
    }

    /// Counts in the books of `other`, if in none yet.
    fn count_as(&mut self, other: &Charge) {
        if self.charge.memory().is_none() {
            self.charge = other.another();
            self.count();
        }
    }

    /// Counts what it uses, after it may have grown or shrunk.
    #[inline]
    pub(super) fn count(&mut self) {
        let used = self.bytes.capacity() + self.shared.capacity() * size_of::<(usize, Bytes)>();
        if used != self.charge.bytes() {
            self.charge.set(used);
        }
    }

    /// Bytes waiting in here.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    /// Those of them that count for themselves.
    pub(super) fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// Whether nothing waits in here.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets everything but keeps (a reasonable amount of) the memory for the next use.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        self.shared_bytes = 0;
        if self.bytes.capacity() > KEPT_CAPACITY_BYTES {
            self.bytes = Vec::new();
        }
        self.count();
    }

    /// Gives all memory back to the allocator.
    pub fn release(&mut self) {
        (self.bytes, self.shared, self.shared_bytes) = Default::default();
        self.count();
    }

    /// Copies everything in here to the end of `tail`.
    pub fn append_to(&self, tail: &mut Vec<u8>) {
        let mut cursor = Cursor::default();
        while let Some(piece) = self.piece(&cursor) {
            tail.extend_from_slice(piece);
            cursor = self.step(cursor, piece.len());
        }
    }

    /// Moves everything in `other` to the end.
    pub fn append(&mut self, mut other: WireBuffer) {
        self.count_as(&other.charge);
        let offset = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        let shared = other.shared.into_iter();
        self.shared.extend(shared.map(|(at, body)| (offset + at, body)));
        self.shared_bytes += other.shared_bytes;
        self.count();
    }

    /// Appends whole frames.
    pub fn put_frames(&mut self, frames: &[u8]) {
        self.bytes.extend_from_slice(frames);
        self.count();
    }

    /// Where encoders append whole frames.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Whether a content header of so many bytes fits a frame of at most `frame_max` bytes.
    pub fn fits(header_len: usize, frame_max: usize) -> bool {
        header_len + FRAME_OVERHEAD <= frame_max
    }

    /// Appends `basic.deliver` and the content of `message`. Inline where deliveries go out at once: that makes a seventh of what each
    /// costs.
    #[inline(always)]
    pub fn put_delivery(
        &mut self,
        channel: u16,
        consumer_tag: &[u8],
        delivery: Delivery,
        message: &MessageRef<'_>,
        frame_max: usize,
    ) {
        let payload_len = 4 + 1 + consumer_tag.len() + 8 + 1 + message.address.len();
        self.reserve_message(payload_len, message, frame_max);
        let out = &mut self.bytes;
        let [s0, s1, s2, s3, s4, s5, s6] = frame_start(FRAME_METHOD, channel, payload_len);
        let [m0, m1, m2, m3] = BASIC_DELIVER;
        let tag_len = consumer_tag.len() as u8;
        out.extend_from_slice(&[s0, s1, s2, s3, s4, s5, s6, m0, m1, m2, m3, tag_len]);
        out.extend_from_slice(consumer_tag);
        let [t0, t1, t2, t3, t4, t5, t6, t7] = delivery.tag.to_be_bytes();
        let redelivered = delivery.redelivered as u8;
        out.extend_from_slice(&[t0, t1, t2, t3, t4, t5, t6, t7, redelivered]);
        out.extend_from_slice(message.address);
        self.put_content(channel, message, frame_max);
    }

    /// Appends `basic.get-ok` and the content of `message`.
    pub fn put_get_ok(
        &mut self,
        channel: u16,
        delivery: Delivery,
        message_count: u32,
        message: &MessageRef<'_>,
        frame_max: usize,
    ) {
        let payload_len = 4 + 8 + 1 + message.address.len() + 4;
        self.reserve_message(payload_len, message, frame_max);
        let out = &mut self.bytes;
        out.extend_from_slice(&frame_start(FRAME_METHOD, channel, payload_len));
        out.extend_from_slice(&BASIC_GET_OK);
        out.extend_from_slice(&delivery.tag.to_be_bytes());
        out.push(delivery.redelivered as u8);
        out.extend_from_slice(message.address);
        out.extend_from_slice(&message_count.to_be_bytes());
        self.put_content(channel, message, frame_max);
    }

    /// Appends `basic.return` (reply text at most 255 bytes) and the content of `message`.
    pub fn put_return(
        &mut self,
        channel: u16,
        reply_code: u16,
        reply_text: &str,
        message: &MessageRef<'_>,
        frame_max: usize,
    ) {
        let payload_len = 4 + 2 + 1 + reply_text.len() + message.address.len();
        self.reserve_message(payload_len, message, frame_max);
        let out = &mut self.bytes;
        out.extend_from_slice(&frame_start(FRAME_METHOD, channel, payload_len));
        out.extend_from_slice(&BASIC_RETURN);
        out.extend_from_slice(&reply_code.to_be_bytes());
        out.push(reply_text.len() as u8);
        out.extend_from_slice(reply_text.as_bytes());
        out.extend_from_slice(message.address);
        self.put_content(channel, message, frame_max);
    }

    fn reserve_message(&mut self, payload_len: usize, message: &MessageRef<'_>, frame_max: usize) {
        let copied = if message.shares_body() { 0 } else { message.body.len() };
        let frames = 3 + message.body.len() / frame_max.max(FRAME_OVERHEAD + 1);
        let len = payload_len + message.header.len() + copied + frames * FRAME_OVERHEAD;
        if self.bytes.capacity() - self.bytes.len() < len {
            self.grow(len);
        }
    }

    /// Makes room for so many bytes more, and counts it.
    #[cold]
    fn grow(&mut self, len: usize) {
        self.bytes.reserve(len);
        self.count();
    }

    /// The end of the method's frame, then content header frame and body frames (AMQP 0-9-1,
    /// 2.3.5.2 and 2.3.5.3).
    #[inline(always)]
    fn put_content(&mut self, channel: u16, message: &MessageRef<'_>, frame_max: usize) {
        self.put_next_frame(FRAME_HEADER, channel, message.header.len());
        self.bytes.extend_from_slice(message.header);
        let body_len = message.body.len();
        if body_len > 0 && body_len <= frame_max - FRAME_OVERHEAD && !message.shares_body() {
            self.put_next_frame(FRAME_BODY, channel, body_len);
            self.bytes.extend_from_slice(message.body);
        } else {
            self.put_body_frames(channel, message, frame_max - FRAME_OVERHEAD);
        }
        self.bytes.push(FRAME_END);
    }

    /// A body in frames of at most `most` payload bytes, or not copied.
    fn put_body_frames(&mut self, channel: u16, message: &MessageRef<'_>, most: usize) {
        let mut start = 0;
        while start < message.body.len() {
            let end = message.body.len().min(start + most);
            self.put_next_frame(FRAME_BODY, channel, end - start);
            match message.shared_body.filter(|_| message.shares_body()) {
                Some(body) => {
                    self.shared.push((self.bytes.len(), body.slice(start..end)));
                    self.shared_bytes += end - start;
                }
                None => self.bytes.extend_from_slice(&message.body[start..end]),
            }
            start = end;
        }
        self.count();
    }

    /// The end of a frame and the start of the next.
    #[inline]
    fn put_next_frame(&mut self, kind: u8, channel: u16, payload_len: usize) {
        let [s0, s1, s2, s3, s4, s5, s6] = frame_start(kind, channel, payload_len);
        self.bytes.extend_from_slice(&[FRAME_END, s0, s1, s2, s3, s4, s5, s6]);
    }

    /// Fills `slices` with what is to be sent after the first `cursor`; returns how many were filled.
    pub fn slices_from<'a>(&'a self, cursor: &Cursor, slices: &mut [IoSlice<'a>]) -> usize {
        let mut at = *cursor;
        let mut filled = 0;
        while filled < slices.len() {
            let Some(piece) = self.piece(&at) else { break };
            slices[filled] = IoSlice::new(piece);
            filled += 1;
            at = self.step(at, piece.len());
        }
        filled
    }

    /// Moves `cursor` on by `sent` bytes. Returns whether everything has been sent.
    pub fn advance(&self, cursor: &mut Cursor, mut sent: usize) -> bool {
        while sent > 0 {
            let Some(piece) = self.piece(cursor) else { break };
            let taken = piece.len().min(sent);
            *cursor = self.step(*cursor, taken);
            sent -= taken;
        }
        self.piece(cursor).is_none()
    }

    /// The unbroken run of bytes at `cursor`.
    fn piece(&self, cursor: &Cursor) -> Option<&[u8]> {
        match self.shared.get(cursor.shared) {
            Some((offset, body)) if *offset == cursor.bytes => Some(&body[cursor.within..]),
            Some((offset, _)) => Some(&self.bytes[cursor.bytes..*offset]),
            None => Some(&self.bytes[cursor.bytes..]).filter(|rest| !rest.is_empty()),
        }
    }

    fn step(&self, mut cursor: Cursor, taken: usize) -> Cursor {
        match self.shared.get(cursor.shared) {
            Some((offset, body)) if *offset == cursor.bytes => {
                cursor.within += taken;
                if cursor.within == body.len() {
                    cursor.shared += 1;
                    cursor.within = 0;
                }
            }
            _ => cursor.bytes += taken,
        }
        cursor
    }
}

/// How far a [`WireBuffer`] has been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    bytes: usize,
    shared: usize,
    within: usize,
}

/// What a delivery says of itself besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The delivery tag, counted per channel from 1.
    pub tag: u64,
    /// Whether this message may have been delivered before.
    pub redelivered: bool,
}

/// The channel of the first frame in `frames`, the frame, and the frames behind it.
pub(crate) fn split_frame(frames: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (start, _) = frames.split_first_chunk::<7>()?;
    let [_, channel @ .., s0, s1, s2, s3] = *start;
    let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
    let (frame, rest) = frames.split_at_checked(FRAME_OVERHEAD.checked_add(size)?)?;
    Some((u16::from_be_bytes(channel), frame, rest))
}

#[inline]
fn frame_start(kind: u8, channel: u16, payload_len: usize) -> [u8; 7] {
    let [c0, c1] = channel.to_be_bytes();
    let [s0, s1, s2, s3] = (payload_len as u32).to_be_bytes();
    [kind, c0, c1, s0, s1, s2, s3]
}
