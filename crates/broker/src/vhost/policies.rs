//! Policies of a vhost: set, cleared, listed, and followed by its queues and exchanges at once.

use super::Vhost;
use crate::arguments::QueueType;
use crate::broker::Broker;
use crate::exchange::Exchange;
use crate::persistence::definition;
use crate::persistence::gone::Gone;
use crate::policy::{Policies, Policy, PolicyError, PolicyKind};
use crate::queue::{EffectiveSettings, Queue};
use crate::wakes::Wakes;
use courser_codec::{FieldTable, ShortString};
use courser_store::Record;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The policies of the configuration, by vhost.
pub(crate) type Configured = BTreeMap<String, Vec<(PolicyKind, Policy)>>;

impl Broker {
    /// Sets a policy, in place of the one of its name if there is one. Queues and exchanges follow it
    /// from now on; it survives a restart. Returns whether it is new.
    pub fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<bool, PolicyError> {
        let vhost = self.vhost_or_error(vhost)?;
        self.check_serves(&vhost).map_err(PolicyError::NotServed)?;
        policy.check(kind)?;
        let _change = vhost.begin_change().map_err(PolicyError::NotNow)?;
        let key = definition::policy_key(&vhost.name, kind, &policy.name);
        let value = definition::policy_value(&policy);
        let is_new = Cell::new(false);
        let change = |policies: &mut Policies| {
            is_new.set(!policies.has(kind, &policy.name));
            policies.insert(kind, policy.clone())
        };
        self.change_policies(&vhost, change, || {
            if vhost.is_deleted() {
                return Err(PolicyError::NoVhost(vhost.name.clone()));
            }
            let record = Record::Defined { key: &key, value: &value };
            vhost.shard.define(&[record]).map(drop).map_err(PolicyError::Store)
        })?;
        Ok(is_new.get())
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
        self.change_policies(&vhost, change, || {
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
        // Locked to the end: a vhost that comes meanwhile is among the following, or waits.
        let mut configured = self.configured.lock();
        *configured = by_vhost;
        self.vhosts().iter().try_for_each(|vhost| self.configure(vhost, &configured))
    }

    /// Gives a vhost that is served here from now on the policies of the configuration.
    pub(crate) fn configure_vhost(&self, vhost: &Vhost) -> Result<(), PolicyError> {
        self.configure(vhost, &self.configured.lock())
    }

    fn configure(&self, vhost: &Vhost, configured: &Configured) -> Result<(), PolicyError> {
        let of_vhost = configured.get(&vhost.name).filter(|_| self.serves(vhost));
        let of_vhost = of_vhost.map_or(&[][..], Vec::as_slice);
        self.change_policies(vhost, |policies| policies.configure(of_vhost), || Ok(()))
    }

    /// Changes the policies of a vhost, and lets everything in it follow; if it stands still, then when it does not any
    /// more. `keep` writes the change down.
    ///
    /// What matches is worked out before anything else is locked, one change of the vhost after the other: with many names
    /// and patterns that takes long. `change` is called again if a restored policy comes meanwhile.
    pub(crate) fn change_policies(
        &self,
        vhost: &Vhost,
        change: impl Fn(&mut Policies) -> Result<(), PolicyError>,
        keep: impl Fn() -> Result<(), PolicyError>,
    ) -> Result<(), PolicyError> {
        let _turn = vhost.policies_change.lock();
        loop {
            let before = vhost.policies_now();
            let mut after = Policies::clone(&before);
            change(&mut after)?;
            let demands = vhost.demands_of(Arc::new(after));
            let mut wakes = Wakes::default();
            {
                let _gate = vhost.shard.gate.read();
                {
                    let _write = vhost.write.lock();
                    if !vhost.replace_policies(&before, &demands.policies, &keep)? {
                        continue;
                    }
                    if !vhost.is_still() {
                        vhost.follow_policies(demands, &mut wakes);
                    }
                }
                vhost.shard.post_dead_letters(&mut wakes);
            }
            wakes.wake_all();
            return Ok(());
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

    /// Has these policies from now on if it still has those `before`, and `keep` succeeds. Returns whether it had.
    fn replace_policies(
        &self,
        before: &Arc<Policies>,
        after: &Arc<Policies>,
        keep: impl Fn() -> Result<(), PolicyError>,
    ) -> Result<bool, PolicyError> {
        let mut policies = self.policies.write();
        if !Arc::ptr_eq(&policies, before) {
            return Ok(false);
        }
        keep()?;
        *policies = Arc::clone(after);
        Ok(true)
    }

    /// The policies of one kind, those from the configuration included, by name.
    pub fn policies(&self, kind: PolicyKind) -> Vec<Policy> {
        self.policies.read().list(kind)
    }

    /// The names of the policy and of the operator policy that count for a queue.
    pub fn policies_of_queue(&self, queue: &Queue) -> (Option<String>, Option<String>) {
        let policies = self.policies.read();
        let queue_type = QueueType::of(&queue.settings.arguments);
        let (user, operator) = policies.of_queue(queue.name.as_bytes(), queue_type);
        (user.map(|policy| policy.name.clone()), operator.map(|policy| policy.name.clone()))
    }

    /// Takes a policy back that was there before a restart. Nothing is there yet to follow it.
    pub(crate) fn restore_policy(
        &self,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<(), PolicyError> {
        Arc::make_mut(&mut *self.policies.write()).restore(kind, policy)
    }

    /// What these policies ask of everything that is in the vhost at the moment.
    fn demands_of(&self, policies: Arc<Policies>) -> Demands {
        let settings = |queue: &Arc<Queue>| {
            let arguments = &queue.settings.arguments;
            (queue.id, effective_settings(&policies, &queue.name, arguments))
        };
        let alternate =
            |exchange: &Arc<Exchange>| (exchange.id, alternate_exchange(&policies, &exchange.name));
        let queues = self.queues().iter().map(settings).collect();
        let alternates = self.exchanges().iter().map(alternate).collect();
        Demands { queues, alternates, policies }
    }

    /// Lets everything do what policies say now. The caller holds the write lock.
    fn follow_policies(&self, demands: Demands, wakes: &mut Wakes) {
        let Demands { policies, mut queues, mut alternates } = demands;
        for queue in self.queues() {
            // It may have come since.
            let settings = queues.remove(&queue.id).unwrap_or_else(|| {
                effective_settings(&policies, &queue.name, &queue.settings.arguments)
            });
            // What fails is an append: the store is of no use any more, and its owner ends the broker.
            drop(queue.set_traits(settings, &*self.shard.store, wakes));
        }
        for exchange in self.exchanges() {
            let alternate = alternates.remove(&exchange.id);
            let alternate =
                alternate.unwrap_or_else(|| alternate_exchange(&policies, &exchange.name));
            exchange.give_alternate(alternate);
        }
        // Remembered routes know which queues ask for stamps.
        self.routes_changed();
    }

    /// What a queue of this name and with these arguments does, all policies considered.
    pub(super) fn traits_of(
        &self,
        name: &ShortString,
        arguments: &FieldTable,
    ) -> Option<Arc<EffectiveSettings>> {
        effective_settings(&self.policies_now(), name, arguments)
    }

    /// Lets an exchange do what policies say.
    pub(super) fn follow_policies_of(&self, exchange: &Exchange) {
        exchange.give_alternate(alternate_exchange(&self.policies_now(), &exchange.name));
    }
}

/// What policies ask of the queues and exchanges of a vhost, by their numbers.
struct Demands {
    policies: Arc<Policies>,
    queues: HashMap<u64, Option<Arc<EffectiveSettings>>>,
    alternates: HashMap<u64, Option<ShortString>>,
}

fn effective_settings(
    policies: &Policies,
    name: &ShortString,
    arguments: &FieldTable,
) -> Option<Arc<EffectiveSettings>> {
    let given = policies.effective_queue(name.as_bytes(), arguments);
    EffectiveSettings::of(given.as_ref().unwrap_or(arguments))
}

fn alternate_exchange(policies: &Policies, name: &ShortString) -> Option<ShortString> {
    let given = policies.alternate_exchange(name.as_bytes())?;
    ShortString::new(&given).ok()
}
