//! Removing queues and exchanges, with everything that hangs on them.

use super::Vhost;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::monitor::{EventKind, count};
use crate::persistence::gone::Gone;
use crate::queue::{BeforeDeletion, Queue};
use crate::wakes::Wakes;
use courser_codec::ShortString;
use courser_store::{Lsn, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Vhost {
    /// `exchange.delete` (AMQP 0-9-1, 1.6.2.3). A missing exchange is not an error. Returns the LSN at
    /// which it stays deleted.
    pub(crate) fn delete_exchange(
        &self,
        name: &ShortString,
        if_unused: bool,
    ) -> Result<Lsn, Fault> {
        self.refuse_system_exchange(name)?;
        let write = self.write.lock();
        let Some(exchange) = self.exchange(name.as_bytes()) else { return Ok(self.logged()) };
        if if_unused && exchange.has_bindings() {
            return Err(Fault::precondition_failed(format_args!(
                "{} in use",
                self.exchange_resource(name)
            )));
        }
        let removing = self.begin_removal();
        let mut gone = Gone::default();
        self.remove_exchange(&exchange, &mut gone);
        self.forget(gone, removing, Some(write))
    }

    /// Refuses to delete an exchange whose name is reserved, as those that every vhost has are, there or not.
    pub(crate) fn refuse_system_exchange(&self, name: &ShortString) -> Result<(), Fault> {
        super::declare::refuse_default_exchange(name.as_bytes())?;
        if name.as_bytes().starts_with(super::declare::RESERVED_PREFIX) {
            return Err(Fault::access_refused(format_args!(
                "deletion of system {} not allowed",
                self.exchange_resource(name)
            )));
        }
        Ok(())
    }

    /// Removes an exchange and its bindings, and the auto-delete exchanges that it was the last
    /// destination of. The caller holds the write lock.
    pub(super) fn remove_exchange(&self, exchange: &Arc<Exchange>, gone: &mut Gone) {
        let mut going = vec![Arc::clone(exchange)];
        while let Some(exchange) = going.pop() {
            self.exchange_is_gone(&exchange, gone);
            exchange.matched.end();
            self.change(|names| {
                names.exchanges.remove(exchange.name.as_bytes());
            });
            let is_this = |listed: &Arc<Exchange>| Arc::ptr_eq(listed, &exchange);
            self.listed.exchanges.remove_if(exchange.name.as_bytes(), is_this);
            self.tell(EventKind::ExchangeDeleted, &exchange.name);
            // No message comes here by a binding then, when its own are gone.
            going.append(&mut self.unbind_everywhere(exchange.id, exchange.sources.take(), gone));
            self.clear_bindings(&exchange, gone);
        }
    }

    /// Removes all bindings of an exchange. The caller holds the write lock.
    fn clear_bindings(&self, exchange: &Exchange, gone: &mut Gone) {
        let cleared = exchange.clear(&mut |destination, key| {
            self.binding_is_gone(exchange, destination, key, gone);
        });
        self.bindings.fetch_sub(cleared, Ordering::Relaxed);
    }

    /// Removes a queue if `condition` agrees to what it holds: its messages, its bindings, its
    /// consumers. Calls `reply` with how many messages waited in it, and the LSN at which it stays
    /// deleted, before its consumers are told, who may be on the channel that waits for the reply.
    /// A queue that is gone already is not asked: its name may be another one's.
    pub(crate) fn delete_queue(
        &self,
        queue: &Arc<Queue>,
        condition: impl FnOnce(BeforeDeletion) -> Result<(), Fault>,
        reply: impl FnOnce(usize, Lsn),
        wakes: &mut Wakes,
    ) -> Result<(), Fault> {
        let write = self.write.lock();
        if !self.is_current(queue) {
            reply(0, self.logged());
            return Ok(());
        }
        let removing = self.begin_removal();
        let remains = queue.delete(condition)?;
        self.exclusive.remove(queue);
        let mut gone = Gone::default();
        self.queue_is_gone(queue, &mut gone);
        self.change(|names| {
            names.queues.remove(queue.name.as_bytes());
        });
        let is_this = |listed: &Arc<Queue>| Arc::ptr_eq(listed, queue);
        if self.listed.queues.remove_if(queue.name.as_bytes(), is_this) {
            count(&self.monitor.churn.queues_deleted);
            self.tell(EventKind::QueueDeleted, &queue.name);
        }
        for exchange in self.unbind_everywhere(queue.id, queue.sources.take(), &mut gone) {
            self.remove_exchange(&exchange, &mut gone);
        }
        gone.left.extend(remains.left);
        let lsn = self.forget(gone, removing, Some(write))?;
        reply(remains.messages, lsn);
        // Where the deletion is not committed yet, the next leader may have the queue.
        let told_at = if self.shard.is_copied() { lsn } else { Lsn::default() };
        for consumer in remains.consumers {
            consumer.cancel(queue, told_at, wakes);
        }
        Ok(())
    }

    /// `queue.delete` with its conditions (AMQP 0-9-1, 1.7.2.9).
    pub(crate) fn delete_queue_if(
        &self,
        queue: &Arc<Queue>,
        if_unused: bool,
        if_empty: bool,
        reply: impl FnOnce(usize, Lsn),
        wakes: &mut Wakes,
    ) -> Result<(), Fault> {
        let condition = |BeforeDeletion { status, .. }: BeforeDeletion| {
            let because = if if_empty && status.ready + status.delayed.messages > 0 {
                "not empty"
            } else if if_unused && status.consumers > 0 {
                "in use"
            } else {
                return Ok(());
            };
            let resource = self.queue_resource(&queue.name);
            Err(Fault::precondition_failed(format_args!("{resource} {because}")))
        };
        self.delete_queue(queue, condition, reply, wakes)
    }

    /// Removes a queue whose lease was over, unless it has been used at the last moment.
    pub(super) fn delete_unused(&self, queue: &Arc<Queue>, wakes: &mut Wakes) {
        let is_unused = |before: BeforeDeletion| match before.is_unused {
            true => Ok(()),
            false => Err(Fault::precondition_failed("in use")),
        };
        // A store that takes nothing more ends the broker, by its owner.
        drop(self.delete_queue(queue, is_unused, |_, _| {}, wakes));
    }

    /// Removes everything from a vhost that has been marked as deleted, so that nothing is made in it
    /// any more. A crash before the vhost itself goes leaves the rest to be deleted once more.
    pub(crate) fn empty(&self, wakes: &mut Wakes) -> Result<(), Fault> {
        let shard = Arc::clone(self.shard());
        // What is just being made by a thread that has not seen the mark is listed then; what comes later is refused.
        drop(self.write.lock());
        for queue in self.ordered_queues().starting_at(0) {
            // A section for each, so that checkpoints and others get their turns.
            let _gate = shard.gate.read();
            self.delete_queue(queue, |_| Ok(()), |_, _| {}, wakes)?;
        }
        for exchange in self.ordered_exchanges().starting_at(0) {
            let _gate = shard.gate.read();
            if !super::is_predefined(&exchange.name) {
                self.delete_exchange(&exchange.name, false)?;
                continue;
            }
            // It has no definition, and its bindings have.
            let write = self.write.lock();
            let removing = self.begin_removal();
            let mut gone = Gone::default();
            self.clear_bindings(exchange, &mut gone);
            self.forget(gone, removing, Some(write))?;
        }
        let _gate = shard.gate.read();
        self.forget_policies()
    }

    /// Drops everything that waits in a queue, in portions between which others get their turns: consumers may get what has
    /// not been dropped yet. A crash before that is told may leave the rest. Returns how much was dropped.
    pub(crate) fn purge(&self, queue: &Queue) -> Result<usize, StoreError> {
        let store = &*self.shard.store;
        let (mut purge, mut goes_on) = (queue.begin_purge(), true);
        while goes_on {
            purge.wait_for_log(store);
            let _gate = self.shard.gate.read();
            // A removal for each portion: an answer that is read meanwhile waits for no later one.
            let removal = self.shard.is_copied().then(|| self.removals.begin());
            goes_on = queue.purge_some(&mut purge, store)?;
            removal.into_iter().for_each(|removal| removal.told(store.end()));
        }
        Ok(purge.messages)
    }

    /// Removes all bindings that lead to a destination. Returns the auto-delete exchanges that have
    /// lost their last binding by it, and have to be removed.
    fn unbind_everywhere(
        &self,
        destination: u64,
        sources: Vec<ShortString>,
        gone: &mut Gone,
    ) -> Vec<Arc<Exchange>> {
        let sources = sources.iter().filter_map(|source| self.exchange(source.as_bytes()));
        let left = sources.filter_map(|exchange| Some((exchange.leave(destination)?, exchange)));
        let left: Vec<_> = left.collect();
        // Remembered routes may lead there, until now. What is left to do changes no route.
        self.routes_changed();
        let mut useless = Vec::new();
        for (leaving, exchange) in left {
            let removed = exchange.unbind_left(leaving, &mut |destination, key| {
                self.binding_is_gone(&exchange, destination, key, gone);
            });
            self.bindings.fetch_sub(removed.count, Ordering::Relaxed);
            if removed.none_left && exchange.settings.auto_delete {
                useless.push(exchange);
            }
        }
        useless
    }
}
