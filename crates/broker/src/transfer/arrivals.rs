//! Vhosts that are being moved to this broker. Nobody finds one of them until it is accepted.

use crate::broker::Broker;
use crate::fault::{Fault, store_fault};
use crate::persistence::definition;
use crate::vhost::{Vhost, VhostSettings};
use crate::wakes::Wakes;
use courser_store::Record;
use parking_lot::{Mutex, MutexGuard, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A vhost that is being moved here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its name.
    pub name: String,
    /// It is here with everything in it, also after a restart, and can be accepted.
    pub is_whole: bool,
}

/// The vhosts that are being moved here, by name.
#[derive(Default)]
pub(crate) struct Arrivals {
    vhosts: RwLock<FxHashMap<String, Arc<Vhost>>>,
    /// Held by whoever begins or ends an arrival.
    change: Mutex<()>,
}

impl Arrivals {
    pub fn get(&self, name: &str) -> Option<Arc<Vhost>> {
        self.vhosts.read().get(name).cloned()
    }

    /// All of them, in no particular order.
    pub fn all(&self) -> Vec<Arc<Vhost>> {
        self.vhosts.read().values().cloned().collect()
    }

    /// Keeps a vhost of this name from arriving as long as the guard lives.
    ///
    /// # Errors
    /// When one is.
    pub fn lock_out(&self, name: &str) -> Result<MutexGuard<'_, ()>, Fault> {
        let change = self.change.lock();
        self.refuse(name).map(|()| change)
    }

    fn refuse(&self, name: &str) -> Result<(), Fault> {
        match self.get(name) {
            Some(_) => Err(Fault::precondition_failed(format_args!(
                "vhost '{name}' is just being moved here: wait until it has arrived"
            ))),
            None => Ok(()),
        }
    }

    fn remove(&self, name: &str) {
        self.vhosts.write().remove(name);
    }
}

impl Broker {
    /// A vhost that nobody finds, and that stands still, made for one that is being moved here.
    pub(crate) fn expect_vhost(&self, name: &str) -> Arc<Vhost> {
        let vhost = Vhost::new(name, &self.limits, &self.home(), &self.monitor);
        vhost.stop();
        self.arrivals.vhosts.write().insert(name.to_owned(), Arc::clone(&vhost));
        vhost
    }

    /// Begins an arrival.
    pub(super) fn begin_arrival(
        &self,
        name: &str,
        settings: &VhostSettings,
    ) -> Result<Arc<Vhost>, Fault> {
        settings.check()?;
        let _change = self.arrivals.lock_out(name)?;
        if self.vhost(name).is_some() || self.placement(name).is_some() {
            return Err(Fault::precondition_failed(format_args!("vhost '{name}' exists already")));
        }
        let vhost = self.expect_vhost(name);
        let value = definition::arrival_value(false, settings);
        match self.define_for_broker(definition::arrival_key(name), &value) {
            Ok(_) => Ok(vhost),
            Err(error) => {
                self.arrivals.remove(name);
                Err(store_fault(error))
            }
        }
    }

    /// Everything of a vhost is here: from now on it stays, also through a restart.
    pub(super) fn end_arrival(&self, vhost: &Vhost) -> Result<(), Fault> {
        let _change = self.arrivals.change.lock();
        let (_, settings) = self.arrival(&vhost.name)?;
        vhost.queues().iter().for_each(|queue| queue.has_arrived());
        let value = definition::arrival_value(true, &settings);
        let key = definition::arrival_key(&vhost.name);
        self.define_for_broker(key, &value).map(drop).map_err(store_fault)
    }

    /// Lets everybody into a vhost that has arrived.
    pub(crate) fn accept_arrival(&self, name: &str) -> Result<(), Fault> {
        let _change = self.arrivals.change.lock();
        let (is_whole, settings) = self.arrival(name)?;
        let Some(vhost) = self.arrivals.get(name).filter(|_| is_whole) else {
            return Err(Fault::precondition_failed(format_args!(
                "vhost '{name}' has not arrived as a whole"
            )));
        };
        let (key, value) = (definition::vhost_key(name), definition::vhost_value(&settings));
        let record = Record::Defined { key: &key, value: &value };
        let accepted = self.exchange_for_broker(&definition::arrival_key(name), record, || {
            vhost.restore_settings(settings);
            self.show_vhost(&vhost);
            self.arrivals.remove(name);
        });
        accepted.map_err(store_fault)?;
        self.start_vhost(&vhost);
        Ok(())
    }

    /// Throws away what has come of a vhost. Returns whether there was anything.
    pub(crate) fn forget_arrival(&self, name: &str) -> Result<bool, Fault> {
        let _change = self.arrivals.change.lock();
        let Some(vhost) = self.arrivals.get(name) else { return Ok(false) };
        vhost.label.begin_deletion();
        let mut wakes = Wakes::default();
        let emptied = vhost.empty(&mut wakes);
        wakes.wake_all();
        emptied?;
        self.forget_parameters(name)?;
        self.let_go_for_broker(&definition::arrival_key(name)).map_err(store_fault)?;
        self.arrivals.remove(name);
        Ok(true)
    }

    /// Throws away what a restart has left of vhosts that were just being moved here.
    pub(crate) fn forget_halves(&self) {
        for arrival in self.arriving() {
            if !arrival.is_whole {
                // If the store has failed, it is found once more at the next start.
                drop(self.forget_arrival(&arrival.name));
            }
        }
    }

    /// The vhosts that are being moved here, by name.
    pub(crate) fn arriving(&self) -> Vec<Arrival> {
        let all = self.kept.of_kind(definition::ARRIVAL).into_iter();
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            let name = String::from_utf8(key).ok()?;
            Some(Arrival { name, is_whole: definition::parse_arrival(&value)?.0 })
        };
        all.filter_map(read).collect()
    }

    fn arrival(&self, name: &str) -> Result<(bool, VhostSettings), Fault> {
        let kept = self.kept.get(&definition::arrival_key(name));
        kept.and_then(|value| definition::parse_arrival(&value))
            .ok_or_else(|| Fault::not_found(format_args!("vhost '{name}' is not being moved here")))
    }

    /// Lets a vhost go on that stood still. Returns whether it did.
    pub(crate) fn start_vhost(&self, vhost: &Vhost) -> bool {
        let stood_still = vhost.start();
        if stood_still {
            // What has changed meanwhile is followed now; nothing does that could be refused.
            drop(self.change_policies(vhost, |_| Ok(())));
            self.timers.let_go();
        }
        stood_still
    }
}
