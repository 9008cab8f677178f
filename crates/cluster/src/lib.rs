//! Shards that are replicated over several nodes.
//!
//! A *group* is one shard with its copies. [`Group`] is one node's part in it: a state machine around an existing
//! Raft engine, without threads, sockets or a clock. What comes in is time ([`Group::tick`]), packets of the others
//! ([`Group::step`]), batches to be kept ([`Group::propose`]) and word from the disk ([`Group::synced`]); what goes
//! out are packets ([`Group::take_packets`]), a commit and a role.
//!
//! ```text
//!  batch ─► Group::propose ─► ReplicaLog::place ─► the node's own journal ─► synced ─┐
//!                  │                                                                 ├─► committed ─► durable()
//!                  └─► packets ─► Group::step of the others ─► ReplicaLog::append ─► synced ─► packets
//! ```
//!
//! One entry of the group's log is a run of frames of its journal, at the position that the leader chose, so that
//! copies are equal byte for byte. The log itself is behind [`ReplicaLog`]; [`JournalLog`] is a journal as one. Why this
//! engine, what has to be known of it, and what is left to do, is in `docs/decisions/0007-consensus-engine.md`.
//!
//! [`Member`] is a group that runs: a task of a [`GroupThread`] turns the state machine, with [`Peers`] to carry its packets. A
//! broker on the node that leads is opened on [`Member::shards`], and sees nothing of all this but a store.
//!
//! [`transport`] has the connections between processes, [`forming`] how processes become a cluster.
//!
//! A node that can't follow any more is brought a whole copy: [`CopySource`], [`CopySink`].
//!
//! Not here: which vhosts are in which group, and which node leads it.
#![forbid(unsafe_code)]

mod adopt;
mod copy;
mod entry;
mod error;
pub mod forming;
mod group;
mod journal;
mod log;
mod member;
mod members;
mod options;
mod packet;
mod shard;
mod storage;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;

pub use adopt::{AdoptError, adopt};
pub use copy::{CopyError, CopySink, CopySource};
pub use courser_journal::replica::{Identity, MendError};
pub use entry::{Entry, EntryId, EntryKind, GroupNumber, NodeId};
pub use error::{GroupError, ProposeError};
pub use group::{Follower, Group};
pub use journal::JournalLog;
pub use log::{LogError, PlaceError, Placed, ReplicaLog, Room, Vote};
pub use member::{
    Driver, GroupThread, Leadership, Member, MemberConfig, MemberError, Origin, Peers, Status,
};
pub use members::{Change, MEMBERS_MAX, Members};
pub use options::Options;
pub use packet::{MalformedPacket, PACKET_BYTES_MAX, Packet};
pub use shard::{FollowerCheckpointError, ReplicatedShards, RestoreError};
