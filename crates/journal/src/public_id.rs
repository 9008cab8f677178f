//! What a journal is called where others than the owner of its folder can read it.

use sha2::{Digest, Sha256};

/// Names the journal, or the group whose copies have this number, in metrics, logs and reports. The same after a restart.
///
/// The number itself is a secret: who knows it can make frames that are valid in this journal, and have them written as the
/// body of a message. Four bytes of a hash leave half of its bits open, however many numbers are tried.
pub fn public_id(number: u64) -> u32 {
    let mut hash = Sha256::new();
    hash.update(b"courser: what a journal is called");
    hash.update(number.to_le_bytes());
    hash.finalize().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
