//! A group on this node as it runs: its thread, and what others may ask of it.
//!
//! A task of the thread owns the [`Group`](crate::Group). What comes from elsewhere goes through an inbox with bounds: packets from
//! the transport, word from the log thread, and an operator's wishes. What goes out are packets, to [`Peers`], and who
//! leads, to those that watch [`Member::leadership`].

mod config;
mod driver;
mod inbox;
mod run;
mod status;
mod thread;

pub use config::{MemberConfig, MemberError, Origin};
pub use driver::Driver;
pub use status::{Leadership, Status};
pub use thread::GroupThread;

use crate::copy::{CopyError, CopySource};
use crate::shard::{CheckpointThread, FollowerCheckpointError, ReplicatedShards};
use crate::{Change, NodeId, Packet, ProposeError};
use courser_journal::replica::{MendError, Piece, Replica};
use courser_journal::{Journal, Pass, Scrubbing};
use courser_store::{MemoryGauge, critical};
use inbox::{Command, Inbox};
use parking_lot::Mutex;
use run::Running;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use tokio::sync::watch;

/// How what the group says gets to the other nodes.
pub trait Peers: Send + Sync + 'static {
    /// Sends packets to a node, in this order, or loses them. Called from the group's thread: never blocks.
    fn send(&self, to: NodeId, packets: Vec<Packet>);
}

/// A group on this node, which runs until this is closed or dropped.
pub struct Member {
    shared: Arc<Shared>,
    threads: Mutex<Threads>,
    thread: Option<Arc<GroupThread>>,
}

#[derive(Default)]
struct Threads {
    group: Option<Running>,
    checkpoints: Option<CheckpointThread>,
}

/// What the group's thread shares with everybody else.
pub(crate) struct Shared {
    pub replica: Arc<Replica>,
    pub inbox: Arc<Inbox>,
    pub leadership: watch::Sender<Leadership>,
    pub status: Mutex<Status>,
    /// What this leader appends to, until the shard takes it.
    pub lead: Mutex<Option<Lead>>,
    /// Held by who makes a checkpoint of a follower, and by who restores what a leader begins with.
    pub restoring: Mutex<()>,
    /// The disk syncs nothing.
    pub disk_stands_still: AtomicBool,
}

/// What a leader begins with.
pub(crate) struct Lead {
    pub term: u64,
    pub journal: Arc<Journal>,
    /// The last entry, which is committed, as all before it.
    pub last: u64,
}

impl Member {
    /// Takes a copy of the group's log into use, and runs the group on this thread. Blocks until the log has been read.
    ///
    /// # Errors
    /// Why the group can't run here.
    pub fn start(
        config: MemberConfig,
        peers: Arc<dyn Peers>,
        thread: &Arc<GroupThread>,
    ) -> Result<Self, MemberError> {
        let tick = config.tick;
        let (mut member, driver) = Self::idle(config, peers)?;
        member.thread = Some(Arc::clone(thread));
        let group = run::spawn(driver, tick, thread);
        let checkpoints = CheckpointThread::start(Arc::clone(&member.shared));
        let checkpoints = checkpoints.map_err(MemberError::Thread);
        let mut threads = member.threads.lock();
        threads.group = Some(group);
        threads.checkpoints = Some(checkpoints?);
        drop(threads);
        Ok(member)
    }

    /// As [`Member::start`], without threads: the owner of the [`Driver`] runs the group. For seeded tests.
    ///
    /// # Errors
    /// Why the group can't run here.
    pub fn idle(
        config: MemberConfig,
        peers: Arc<dyn Peers>,
    ) -> Result<(Self, Driver), MemberError> {
        let (shared, driver) = config::open(config, peers)?;
        Ok((Member { shared, threads: Mutex::default(), thread: None }, driver))
    }

    /// Takes a packet that is from whom it says. Never blocks: when too many wait, it is lost.
    pub fn receive(&self, packet: Packet) {
        self.shared.inbox.put_packet(packet);
    }

    /// Who leads, as it changes.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    /// How the group does, as of the last tick or change of members.
    pub fn status(&self) -> Status {
        self.shared.status.lock().clone()
    }

    /// Whether the disk of this node has room for what comes.
    pub fn has_room(&self) -> bool {
        self.shared.replica.has_room()
    }

    /// Whether the disk of this node syncs nothing: it does not come to lead then.
    pub fn disk_stands_still(&self) -> bool {
        self.shared.disk_stands_still.load(Ordering::Relaxed)
    }

    /// What a broker is opened on while this node serves in `term`: see [`ReplicatedShards`].
    pub fn shards(&self, term: u64, gauge: Arc<MemoryGauge>) -> ReplicatedShards {
        ReplicatedShards::new(Arc::clone(&self.shared), term, gauge)
    }

    /// Makes a checkpoint now, if this node follows, and something was committed since the last one. With threads that is
    /// done when one is wanted.
    ///
    /// # Errors
    /// Why none could be made.
    pub fn checkpoint(&self) -> Result<(), FollowerCheckpointError> {
        crate::shard::make_checkpoint(&self.shared, &mut || true)
    }

    /// Whether a checkpoint of this node as a follower should be made now.
    pub fn wants_checkpoint(&self) -> bool {
        crate::shard::is_checkpoint_wanted(&self.shared.replica)
    }

    /// Changes the members, on the leader. When this returns, the change is proposed; when it is committed, the
    /// [`Status`] has it. `since` is the `members_index` of the [`Status`] by which it was decided on.
    ///
    /// # Errors
    /// When it can't be done now, the members are others since, or it makes no sense. Nothing is changed then.
    pub fn change_members(&self, since: u64, changes: &[Change]) -> Result<(), ProposeError> {
        let changes = changes.to_vec();
        self.ask(|answer| Command::Change { since, changes, answer })
    }

    /// A copy of the log for another node: see [`CopySink`](crate::CopySink), which says what terms are too old for it. A
    /// leader of such a term gives up its lead, and the node asks again. One that says none gets it from a member that knows
    /// of no leader, too. Blocks; not on the group's thread.
    ///
    /// # Errors
    /// Why there is none now.
    pub fn copy(&self, needs_term_above: Option<u64>) -> Result<CopySource, CopyError> {
        let giver = |above| {
            critical::assert_outside("a group is asked");
            let (answer, answered) = mpsc::sync_channel(1);
            let is_there = self.shared.inbox.put_command(Command::Give { above, answer });
            is_there.then(|| answered.recv().ok().flatten()).flatten()
        };
        let first = giver(needs_term_above).ok_or(CopyError::NotLeader)?;
        if let Some(above) = needs_term_above.filter(|above| first.term <= *above) {
            return Err(CopyError::Term(above));
        }
        CopySource::begin(&self.shared.replica, || giver(None))
    }

    /// Hands the lead over to a member, as soon as that has everything; if that takes too long, this node leads on.
    ///
    /// # Errors
    /// When this node does not lead.
    pub fn transfer_to(&self, node: NodeId) -> Result<(), ProposeError> {
        self.ask(|answer| Command::Transfer { node, answer })
    }

    /// Pieces of the log that this node's disk has damaged: see [`Replica::damaged`].
    pub fn damaged(&self, most: usize) -> Vec<Piece> {
        self.shared.replica.damaged(most)
    }

    /// Whether other nodes are to be asked for something: see [`Replica::wants_pieces`].
    pub fn wants_pieces(&self) -> bool {
        self.shared.replica.wants_pieces()
    }

    /// How many pieces were written again: see [`Replica::mended`].
    pub fn mended(&self) -> u64 {
        self.shared.replica.mended()
    }

    /// Has [`Member::damaged`] name a piece that was found to be damaged.
    pub fn want(&self, piece: Piece) {
        self.shared.replica.want(piece);
    }

    /// Some of a piece of the log for a node whose disk has damaged it, and what follows it: see [`Replica::part`].
    ///
    /// # Errors
    /// When it can't be said now.
    pub fn part(
        &self,
        piece: Piece,
        from: usize,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, MendError> {
        self.shared.replica.part(piece, from, max_bytes)
    }

    /// Writes a piece again that another node has: see [`Replica::mend`].
    ///
    /// # Errors
    /// Why it is not written.
    pub fn mend(&self, piece: Piece, bytes: &[u8]) -> Result<Vec<Piece>, MendError> {
        self.shared.replica.mend(piece, bytes)
    }

    /// Another node has freed this piece: see [`Replica::is_freed_elsewhere`].
    pub fn is_freed_elsewhere(&self, piece: Piece) {
        self.shared.replica.is_freed_elsewhere(piece);
    }

    /// Whether no broker can be opened on this node's log any more: see [`Replica::needs_copy`].
    pub fn needs_copy(&self) -> bool {
        self.shared.replica.needs_copy()
    }

    /// No other node has this piece: see [`Replica::give_up`].
    pub fn give_up(&self, piece: Piece) {
        self.shared.replica.give_up(piece);
    }

    /// Reads all of this node's copy of the log that is committed: see [`Replica::scrub`]. Blocks; not on the group's thread.
    pub fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        self.shared.replica.scrub(by)
    }

    /// Estimate of the bytes that [`Member::scrub`] reads.
    pub fn scrub_bytes(&self) -> u64 {
        self.shared.replica.scrub_bytes()
    }

    fn ask(
        &self,
        command: impl FnOnce(mpsc::SyncSender<Result<(), ProposeError>>) -> Command,
    ) -> Result<(), ProposeError> {
        critical::assert_outside("a group is asked");
        let (answer, answered) = mpsc::sync_channel(1);
        if !self.shared.inbox.put_command(command(answer)) {
            return Err(ProposeError::NotLeader);
        }
        answered.recv().unwrap_or(Err(ProposeError::NotLeader))
    }

    /// Ends the group on this node, and makes everything durable that is here.
    ///
    /// # Errors
    /// When the log has failed.
    pub fn close(&self) -> Result<(), String> {
        self.end_threads();
        self.shared.replica.close().map_err(|failure| failure.to_string())
    }

    fn end_threads(&self) {
        let mut threads = self.threads.lock();
        // Before the group, which the last of its checkpoints may wait for.
        drop(threads.checkpoints.take());
        self.shared.inbox.stop();
        // What runs on the group's thread can't wait for it.
        if let Some(group) = threads.group.take()
            && !self.thread.as_ref().is_some_and(|thread| thread.is_current())
        {
            group.wait();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl Shared {
    /// Whether this node leads, or is about to.
    pub fn is_leading(&self) -> bool {
        matches!(*self.leadership.borrow(), Leadership::Serving { .. })
    }
}
