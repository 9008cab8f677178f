//! Election timeouts that a seed determines.

use crate::storage::LogStorage;
use crate::{Options, ReplicaLog};
use raft::RawNode;

/// The engine draws its timeouts from the thread's generator. What it has drawn is replaced by what comes from here.
pub(super) struct Timeouts(u64);

impl Timeouts {
    pub fn new(options: &Options) -> Self {
        Timeouts(options.seed ^ options.node.0.rotate_left(32))
    }

    /// Replaces what the engine has drawn, which it does only when it begins to count anew. Whether it has is not seen by the
    /// number: that may be the same by chance, and the same seed has to give the same history.
    pub fn apply<L: ReplicaLog>(&mut self, node: &mut RawNode<LogStorage<L>>, ticks: usize) {
        if node.raft.election_elapsed == 0 {
            let timeout = ticks + (self.next() % ticks as u64) as usize;
            node.raft.set_randomized_election_timeout(timeout);
        }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
