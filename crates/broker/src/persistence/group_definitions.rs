//! What a group of a cluster has to have of the definitions of group 0, as it goes from one to the other.
//!
//! ```text
//! u16 group, u64 version, u64 the version behind which they have changed (0: all of them),
//! u32 how many may have changed since, the key of each (u32 length before it),
//! then for each definition its key and its value (u32 length before each)
//! ```

use super::definition_changes::Changes;
use courser_store::Lsn;
use std::fmt;

/// What a group other than 0 has to know of users, permissions, global parameters and its own vhosts, as it was at one moment:
/// everything, or what may have changed since a version.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupDefinitions {
    /// Whose they are.
    pub group: u16,
    /// Where the log of group 0 ended behind the last change.
    pub version: Lsn,
    /// Which of them these are; without that, all.
    pub(crate) changes: Option<Changes>,
    /// As they are in that log.
    pub(crate) records: Vec<(Vec<u8>, Vec<u8>)>,
}

impl GroupDefinitions {
    /// How many bytes [`GroupDefinitions::encode`] makes.
    pub fn encoded_len(&self) -> usize {
        22 + self.texts().map(|bytes| 4 + bytes.len()).sum::<usize>()
    }

    /// The bytes that [`GroupDefinitions::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_len());
        out.extend_from_slice(&self.group.to_le_bytes());
        out.extend_from_slice(&self.version.0.to_le_bytes());
        let (since, changed) =
            self.changes.as_ref().map_or((Lsn(0), 0), |some| (some.since, some.keys.len()));
        out.extend_from_slice(&since.0.to_le_bytes());
        // Few are remembered.
        out.extend_from_slice(&(changed as u32).to_le_bytes());
        for bytes in self.texts() {
            // Definitions are far smaller than 4 GiB.
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    }

    /// The keys of what may have changed, then the key and the value of each definition.
    fn texts(&self) -> impl Iterator<Item = &Vec<u8>> {
        let changed = self.changes.iter().flat_map(|changes| &changes.keys);
        changed.chain(self.records.iter().flat_map(|(key, value)| [key, value]))
    }

    /// The version of those that these bytes are the beginning of; none of fewer than it takes.
    pub fn version_of(beginning: &[u8]) -> Option<Lsn> {
        let (_, rest) = beginning.split_first_chunk::<2>()?;
        Some(Lsn(u64::from_le_bytes(*rest.first_chunk::<8>()?)))
    }

    /// Reads them back; none if they are malformed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (group, rest) = bytes.split_first_chunk::<2>()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (since, rest) = rest.split_first_chunk::<8>()?;
        let (changed, mut rest) = rest.split_first_chunk::<4>()?;
        let keys =
            (0..u32::from_le_bytes(*changed)).map(|_| take(&mut rest)).collect::<Option<_>>()?;
        let since = Lsn(u64::from_le_bytes(*since));
        let changes = (since > Lsn(0)).then_some(Changes { since, keys });
        let mut records = Vec::new();
        while !rest.is_empty() {
            records.push((take(&mut rest)?, take(&mut rest)?));
        }
        let (group, version) = (u16::from_le_bytes(*group), Lsn(u64::from_le_bytes(*version)));
        Some(GroupDefinitions { group, version, changes, records })
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
            .field("since", &self.changes.as_ref().map(|changes| changes.since))
            .field("definitions", &self.records.len())
            .finish()
    }
}
