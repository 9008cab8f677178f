//! What a client says of itself.

use crate::work;
use courser_codec::{Table, TableWriter};
use std::collections::BinaryHeap;

/// Bytes kept of it. Clients that are well known say some 500.
const BYTES_MAX: usize = 4096;

/// What a client says of itself, as it came: encoded, which takes much less than a table of our own. Of too much, the longest
/// entries are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProperties(Vec<u8>);

impl ClientProperties {
    /// What is kept of `said`, which has been found well-formed. Each entry is looked at twice, however many there are.
    #[must_use]
    pub fn of(said: Table<'_>) -> Self {
        if said.as_bytes().len() <= BYTES_MAX {
            return ClientProperties(said.as_bytes().to_vec());
        }
        let entries = || said.iter().inspect(|_| work::count(1)).flatten().enumerate();
        // The shortest so far that fit together: never more than fit.
        let (mut shortest, mut bytes) = (BinaryHeap::new(), 0);
        for (place, (name, value)) in entries() {
            let len = 1 + name.len() + value.encoded_len();
            let is_longest = shortest.peek().is_none_or(|longest| (len, place) > *longest);
            if is_longest && bytes + len > BYTES_MAX {
                continue;
            }
            shortest.push((len, place));
            bytes += len;
            while bytes > BYTES_MAX {
                bytes -= shortest.pop().map_or(bytes, |(longest, _)| longest);
            }
        }
        let mut kept = Vec::with_capacity(bytes);
        let mut table = TableWriter::new(&mut kept);
        let longest = shortest.peek().copied().unwrap_or_default();
        for (place, (name, value)) in entries() {
            if (1 + name.len() + value.encoded_len(), place) <= longest {
                table.put(name, value);
            }
        }
        ClientProperties(kept)
    }

    /// Its entries, encoded.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
