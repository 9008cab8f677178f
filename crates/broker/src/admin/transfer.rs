//! Moving a vhost to another broker, which has a log of its own.
//!
//! Whoever does that has the vhost stand still, reads it out, and hands the pieces to the other broker, where it arrives and is
//! accepted. Then it is dropped where it was; or, if anything went wrong, forgotten there and let go on here.

use super::{Admin, EventKind};
use crate::fault::Fault;
use crate::vhost::{VhostSettings, stands_still};
use std::sync::Arc;

pub use crate::transfer::{Arrival, Export, Import, LeftBehind};

impl Admin {
    /// Has a vhost stand still: its clients are told to go (320), nobody gets in, nothing in it is changed
    /// and nothing comes of its timers; what is there can be looked at. A restart ends that. Returns how many
    /// connections and requests are still in it: to be called again until there are none.
    ///
    /// # Errors
    /// When there is no such vhost, or it is just being deleted.
    pub fn stop_vhost(&self, name: &str) -> Result<u64, Fault> {
        let vhost = self.known_vhost(name)?;
        if vhost.is_deleted() {
            return Err(crate::monitor::vhost_deleted(name));
        }
        vhost.stop();
        for outbox in self.broker.monitor.registry.snapshot().starting_at(0) {
            if Arc::ptr_eq(&outbox.connection.vhost, &vhost.label) {
                outbox.fail_connection(stands_still(name));
            }
        }
        Ok(vhost.in_motion())
    }

    /// Lets a vhost go on. Returns whether it stood still.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn start_vhost(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.broker.start_vhost(&*self.known_vhost(name)?))
    }

    /// Begins to read out a vhost that stands still.
    ///
    /// # Errors
    /// When there is no such vhost, it does not stand still, or something in it can't be carried.
    pub fn export_vhost(&self, name: &str) -> Result<Export, Fault> {
        Export::begin(&self.broker, &self.known_vhost(name)?)
    }

    /// Begins to take in a vhost that another broker reads out. Nobody finds it before it is accepted.
    ///
    /// # Errors
    /// When there is a vhost of this name, one is arriving, or that can't be kept.
    pub fn import_vhost(&self, name: &str, settings: &VhostSettings) -> Result<Import, Fault> {
        super::commands::check_vhost_name(name)?;
        Import::begin(&self.broker, name, settings)
    }

    /// The vhosts that are being moved here, by name.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.broker.arriving()
    }

    /// Lets clients into a vhost that has arrived as a whole. It survives a restart.
    ///
    /// # Errors
    /// When it is not arriving, or not as a whole, or that can't be kept.
    pub fn accept_vhost(&self, name: &str) -> Result<(), Fault> {
        self.broker.accept_arrival(name)?;
        self.tell(EventKind::VhostCreated, name, name);
        Ok(())
    }

    /// Throws away a vhost that is arriving, or has arrived and was not accepted. Returns whether there is
    /// one.
    ///
    /// # Errors
    /// When that can't be kept.
    pub fn forget_vhost(&self, name: &str) -> Result<bool, Fault> {
        let forgotten = self.broker.forget_arrival(name)?;
        self.broker.check_alarms();
        Ok(forgotten)
    }

    /// Deletes a vhost that stands still, as it is elsewhere now: also one that is protected from
    /// that, and what users may do in it stays.
    ///
    /// # Errors
    /// When there is no such vhost, it does not stand still, or that can't be kept.
    pub fn drop_moved_vhost(&self, name: &str) -> Result<(), Fault> {
        let vhost = self.known_vhost(name)?;
        if !vhost.is_still() {
            return Err(Fault::precondition_failed(format_args!(
                "vhost '{name}' does not stand still, so it may have changed since it was moved"
            )));
        }
        self.remove_vhost(&vhost)?;
        self.broker.hide_vhost(&vhost);
        self.tell(EventKind::VhostDeleted, name, name);
        self.broker.check_alarms();
        Ok(())
    }
}
