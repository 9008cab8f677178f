//! Who takes part in a group.

use crate::NodeId;
use raft::eraftpb::{
    ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, ConfState,
};

/// Most nodes in a group, learners included.
pub const MEMBERS_MAX: usize = 32;

/// The members of a group. While one majority is exchanged for another, both have to agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Those whose majority decides.
    pub voters: Vec<NodeId>,
    /// Those that get everything and decide nothing.
    pub learners: Vec<NodeId>,
    /// The voters before, while they are exchanged.
    pub voters_outgoing: Vec<NodeId>,
    /// Voters before that become learners when the exchange is over.
    pub learners_next: Vec<NodeId>,
    /// The leader ends the exchange by itself.
    pub auto_leave: bool,
}

/// A change of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It votes from now on.
    AddVoter(NodeId),
    /// It gets everything, and does not vote (any more).
    AddLearner(NodeId),
    /// It takes no part any more.
    Remove(NodeId),
}

impl Members {
    /// A group that is made of these.
    pub fn founders(voters: &[NodeId]) -> Self {
        Members { voters: voters.to_vec(), ..Members::default() }
    }

    /// Whether one majority is being exchanged for another.
    pub fn is_joint(&self) -> bool {
        !self.voters_outgoing.is_empty()
    }

    /// Whether the node takes any part.
    pub fn contains(&self, node: NodeId) -> bool {
        self.lists().iter().any(|list| list.contains(&node))
    }

    fn lists(&self) -> [&Vec<NodeId>; 4] {
        [&self.voters, &self.learners, &self.voters_outgoing, &self.learners_next]
    }

    /// The bytes to save: one that says whether the exchange ends by itself, then each list as its length and its
    /// numbers, little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.auto_leave)];
        for list in self.lists() {
            out.push(list.len() as u8);
            list.iter().for_each(|node| out.extend_from_slice(&node.0.to_le_bytes()));
        }
        out
    }

    /// Reads what [`Members::encode`] wrote; none if it is something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (auto_leave, mut rest) = bytes.split_first()?;
        let mut list = || {
            let (len, tail) = rest.split_first()?;
            let (nodes, tail) = tail.split_at_checked(usize::from(*len) * 8)?;
            rest = tail;
            let nodes = nodes.as_chunks::<8>().0.iter();
            Some(nodes.map(|node| NodeId(u64::from_le_bytes(*node))).collect::<Vec<_>>())
        };
        let (voters, learners, voters_outgoing, learners_next) =
            (list()?, list()?, list()?, list()?);
        let auto_leave = *auto_leave != 0;
        let members = Members { voters, learners, voters_outgoing, learners_next, auto_leave };
        rest.is_empty().then_some(members)
    }

    pub(crate) fn from_engine(state: &ConfState) -> Self {
        let nodes = |ids: &[u64]| {
            let mut nodes: Vec<NodeId> = ids.iter().copied().map(NodeId).collect();
            nodes.sort_unstable();
            nodes
        };
        Members {
            voters: nodes(&state.voters),
            learners: nodes(&state.learners),
            voters_outgoing: nodes(&state.voters_outgoing),
            learners_next: nodes(&state.learners_next),
            auto_leave: state.auto_leave,
        }
    }

    pub(crate) fn to_engine(&self) -> ConfState {
        let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect::<Vec<_>>();
        ConfState {
            voters: ids(&self.voters),
            learners: ids(&self.learners),
            voters_outgoing: ids(&self.voters_outgoing),
            learners_next: ids(&self.learners_next),
            auto_leave: self.auto_leave,
            ..ConfState::default()
        }
    }

    /// What is wrong with these changes, if something is.
    pub(crate) fn refuses(&self, changes: &[Change]) -> Option<&'static str> {
        let mut voters = self.voters.clone();
        let mut all: Vec<NodeId> = self.lists().into_iter().flatten().copied().collect();
        let mut named = Vec::new();
        for change in changes {
            let (Change::AddVoter(node) | Change::AddLearner(node) | Change::Remove(node)) =
                *change;
            if node == NodeId(0) {
                return Some("0 is no node");
            }
            if named.contains(&node) {
                return Some("a node is named twice");
            }
            named.push(node);
            voters.retain(|voter| *voter != node);
            if matches!(change, Change::AddVoter(_)) {
                voters.push(node);
            }
            all.push(node);
        }
        all.sort_unstable();
        all.dedup();
        match () {
            () if changes.is_empty() => Some("it changes nothing"),
            () if voters.is_empty() => Some("no node would be left to vote"),
            () if all.len() > MEMBERS_MAX => Some("a group has at most 32 members"),
            () => None,
        }
    }
}

/// The engine's word for some changes: several at once go through a joint configuration.
pub(crate) fn to_conf_change(changes: &[Change]) -> ConfChangeV2 {
    let single = |change: &Change| {
        let (kind, node) = match *change {
            Change::AddVoter(node) => (ConfChangeType::AddNode, node),
            Change::AddLearner(node) => (ConfChangeType::AddLearnerNode, node),
            Change::Remove(node) => (ConfChangeType::RemoveNode, node),
        };
        ConfChangeSingle { change_type: kind, node_id: node.0, ..ConfChangeSingle::default() }
    };
    let mut out = ConfChangeV2::default();
    if let [change] = changes {
        out.changes = vec![single(change)].into();
        return out;
    }
    out.set_transition(ConfChangeTransition::Explicit);
    out.changes = changes.iter().map(single).collect::<Vec<_>>().into();
    out
}
