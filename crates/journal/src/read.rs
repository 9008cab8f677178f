//! Reading records back.

/// What one reader has read ahead: a block of a segment. Bounded: 256 KiB, or the largest record
/// read if that is more. Costs no memory before the first read.
#[derive(Default)]
pub struct ReadCache {}

impl ReadCache {
    /// Gives the memory back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
