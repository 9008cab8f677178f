//! Moving a vhost to another broker, which has a log of its own.
//!
//! The mover has the vhost stand still, reads it out, and hands the pieces to the other broker, where it arrives and is
//! accepted. Then it is dropped where it was; or, if anything went wrong, forgotten there and let go on here.

use super::{Admin, EventKind};
use crate::fault::Fault;
use crate::vhost::{Vhost, VhostSettings, stands_still};
use std::fmt;
use std::sync::Arc;

pub use crate::transfer::{Arrival, Export, Import, LeftBehind};

/// One vhost, and no other that has its name once it is deleted.
#[derive(Clone)]
pub struct VhostHandle(pub(super) Arc<Vhost>);

impl VhostHandle {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The group of a cluster that it is in.
    pub fn group(&self) -> u16 {
        self.0.group()
    }
}

impl fmt::Debug for VhostHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VhostHandle").field(&self.0.name).finish()
    }
}

impl Admin {
    /// The vhost of this name, of any group.
    pub fn vhost_handle(&self, name: &str) -> Option<VhostHandle> {
        self.broker.vhost(name).map(VhostHandle)
    }

    /// Has a vhost stand still for a move: its clients are told to go (320), no client gets in, nothing in it is changed
    /// and nothing comes of its timers; what is there can be looked at. A restart ends that, unless [`Export::hold`]
    /// was called. Returns how many connections and requests are still in it: to be called again until there are none.
    /// Of two moves the later one has the greater number, and has the vhost.
    ///
    /// # Errors
    /// When there is no such vhost, it is just being deleted, the move has ended, or a later one has the vhost.
    pub fn stop_vhost(&self, name: &str, number: u64) -> Result<u64, Fault> {
        let vhost = self.known_vhost(name)?;
        if vhost.is_deleted() {
            return Err(crate::monitor::vhost_deleted(name));
        }
        self.broker.stop_vhost(&vhost, number)?;
        for outbox in self.broker.monitor.registry.snapshot().starting_at(0) {
            if Arc::ptr_eq(&outbox.connection.vhost, &vhost.label) {
                outbox.fail_connection(stands_still(name));
            }
        }
        Ok(vhost.in_motion())
    }

    /// Lets a vhost go on that stands still for the move of this number, or for an earlier one: they have ended, and do not
    /// have it stand still again. Returns whether it did.
    ///
    /// # Errors
    /// When there is no such vhost, or that can't be kept.
    pub fn start_vhost(&self, name: &str, number: u64) -> Result<bool, Fault> {
        self.broker.start_vhost(&*self.known_vhost(name)?, number)
    }

    /// The number of the move that a vhost stands still for, or stood still for last.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn vhost_mover(&self, name: &str) -> Result<u64, Fault> {
        Ok(self.known_vhost(name)?.mover())
    }

    /// Begins to read out a vhost that stands still.
    ///
    /// # Errors
    /// When there is no such vhost, it does not stand still, or something in it can't be carried.
    pub fn export_vhost(&self, name: &str) -> Result<Export, Fault> {
        Export::begin(&self.broker, &self.known_vhost(name)?)
    }

    /// Begins to take in a vhost that another broker reads out, by the move of this number. It can be found only once it is accepted.
    ///
    /// # Errors
    /// When there is a vhost of this name, one is arriving, or that can't be kept.
    pub fn import_vhost(
        &self,
        name: &str,
        number: u64,
        settings: &VhostSettings,
    ) -> Result<Import, Fault> {
        super::commands::check_vhost_name(name)?;
        Import::begin(&self.broker, name, number, settings)
    }

    /// The vhosts that are being moved here, by name.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.broker.arriving()
    }

    /// The vhosts that stand still also after a restart, by name.
    pub fn held_vhosts(&self) -> Vec<String> {
        self.broker.held()
    }

    /// The vhosts that stand still, by name.
    pub fn still_vhosts(&self) -> Vec<String> {
        let all = self.broker.vhosts().into_iter();
        let still = all.filter(|vhost| self.broker.serves(vhost) && vhost.is_still());
        still.map(|vhost| vhost.name.clone()).collect()
    }

    /// Lets clients into a vhost that has arrived as a whole, which is in this group from now on. It survives
    /// a restart. The broker of another group than 0 does that when it adopts that the vhost is here. `known` is the vhost that
    /// had the name when the move began, if there was one: it is in another group until now.
    ///
    /// # Errors
    /// When this is not the broker of group 0, the vhost is not arriving, or not as a whole, `known` has been deleted since or
    /// is just being, or that can't be kept.
    pub fn accept_vhost(&self, name: &str, known: Option<&VhostHandle>) -> Result<(), Fault> {
        self.broker.check_is_home("where a vhost is")?;
        let known = known.map(|known| &known.0);
        let settings = known.and_then(|vhost| vhost.settings());
        let settings = settings.map(|settings| VhostSettings { group: 0, stay: 0, ..settings });
        self.broker.accept_arrival(name, known, settings)?;
        self.tell(EventKind::VhostChanged, name, name);
        Ok(())
    }

    /// Throws away a vhost that is arriving, or has arrived and was not accepted, by the move of this number or an earlier
    /// one. Returns whether there is one.
    ///
    /// # Errors
    /// When that can't be kept.
    pub fn forget_arrival(&self, name: &str, number: u64) -> Result<bool, Fault> {
        let forgotten = self.broker.forget_arrival(name, |vhost| vhost.mover() <= number)?;
        self.broker.check_alarms();
        Ok(forgotten)
    }

    /// Removes what vhosts have left in group 0 that are in other groups now, and returns their names. The broker of another group
    /// removes that when it adopts that a vhost is elsewhere.
    ///
    /// # Errors
    /// When that can't be kept.
    pub fn clear_moved_vhosts(&self) -> Result<Vec<String>, Fault> {
        self.broker.clear_all_moved()
    }
}
