//! The shards of a broker: opened, closed, given vhosts and forgotten while the others run.

use super::Broker;
use crate::persistence::definition::{self, Definition};
use crate::persistence::{RestoreError, Restored};
use crate::shard::Shard;
use crate::vhost::Vhost;
use courser_store::{Recovered, ShardId, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a shard is not opened, closed or given a vhost.
#[derive(Debug, thiserror::Error)]
pub enum ShardFault {
    /// A shard of this number is open.
    #[error("shard {0} is open already")]
    IsOpen(ShardId),
    /// No shard of this number is open.
    #[error("shard {0} is not open")]
    NotOpen(ShardId),
    /// The home shard is closed and removed with the broker only.
    #[error("the home shard can't be closed while the broker runs")]
    IsHome,
    /// All vhosts are on the home shard, see [`Broker::stay_at_home`].
    #[error(
        "{0} can't have a journal of its own: in a cluster, all vhosts share the log that the nodes have together"
    )]
    OnlyHome(String),
    /// A vhost stays on the shard that it was put on.
    #[error("vhost '{0}' exists already")]
    VhostExists(String),
    /// What the shard holds can't be taken back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The home shard does not take the change.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Broker {
    /// Has all vhosts be on the home shard from now on. To be called after [`Broker::restore`].
    ///
    /// # Errors
    /// When one is on another shard.
    pub fn stay_at_home(&self) -> Result<(), ShardFault> {
        let _write = self.shards_write.lock();
        if let Some((name, _)) = self.placements().into_iter().next() {
            return Err(ShardFault::OnlyHome(format!("vhost '{name}'")));
        }
        self.only_home.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes a shard into use, with all vhosts on it, after [`Broker::restore`]. The others go on
    /// meanwhile. `store` is what the shard is kept in, `recovered` what was found there.
    ///
    /// # Errors
    /// When it is open, or holds what this version does not write. Nothing of it is served then.
    pub fn open_shard(
        &self,
        id: ShardId,
        store: Arc<dyn Store>,
        recovered: Recovered,
    ) -> Result<Restored, ShardFault> {
        let _write = self.shards_write.lock();
        if self.shard(id).is_some() {
            return Err(ShardFault::IsOpen(id));
        }
        if self.only_home.load(Ordering::Acquire) {
            return Err(ShardFault::OnlyHome(format!("shard {id}")));
        }
        let shard = Shard::new(id, store, &self.timers, &self.memory, &self.limits);
        // Known to the broker first: what is restored may be due at once.
        self.change_shards(|shards| shards.push(Arc::clone(&shard)));
        let names = self.placements().into_iter().filter(|(_, on)| *on == id);
        for (name, _) in names {
            let vhost = self.vhost_on(&name, &shard);
            let key = definition::vhost_key(&name);
            let kept = self.take_kept(&key);
            if let Some(Definition::Vhost { settings, .. }) =
                kept.and_then(|value| definition::parse(&key, &value))
            {
                vhost.restore_settings(settings);
            }
        }
        let restored = self.restore_shard(&shard, recovered);
        if restored.is_err() {
            self.take_away(&shard);
        }
        Ok(restored?)
    }

    /// Takes a shard out of use: its vhosts are not found any more. What is still connected to one
    /// fails when it changes something; close those connections before, and make a last checkpoint
    /// while it is open. Its store is to be closed after that.
    ///
    /// # Errors
    /// When it is not open, or is the home shard.
    pub fn close_shard(&self, id: ShardId) -> Result<(), ShardFault> {
        if id == ShardId::HOME {
            return Err(ShardFault::IsHome);
        }
        let _write = self.shards_write.lock();
        let shard = self.shard(id).ok_or(ShardFault::NotOpen(id))?;
        self.take_away(&shard);
        Ok(())
    }

    /// Makes a vhost on a shard. It survives a restart.
    ///
    /// # Errors
    /// When there is a vhost of this name, the shard is not open, or the home shard's log takes
    /// nothing.
    pub fn add_vhost_on(&self, name: &str, id: ShardId) -> Result<Arc<Vhost>, ShardFault> {
        let _write = self.shards_write.lock();
        if id != ShardId::HOME && self.only_home.load(Ordering::Acquire) {
            return Err(ShardFault::OnlyHome(format!("vhost '{name}'")));
        }
        let shard = self.shard(id).ok_or(ShardFault::NotOpen(id))?;
        let is_placed = self.shard_of_vhost(name) != ShardId::HOME;
        if self.vhost(name).is_some() || is_placed || self.arrivals.get(name).is_some() {
            return Err(ShardFault::VhostExists(name.to_owned()));
        }
        if id != ShardId::HOME {
            self.define_for_broker(definition::placement_key(name), &id.0.to_le_bytes())?;
        }
        Ok(self.vhost_on(name, &shard))
    }

    /// Forgets the vhosts of a closed shard, which is to be removed after that: with
    /// [`Shards::remove`](courser_store::Shards::remove), once this is durable.
    ///
    /// # Errors
    /// When it is open, or the home shard's log takes nothing.
    pub fn forget_shard(&self, id: ShardId) -> Result<(), ShardFault> {
        let _write = self.shards_write.lock();
        if self.shard(id).is_some() {
            return Err(ShardFault::IsOpen(id));
        }
        for (name, _) in self.placements().into_iter().filter(|(_, on)| *on == id) {
            // Its limits first: without a placement they would be those of a vhost at home.
            self.forget_for_broker(&definition::vhost_key(&name))?;
            self.forget_for_broker(&definition::placement_key(&name))?;
        }
        Ok(())
    }

    /// The shards that hold vhosts, besides the home shard: each has to be opened.
    pub fn shards_in_use(&self) -> BTreeSet<ShardId> {
        self.placements().into_iter().map(|(_, shard)| shard).collect()
    }

    /// The shard that a vhost is on, or would be on.
    pub(crate) fn shard_of_vhost(&self, name: &str) -> ShardId {
        match self.vhost(name) {
            Some(vhost) => vhost.shard().id,
            None => self.placement(name).unwrap_or(ShardId::HOME),
        }
    }

    /// The shard that is always there, with what is defined for the whole broker.
    pub(crate) fn home(&self) -> Arc<Shard> {
        // There is no way to take it away.
        Arc::clone(&self.shards.load()[0])
    }

    /// Where everything is kept: one for each shard.
    pub(crate) fn stores(&self) -> Vec<Arc<dyn Store>> {
        self.shards.load().iter().map(|shard| Arc::clone(&shard.store)).collect()
    }

    pub(crate) fn for_each_shard(&self, each: &mut dyn FnMut(&Shard)) {
        self.shards.load().iter().for_each(|shard| each(shard));
    }

    /// The shard of this number.
    pub(crate) fn shard(&self, id: ShardId) -> Option<Arc<Shard>> {
        self.shards.load().iter().find(|shard| shard.id == id).cloned()
    }

    pub(super) fn shard_instance(&self, instance: u64) -> Option<Arc<Shard>> {
        self.shards.load().iter().find(|shard| shard.instance == instance).cloned()
    }

    /// Changes which shards there are. The caller holds `shards_write`.
    pub(crate) fn change_shards(&self, change: impl FnOnce(&mut Vec<Arc<Shard>>)) {
        let mut shards = Vec::clone(&self.shards.load());
        change(&mut shards);
        self.shards.store(Arc::new(shards));
    }

    /// Lets a shard and its vhosts be found no more.
    fn take_away(&self, shard: &Arc<Shard>) {
        shard.close();
        for vhost in self.vhosts() {
            if Arc::ptr_eq(vhost.shard(), shard) {
                if let Some(settings) = vhost.settings() {
                    let value = definition::vhost_value(&settings);
                    self.kept.insert(definition::vhost_key(&vhost.name), value);
                }
                self.hide_vhost(&vhost);
            }
        }
        self.change_shards(|shards| shards.retain(|other| !Arc::ptr_eq(other, shard)));
        shard.timers.forget_shard();
    }
}
