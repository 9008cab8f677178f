//! The groups of a cluster: a vhost is in one of them, and each has its own broker.
//!
//! The broker of group 0 is home to the accounts, to the global parameters and to what is said of the
//! vhosts of all groups. Of a vhost in another group it knows no more than that. The other brokers have
//! the vhosts of their groups, and a copy of what concerns them.

use super::Broker;
use crate::fault::Fault;
use crate::persistence::definition;
use crate::transfer::another_one;
use crate::vhost::{Vhost, VhostSettings};
use courser_store::Lsn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a stay in a group that begins when the log of group 0 ends there.
pub(super) fn stay_in(group: u16, end: Lsn) -> u64 {
    if group == 0 { 0 } else { end.0 }
}

impl Broker {
    /// The group of a cluster whose vhosts it serves.
    pub fn group(&self) -> u16 {
        self.group
    }

    /// Whether this is the broker of a vhost's group.
    pub(crate) fn serves(&self, vhost: &Vhost) -> bool {
        vhost.group() == self.group
    }

    /// Refuses what only the broker of a vhost's group can do.
    pub(crate) fn check_serves(&self, vhost: &Vhost) -> Result<(), Fault> {
        match self.serves(vhost) {
            true => Ok(()),
            false => Err(Fault::not_allowed(format_args!(
                "vhost '{}' is not served by this broker, which is that of group {}: it is in group {} of \
                 the cluster",
                vhost.name,
                self.group,
                vhost.group()
            ))),
        }
    }

    /// Refuses to change `what` anywhere but at home.
    pub(crate) fn check_is_home(&self, what: &str) -> Result<(), Fault> {
        match self.group {
            0 => Ok(()),
            group => Err(Fault::not_allowed(format_args!(
                "{what} can't be changed at the broker of group {group}, which follows that of group 0: \
                 change it there"
            ))),
        }
    }

    /// Of these groups, the one with the fewest vhosts, and the first of several; home if there are none.
    pub(crate) fn group_with_fewest_vhosts(&self, groups: &[u16]) -> u16 {
        let mut counts = BTreeMap::<u16, usize>::new();
        for vhost in self.vhosts() {
            *counts.entry(vhost.group()).or_default() += 1;
        }
        let count = |group: &&u16| counts.get(*group).copied().unwrap_or_default();
        groups.iter().min_by_key(count).copied().unwrap_or_default()
    }

    /// Says that a vhost is in another group from now on.
    pub(crate) fn set_group(&self, vhost: &Arc<Vhost>, group: u16) -> Result<(), Fault> {
        self.change_settings(vhost, |settings, end| {
            settings.group = group;
            settings.stay = stay_in(group, end);
            settings.has_moved = group != 0;
            Ok(())
        })?;
        self.configure_vhost(vhost).map_err(Fault::precondition_failed)
    }

    /// Changes what is said of a vhost, but not where it is.
    pub(super) fn change_in_place(
        &self,
        vhost: &Arc<Vhost>,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(), Fault> {
        self.change_settings(vhost, |settings, _| {
            let group = settings.group;
            change(settings);
            if settings.group == group {
                return Ok(());
            }
            Err(Fault::precondition_failed(format_args!(
                "vhost '{}' is in group {group}, and stays there until it is moved: \
                 'courser ctl cluster move' does that",
                vhost.name
            )))
        })
    }

    /// Refuses what was meant for a vhost whose name another one has now. The caller holds `defined`.
    pub(crate) fn refuse_if_replaced(&self, vhost: &Arc<Vhost>) -> Result<(), Fault> {
        match self.vhost(&vhost.name).is_some_and(|now| Arc::ptr_eq(&now, vhost)) {
            true => Ok(()),
            false => Err(another_one(&vhost.name)),
        }
    }

    /// Changes what is said of a vhost that is not just being deleted. `change` gets the end of the log
    /// as well.
    pub(crate) fn change_settings(
        &self,
        vhost: &Arc<Vhost>,
        change: impl FnOnce(&mut VhostSettings, Lsn) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let home = self.home();
        let mut defined = self.defined.lock();
        let _gate = home.gate.read();
        vhost.refuse_if_deleted()?;
        self.refuse_if_replaced(vhost)?;
        let end = home.store.end();
        vhost.change_settings(&home, |settings| change(settings, end))?;
        defined.add([definition::vhost_key(&vhost.name)], home.store.end());
        Ok(())
    }
}
