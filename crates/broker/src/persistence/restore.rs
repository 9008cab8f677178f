//! Restarts: what the broker takes back of a shard that is opened.

use crate::broker::Broker;
use crate::exchange::Destination;
use crate::exchange::delay::Delay;
use crate::exchange::history::History;
use crate::persistence::definition::{self, Definition};
use crate::persistence::gone::{Gone, HoldsPlaces};
use crate::persistence::moves::{self, KeptArrival};
use crate::persistence::scope::{RESTORED, Scope, of_kind};
use crate::policy::CompiledPolicy;
use crate::queue::{Queue, Rereader};
use crate::shard::Shard;
use courser_auth::Record as AccountRecord;
use courser_codec::ShortString;
use courser_store::recovered::QueueIndex;
use courser_store::{Location, Lsn, Position, Recovered, ShardId};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// Why what a store has recovered can't be taken back.
#[derive(Debug)]
pub enum RestoreError {
    /// A definition that this version does not know, or that is malformed.
    Definition(Vec<u8>),
    /// A definition in the log of a shard that it does not belong to.
    WrongShard(Vec<u8>),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Definition(key) => {
                write!(f, "the definition '{}' can't be read", key.escape_ascii())
            }
            RestoreError::WrongShard(key) => {
                let key = key.escape_ascii();
                write!(f, "the definition '{key}' is in the log of a shard that it is not on")
            }
        }
    }
}

impl std::error::Error for RestoreError {}

/// How many messages a shard has taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Those that are there again.
    pub messages: usize,
    /// Those that are dropped, as their queue or exchange has no definition.
    pub ownerless: usize,
}

/// What was found of a shard, by the numbers that the log knows it by.
#[derive(Default)]
struct Found {
    queues: HashMap<u64, Arc<Queue>>,
    delays: HashMap<u64, Arc<Delay>>,
    histories: HashMap<u64, Arc<History>>,
    /// The definitions of bindings without one of their ends.
    loose_bindings: Vec<Vec<u8>>,
}

impl Found {
    fn has(&self, id: u64) -> bool {
        self.queues.contains_key(&id)
            || self.delays.contains_key(&id)
            || self.histories.contains_key(&id)
    }
}

/// What the numbers are called under which the log keeps messages: queues, and exchanges that have some.
pub fn names_in_log(recovered: &Recovered) -> HashMap<u64, String> {
    let definitions = recovered.definitions.iter();
    let named = definitions.filter_map(|(key, value)| match definition::parse(key, value)? {
        Definition::Queue { vhost, name, id, .. } => {
            Some((id, format!("queue '{}' of vhost '{vhost}'", name.as_bytes().escape_ascii())))
        }
        Definition::Exchange { vhost, name, id: Some(id), .. } => {
            Some((id, format!("exchange '{}' of vhost '{vhost}'", name.as_bytes().escape_ascii())))
        }
        _ => None,
    });
    named.collect()
}

/// The shards that the definitions in the home shard's log name besides itself.
pub fn shards_in_log(recovered: &Recovered) -> BTreeSet<ShardId> {
    let placements = recovered.definitions.range(of_kind(definition::PLACEMENT));
    placements.filter_map(|(_, shard)| definition::placed_on(shard)).collect()
}

impl Broker {
    /// Takes back what was on the home shard before a restart: first what is defined for the whole
    /// broker. Vhosts on other shards come with their shards; see [`Broker::shards_in_use`].
    ///
    /// # Errors
    /// When it is not what this version writes.
    pub fn restore(&self, recovered: Recovered) -> Result<Restored, RestoreError> {
        let home = self.home();
        let restored = self.restore_shard(&home, recovered)?;
        // The place in it of the last change of a definition is not known any more.
        self.defined.lock().restart(home.store.end());
        Ok(restored)
    }

    /// Takes back what was on a shard.
    pub(crate) fn restore_shard(
        &self,
        shard: &Arc<Shard>,
        mut recovered: Recovered,
    ) -> Result<Restored, RestoreError> {
        reserve_ids(shard, &recovered);
        let definitions = &recovered.definitions;
        let known = |key: &&Vec<u8>| RESTORED.iter().any(|(kind, _)| key.first() == Some(kind));
        if let Some(unknown) = definitions.keys().find(|key| !known(key)) {
            return Err(RestoreError::Definition(unknown.clone()));
        }
        let (mut found, mut accounts) = (Found::default(), Vec::new());
        for (kind, scope) in RESTORED {
            for (key, value) in definitions.range(of_kind(kind)) {
                match scope {
                    Scope::Broker if shard.id == ShardId::HOME && AccountRecord::owns(key) => {
                        let decoded = AccountRecord::decode(key, value);
                        accounts.push(decoded.map_err(|_| RestoreError::Definition(key.clone()))?);
                    }
                    Scope::Broker if shard.id == ShardId::HOME => {
                        self.restore_of_broker(kind, key, value)?;
                    }
                    Scope::Broker => return Err(RestoreError::WrongShard(key.clone())),
                    Scope::Shard => self.restore_of_shard(shard, key, value, &mut found)?,
                }
            }
        }
        if shard.id == ShardId::HOME {
            self.restore_accounts(accounts);
        }
        let vhosts = [self.arrivals.all(), self.vhosts()].concat();
        let restored = vhosts.iter().filter(|vhost| Arc::ptr_eq(vhost.shard(), shard));
        restored.for_each(|vhost| vhost.follow_restored_policies());
        // The log is told of what is found and was to have gone.
        let gate = shard.gate.read();
        let ownerless = drop_ownerless(shard, &mut found, &mut recovered);
        restore_histories(shard, &found, &recovered.queues);
        let (mut messages, mut rereader) = (0, Rereader::of(&*shard.store));
        for (id, index) in recovered.queues {
            if let Some(queue) = found.queues.get(&id) {
                messages += queue.restore(&index, &*shard.store, &mut rereader);
            }
        }
        for (id, index) in recovered.streams {
            if let Some(stream) = found.queues.get(&id).and_then(|queue| queue.stream()) {
                messages += stream.restore(index) as usize;
            }
        }
        for (id, index) in recovered.delayed {
            let Some(delay) = found.delays.get(&id) else { continue };
            messages += delay.restore(index.pairs());
        }
        drop(gate);
        if shard.id == ShardId::HOME {
            self.forget_halves();
        }
        Ok(Restored { messages, ownerless })
    }

    /// Calls `each` with the vhost and the name of each exchange whose history had no room for all that it remembered before a
    /// restart, and how many messages it has forgotten for that. To be called before there are clients.
    pub fn for_each_shortened_history(&self, each: &mut dyn FnMut(&str, &ShortString, u64)) {
        for vhost in self.vhosts() {
            for exchange in vhost.exchanges() {
                let forgotten = exchange.history().map_or(0, |history| history.numbers().start);
                if forgotten > 0 {
                    each(&vhost.name, &exchange.name, forgotten);
                }
            }
        }
    }

    fn restore_of_broker(&self, kind: u8, key: &[u8], value: &[u8]) -> Result<(), RestoreError> {
        if kind == definition::ARRIVAL {
            let (Ok(name), Some(arrival)) = (str::from_utf8(&key[1..]), KeptArrival::parse(value))
            else {
                return Err(RestoreError::Definition(key.to_vec()));
            };
            self.expect_vhost(name, arrival.number);
        }
        if kind == definition::HELD
            && let Some(vhost) = str::from_utf8(&key[1..]).ok().and_then(|name| self.vhost(name))
        {
            vhost.stop(moves::parse_held(value));
        }
        if kind != definition::VHOST {
            self.kept.insert(key.to_vec(), value.to_vec());
            return Ok(());
        }
        match definition::parse(key, value) {
            Some(Definition::Vhost { vhost, settings }) => {
                // One that is on another shard gets them when that is opened.
                match self.shard_of_vhost(&vhost) {
                    ShardId::HOME => self.vhost_at_home(&vhost).restore_settings(settings),
                    _ => self.kept.insert(key.to_vec(), value.to_vec()),
                }
                Ok(())
            }
            _ => Err(RestoreError::Definition(key.to_vec())),
        }
    }

    fn restore_of_shard(
        &self,
        shard: &Arc<Shard>,
        key: &[u8],
        value: &[u8],
        found: &mut Found,
    ) -> Result<(), RestoreError> {
        let malformed = || RestoreError::Definition(key.to_vec());
        let definition = definition::parse(key, value).ok_or_else(malformed)?;
        let on_shard = |name: &str| {
            let vhost = match shard.id {
                ShardId::HOME if let Some(arriving) = self.arrivals.get(name) => arriving,
                // Those that were never defined by an operator are known by what is in them.
                ShardId::HOME if self.shard_of_vhost(name) == ShardId::HOME => {
                    self.vhost_at_home(name)
                }
                _ => self.vhost(name).ok_or_else(|| RestoreError::WrongShard(key.to_vec()))?,
            };
            let is_on = Arc::ptr_eq(vhost.shard(), shard);
            if is_on { Ok(vhost) } else { Err(RestoreError::WrongShard(key.to_vec())) }
        };
        match definition {
            Definition::Vhost { .. } => return Err(malformed()),
            Definition::Exchange { vhost, name, id, settings } => {
                let vhost = on_shard(&vhost)?;
                let exchange = vhost.restore_exchange(name, id, settings, || shard.next_id());
                if let Some(delay) = exchange.delay() {
                    found.delays.insert(exchange.id, Arc::clone(delay));
                }
                if let Some(history) = exchange.history() {
                    found.histories.insert(exchange.id, Arc::clone(history));
                }
            }
            Definition::Queue { vhost, name, id, settings, paused } => {
                let vhost = on_shard(&vhost)?;
                let policies = vhost.policies_for(&name, &settings.arguments);
                let queue = vhost.make_queue(id, name, settings, policies);
                queue.set_paused(paused);
                found.queues.insert(id, queue.clone());
                vhost.restore(Destination::Queue(queue));
            }
            Definition::Binding { vhost, binding } => {
                if !on_shard(&vhost)?.restore_binding(binding, Lsn::default()) {
                    found.loose_bindings.push(key.to_vec());
                }
            }
            Definition::Policy { vhost, kind, policy } => {
                on_shard(&vhost)?.restore_policy(CompiledPolicy::restored(kind, policy));
            }
        }
        Ok(())
    }
}

/// Drops the messages of queues and exchanges that have no definition: a crash may have come between the deletion of a queue
/// and the end of what was published to it meanwhile, or between two parts of a large deletion. The log is told, as it and its
/// copies on other machines would keep them otherwise. Returns how many those are. Bindings whose queue or exchange is missing
/// go likewise, as a new one of its name would have them after another restart: it was deleted while a checkpoint was written
/// and the log had no room.
fn drop_ownerless(shard: &Shard, found: &mut Found, recovered: &mut Recovered) -> usize {
    let mut ownerless = Recovered::default();
    ownerless.queues.extend(recovered.queues.extract_if(|id, _| !found.has(*id)));
    ownerless.delayed.extend(recovered.delayed.extract_if(|id, _| !found.has(*id)));
    ownerless.streams.extend(recovered.streams.extract_if(|id, _| !found.has(*id)));
    let Recovered { queues, delayed, streams, .. } = &ownerless;
    let queues = queues.keys().chain(delayed.keys()).chain(streams.keys()).copied().collect();
    let mut count = 0;
    ownerless.for_each_position(&mut |_| count += 1);
    let bindings = std::mem::take(&mut found.loose_bindings);
    let gone = Gone { bindings, queues, left: vec![Box::new(ownerless)], ..Gone::default() };
    if !gone.queues.is_empty() || !gone.bindings.is_empty() {
        // If the store has failed, they are found once more at the next start.
        drop(shard.forget(gone));
    }
    count
}

impl HoldsPlaces for Recovered {
    fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        Recovered::for_each_position(self, each);
    }
}

/// Takes back what exchanges remembered. Where that is too much, each has the same part of what it wants, whichever comes first.
fn restore_histories(shard: &Shard, found: &Found, indexes: &HashMap<u64, QueueIndex>) {
    let histories = found.histories.iter();
    let all: Vec<_> = histories
        .filter_map(|(id, history)| {
            let index = indexes.get(id)?;
            Some((history, index, history.wants(index.positions().count())))
        })
        .collect();
    let place = size_of::<Location>() as u64;
    let wanted: u64 = all.iter().map(|(.., wants)| wants).sum();
    let granted = shard.memory.restored_history_bytes(wanted * place) / place;
    for (history, index, wants) in all {
        history.restore(index.positions(), wants * granted / wanted.max(1));
    }
}

/// Numbers are never used again: those that the log has are taken before any is given out.
fn reserve_ids(shard: &Shard, recovered: &Recovered) {
    let in_log = recovered.queues.keys().chain(recovered.streams.keys());
    in_log.chain(recovered.delayed.keys()).for_each(|id| shard.reserve_id(*id));
    for (key, value) in &recovered.definitions {
        if let Some(Definition::Exchange { id: Some(id), .. } | Definition::Queue { id, .. }) =
            definition::parse(key, value)
        {
            shard.reserve_id(id);
        }
    }
}
