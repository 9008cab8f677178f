//! Taking a group's log into use.

use super::{Group, Held, Timeouts, VecDeque};
use crate::storage::LogStorage;
use crate::{GroupError, Members, Options, ReplicaLog};
use raft::eraftpb::HardState;
use raft::{Config, RawNode};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

impl<L: ReplicaLog> Group<L> {
    /// Takes a log into use. One of a new group has been given its founders by
    /// [`ReplicaLog::save_vote`]; the same ones on every node.
    ///
    /// # Errors
    /// When the log can't be read, or says what can't be.
    pub fn open(options: &Options, log: L) -> Result<Self, GroupError> {
        let vote = log.vote();
        let members = Members::decode(&vote.members).ok_or(GroupError::Members)?;
        let changes = log.members_after(vote.members_index)?;
        let changes: BTreeMap<_, _> =
            changes.iter().map(|entry| (entry.id.index, log.payload(entry))).collect();
        let indices: Vec<u64> = changes.keys().copied().collect();
        let known = log.committed_hint().max(vote.members_index).max(log.before_first().index);
        let begin = HardState {
            term: vote.term.max(log.last().term),
            vote: if vote.term >= log.last().term { vote.voted_for } else { 0 },
            commit: known.min(log.last().index),
            ..HardState::default()
        };
        let commit = begin.commit;
        let storage = LogStorage {
            last: log.last().index,
            log,
            begin,
            members: members.clone(),
            changes,
            read_left: Cell::new(options.read_bytes),
            unread: Cell::default(),
            awaited: RefCell::default(),
            lacking: RefCell::default(),
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config(options, commit), storage, &logger)?;
        let mut group = Group {
            node,
            options: options.clone(),
            timeouts: Timeouts::new(options),
            members,
            vote,
            vote_ticket: 0,
            promise_ticket: 0,
            applied: VecDeque::new(),
            unsynced: VecDeque::new(),
            packets: Vec::new(),
            probed: BTreeMap::new(),
            held: Held::default(),
            serving: None,
            proving: None,
            committed: commit,
            placed: VecDeque::new(),
            placed_bytes: 0,
            committed_bytes: 0,
            lacks: None,
            disk_stands_still: false,
        };
        // Committed, but the node stopped before it had saved what they made of the members.
        for index in indices.into_iter().filter(|index| *index <= commit) {
            group.change_takes_effect(index)?;
        }
        group.log_mut().commit(commit)?;
        let before_first = group.log().before_first().index;
        group.log_mut().applied(before_first);
        group.tell_applied(commit);
        group.handle_ready()?;
        Ok(group)
    }
}

fn config(options: &Options, applied: u64) -> Config {
    Config {
        id: options.node.0,
        election_tick: options.election_ticks,
        heartbeat_tick: options.heartbeat_ticks,
        applied,
        max_size_per_msg: options.packet_bytes,
        max_inflight_msgs: options.packets_in_flight,
        check_quorum: true,
        pre_vote: true,
        ..Config::default()
    }
}
