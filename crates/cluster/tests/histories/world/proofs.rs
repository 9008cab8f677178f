//! Leaders that have the others say whether they still follow.

use super::{Copy, Node, World};
use bytes::Bytes;

impl<C: Copy> Node<C> {
    /// A round that was asked for after another node had served in a newer term must not prove this one's lead. Those of a
    /// lead that is over are asked for no more.
    pub(super) fn see_proofs(&mut self, serving: Option<u64>) {
        let (Some(group), Some(term)) = (&self.group, serving) else { return self.asked.clear() };
        if serving != self.serving {
            self.asked.clear();
        }
        let proven = group.log().proven();
        for (round, newest) in self.asked.extract_if(.., |(round, _)| *round <= proven) {
            let id = self.id;
            assert!(
                newest <= term,
                "{id} has proven term {term} by round {round}, in term {newest}"
            );
        }
    }
}

impl<C: Copy> World<C> {
    /// Has a node prove that it leads, if it serves. Returns the round that does.
    pub fn ask_for_proof(&mut self, at: usize) -> Option<u64> {
        let newest = self.model.newest_term();
        let node = &mut self.nodes[at];
        let group = node.group.as_mut().filter(|_| node.serving.is_some())?;
        let round = group.log_mut().want_proof();
        node.asked.push((round, newest));
        self.observe(at);
        Some(round)
    }

    /// Has all nodes prove that they lead that serve: the newest leader, and those that do not know of it yet.
    pub fn ask_all_for_proofs(&mut self) {
        (0..self.nodes.len()).for_each(|at| _ = self.ask_for_proof(at));
    }

    /// A node stands still, while the others go on for long enough to elect another one. It is asked then, before it has heard
    /// of that.
    pub fn pause(&mut self, at: usize) {
        self.cut_off(at);
        for _ in 0..40 {
            self.round_of(|other| other != at, |other| other != at);
        }
        self.heal();
        self.ask_for_proof(at);
    }

    /// The last round that has proven that a node leads.
    pub fn proven(&self, at: usize) -> Option<u64> {
        self.nodes[at].group.as_ref().map(|group| group.log().proven())
    }

    /// Delivers all that is on the way and all that is said to that, while no time passes and no disk syncs. Returns what was
    /// said.
    pub fn deliver_all(&mut self) -> Vec<Bytes> {
        let mut said = Vec::new();
        while !self.packets.is_empty() {
            let packets = std::mem::take(&mut self.packets);
            packets.iter().for_each(|bytes| self.hand_over(bytes.clone()));
            said.extend(packets);
        }
        said
    }
}
