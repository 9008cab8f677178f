//! What the store is told of durable exchanges, queues and bindings, and what it tells at a start.

use super::Vhost;
use crate::exchange::{BindingKey, Destination, Exchange, ExchangeSettings};
use crate::fault::{Fault, store_fault};
use crate::memory::binding_bytes;
use crate::persistence::definition::{self, DefinedBinding};
use crate::persistence::gone::Gone;
use crate::queue::Queue;
use crate::removals::Removal;
use courser_codec::ShortString;
use courser_store::{Lsn, Record, StoreError};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// A removal in a vhost and in its shard, where another machine may come to lead.
pub(super) type Removing<'a> = Option<[Removal<'a>; 2]>;

impl Vhost {
    /// Logs an exchange that survives, before it can be found. It knows then at which LSN it does.
    pub(super) fn define_exchange(&self, exchange: &Exchange) -> Result<(), Fault> {
        if exchange.settings.durable {
            let key = definition::exchange_key(&self.name, &exchange.name);
            let lsn = self.append_definition(&key, &definition::exchange_value(exchange))?;
            exchange.defined.reach(lsn);
        }
        Ok(())
    }

    /// The same for a queue.
    pub(super) fn define_queue(&self, queue: &Queue) -> Result<(), Fault> {
        if !queue.settings.survives() {
            return Ok(());
        }
        let key = definition::queue_key(&self.name, &queue.name);
        let value = definition::queue_value(queue, queue.is_paused());
        let definition = Record::Defined { key: &key, value: &value };
        let lsn = match queue.stream() {
            None => self.append(&[definition]),
            Some(stream) => self.append(&[definition, stream.record()]),
        };
        queue.defined.reach(lsn.map_err(store_fault)?);
        Ok(())
    }

    /// Pauses a queue, or ends that: then [`Queue::go_on`] has to follow. Returns whether that is a change.
    pub(crate) fn pause_queue(&self, queue: &Arc<Queue>, on: bool) -> Result<bool, Fault> {
        let _write = self.write.lock();
        if !self.is_current(queue) {
            return Err(self.no_queue(queue.name.as_bytes()));
        }
        if queue.is_paused() == on {
            return Ok(false);
        }
        if queue.settings.survives() {
            let key = definition::queue_key(&self.name, &queue.name);
            self.append_definition(&key, &definition::queue_value(queue, on))?;
        }
        queue.set_paused(on);
        Ok(true)
    }

    /// Logs a binding that survives, before it is there. Returns the LSN at which it does, which its destination knows then.
    pub(super) fn define_binding(
        &self,
        source: &Exchange,
        destination: &Destination,
        key: &BindingKey,
    ) -> Result<Lsn, Fault> {
        let Some(key) = self.durable_binding(source, destination, key) else {
            return Ok(Lsn::default());
        };
        let lsn = self.append_definition(&key, &[])?;
        destination.sources().defined.reach(lsn);
        Ok(lsn)
    }

    /// Where the log ends that has everything that was defined or removed here so far. A client is told
    /// that something durable is gone when this is durable: another connection may just have done that. The
    /// caller holds the write lock, or waits for the removals under way, too.
    pub(crate) fn logged(&self) -> Lsn {
        self.logged.lsn()
    }

    /// The same for one who has found nothing, and wants it to be gone.
    pub(crate) fn logged_when_missing(&self) -> Lsn {
        // It is missing before the log has that.
        let _write = self.write.lock();
        self.logged()
    }

    /// The definition's key of a binding that survives: both its ends do.
    pub(super) fn durable_binding(
        &self,
        source: &Exchange,
        destination: &Destination,
        key: &BindingKey,
    ) -> Option<Vec<u8>> {
        (source.settings.durable && destination.survives()).then(|| {
            let binding = DefinedBinding {
                source: source.name.clone(),
                to_queue: matches!(destination, Destination::Queue(_)),
                destination: destination.name().clone(),
                routing_key: key.routing_key.clone(),
                arguments: key.arguments.clone(),
            };
            definition::binding_key(&self.name, &binding)
        })
    }

    pub(super) fn append_definition(&self, key: &[u8], value: &[u8]) -> Result<Lsn, Fault> {
        self.append(&[Record::Defined { key, value }]).map_err(store_fault)
    }

    fn append(&self, records: &[Record<'_>]) -> Result<Lsn, StoreError> {
        let lsn = self.shard.define(records)?;
        self.logged.reach(lsn);
        Ok(lsn)
    }

    pub(super) fn exchange_is_gone(&self, exchange: &Exchange, gone: &mut Gone) {
        if exchange.settings.durable {
            gone.keys.push(definition::exchange_key(&self.name, &exchange.name));
        }
        if let Some(delay) = exchange.delay() {
            gone.left.push(Box::new(delay.close()));
        }
        if let Some(history) = exchange.history() {
            gone.left.push(Box::new(history.close()));
        }
        gone.queues.extend(exchange.number_in_log());
    }

    pub(super) fn queue_is_gone(&self, queue: &Queue, gone: &mut Gone) {
        if queue.settings.survives() {
            gone.keys.push(definition::queue_key(&self.name, &queue.name));
            gone.queues.push(queue.id);
        }
    }

    pub(super) fn binding_is_gone(
        &self,
        source: &Exchange,
        destination: &Destination,
        key: &BindingKey,
        gone: &mut Gone,
    ) {
        let mut charge = self.bindings_charge.lock();
        let bytes = binding_bytes(source.routes_as(), &key.routing_key, &key.arguments);
        let left = charge.bytes().saturating_sub(bytes);
        charge.set(left);
        drop(charge);
        gone.bindings.extend(self.durable_binding(source, destination, key));
    }

    /// Something is about to be taken out of the vhost, of which [`Vhost::forget`] tells the log.
    pub(super) fn begin_removal(&self) -> Removing<'_> {
        let is_copied = self.shard.is_copied();
        is_copied.then(|| [self.removals.begin(), self.shard.removals.begin()])
    }

    /// Tells the store what is gone, all at once; when there is room, if there is none now. Lets go of the write lock, if that is
    /// given, before it releases what that had in the log, which may be much. Returns the LSN at which it stays gone, as far as it
    /// is in the log.
    pub(super) fn forget(
        &self,
        gone: Gone,
        removing: Removing<'_>,
        write: Option<MutexGuard<'_, ()>>,
    ) -> Result<Lsn, Fault> {
        let told = |lsn: Lsn| {
            self.logged.reach(lsn);
            removing.into_iter().flatten().for_each(|removal| removal.told(lsn));
            drop(write);
        };
        let lsn = self.shard.forget_and(gone, told).map_err(store_fault)?;
        Ok(lsn.unwrap_or_else(|| self.logged()))
    }

    /// Has the log forget its policies.
    pub(crate) fn forget_policies(&self) -> Result<(), Fault> {
        let _write = self.write.lock();
        let mut gone = Gone::default();
        self.policies.read().for_each_kept(&mut |kind, policy| {
            gone.keys.push(definition::policy_key(&self.name, kind, &policy.name));
        });
        // They are there until the log knows.
        self.forget(gone, None, None)?;
        // A checkpoint would keep them.
        *self.policies.write() = Arc::default();
        Ok(())
    }

    /// Calls `each` with the key and value of everything durable in this vhost: what its shard's log has of it.
    pub(crate) fn for_each_definition(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.for_each_policy(each);
        for exchange in self.exchanges() {
            if self.defines(&exchange) {
                let key = definition::exchange_key(&self.name, &exchange.name);
                each(&key, &definition::exchange_value(&exchange));
            }
            self.for_each_binding_of(&exchange, &mut |key| each(key, &[]));
        }
        for queue in self.queues() {
            if queue.settings.survives() {
                let key = definition::queue_key(&self.name, &queue.name);
                each(&key, &definition::queue_value(&queue, queue.is_paused()));
            }
        }
    }

    /// Puts an exchange back that was there before a restart: with the number that the log knows it
    /// by, or else with a new one.
    pub(crate) fn restore_exchange(
        &self,
        name: ShortString,
        id: Option<u64>,
        settings: ExchangeSettings,
        new_id: impl FnOnce() -> u64,
    ) -> Arc<Exchange> {
        let policy = self.policy_for(&name);
        let exchange = self.make_exchange(id.unwrap_or_else(new_id), name, settings, policy);
        self.restore(Destination::Exchange(Arc::clone(&exchange)));
        if id.is_none() && exchange.number_in_log().is_some() {
            // An earlier version kept nothing of it. Without this it would be so once more.
            let _gate = self.shard.gate.read();
            drop(self.define_exchange(&exchange));
        }
        exchange
    }

    /// Puts a queue or exchange back that was there before a restart.
    pub(crate) fn restore(&self, restored: Destination) {
        let _write = self.write.lock();
        self.show(restored);
    }

    /// Lets a queue or exchange be found. The caller holds the write lock.
    pub(super) fn show(&self, new: Destination) {
        self.change(|names| match new {
            Destination::Queue(queue) => {
                self.listed.queues.insert(Arc::clone(&queue));
                names.queues.insert(queue.name.clone(), queue);
            }
            Destination::Exchange(exchange) => {
                self.listed.exchanges.insert(Arc::clone(&exchange));
                names.exchanges.insert(exchange.name.clone(), exchange);
            }
        });
    }

    /// Puts a binding back that was there before a restart, or elsewhere: then it survives at this LSN. Returns whether its ends
    /// are there.
    pub(crate) fn restore_binding(&self, binding: DefinedBinding, lsn: Lsn) -> bool {
        let name = binding.destination.as_bytes();
        let destination = if binding.to_queue {
            self.queue(name).map(Destination::Queue)
        } else {
            self.exchange(name).map(Destination::Exchange)
        };
        let exchange: Option<Arc<Exchange>> = self.exchange(binding.source.as_bytes());
        let (Some(destination), Some(exchange)) = (destination, exchange) else { return false };
        let (routing_key, arguments): (ShortString, _) = (binding.routing_key, binding.arguments);
        let key = BindingKey { routing_key, arguments };
        destination.sources().defined.reach(lsn);
        if exchange.bind(&destination, key.clone()) {
            self.count_binding(&exchange, &key);
        }
        self.routes_changed();
        true
    }
}
