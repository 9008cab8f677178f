//! Policies of a vhost: set, cleared, listed, and followed by its queues and exchanges at once.

use super::Vhost;
use crate::arguments::QueueType;
use crate::broker::Broker;
use crate::exchange::Exchange;
use crate::persistence::definition;
use crate::policy::{Policies, Policy, PolicyError, PolicyKind};
use crate::queue::{EffectiveSettings, Queue};
use crate::wakes::Wakes;
use courser_codec::{FieldTable, ShortString};
use courser_store::{Record, Sync};
use std::collections::BTreeMap;
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
        let record = Record::Defined { key: &key, value: &value };
        let mut is_new = false;
        self.change_policies(&vhost, |policies| {
            if vhost.is_deleted() {
                return Err(PolicyError::NoVhost(vhost.name.clone()));
            }
            policies.check_room(kind, &policy)?;
            is_new = !policies.has(kind, &policy.name);
            let appended = vhost.shard.store.append(&[record], Sync::Wanted, &mut Vec::new());
            appended.map_err(PolicyError::Store)?;
            policies.insert(kind, policy)
        })?;
        Ok(is_new)
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
        let mut cleared = false;
        self.change_policies(&vhost, |policies| {
            if policies.remove(kind, name) {
                cleared = true;
                let record = Record::Forgotten { key: &key };
                let settled = vhost.shard.store.settle(&[record], Sync::Wanted, &[]);
                settled.map_err(PolicyError::Store)?;
            }
            Ok(())
        })?;
        Ok(cleared)
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
        let of_vhost = match self.serves(vhost) {
            true => configured.get(&vhost.name).cloned().unwrap_or_default(),
            false => Vec::new(),
        };
        self.change_policies(vhost, |policies| policies.configure(of_vhost))
    }

    /// Changes the policies of a vhost, and lets everything in it follow; if it stands still, then when it does not any more.
    pub(crate) fn change_policies(
        &self,
        vhost: &Vhost,
        change: impl FnOnce(&mut Policies) -> Result<(), PolicyError>,
    ) -> Result<(), PolicyError> {
        let mut wakes = Wakes::default();
        {
            let _gate = vhost.shard.gate.read();
            {
                let _write = vhost.write.lock();
                change(&mut vhost.policies.write())?;
                if !vhost.is_still() {
                    vhost.follow_policies(&mut wakes);
                }
            }
            vhost.shard.post_dead_letters(&mut wakes);
        }
        wakes.wake_all();
        Ok(())
    }

    fn vhost_or_error(&self, name: &str) -> Result<Arc<Vhost>, PolicyError> {
        self.vhost(name).ok_or_else(|| PolicyError::NoVhost(name.to_owned()))
    }
}

impl Vhost {
    /// All policies as they are now.
    pub(crate) fn policies_now(&self) -> Policies {
        self.policies.read().clone()
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
        self.policies.write().restore(kind, policy)
    }

    /// Lets everything do what policies say now. The caller holds the write lock.
    fn follow_policies(&self, wakes: &mut Wakes) {
        for queue in self.queues() {
            let traits = self.traits_of(&queue.name, &queue.settings.arguments);
            // What fails is an append: the store is of no use any more, and its owner ends the broker.
            drop(queue.set_traits(traits, &*self.shard.store, wakes));
        }
        self.exchanges().iter().for_each(|exchange| self.follow_policies_of(exchange));
        // Remembered routes know which queues ask for stamps.
        self.routes_changed();
    }

    /// What a queue of this name and with these arguments does, all policies considered.
    pub(super) fn traits_of(
        &self,
        name: &ShortString,
        arguments: &FieldTable,
    ) -> Option<Arc<EffectiveSettings>> {
        let given = self.policies.read().effective_queue(name.as_bytes(), arguments);
        EffectiveSettings::of(given.as_ref().unwrap_or(arguments))
    }

    /// Lets an exchange do what policies say.
    pub(super) fn follow_policies_of(&self, exchange: &Exchange) {
        let given = self.policies.read().alternate_exchange(exchange.name.as_bytes());
        exchange.give_alternate(given.and_then(|name| ShortString::new(&name).ok()));
    }
}
