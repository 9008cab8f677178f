//! What an answer waits for.

use crate::removals::{Removals, UpTo};
use courser_store::{Log, Lsn, Proof};

/// How far the store has to be before an answer may go out; or how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Until {
    /// Everything that it tells of is durable.
    pub durable: Lsn,
    /// This machine leads the log since the state was read that it tells of.
    lead: Proof,
    /// The removals are over that were under way when the state was read.
    removals: UpTo,
}

/// What there is to wait for next: each may let something go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    pub durable: Option<Lsn>,
    pub lead: Option<Proof>,
    /// All removals up to this one are over.
    pub removal: Option<u64>,
}

impl Until {
    /// The store is durable up to `lsn`.
    pub fn durable(lsn: Lsn) -> Self {
        Until { durable: lsn, ..Until::default() }
    }

    /// What an answer waits for that tells of what is durable at `lsn`, and of nothing that is not current: where another
    /// machine may come to lead, this one is to lead still.
    pub fn told<L: Log + ?Sized>(log: &L, lsn: Lsn) -> Self {
        Until { durable: lsn, lead: log.prove_lead(), ..Until::default() }
    }

    /// What an answer waits for that has only read. Where another machine may come to lead, also until what it has read is
    /// committed, which is when the log is durable up to `lsn`: before, it may be lost. That is behind all `removals` of what it
    /// may have missed, but for those under way.
    pub fn read<L: Log + ?Sized>(log: &L, removals: &Removals, lsn: impl FnOnce() -> Lsn) -> Self {
        match log.prove_lead() {
            lead if lead == Proof::default() => Until::default(),
            lead => {
                let removals = removals.under_way();
                Until { durable: lsn(), lead, removals }
            }
        }
    }

    /// Once the removals are over that it waits for, it waits for the log to be durable that was told of them. Returns whether
    /// they have been over since the last time.
    pub fn let_removals_end(&mut self, now: Until) -> bool {
        let are_over = self.removals.number > 0 && self.removals.number <= now.removals.number;
        if are_over {
            self.durable = self.durable.max(now.removals.told);
            self.removals = UpTo::default();
        }
        are_over
    }

    /// Whether a store has not reached this, or removals have yet to end.
    pub fn waits_for<L: Log + ?Sized>(self, log: &L) -> bool {
        let (no_lsn, no_proof) = (Lsn::default(), Proof::default());
        self.durable > no_lsn && self.durable > log.durable()
            || self.lead > no_proof && self.lead > log.proven()
            || self.removals.number > 0
    }

    /// How far a store is, and removals are, for answers that may wait for more than the disk.
    pub fn reached_by<L: Log + ?Sized>(log: &L, removals: &Removals) -> Self {
        // First these: the log may be durable by now that was told of them.
        let removals = removals.over();
        Until { durable: log.durable(), lead: log.proven(), removals }
    }

    /// Whether a store that is so far has reached this.
    pub fn is_reached(self, now: Until) -> bool {
        self.durable <= now.durable
            && self.lead <= now.lead
            && self.removals.number <= now.removals.number
    }
}

impl Next {
    /// Whether there is nothing to wait for.
    pub fn is_none(self) -> bool {
        self.durable.is_none() && self.lead.is_none() && self.removal.is_none()
    }

    /// Something waits for `until` in a store that is as far as `now`.
    pub fn await_until(&mut self, until: Until, now: Until) {
        if until.durable > now.durable {
            self.await_durable(until.durable);
        }
        if until.lead > now.lead {
            self.lead = self.lead.into_iter().chain([until.lead]).min();
        }
        if until.removals.number > now.removals.number {
            self.removal = self.removal.into_iter().chain([until.removals.number]).min();
        }
    }

    /// Something waits for the store to be durable up to `lsn`.
    pub fn await_durable(&mut self, lsn: Lsn) {
        self.durable = self.durable.into_iter().chain([lsn]).min();
    }
}
