//! What a group of a cluster has to have of the definitions of group 0, as it goes from one to the other.
//!
//! ```text
//! u16 group, u64 version, then for each definition its key and its value (u32 length before each)
//! ```

use courser_store::Lsn;
use std::fmt;

/// Everything that a group other than 0 has to know of users, permissions, global parameters and its own
/// vhosts, as it was at one moment.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupDefinitions {
    /// Whose they are.
    pub group: u16,
    /// Where the log of group 0 ended behind the last change.
    pub version: Lsn,
    /// As they are in that log.
    pub(crate) records: Vec<(Vec<u8>, Vec<u8>)>,
}

impl GroupDefinitions {
    /// The bytes that [`GroupDefinitions::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let each = self.records.iter().map(|(key, value)| key.len() + value.len() + 8);
        let mut out = Vec::with_capacity(10 + each.sum::<usize>());
        out.extend_from_slice(&self.group.to_le_bytes());
        out.extend_from_slice(&self.version.0.to_le_bytes());
        for bytes in self.records.iter().flat_map(|(key, value)| [key, value]) {
            // Definitions are far smaller than 4 GiB.
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    }

    /// The version of those that these bytes are the beginning of; none of fewer than it takes.
    pub fn version_of(beginning: &[u8]) -> Option<Lsn> {
        let (_, rest) = beginning.split_first_chunk::<2>()?;
        Some(Lsn(u64::from_le_bytes(*rest.first_chunk::<8>()?)))
    }

    /// Reads them back; none if they are malformed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (group, rest) = bytes.split_first_chunk::<2>()?;
        let (version, mut rest) = rest.split_first_chunk::<8>()?;
        let mut records = Vec::new();
        while !rest.is_empty() {
            records.push((take(&mut rest)?, take(&mut rest)?));
        }
        let (group, version) = (u16::from_le_bytes(*group), Lsn(u64::from_le_bytes(*version)));
        Some(GroupDefinitions { group, version, records })
    }
}

fn take(from: &mut &[u8]) -> Option<Vec<u8>> {
    let (len, rest) = from.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *from = rest;
    Some(bytes.to_vec())
}

/// Without the records, which have hashes of passwords.
impl fmt::Debug for GroupDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupDefinitions")
            .field("group", &self.group)
            .field("version", &self.version)
            .field("definitions", &self.records.len())
            .finish()
    }
}
