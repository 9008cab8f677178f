//! What can go wrong in a group.

use crate::LogError;

/// Why a group can't go on. It takes nothing any more; its log stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The log has failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// What was saved of the group's members is not what was written.
    #[error(
        "the members saved with the log can't be read: the file is damaged, restore this copy from another node"
    )]
    Members,
    /// A membership change in the log is none.
    #[error(
        "entry {0} of the log is no change of members: this copy is damaged, restore it from another node"
    )]
    Change(u64),
    /// The engine refuses to go on.
    #[error("consensus failed: {0}")]
    Engine(#[from] raft::Error),
    /// Log and engine disagree about what comes next.
    #[error("the log and the consensus engine disagree: entry {log} was placed, {engine} expected")]
    OutOfStep {
        /// The index that was placed.
        log: u64,
        /// The index that the engine wanted.
        engine: u64,
    },
}

/// Why a proposal was not taken. Nothing of it is in the log then.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// This node does not lead, or is handing over.
    #[error("this node does not lead the group")]
    NotLeader,
    /// So much waits for a majority that no more is taken.
    #[error("too much waits for a majority of the group: {0} bytes")]
    Behind(u64),
    /// A change of members is under way, or was made since this one was decided on.
    #[error("another change of the group's members is under way, or has just been made: try again")]
    ChangeUnderWay,
    /// The change leaves no voter, or means nothing.
    #[error("the change of members is refused: {0}")]
    BadChange(&'static str),
    /// The log has no room for it.
    #[error("the log is full")]
    Full,
    /// The log or the group has failed.
    #[error(transparent)]
    Failed(#[from] GroupError),
}
