//! Readers of the log that are kept from one message to the next, with what they have read ahead.

use crate::memory::{Charge, Memory, Use};
use courser_store::{Reader, Store};
use std::sync::Arc;

/// A reader that keeps more, behind a long message, is given back at once.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// A reader that has read nothing for as long is given back.
pub(crate) const UNUSED_MS: u64 = 2000;

/// A reader that is there once something has to be read. What it keeps counts; where all together keep what they may, each is
/// given back behind what it was opened for.
#[derive(Debug, Default)]
pub(crate) struct KeptReader {
    reader: Option<Box<dyn Reader>>,
    /// It has been asked for since [`KeptReader::take_used`].
    used: bool,
    charge: Charge,
}

impl KeptReader {
    /// One that counts in these books.
    pub fn new(memory: &Arc<Memory>) -> Self {
        KeptReader { charge: memory.charge(Use::Readers, 0), ..KeptReader::default() }
    }

    /// The reader, opened where there is none.
    #[inline]
    pub fn open(&mut self, store: &dyn Store) -> &mut dyn Reader {
        self.used = true;
        &mut **self.reader.get_or_insert_with(|| store.reader())
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Gives back all that it has read ahead.
    pub fn close(&mut self) {
        self.reader = None;
        self.charge.set(0);
    }

    /// Counts what it keeps for what is read next, and `besides`; or gives it back, where that is too much. Returns whether
    /// anything is kept.
    pub fn count(&mut self, besides: usize) -> bool {
        let bytes = self.reader.as_ref().map_or(0, |reader| reader.held_bytes()) + besides;
        let more = bytes.saturating_sub(self.charge.bytes());
        let is_admitted =
            more == 0 || self.charge.memory().is_none_or(|memory| memory.admits_reader(more));
        if bytes > KEPT_BYTES_MAX || !is_admitted {
            self.close();
            return false;
        }
        self.charge.set(bytes);
        bytes > 0
    }

    /// Whether it has been used since it was asked last.
    pub fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.used)
    }
}
