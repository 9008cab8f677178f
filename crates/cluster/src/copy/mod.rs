//! Whole copies of a group's log, for nodes that can't follow otherwise.
//!
//! A node needs one when its next entry is gone at the leader, or when its own copy is damaged. Its group does not run
//! meanwhile: it does not vote and acknowledges nothing. A [`CopySource`] of another member gives chunks, a [`CopySink`]
//! puts them where the group is opened after that; how they get there is the caller's business.
//!
//! What the node has ever acknowledged may count for a majority, so the copy has to have it. That is certain in two cases:
//!
//! - the node's own log is whole, and the copy reaches as far, or ends with an entry of a later term than that log does;
//! - whatever was here, the copy ends with an entry of a term in which this node has taken no part.
//!
//! All of a copy is committed. The leader of the term of its last entry was elected with everything that had been committed in
//! earlier terms, and has placed its own entries behind that. So a log with a long end of its own that no other node has is
//! replaced by a shorter copy of a later term.
//!
//! A leader that has committed no entry of its own gives copies too, and a member that knows of no leader: the node that lacks a
//! log may be what a majority needs. A node of the second kind has a leader give up its lead before, unless its term is late enough.

mod head;
mod sink;
mod source;

pub use sink::CopySink;
pub use source::CopySource;
pub(crate) use source::Giver;

use courser_journal::replica::BootstrapError;

/// Why a copy was not given, or not taken. It is asked for again from the beginning.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Another member leads, or the copy has to come from a leader.
    #[error("this node does not lead the group, and gives no such copy of its log")]
    NotLeader,
    /// Another term is needed. The leader has given up its lead, so that there will be one.
    #[error("a copy is needed from a leader of a later term than {0}")]
    Term(u64),
    /// The members have changed meanwhile.
    #[error("the members of the group have changed while the copy was begun")]
    Changed,
    /// What has come is no copy, or one of another group.
    #[error("what was received is no copy of this group's log")]
    Malformed,
    /// The copy may lack what this node has acknowledged.
    #[error("the copy may lack what this node has acknowledged")]
    TooOld,
    /// It can't be read or written.
    #[error(transparent)]
    Journal(#[from] BootstrapError),
}

impl CopyError {
    /// Whether it may be taken when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        matches!(self, CopyError::Journal(error) if error.lacks_room())
    }
}
