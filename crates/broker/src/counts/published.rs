//! What a channel has published in a batch, and how large messages are.

use super::PublishCounts;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes up to which the bodies of messages are of one size; all others are larger than the last.
pub const SIZE_LIMITS: [u64; 8] =
    [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000];

/// How many sizes there are.
const SIZES: usize = SIZE_LIMITS.len() + 1;

/// How large the messages were that clients have published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageSizes {
    /// Messages of each size: up to the first of [`SIZE_LIMITS`], up to the second, and so on; then
    /// the larger ones.
    pub messages: [u64; SIZES],
    /// Bytes of all bodies together.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SharedSizes {
    messages: [AtomicU64; SIZES],
    bytes: AtomicU64,
}

impl SharedSizes {
    pub fn read(&self) -> MessageSizes {
        let messages = self.messages.each_ref().map(|one| one.load(Ordering::Relaxed));
        MessageSizes { messages, bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// What a channel has published in a batch.
#[derive(Debug, Default)]
pub(crate) struct PublishTally {
    pub channel: u16,
    /// A bit for each size that there is a message of.
    present: u16,
    messages: u32,
    bytes: u64,
    sizes: [u32; SIZES],
    pub returned: u64,
    pub dropped: u64,
}

impl PublishTally {
    /// Nothing yet, of this channel.
    pub fn of(channel: u16) -> Self {
        PublishTally { channel, ..PublishTally::default() }
    }

    /// Counts a message with a body of so many bytes.
    pub fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
        self.add_sized(size_of(bytes as u64), 1);
    }

    /// Counts messages whose bodies have so many bytes together, and these each.
    #[inline]
    pub fn add_all(&mut self, bytes: u64, each: impl ExactSizeIterator<Item = usize>) {
        let messages = each.len() as u32;
        self.messages += messages;
        self.bytes += bytes;
        // Those of one publisher are mostly of the same length.
        let (mut length, mut of_length) = (0, 0);
        for bytes in each {
            if bytes != length {
                self.add_sized(size_of(length as u64), of_length);
                (length, of_length) = (bytes, 0);
            }
            of_length += 1;
        }
        self.add_sized(size_of(length as u64), of_length);
    }

    #[inline]
    fn add_sized(&mut self, size: usize, messages: u32) {
        self.present |= u16::from(messages != 0) << size;
        self.sizes[size] += messages;
    }

    /// Takes what there is, if anything, and notes how large the messages were.
    pub fn take(&mut self, sizes: &SharedSizes) -> Option<PublishCounts> {
        let published = u64::from(std::mem::take(&mut self.messages));
        if published == 0 {
            return None;
        }
        let mut present = std::mem::take(&mut self.present);
        while present != 0 {
            let size = present.trailing_zeros() as usize;
            present &= present - 1;
            let messages = u64::from(std::mem::take(&mut self.sizes[size]));
            sizes.messages[size].fetch_add(messages, Ordering::Relaxed);
        }
        let published_bytes = std::mem::take(&mut self.bytes);
        sizes.bytes.fetch_add(published_bytes, Ordering::Relaxed);
        Some(PublishCounts {
            published,
            published_bytes,
            returned: std::mem::take(&mut self.returned),
            dropped: std::mem::take(&mut self.dropped),
            ..PublishCounts::default()
        })
    }
}

fn size_of(bytes: u64) -> usize {
    SIZE_LIMITS.iter().position(|limit| bytes <= *limit).unwrap_or(SIZE_LIMITS.len())
}
