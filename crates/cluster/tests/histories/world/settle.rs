//! The end of a history.

use super::{Copy, Faults, Node, World};

/// Rounds in which a group that nothing disturbs has to have a leader that has everything.
const ROUNDS_TO_SETTLE: usize = 600;

impl<C: Copy> World<C> {
    /// Nothing is disturbed any more: the group has to find a leader, which takes one more message, and every member has to
    /// have what that leader has.
    pub fn settle(&mut self) {
        self.heal();
        for node in self.nodes.iter().filter(|node| node.group.is_some()) {
            node.disk.set_faults(Faults::default());
        }
        for _ in 0..ROUNDS_TO_SETTLE {
            // One whose power has gone before notices it by what it does next.
            (0..self.nodes.len()).for_each(|at| self.start(at));
            self.round();
            if let Some(leader) = self.leader()
                && self.nodes[leader].waiting.is_empty()
                && self.all_have_what(leader)
            {
                return;
            }
        }
        panic!(
            "no leader that has everything after {ROUNDS_TO_SETTLE} rounds without a fault: {}",
            self.told()
        );
    }

    /// How the nodes stand.
    fn told(&self) -> String {
        let node = |node: &Node<C>| match &node.group {
            None => format!("\n  {} is down", node.id),
            Some(group) => format!(
                "\n  {}: term {}, leader {:?}, serves in {:?}, has {:?}, committed {}, waits for {} confirms, {:?}, knows {:?}",
                node.id,
                group.term(),
                group.leader(),
                group.serving(),
                group.log().last(),
                group.committed(),
                node.waiting.len(),
                group.members(),
                group.followers(),
            ),
        };
        self.nodes.iter().map(node).collect()
    }

    fn all_have_what(&self, leader: usize) -> bool {
        let Some(group) = &self.nodes[leader].group else { return false };
        let members = group.members();
        let has = |node: &Node<C>| {
            let copy = node.group.as_ref();
            copy.is_some_and(|copy| {
                copy.committed() == group.committed() && copy.members() == group.members()
            })
        };
        !members.is_joint() && self.nodes.iter().filter(|node| members.contains(node.id)).all(has)
    }
}
