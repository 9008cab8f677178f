//! Making vhosts and changing what an operator has said of them.

use super::Broker;
use crate::fault::Fault;
use crate::vhost::{Vhost, VhostLimits, VhostSettings};
use std::sync::Arc;

impl Broker {
    /// Makes a vhost, or finds it, and gives it limits. It survives a restart.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn define_vhost(&self, name: &str, limits: VhostLimits) -> Result<Arc<Vhost>, Fault> {
        self.change_vhost(name, |settings| settings.limits = limits)
    }

    /// Makes a vhost, or finds it, and changes what is said of it. It survives a restart.
    pub(crate) fn change_vhost(
        &self,
        name: &str,
        change: impl FnOnce(&mut VhostSettings),
    ) -> Result<Arc<Vhost>, Fault> {
        if let Some(vhost) = self.vhost(name) {
            vhost.change_settings(&self.home(), change)?;
            return Ok(vhost);
        }
        let _no_arrival = self.arrivals.lock_out(name)?;
        // Nothing is made for what is refused.
        let mut new = VhostSettings::default();
        change(&mut new);
        new.check()?;
        let vhost = self.vhost_at_home(name);
        vhost.change_settings(&self.home(), |settings| *settings = new)?;
        Ok(vhost)
    }
}
