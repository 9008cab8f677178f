//! Making vhosts and changing what an operator has said of them.

use super::Broker;
use super::groups::stay_in;
use crate::fault::Fault;
use crate::persistence::definition;
use crate::vhost::{Vhost, VhostLimits, VhostSettings};
use courser_auth::{Directory, Permission, Record as AccountRecord};
use std::sync::Arc;

impl Broker {
    /// Makes a vhost, or finds it, and gives it limits. It survives a restart.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn define_vhost(&self, name: &str, limits: VhostLimits) -> Result<Arc<Vhost>, Fault> {
        let (vhost, _) =
            self.change_vhost(name, &[0], None, |settings| settings.limits = limits)?;
        Ok(vhost)
    }

    /// Changes what is said of a vhost that is there, but not where it is.
    pub(crate) fn change_known_vhost(
        &self,
        vhost: &Arc<Vhost>,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(), Fault> {
        self.check_is_home("a vhost")?;
        self.change_in_place(vhost, change)
    }

    /// Makes a vhost, or finds it, and changes what is said of it. It survives a restart. A new one is
    /// put in the one of `groups` with the fewest vhosts, unless `change` says another. Returns it, and
    /// whether it is new.
    pub(crate) fn change_vhost(
        &self,
        name: &str,
        groups: &[u16],
        founder: Option<&str>,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<(Arc<Vhost>, bool), Fault> {
        self.check_is_home("a vhost")?;
        if let Some(vhost) = self.vhost(name) {
            self.change_in_place(&vhost, change)?;
            return Ok((vhost, false));
        }
        let write = self.shards_write.lock();
        if let Some(vhost) = self.vhost(name) {
            // Another thread was faster.
            self.change_in_place(&vhost, change)?;
            return Ok((vhost, false));
        }
        let group = self.group_with_fewest_vhosts(groups);
        let mut new = VhostSettings { group, ..VhostSettings::default() };
        change(&mut new);
        new.stay = stay_in(new.group, self.home().store.end());
        let vhost = self.make_vhost(name, new, founder)?;
        // Its names are matched with all patterns.
        drop(write);
        self.configure_vhost(&vhost).map_err(Fault::precondition_failed)?;
        Ok((vhost, true))
    }

    /// Makes a vhost that is not there, which `founder` may enter from the beginning. The caller holds `shards_write`.
    pub(crate) fn make_vhost(
        &self,
        name: &str,
        settings: VhostSettings,
        founder: Option<&str>,
    ) -> Result<Arc<Vhost>, Fault> {
        self.arrivals.refuse(name)?;
        let home = self.home();
        let mut defined = self.defined.lock();
        let _gate = home.gate.read();
        let vhost = Vhost::new(name, &self.limits, &home, &self.monitor);
        // It is not found before its settings are known, and nothing is made for what is refused.
        let keep = |given: &[AccountRecord]| vhost.begin_with(&home, settings, given);
        let mut changed = vec![definition::vhost_key(name)];
        match founder {
            None => keep(&[])?,
            Some(founder) => {
                let decide = |all: &Directory| {
                    let given = all.set_permission(founder, name, Permission::all());
                    Ok(vec![given.map_err(Fault::precondition_failed)?])
                };
                let given = self.accounts.change(decide, keep)?;
                changed.extend(given.iter().map(AccountRecord::key));
            }
        }
        defined.add(changed, home.store.end());
        Ok(self.vhosts.write().entry(name.to_owned()).or_insert(vhost).clone())
    }
}
