//! What comes before the chunks of the journal.
//!
//! ```text
//!   8  "courserC"      4  sum of what follows
//!   8  group           8  term of the last entry that is sent
//!   8  its index
//!   8  index of the entry that made the members     and the members
//! ```

use crate::Members;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use courser_journal::replica::EntryId;

const MAGIC: &[u8; 8] = b"courserC";
const SUMMED_AT: usize = 12;
const MEMBERS_AT: usize = SUMMED_AT + 4 * 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub group: u64,
    /// The last entry that is sent. It is committed.
    pub last: EntryId,
    pub members: Members,
    pub members_index: u64,
}

impl Head {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_slice(MAGIC);
        out.put_u32_le(0);
        for number in [self.group, self.last.term, self.last.index, self.members_index] {
            out.put_u64_le(number);
        }
        out.put_slice(&self.members.encode());
        let sum = crc32c::crc32c(&out[SUMMED_AT..]);
        out[8..SUMMED_AT].copy_from_slice(&sum.to_le_bytes());
        out.freeze()
    }

    /// Reads what [`Head::encode`] wrote; none if it is anything else.
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        let mut rest = bytes.clone();
        if rest.len() < MEMBERS_AT || rest.split_to(8) != MAGIC[..] {
            return None;
        }
        if rest.get_u32_le() != crc32c::crc32c(&bytes[SUMMED_AT..]) {
            return None;
        }
        Some(Head {
            group: rest.get_u64_le(),
            last: EntryId { term: rest.get_u64_le(), index: rest.get_u64_le() },
            members_index: rest.get_u64_le(),
            members: Members::decode(&rest)?,
        })
    }
}
