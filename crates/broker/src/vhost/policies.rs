//! Policies of a vhost: set, cleared, listed, and followed by its queues and exchanges at once.

use super::matching::{Announced, Room};
use super::{Vhost, is_predefined};
use crate::arguments::QueueType;
use crate::broker::Broker;
use crate::exchange::Exchange;
use crate::persistence::definition;
use crate::persistence::gone::Gone;
use crate::policy::{
    CompiledPolicy, ExchangePolicy, Policies, Policy, PolicyError, PolicyKind, QueuePolicies,
};
use crate::queue::Queue;
use crate::wakes::Wakes;
use crate::work::Budget;
use courser_codec::{FieldTable, ShortString};
use courser_store::Record;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Queues, or exchanges, that follow other policies in one go.
const FOLLOWING_MAX: usize = 100;

/// The policies of the configuration, by vhost.
pub(crate) type Configured = BTreeMap<String, Vec<(PolicyKind, Policy)>>;

/// Whether a change of policies is refused with which matching all names of the vhost takes too long.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Holds,
    /// What the configuration says, and what a vhost has brought with it, holds in any case.
    None,
}

impl Broker {
    /// Calls `each` with the vhost and the name of each policy that matches nothing, as its pattern was taken by an earlier
    /// version and can't be compiled any more, and with why.
    pub fn for_each_refused_policy(&self, each: &mut dyn FnMut(&str, &str, &str)) {
        for vhost in self.vhosts() {
            vhost.policies_now().refused().for_each(|(name, why)| each(&vhost.name, name, why));
        }
    }

    /// Sets a policy, in place of the one of its name if there is one. Queues and exchanges follow it
    /// from now on; it survives a restart. Returns whether it is new.
    pub fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<bool, PolicyError> {
        Ok(self.set_policies(vhost, &[(kind, policy)])? > 0)
    }

    /// Sets several policies likewise, all at the same moment: nothing follows some of them without the others. None is set if any
    /// of them is refused. Returns how many are new.
    pub fn set_policies(
        &self,
        vhost: &str,
        policies: &[(PolicyKind, Policy)],
    ) -> Result<usize, PolicyError> {
        let vhost = self.vhost_or_error(vhost)?;
        self.check_serves(&vhost).map_err(PolicyError::NotServed)?;
        policies.iter().try_for_each(|(kind, policy)| policy.check(*kind))?;
        let _change = vhost.begin_change().map_err(PolicyError::NotNow)?;
        let defined = policies.iter().map(|(kind, policy)| {
            let key = definition::policy_key(&vhost.name, *kind, &policy.name);
            (key, definition::policy_value(policy))
        });
        let defined: Vec<_> = defined.collect();
        let records: Vec<_> =
            defined.iter().map(|(key, value)| Record::Defined { key, value }).collect();
        let new = Cell::new(0);
        let change = |all: &mut Policies| {
            new.set(0);
            policies.iter().try_for_each(|(kind, policy)| {
                new.set(new.get() + usize::from(!all.has(*kind, &policy.name)));
                all.insert(*kind, policy.clone())
            })
        };
        self.change_policies(&vhost, Bound::Holds, change, || {
            if vhost.is_deleted() {
                return Err(PolicyError::NoVhost(vhost.name.clone()));
            }
            vhost.shard.define(&records).map(drop).map_err(PolicyError::Store)
        })?;
        Ok(new.get())
    }

    /// Removes a policy. Returns whether it was there; one from the configuration stays.
    pub fn clear_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        name: &str,
    ) -> Result<bool, PolicyError> {
        let vhost = self.vhost_or_error(vhost)?;
        self.check_serves(&vhost).map_err(PolicyError::NotServed)?;
        let _change = vhost.begin_change().map_err(PolicyError::NotNow)?;
        let key = definition::policy_key(&vhost.name, kind, name);
        if !vhost.policies_now().has_set(kind, name) {
            return Ok(false);
        }
        let cleared = Cell::new(false);
        let change = |policies: &mut Policies| {
            cleared.set(policies.remove(kind, name));
            Ok(())
        };
        self.change_policies(&vhost, Bound::Holds, change, || {
            // There may be another vhost of its name, with a policy of this one.
            if vhost.is_deleted() {
                return Err(PolicyError::NoVhost(vhost.name.clone()));
            }
            let forgotten = vhost.shard.forget(Gone::of_keys(vec![key.clone()]));
            forgotten.map(drop).map_err(PolicyError::Store)
        })?;
        Ok(cleared.get())
    }

    /// Replaces all policies, of every vhost, that came this way before; these do not survive a
    /// restart. Nothing is changed if any of them is wrong. Those of vhosts that are in another group, or
    /// not known in this one yet, hold once they come.
    pub fn configure_policies(
        &self,
        policies: Vec<(String, PolicyKind, Policy)>,
    ) -> Result<(), PolicyError> {
        let mut by_vhost = Configured::new();
        for (vhost, kind, policy) in policies {
            if self.group() == 0 {
                self.vhost_or_error(&vhost)?;
            }
            policy.check(kind)?;
            by_vhost.entry(vhost).or_default().push((kind, policy));
        }
        *self.configured.lock() = Arc::new(by_vhost);
        // A vhost that comes meanwhile is among these, or finds what has just been said. One that arrives and is let in meanwhile
        // is among the first.
        let vhosts = [self.arrivals.all(), self.vhosts()].concat();
        vhosts.iter().try_for_each(|vhost| self.configure_vhost(vhost))
    }

    /// Gives a vhost that is served here from now on, or arrives, or is not served any more, the policies of the configuration.
    pub(crate) fn configure_vhost(&self, vhost: &Vhost) -> Result<(), PolicyError> {
        let change = |policies: &mut Policies| {
            // Looked up when it is this change's turn: what the last one finds is not older than what one before it has found.
            let configured = Arc::clone(&self.configured.lock());
            // An arrival is served before it is none any more.
            let is_here = self.arrivals.have(vhost) || self.serves(vhost);
            let of_vhost = configured.get(&vhost.name).filter(|_| is_here);
            policies.configure(of_vhost.map_or(&[][..], Vec::as_slice))
        };
        self.change_policies(vhost, Bound::None, change, || Ok(()))
    }

    /// Changes the policies of a vhost, and lets everything in it follow; if it stands still, nothing is dropped or handed out for
    /// that before it goes on. `keep` writes the change down. `change` is called again if a restored policy comes meanwhile.
    ///
    /// What is made from then on follows the new policies. For what is there it is worked out which count, and with many
    /// names and patterns that takes long: one change of the vhost after the other, with nothing locked besides. A change that is
    /// bound is tried with all names before. One that says what there is does nothing.
    fn change_policies(
        &self,
        vhost: &Vhost,
        bound: Bound,
        change: impl Fn(&mut Policies) -> Result<(), PolicyError>,
        keep: impl Fn() -> Result<(), PolicyError>,
    ) -> Result<(), PolicyError> {
        let _turn = vhost.policies_change.lock();
        loop {
            let before = vhost.policies_now();
            let mut after = Policies::clone(&before);
            change(&mut after)?;
            let (after, room) = (Arc::new(after), vhost.room());
            // What there is follows these already: a start has just matched all of it.
            if after.are(&before) && !vhost.is_deleted() {
                vhost.let_stay(bound, room);
                return Ok(());
            }
            let is_bound = matches!(bound, Bound::Holds) && !after.are_matched_as(&before);
            let announced = is_bound.then(|| vhost.announce(&after));
            announced.as_ref().map_or(Ok(()), Announced::try_all)?;
            let is_replaced = {
                let mut next = vhost.stop_matching();
                let _gate = vhost.shard.gate.read();
                let _write = vhost.write.lock();
                announced.as_ref().map_or(Ok(()), Announced::still_may)?;
                let is_replaced = vhost.replace_policies(&before, &after, &keep)?;
                *next = None;
                is_replaced
            };
            drop(announced);
            if is_replaced {
                vhost.follow_policies(&after);
                vhost.let_stay(bound, room);
                return Ok(());
            }
        }
    }

    fn vhost_or_error(&self, name: &str) -> Result<Arc<Vhost>, PolicyError> {
        self.vhost(name).ok_or_else(|| PolicyError::NoVhost(name.to_owned()))
    }
}

impl Vhost {
    /// All policies as they are now.
    pub(crate) fn policies_now(&self) -> Arc<Policies> {
        Arc::clone(&self.policies.read())
    }

    /// Has these policies from now on if it still has those `before`, and `keep` succeeds. Returns whether it had. The caller
    /// holds the write lock.
    fn replace_policies(
        &self,
        before: &Arc<Policies>,
        after: &Arc<Policies>,
        keep: impl Fn() -> Result<(), PolicyError>,
    ) -> Result<bool, PolicyError> {
        if !Arc::ptr_eq(&self.policies.read(), before) {
            return Ok(false);
        }
        keep()?;
        // Locked no longer than that: who wants to know the policies does not wait for the log.
        *self.policies.write() = Arc::clone(after);
        Ok(true)
    }

    /// What there is may stay behind a change that no bound holds for.
    fn let_stay(&self, bound: Bound, before: Room) {
        if matches!(bound, Bound::None) {
            self.admit_what_stays(before);
        }
    }

    /// The policies of one kind, those from the configuration included, by name.
    pub fn policies(&self, kind: PolicyKind) -> Vec<Policy> {
        self.policies.read().list(kind)
    }

    /// Takes a policy back that was there before a restart. Nothing is there yet to follow it but predefined exchanges
    /// ([`Vhost::follow_restored_policies`]). The caller holds the write lock, or is the only one that knows the vhost.
    pub(crate) fn restore_policy(&self, policy: CompiledPolicy) {
        Arc::make_mut(&mut *self.policies.write()).put(policy);
    }

    /// Lets the exchanges that were there before the restored policies follow them.
    pub(crate) fn follow_restored_policies(&self) {
        let policies = self.staying_policies();
        for exchange in self.exchanges() {
            if is_predefined(&exchange.name) {
                exchange.follow(policies.of_exchange(&exchange.name, true));
            }
        }
        self.admit_what_has_come();
    }

    /// The policies that count for a durable queue of this name and with these arguments.
    pub(crate) fn policies_for(&self, name: &ShortString, arguments: &FieldTable) -> QueuePolicies {
        self.find_for_queue(&self.policies_now(), name, QueueType::of(arguments), true)
    }

    /// The policy that counts for a durable exchange of this name.
    pub(super) fn policy_for(&self, name: &ShortString) -> ExchangePolicy {
        self.find_for_exchange(&self.policies_now(), name, true)
    }

    /// Lets everything that is there do what these policies say, in portions, between which others have their turn: a queue
    /// may have much to drop, or to hand out, by what they say. Ends early where the log takes nothing more: nothing comes of
    /// it then, and a node that leads no more waits for the end of its broker.
    fn follow_policies(&self, policies: &Policies) {
        let is_over = || self.shard.store.failure().is_some();
        for portion in self.queues().chunks(FOLLOWING_MAX) {
            if is_over() {
                return;
            }
            let found = |queue: &Arc<Queue>| {
                let settings = &queue.settings;
                let queue_type = QueueType::of(&settings.arguments);
                self.find_for_queue(policies, &queue.name, queue_type, settings.survives())
            };
            let found: Vec<QueuePolicies> = portion.iter().map(found).collect();
            let mut due = portion.iter().zip(found);
            let mut follow = |wakes: &mut Wakes| {
                let budget = Budget::begin();
                while !budget.is_spent()
                    && let Some((queue, policies)) = due.next()
                {
                    // What fails is an append: the store is of no use any more, and its owner ends the broker.
                    drop(queue.follow(policies, &*self.shard.store, wakes));
                }
                due.len() > 0
            };
            while self.in_gate(&mut follow) {}
        }
        for portion in self.exchanges().chunks(FOLLOWING_MAX) {
            if is_over() {
                return;
            }
            let found = |exchange: &Arc<Exchange>| {
                self.find_for_exchange(policies, &exchange.name, exchange.settings.durable)
            };
            let found: Vec<_> = portion.iter().map(found).collect();
            self.in_gate(|_| {
                portion.iter().zip(found).for_each(|(exchange, policy)| exchange.follow(policy));
                false
            });
        }
    }

    /// Does this in the gate. Returns what it returns, which is whether there is more.
    fn in_gate(&self, follow: impl FnOnce(&mut Wakes) -> bool) -> bool {
        let mut wakes = Wakes::default();
        let has_more = {
            let _gate = self.shard.gate.read();
            let has_more = follow(&mut wakes);
            // Remembered routes know which queues ask for stamps.
            self.routes_changed();
            self.shard.post_dead_letters(&mut wakes);
            has_more
        };
        wakes.wake_all();
        has_more
    }
}
