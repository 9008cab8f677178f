//! Vhosts that are being moved to this broker. None of them is found until it is accepted.

use crate::broker::Broker;
use crate::fault::{Fault, store_fault};
use crate::persistence::definition;
use crate::persistence::moves::{self, KeptArrival};
use crate::vhost::{Vhost, VhostSettings};
use crate::wakes::Wakes;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::ptr;
use std::sync::Arc;

/// Refuses to do to a vhost what was meant for an earlier one of its name.
pub(crate) fn another_one(name: &str) -> Fault {
    Fault::precondition_failed(format_args!(
        "vhost '{name}' is not the one that it was: it has been deleted, or moved, meanwhile"
    ))
}

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
pub(crate) struct Arrivals(RwLock<FxHashMap<String, Arc<Vhost>>>);

impl Arrivals {
    pub fn get(&self, name: &str) -> Option<Arc<Vhost>> {
        self.0.read().get(name).cloned()
    }

    /// All of them, in no particular order.
    pub fn all(&self) -> Vec<Arc<Vhost>> {
        self.0.read().values().cloned().collect()
    }

    /// Whether a vhost is one of them.
    pub fn have(&self, vhost: &Vhost) -> bool {
        self.get(&vhost.name).is_some_and(|arriving| ptr::eq(&*arriving, vhost))
    }

    /// Refuses to make a vhost of the name of one of them.
    pub fn refuse(&self, name: &str) -> Result<(), Fault> {
        match self.get(name) {
            Some(vhost) if vhost.is_deleted() => Err(Fault::precondition_failed(format_args!(
                "what has come of vhost '{name}' here is not removed yet: try again in a few seconds"
            ))),
            Some(_) => Err(Fault::precondition_failed(format_args!(
                "vhost '{name}' is just being moved here: wait until it has arrived"
            ))),
            None => Ok(()),
        }
    }

    fn remove(&self, name: &str) {
        self.0.write().remove(name);
    }
}

impl Broker {
    /// A vhost that can not be found yet and stands still, made for one that is being moved here by a move of this number.
    pub(crate) fn expect_vhost(&self, name: &str, number: u64) -> Arc<Vhost> {
        let vhost = Vhost::new(name, &self.limits, &self.home(), &self.monitor);
        vhost.stop(number);
        self.arrivals.0.write().insert(name.to_owned(), Arc::clone(&vhost));
        vhost
    }

    /// Begins an arrival.
    pub(super) fn begin_arrival(
        &self,
        name: &str,
        number: u64,
        settings: &VhostSettings,
    ) -> Result<Arc<Vhost>, Fault> {
        settings.check()?;
        let _write = self.shards_write.lock();
        self.arrivals.refuse(name)?;
        // Home knows the vhosts of other groups too.
        let known = self.vhost(name);
        let is_here = known.as_ref().is_some_and(|vhost| self.serves(vhost));
        if is_here || self.placement(name).is_some() {
            return Err(Fault::precondition_failed(format_args!("vhost '{name}' exists already")));
        }
        if known.is_some_and(|vhost| self.is_left_behind(&vhost)) {
            // Both have the same keys in the log.
            return Err(Fault::precondition_failed(format_args!(
                "vhost '{name}' was in this group before, and what it has left here is not removed yet: try \
                 again in a few seconds"
            )));
        }
        let vhost = self.expect_vhost(name, number);
        let arrival = KeptArrival { is_whole: false, number, settings: settings.clone() };
        match self.define_for_broker(moves::arrival_key(name), &arrival.value()) {
            Ok(_) => Ok(vhost),
            Err(error) => {
                self.arrivals.remove(name);
                Err(store_fault(error))
            }
        }
    }

    /// Everything of a vhost is here: from now on it stays, also through a restart.
    pub(super) fn end_arrival(&self, vhost: &Arc<Vhost>) -> Result<(), Fault> {
        let _write = self.shards_write.lock();
        if !self.arrivals.get(&vhost.name).is_some_and(|now| Arc::ptr_eq(&now, vhost)) {
            return Err(another_one(&vhost.name));
        }
        // An attempt to forget it may have removed some of it.
        vhost.refuse_if_deleted()?;
        let arrival = KeptArrival { is_whole: true, ..self.arrival(&vhost.name)? };
        vhost.queues().iter().for_each(|queue| queue.has_arrived());
        let key = moves::arrival_key(&vhost.name);
        self.define_for_broker(key, &arrival.value()).map(drop).map_err(store_fault)
    }

    /// Lets everybody into a vhost that has arrived, and follows its policies, in place of the one of its name that is `known` to
    /// be elsewhere, if any. What is said of it is what it came with, unless `settings` say it anew.
    pub(crate) fn accept_arrival(
        &self,
        name: &str,
        known: Option<&Arc<Vhost>>,
        settings: Option<VhostSettings>,
    ) -> Result<(), Fault> {
        // A deletion begins before this, or finds the new one.
        let _write = self.shards_write.lock();
        let now = self.vhost(name);
        if now.as_ref().map(Arc::as_ptr) != known.map(Arc::as_ptr) {
            return Err(another_one(name));
        }
        now.map_or(Ok(()), |now| now.refuse_if_deleted())?;
        let arrival = self.arrival(name)?;
        let Some(vhost) = self.arrivals.get(name).filter(|_| arrival.is_whole) else {
            return Err(Fault::precondition_failed(format_args!(
                "vhost '{name}' has not arrived as a whole"
            )));
        };
        let settings = settings.unwrap_or(arrival.settings);
        let (key, value) = (definition::vhost_key(name), definition::vhost_value(&settings));
        let accepted = self.exchange_for_broker(&moves::arrival_key(name), (&key, &value), || {
            vhost.restore_settings(settings);
            self.show_vhost(&vhost);
            self.arrivals.remove(name);
        });
        accepted.map_err(store_fault)?;
        vhost.start(vhost.mover());
        self.timers.let_go();
        Ok(())
    }

    /// Throws away what has come of a vhost, if that is meant. Returns whether there was anything. After an error it can't be
    /// accepted any more, unless nothing has changed.
    pub(crate) fn forget_arrival(
        &self,
        name: &str,
        is_meant: impl FnOnce(&Arc<Vhost>) -> bool,
    ) -> Result<bool, Fault> {
        let Some(vhost) = self.begin_forgetting(name, is_meant)? else { return Ok(false) };
        // Other vhosts are changed meanwhile. None of this name is made, or begins to arrive, as long as the arrival is known.
        let mut wakes = Wakes::default();
        let emptied = vhost.empty(&mut wakes);
        wakes.wake_all();
        emptied?;
        let _write = self.shards_write.lock();
        if !self.arrivals.have(&vhost) {
            // Another thread was faster.
            return Ok(false);
        }
        self.forget_parameters(name)?;
        self.forget_for_broker(&moves::arrival_key(name)).map_err(store_fault)?;
        self.arrivals.remove(name);
        Ok(true)
    }

    /// Marks a vhost that is arriving as one that goes, if that is meant: it can't be accepted from now on.
    fn begin_forgetting(
        &self,
        name: &str,
        is_meant: impl FnOnce(&Arc<Vhost>) -> bool,
    ) -> Result<Option<Arc<Vhost>>, Fault> {
        let _write = self.shards_write.lock();
        let Some(vhost) = self.arrivals.get(name).filter(is_meant) else { return Ok(None) };
        if let Ok(arrival @ KeptArrival { is_whole: true, .. }) = self.arrival(name) {
            // Before any of it is gone.
            let value = KeptArrival { is_whole: false, ..arrival }.value();
            let kept = self.define_for_broker(moves::arrival_key(name), &value);
            kept.map_err(store_fault)?;
        }
        // A parameter of it is kept before this, or not any more.
        let _defined = self.defined.lock();
        vhost.label.begin_deletion();
        Ok(Some(vhost))
    }

    /// Throws away what a restart has left of vhosts that were just being moved here, and of those that were moved away.
    pub(crate) fn forget_halves(&self) {
        drop(self.clear_all_moved());
        for arrival in self.arriving() {
            if !arrival.is_whole {
                // If the store has failed, it is found once more at the next start.
                drop(self.forget_arrival(&arrival.name, |_| true));
            }
        }
    }

    /// The vhosts that are being moved here, by name.
    pub(crate) fn arriving(&self) -> Vec<Arrival> {
        let all = self.kept.of_kind(definition::ARRIVAL).into_iter();
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            let name = String::from_utf8(key).ok()?;
            Some(Arrival { name, is_whole: KeptArrival::parse(&value)?.is_whole })
        };
        all.filter_map(read).collect()
    }

    fn arrival(&self, name: &str) -> Result<KeptArrival, Fault> {
        let kept = self.kept.get(&moves::arrival_key(name));
        kept.and_then(|value| KeptArrival::parse(&value))
            .ok_or_else(|| Fault::not_found(format_args!("vhost '{name}' is not being moved here")))
    }

    /// Has a vhost stand still also after a restart, if it has done so since `turn` began.
    pub(super) fn hold_vhost(&self, vhost: &Vhost, turn: u64) -> Result<bool, Fault> {
        let _write = self.shards_write.lock();
        if vhost.still_turn() != Some(turn) || vhost.is_deleted() {
            return Ok(false);
        }
        let value = moves::held_value(vhost.mover());
        let defined = self.define_for_broker(moves::held_key(&vhost.name), &value);
        defined.map(|_| true).map_err(store_fault)
    }

    /// The vhosts that stand still also after a restart, by name.
    pub(crate) fn held(&self) -> Vec<String> {
        let all = self.kept.of_kind(definition::HELD).into_iter();
        all.filter_map(|(name, _)| String::from_utf8(name).ok()).collect()
    }

    /// Has a vhost stand still for a move.
    pub(crate) fn stop_vhost(&self, vhost: &Vhost, number: u64) -> Result<(), Fault> {
        let write = self.shards_write.lock();
        let stands_still = vhost.stop(number);
        drop(write);
        if !stands_still {
            return Err(Fault::precondition_failed(format_args!(
                "this move of vhost '{}' has ended, or a later one has begun",
                vhost.name
            )));
        }
        // What was due before this has been done when those have left that may not have seen it. Nothing else waits with it.
        vhost.shard().gate.wait_for_passers();
        Ok(())
    }

    /// Lets a vhost go on that stood still for a move up to this. Returns whether it did.
    pub(crate) fn start_vhost(&self, vhost: &Vhost, number: u64) -> Result<bool, Fault> {
        let write = self.shards_write.lock();
        if vhost.is_still() && vhost.mover() > number {
            return Ok(false);
        }
        self.forget_for_broker(&moves::held_key(&vhost.name)).map_err(store_fault)?;
        let stood_still = vhost.start(number);
        drop(write);
        if stood_still {
            self.timers.let_go();
        }
        Ok(stood_still)
    }

    /// Whether the log has something that was in a vhost which is in another group now.
    fn is_left_behind(&self, vhost: &Vhost) -> bool {
        let mut is_left = !vhost.queues().is_empty();
        vhost.for_each_definition(&mut |_, _| is_left = true);
        is_left
            || self.kept.get(&moves::held_key(&vhost.name)).is_some()
            || !self.kept.beginning_with(&definition::parameter_prefix(&vhost.name)).is_empty()
    }

    /// Removes what vhosts have left here that are in other groups now. Returns their names.
    pub(crate) fn clear_all_moved(&self) -> Result<Vec<String>, Fault> {
        let mut cleared = Vec::new();
        for vhost in self.vhosts() {
            if !self.serves(&vhost) && self.is_left_behind(&vhost) && self.clear_moved(&vhost)? {
                cleared.push(vhost.name.clone());
            }
        }
        Ok(cleared)
    }

    /// Removes everything from a vhost that is in another group now. What is said of it stays. Returns whether the vhost is still
    /// there, and does not just come back.
    pub(crate) fn clear_moved(&self, vhost: &Arc<Vhost>) -> Result<bool, Fault> {
        // Another one of its name has the same keys in the log.
        let is_left = || {
            let is_current = self.vhost(&vhost.name).is_some_and(|now| Arc::ptr_eq(&now, vhost));
            is_current && !self.serves(vhost) && self.arrivals.get(&vhost.name).is_none()
        };
        {
            let _write = self.shards_write.lock();
            if !is_left() {
                return Ok(false);
            }
        }
        // Other vhosts are changed meanwhile. None of this name begins to arrive before the log forgets that it stood still.
        let mut wakes = Wakes::default();
        let emptied = vhost.empty(&mut wakes);
        wakes.wake_all();
        emptied?;
        let write = self.shards_write.lock();
        if !is_left() {
            return Ok(false);
        }
        self.forget_parameters(&vhost.name)?;
        self.forget_for_broker(&moves::held_key(&vhost.name)).map_err(store_fault)?;
        drop(write);
        self.check_alarms();
        Ok(true)
    }
}
