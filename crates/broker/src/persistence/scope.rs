//! Which log a definition is in, and in which order definitions are restored.
//!
//! Some things are defined for the whole broker: where vhosts are, what an operator has said of them,
//! users and what they may do. They are in the log of the home shard. Everything in a vhost is in the log of the vhost's shard. What a definition is, the
//! first byte of its key says.

use crate::broker::Broker;
use crate::persistence::definition;
use crate::persistence::definition_changes::Changes;
use crate::persistence::gone::Gone;
use courser_auth::record;
use courser_store::{Lsn, Record, ShardId, StoreError};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Whose definitions they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole broker's; in a cluster, all nodes'.
    Broker,
    /// A shard's.
    Shard,
}

/// All kinds of definitions, in the order in which they are restored: what comes later needs what
/// comes before. Vhosts come before what is in them and users before what they may do, policies before what follows them, bindings after
/// what they bind.
pub(crate) const RESTORED: [(u8, Scope); 16] = [
    (definition::CLUSTER_GROUP, Scope::Broker),
    (definition::PLACEMENT, Scope::Broker),
    (definition::ARRIVAL, Scope::Broker),
    (definition::VHOST, Scope::Broker),
    (definition::HELD, Scope::Broker),
    (definition::PARAMETER, Scope::Broker),
    (definition::GLOBAL_PARAMETER, Scope::Broker),
    (definition::ADOPTED, Scope::Broker),
    (record::USER, Scope::Broker),
    (record::PERMISSION, Scope::Broker),
    (record::TOPIC_PERMISSION, Scope::Broker),
    (definition::POLICY, Scope::Shard),
    (definition::OPERATOR_POLICY, Scope::Shard),
    (definition::EXCHANGE, Scope::Shard),
    (definition::QUEUE, Scope::Shard),
    (definition::BINDING, Scope::Shard),
];

/// Definitions of the whole broker that nothing else in it holds, by their keys: where vhosts are that
/// are not on the home shard, the limits of those that are not open, and which ones are being moved. Who changes one that the log
/// has holds the broker's `defined` meanwhile, and this no longer than it takes to look or to change it.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Definitions>);

/// Values by their keys.
pub(crate) type Definitions = BTreeMap<Vec<u8>, Vec<u8>>;

impl Kept {
    pub fn insert(&self, key: Vec<u8>, value: Vec<u8>) {
        self.0.lock().insert(key, value);
    }

    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().get(key).cloned()
    }

    /// Forgets those of `keys` that are there. The log has to know of it, and none may be changed meanwhile.
    pub fn remove_all(&self, keys: &[Vec<u8>]) {
        let mut all = self.0.lock();
        keys.iter().for_each(|key| drop(all.remove(key)));
    }

    /// The definitions whose keys begin with `prefix`, without that.
    pub fn beginning_with(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = self.0.lock();
        let from = all.range(prefix.to_vec()..);
        let meant = from.take_while(|(key, _)| key.starts_with(prefix));
        meant.map(|(key, value)| (key[prefix.len()..].to_vec(), value.clone())).collect()
    }

    /// The global parameters, by their keys, or those of them that may have changed.
    pub fn globals(&self, changes: Option<&Changes>) -> Definitions {
        let all = self.0.lock();
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        let Some(changes) = changes else {
            return all.range(of_kind(definition::GLOBAL_PARAMETER)).map(owned).collect();
        };
        let changed = changes.of_kind(definition::GLOBAL_PARAMETER);
        changed.filter_map(|key| all.get_key_value(key)).map(owned).collect()
    }

    /// The definitions whose keys begin with `kind`, without that.
    pub fn of_kind(&self, kind: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = self.0.lock();
        let of_kind = all.range(of_kind(kind));
        of_kind.map(|(key, value)| (key[1..].to_vec(), value.clone())).collect()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        // It may be slow, and no lock is held.
        let all = self.0.lock().clone();
        all.iter().for_each(|(key, value)| each(key, value));
    }
}

/// How many definitions of a kind there are, and the bytes of their values.
pub(crate) fn sizes(all: &Definitions, kind: u8) -> (usize, usize) {
    let of_kind = all.range(of_kind(kind));
    of_kind.fold((0, 0), |(count, bytes), (_, value)| (count + 1, bytes + value.len()))
}

/// The keys that begin with `kind`.
pub(crate) fn of_kind(kind: u8) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let end = kind.checked_add(1).map_or(Bound::Unbounded, |next| Bound::Excluded(vec![next]));
    (Bound::Included(vec![kind]), end)
}

impl Broker {
    pub(crate) fn define_for_broker(&self, key: Vec<u8>, value: &[u8]) -> Result<Lsn, StoreError> {
        self.define_for_broker_if(key, value, |_| Ok(()))
    }

    /// The same if `check` agrees to what is kept before.
    pub(crate) fn define_for_broker_if<E: From<StoreError>>(
        &self,
        key: Vec<u8>,
        value: &[u8],
        check: impl FnOnce(&Definitions) -> Result<(), E>,
    ) -> Result<Lsn, E> {
        let home = self.home();
        // Locked across the append, so that the log has the changes of a key in their order.
        let mut defined = self.defined.lock();
        let _gate = home.gate.read();
        check(&self.kept.0.lock())?;
        let record = Record::Defined { key: &key, value };
        let lsn = home.define(&[record])?;
        self.kept.insert(key.clone(), value.to_vec());
        defined.add([key], home.store.end());
        Ok(lsn)
    }

    /// Returns whether it was there.
    pub(crate) fn forget_for_broker(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.forget_for_broker_if(key, || Ok(()))
    }

    /// The same if `check` agrees, while nothing else that is said of the broker changes.
    pub(crate) fn forget_for_broker_if<E: From<StoreError>>(
        &self,
        key: &[u8],
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let home = self.home();
        let mut defined = self.defined.lock();
        let _gate = home.gate.read();
        check()?;
        if !self.kept.0.lock().contains_key(key) {
            return Ok(false);
        }
        // Also on a full disk: it makes room.
        home.forget(Gone::of_keys(vec![key.to_vec()]))?;
        self.kept.0.lock().remove(key);
        defined.add([key.to_vec()], home.store.end());
        Ok(true)
    }

    /// Calls `each` with the key and value of everything that is defined for the whole broker.
    pub(crate) fn for_each_broker_definition(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.kept.for_each(each);
        self.for_each_account(each);
        for vhost in self.vhosts() {
            if let Some(settings) = vhost.settings() {
                each(&definition::vhost_key(&vhost.name), &definition::vhost_value(&settings));
            }
        }
    }

    /// Makes a definition, with its key and value, in place of `key`, both at once. Calls `then` before another thread can change
    /// one.
    pub(crate) fn exchange_for_broker(
        &self,
        key: &[u8],
        definition: (&[u8], &[u8]),
        then: impl FnOnce(),
    ) -> Result<(), StoreError> {
        let home = self.home();
        let mut defined = self.defined.lock();
        let _gate = home.gate.read();
        let (made, value) = definition;
        let record = Record::Defined { key: made, value };
        home.define(&[Record::Forgotten { key }, record])?;
        self.kept.0.lock().remove(key);
        then();
        defined.add([key.to_vec(), made.to_vec()], home.store.end());
        Ok(())
    }

    /// Takes out a definition that was kept while the shard of its vhost was not open.
    pub(crate) fn take_kept(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.0.lock().remove(key)
    }

    /// The shard of a vhost that is not on the home shard.
    pub(crate) fn placement(&self, name: &str) -> Option<ShardId> {
        let kept = self.kept.0.lock();
        let value = kept.get(&definition::placement_key(name))?;
        definition::placed_on(value)
    }

    /// Where the vhosts are that are not on the home shard.
    pub(crate) fn placements(&self) -> Vec<(String, ShardId)> {
        let all = self.kept.of_kind(definition::PLACEMENT);
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            let name = String::from_utf8(key).ok()?;
            Some((name, definition::placed_on(&value)?))
        };
        all.into_iter().filter_map(read).collect()
    }
}
