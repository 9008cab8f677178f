//! The names that the broker makes up for what clients leave nameless.

use courser_codec::ShortString;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU64, Ordering};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Random characters of a name: 132 bits.
const CHARACTERS: usize = 22;

/// Makes up names. Who knows that of a queue for direct replies may answer, so none follows from others: each is a hash of a
/// secret and of the number of names before it.
pub(super) struct RandomNames {
    secret: [u8; 16],
    made: AtomicU64,
}

impl RandomNames {
    pub fn new(seed: u128) -> Self {
        RandomNames { secret: seed.to_be_bytes(), made: AtomicU64::new(0) }
    }

    /// A name that nothing else has: `prefix` and random characters.
    pub fn next(&self, prefix: &str) -> ShortString {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let hash = Sha256::new().chain_update(self.secret).chain_update(number.to_be_bytes());
        let hash = hash.finalize();
        let mut name = Vec::from(prefix.as_bytes());
        name.extend(hash.iter().take(CHARACTERS).map(|byte| ALPHABET[usize::from(byte % 64)]));
        ShortString::new(&name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn names(seed: u128) -> Vec<ShortString> {
        let names = RandomNames::new(seed);
        (0..100).map(|_| names.next("amq.gen-")).collect()
    }

    #[test]
    fn names_are_hashes_of_the_secret_and_their_number() {
        // As Python's hashlib has them.
        let expected = ["amq.gen-BG4tVMQCpfOD_Qx0LHpWFs", "amq.gen-RqCANgfMVeBQi-CwdgTO_s"];
        let made = names(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
        assert_eq!(
            made[..2].iter().map(|name| name.as_bytes()).collect::<Vec<_>>(),
            expected.map(str::as_bytes)
        );
    }

    #[test]
    fn each_part_of_the_seed_makes_other_names() {
        let mut all = HashSet::new();
        for seed in [7, 8, 7 | 1 << 64, 7 | 1 << 127] {
            let made = names(seed);
            assert_eq!(made, names(seed), "a seed repeats them");
            all.extend(made);
        }
        assert_eq!(all.len(), 400);
    }
}
