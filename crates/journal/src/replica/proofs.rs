//! Proofs that this machine still leads, for answers that tell of what its broker has in memory.
//!
//! What is read there may be old: the machine may have been paused while another one came to lead. So the others are asked
//! whether they still follow, in rounds. A round proves what was read before it began, for all answers that wait by then:
//! one that comes while a round is under way waits for the next one.

use crate::{core::Core, log::ALONE, waiters::Waiters};
use courser_store::{Lsn, Proof, Waiter};
use parking_lot::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

/// The rounds of a copy, in all terms that it leads in.
#[derive(Default)]
pub struct Proofs {
    rounds: Mutex<Rounds>,
    /// The last round that has proven the lead.
    proven: AtomicU64,
    waiters: Waiters,
}

/// Rounds have numbers, from 1.
#[derive(Default)]
struct Rounds {
    begun: u64,
    wanted: u64,
}

impl Proofs {
    /// Asks for a round that has not begun yet. Returns its number, and whether it is asked for the first time.
    fn want(&self) -> (u64, bool) {
        let mut rounds = self.rounds.lock();
        let next = rounds.begun + 1;
        (next, std::mem::replace(&mut rounds.wanted, next) < next)
    }

    /// Begins the next round, if one is wanted.
    pub fn begin(&self) -> Option<u64> {
        let mut rounds = self.rounds.lock();
        let is_wanted = rounds.wanted > rounds.begun;
        rounds.begun += u64::from(is_wanted);
        is_wanted.then_some(rounds.begun)
    }

    /// A round has proven the lead.
    pub fn publish(&self, round: u64) {
        self.proven.fetch_max(round, Release);
        // The thread that says so is the one that others wait for.
        self.waiters.wake_up_to(Lsn(round), false);
    }

    /// Nothing is proven any more for those that wait.
    pub fn give_up(&self) {
        self.waiters.wake_up_to(Lsn(u64::MAX), false);
    }
}

impl Core {
    /// See [`Journal::prove_lead`](crate::Journal::prove_lead).
    pub fn prove_lead(&self, epoch: u64) -> Proof {
        let Some(replica) = self.replica.as_ref().filter(|_| epoch != ALONE) else {
            return Proof::default();
        };
        let (round, is_new) = replica.proofs.want();
        if is_new {
            replica.events.proof_wanted();
        }
        Proof(round)
    }

    /// What is proven for who appends in this epoch: nothing, once another machine leads.
    pub fn proven_for(&self, epoch: u64) -> Proof {
        let Some(replica) = self.replica.as_ref().filter(|_| epoch != ALONE) else {
            return Proof::default();
        };
        // In this order: what was proven in another term was published after the change.
        let proven = replica.proofs.proven.load(Acquire);
        if self.has_epoch(epoch) { Proof(proven) } else { Proof::default() }
    }

    /// See [`Journal::when_proven`](crate::Journal::when_proven).
    pub fn when_proven(&self, proof: Proof, waiter: Waiter, epoch: u64) {
        let Some(replica) = self.replica.as_ref().filter(|_| !self.is_settled(proof, epoch)) else {
            return waiter.notify(false);
        };
        replica.proofs.waiters.push(Lsn(proof.0), waiter.clone());
        if self.is_settled(proof, epoch) {
            // It may have been proven before the waiter was there to be notified.
            waiter.notify(false);
        }
    }

    /// Whether there is nothing more to be waited for.
    fn is_settled(&self, proof: Proof, epoch: u64) -> bool {
        self.proven_for(epoch) >= proof || self.failed.get().is_some() || !self.has_epoch(epoch)
    }
}
