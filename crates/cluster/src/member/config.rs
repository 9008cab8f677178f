//! Taking a group into use on a node.

use super::driver::Driver;
use super::inbox::Inbox;
use super::{Peers, Shared};
use crate::{Group, GroupError, JournalLog, Members, NodeId, Options};
use courser_journal::replica::{Events, Identity, Replica, ReplicaError, Vote};
use courser_journal::{Disk, Failure, OpenError, is_bad_sector, public_id};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a group on a node needs to know.
pub struct MemberConfig {
    /// Where its copy of the log is.
    pub dir: PathBuf,
    /// The disk that this is on.
    pub disk: Arc<dyn Disk>,
    /// What all copies of the log have in common.
    pub identity: Identity,
    /// Where the copy comes from.
    pub origin: Origin,
    /// What can be set about the group.
    pub options: Options,
    /// How long one of its ticks is.
    pub tick: Duration,
    /// What can be set about the log. The size of its segments is that of the identity.
    pub journal: courser_journal::Options,
}

/// Where a node's copy of a group's log comes from.
///
/// The caller that gives out a node's number sees to it that a copy which was there before is not made anew under the same
/// number: what it has promised would be forgotten.
#[derive(Clone, Debug)]
pub enum Origin {
    /// It is there.
    Existing,
    /// It is empty, or there already, and the group is one of these: the same on all of them.
    Founders(Vec<NodeId>),
    /// There is none yet, and a leader takes this node in. It begins with a copy of another one's log ([`CopySink`](crate::CopySink)),
    /// which says who the members are: the founders stand in no entry.
    Joining,
}

/// Why a group can't run on a node.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The copy can't be made.
    #[error(transparent)]
    Create(#[from] OpenError),
    /// The copy can't be opened.
    #[error(transparent)]
    Open(#[from] ReplicaError),
    /// Nothing can be written.
    #[error("the log of the group can't be written: {0}")]
    Log(Failure),
    /// It is the copy of another group.
    #[error(
        "{} holds a copy of group {:08x}, and this node is in group {:08x}: give it an empty data folder",
        dir.display(),
        public_id(*found),
        public_id(*expected)
    )]
    OtherGroup {
        /// Where it is.
        dir: PathBuf,
        /// The group that it belongs to.
        found: u64,
        /// The group that it should belong to.
        expected: u64,
    },
    /// There is nothing yet: the node has just been taken in.
    #[error("the node was added, and has no copy of the log yet")]
    Joins,
    /// The copy was never taken into use.
    #[error("the group in {} was never formed: remove the folder, and let the node join again", .0.display())]
    NeverFormed(PathBuf),
    /// What is in the copy can't be taken up.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A thread can't be started.
    #[error("a thread of the group can't be started: {0}")]
    Thread(io::Error),
}

impl MemberError {
    /// Whether the node can go on with a copy of another one's log: see [`CopySink`](crate::CopySink).
    pub fn needs_copy(&self) -> bool {
        use ReplicaError::{HalfInstalled, MustBeRebuilt};
        matches!(
            self,
            MemberError::Joins | MemberError::Open(HalfInstalled { .. } | MustBeRebuilt { .. })
        )
    }

    /// Whether the node can go on when there is room on its disk.
    pub fn lacks_room(&self) -> bool {
        match self {
            MemberError::Create(error) | MemberError::Open(ReplicaError::Open(error)) => {
                error.lacks_room()
            }
            _ => false,
        }
    }

    /// Whether the node can go on when the system has another thread for it.
    pub fn lacks_thread(&self) -> bool {
        let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        match self {
            MemberError::Thread(error) => is_refused(error),
            // No file is refused so.
            MemberError::Create(error) | MemberError::Open(ReplicaError::Open(error)) => {
                error.refusal().is_some_and(is_refused)
            }
            _ => false,
        }
    }

    /// Whether the disk did not give what is there. It may do so later: its connection can be lost for a moment.
    pub fn is_unread(&self) -> bool {
        match self {
            MemberError::Create(error) | MemberError::Open(ReplicaError::Open(error)) => {
                error.refusal().is_some_and(is_bad_sector)
            }
            _ => false,
        }
    }

    /// Whether the copy is in use, in this process or another one.
    pub fn is_locked(&self) -> bool {
        matches!(self, MemberError::Open(ReplicaError::Open(OpenError::Locked(_))))
    }

    /// Where the copy can't be used, the entry that has made the members what this node knows them as.
    pub fn members_index(&self) -> Option<u64> {
        use ReplicaError::{HalfInstalled, MustBeRebuilt};
        match self {
            MemberError::Open(HalfInstalled { vote, .. } | MustBeRebuilt { vote, .. }) => {
                Some(vote.members_index)
            }
            _ => None,
        }
    }
}

/// Opens the copy, and with it the group.
pub(super) fn open(
    config: MemberConfig,
    peers: Arc<dyn Peers>,
) -> Result<(Arc<Shared>, Driver), MemberError> {
    let inbox = Arc::new(Inbox::default());
    let replica = Arc::new(open_replica(&config, Arc::clone(&inbox) as Arc<dyn Events>)?);
    let group = Group::open(&config.options, JournalLog::new(Arc::clone(&replica)))?;
    Ok(Driver::new(config.options.node, group, replica, inbox, peers))
}

fn open_replica(config: &MemberConfig, events: Arc<dyn Events>) -> Result<Replica, MemberError> {
    let MemberConfig { dir, disk, identity, origin, journal, .. } = config;
    let founders = match origin {
        Origin::Existing | Origin::Joining => None,
        Origin::Founders(nodes) => Some(Members::founders(nodes)),
    };
    if founders.is_some() {
        Replica::create(dir, *identity, &**disk)?;
    }
    let replica = match Replica::open(dir, journal.clone(), Arc::clone(disk), events) {
        Err(ReplicaError::Missing(_)) if matches!(origin, Origin::Joining) => {
            return Err(MemberError::Joins);
        }
        opened => opened?,
    };
    let found = replica.identity().group;
    if found != identity.group {
        let expected = identity.group;
        return Err(MemberError::OtherGroup { dir: dir.clone(), found, expected });
    }
    let vote = replica.vote();
    if vote.members.is_empty() {
        let founders = founders.ok_or_else(|| MemberError::NeverFormed(dir.clone()))?;
        let vote = Vote { members: founders.encode(), ..vote };
        replica.save_vote(&vote).map_err(MemberError::Log)?;
    }
    Ok(replica)
}
