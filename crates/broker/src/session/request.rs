//! The methods that a client waits for an answer to.

use super::answer::put_answer;
use super::{Batch, Session};
use crate::exchange::BindingKey;
use crate::fault::{Fault, store_fault};
use crate::queue::Queue;
use crate::vhost::{BindingRequest, QueueRequest, clean_name, owned_arguments};
use courser_codec::{Method, ShortString, Table, exchange, queue};
use courser_store::Lsn;
use std::sync::Arc;

impl Session {
    /// Carries out a method other than `basic.publish`, after everything that came before it, and
    /// puts the answer into the outbox.
    pub fn request(
        &mut self,
        batch: &mut Batch<'_>,
        number: u16,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        self.channel(number)?;
        // A consumer that ends leaves the others nothing more to take.
        self.readers_due |= !matches!(method, Method::BasicCancel(_));
        if let Method::BasicAck(ack) = method {
            return self.ack(number, ack.delivery_tag, ack.multiple);
        }
        self.flush_publishes(batch)?;
        self.settle_acknowledged();
        // May take as long as another program likes.
        self.permit(number, method)?;
        let shard = Arc::clone(&self.shard);
        let gate = takes_effect_as_a_whole(method).then(|| shard.gate.read());
        let done = self.carry_out(number, method);
        shard.post_dead_letters(&mut self.wakes);
        drop(gate);
        self.wakes.wake_all();
        done
    }

    fn carry_out(&mut self, number: u16, method: &Method<'_>) -> Result<(), Fault> {
        match method {
            Method::BasicReject(reject) => self.reject(number, reject.delivery_tag, reject.requeue),
            Method::BasicNack(nack) => {
                self.nack(number, nack.delivery_tag, nack.multiple, nack.requeue)
            }
            Method::BasicConsume(consume) => self.consume(number, consume),
            Method::BasicCancel(cancel) => self.cancel(number, cancel),
            Method::BasicGet(get) => self.get(number, get),
            Method::BasicQos(qos) => self.qos(number, qos),
            Method::BasicRecover(recover) => self.recover(number, recover.requeue, true),
            Method::BasicRecoverAsync(recover) => self.recover(number, recover.requeue, false),
            Method::ChannelFlow(flow) => {
                self.flow(number, flow.active);
                Ok(())
            }
            Method::ExchangeDeclare(declare) => self.declare_exchange(number, declare),
            Method::ExchangeDelete(delete) => {
                let name = clean_name(delete.exchange);
                let lsn = self.vhost.delete_exchange(&name, delete.if_unused)?;
                let deleted = Method::ExchangeDeleteOk(Default::default());
                self.answer_unless(delete.nowait, number, lsn, &deleted);
                Ok(())
            }
            Method::ConfirmSelect(select) => {
                if let Some(channel) = self.outbox.lock().channel(number) {
                    channel.confirms = true;
                }
                self.reply_unless(
                    select.nowait,
                    number,
                    Method::ConfirmSelectOk(Default::default()),
                );
                Ok(())
            }
            Method::TxSelect(_) => {
                self.begin_transaction(number)?;
                self.reply(number, Method::TxSelectOk(Default::default()));
                Ok(())
            }
            Method::TxCommit(_) => self.commit(number),
            Method::TxRollback(_) => self.rollback(number),
            Method::ExchangeBind(bind) => self.bind_exchange(number, bind),
            Method::ExchangeUnbind(unbind) => self.unbind_exchange(number, unbind),
            Method::QueueDeclare(declare) => self.declare_queue(number, declare),
            Method::QueueBind(bind) => self.bind_queue(number, bind),
            Method::QueueUnbind(unbind) => self.unbind_queue(number, unbind),
            Method::QueuePurge(purge) => self.purge(number, purge),
            Method::QueueDelete(delete) => self.delete_requested(number, delete),
            other => Err(Fault::not_implemented(format_args!("{} is not supported", other.name()))),
        }
    }

    fn declare_exchange(
        &mut self,
        number: u16,
        declare: &exchange::Declare<'_>,
    ) -> Result<(), Fault> {
        let lsn = match self.vhost.redeclare_exchange(declare)? {
            Some(lsn) => lsn,
            None => {
                self.permit_alternate(declare)?;
                self.vhost.declare_exchange(declare, || self.shard.next_id())?
            }
        };
        let declared = Method::ExchangeDeclareOk(Default::default());
        self.answer_unless(declare.nowait, number, lsn, &declared);
        Ok(())
    }

    fn declare_queue(&mut self, number: u16, declare: &queue::Declare<'_>) -> Result<(), Fault> {
        let name = clean_name(declare.queue);
        if let Some(found) = self.find_reply_queue(&name) {
            found?;
            let declared = Self::reply_queue_declared(name.as_short_str());
            self.reply_unless(declare.nowait, number, Method::QueueDeclareOk(declared));
            self.channel(number)?.last_queue = Some(name);
            return Ok(());
        }
        let queue = if declare.passive {
            // Here an empty name is no other queue's.
            let queue = self.vhost.queue_for(name.as_bytes(), self.client.connection)?;
            if !queue.touch() {
                // Its lease has just ended it.
                return Err(self.vhost.no_queue(name.as_bytes()));
            }
            queue
        } else {
            let named_by_broker = name.is_empty();
            let mut request = QueueRequest {
                name: if named_by_broker { self.broker.random_name("amq.gen-") } else { name },
                named_by_broker,
                durable: declare.durable,
                exclusive: declare.exclusive,
                auto_delete: declare.auto_delete,
                arguments: owned_arguments(declare.arguments)?,
            };
            if named_by_broker {
                self.permit_named(&request.name)?;
            }
            match self.vhost.redeclare_queue(&mut request, self.client.connection)? {
                Some(queue) => queue,
                None => self.make_queue(request)?,
            }
        };
        self.channel(number)?.last_queue = Some(queue.name.clone());
        if !declare.nowait {
            let status = queue.status();
            let reply = Method::QueueDeclareOk(queue::DeclareOk {
                queue: queue.name.as_short_str(),
                message_count: at_most(status.ready),
                consumer_count: at_most(status.consumers),
            });
            self.answer(number, queue.defined.lsn(), &reply);
        }
        Ok(())
    }

    fn make_queue(&mut self, request: QueueRequest) -> Result<Arc<Queue>, Fault> {
        self.permit_dead_letters(&request.name, &request.arguments)?;
        self.vhost.declare_queue(request, self.client.connection, || self.shard.next_id())
    }

    fn bind_queue(&mut self, number: u16, bind: &queue::Bind<'_>) -> Result<(), Fault> {
        let (queue, key) = self.queue_and_key(number, clean_name(bind.queue), bind.routing_key)?;
        let request = BindingRequest {
            source: bind.exchange,
            destination: &queue,
            to_queue: true,
            key: binding_key(key, bind.arguments)?,
        };
        let lsn = self.bind(request)?;
        self.answer_unless(bind.nowait, number, lsn, &Method::QueueBindOk(Default::default()));
        Ok(())
    }

    fn bind(&mut self, request: BindingRequest<'_>) -> Result<Lsn, Fault> {
        let (broker, outbox) = (&self.broker, &self.outbox);
        let may_go_on = || outbox.refuse_if_failed().and_then(|()| broker.refuse_to_publish());
        self.vhost.bind(request, self.client.connection, &mut self.wakes, &may_go_on)
    }

    fn unbind_queue(&mut self, number: u16, unbind: &queue::Unbind<'_>) -> Result<(), Fault> {
        let (queue, key) =
            self.queue_and_key(number, clean_name(unbind.queue), unbind.routing_key)?;
        let request = BindingRequest {
            source: unbind.exchange,
            destination: &queue,
            to_queue: true,
            key: binding_key(key, unbind.arguments)?,
        };
        let lsn = self.vhost.unbind(request, self.client.connection)?;
        self.answer(number, lsn, &Method::QueueUnbindOk(Default::default()));
        Ok(())
    }

    /// An empty queue name stands for the last one declared, and then an empty routing key stands
    /// for its name (AMQP 0-9-1, 1.7.2.3).
    pub(super) fn queue_and_key(
        &mut self,
        number: u16,
        queue: ShortString,
        routing_key: courser_codec::ShortStr<'_>,
    ) -> Result<(ShortString, ShortString), Fault> {
        let unnamed = queue.is_empty();
        let queue = self.queue_name(number, queue)?;
        let key = if unnamed && routing_key.is_empty() {
            queue.clone()
        } else {
            ShortString::from(routing_key)
        };
        Ok((queue, key))
    }

    fn bind_exchange(&mut self, number: u16, bind: &exchange::Bind<'_>) -> Result<(), Fault> {
        let request = BindingRequest {
            source: bind.source,
            destination: &clean_name(bind.destination),
            to_queue: false,
            key: binding_key(bind.routing_key.into(), bind.arguments)?,
        };
        let lsn = self.bind(request)?;
        self.answer_unless(bind.nowait, number, lsn, &Method::ExchangeBindOk(Default::default()));
        Ok(())
    }

    fn unbind_exchange(&mut self, number: u16, unbind: &exchange::Unbind<'_>) -> Result<(), Fault> {
        let request = BindingRequest {
            source: unbind.source,
            destination: &clean_name(unbind.destination),
            to_queue: false,
            key: binding_key(unbind.routing_key.into(), unbind.arguments)?,
        };
        let lsn = self.vhost.unbind(request, self.client.connection)?;
        let unbound = Method::ExchangeUnbindOk(Default::default());
        self.answer_unless(unbind.nowait, number, lsn, &unbound);
        Ok(())
    }

    fn purge(&mut self, number: u16, purge: &queue::Purge<'_>) -> Result<(), Fault> {
        let queue = self.named_queue(number, clean_name(purge.queue))?;
        self.refuse_for_streams("queue.purge", &queue)?;
        let message_count = at_most(self.vhost.purge(&queue).map_err(store_fault)?);
        self.broker.check_alarms();
        let survives = queue.settings.survives();
        let lsn = if survives { self.shard.store.end() } else { Lsn::default() };
        let reply = Method::QueuePurgeOk(queue::PurgeOk { message_count });
        self.answer_unless(purge.nowait, number, lsn, &reply);
        Ok(())
    }

    fn delete_requested(&mut self, number: u16, delete: &queue::Delete<'_>) -> Result<(), Fault> {
        let name = clean_name(delete.queue);
        let name = self.queue_name(number, name)?;
        if self.vhost.queue(name.as_bytes()).is_none() {
            let deleted = Method::QueueDeleteOk(queue::DeleteOk { message_count: 0 });
            let lsn = self.vhost.logged_when_missing();
            self.answer_unless(delete.nowait, number, lsn, &deleted);
            return Ok(());
        }
        let queue = self.vhost.queue_for(name.as_bytes(), self.client.connection)?;
        let (if_unused, if_empty) = (delete.if_unused, delete.if_empty);
        let reply = |deleted, lsn| {
            if !delete.nowait {
                let deleted = queue::DeleteOk { message_count: at_most(deleted) };
                let (store, deleted) = (&*self.shard.store, Method::QueueDeleteOk(deleted));
                put_answer(&self.outbox, store, number, lsn, &deleted);
            }
        };
        self.vhost.delete_queue_if(&queue, if_unused, if_empty, reply, &mut self.wakes)?;
        self.broker.check_alarms();
        Ok(())
    }
}

fn binding_key(routing_key: ShortString, arguments: Table<'_>) -> Result<BindingKey, Fault> {
    Ok(BindingKey { routing_key, arguments: owned_arguments(arguments)? })
}

/// A number for an answer, which has room for no larger one than this.
fn at_most(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Methods whose changes take effect in one go, so that no checkpoint may begin in between. The
/// others see to it themselves, step by step.
fn takes_effect_as_a_whole(method: &Method<'_>) -> bool {
    matches!(
        method,
        Method::BasicConsume(_)
            | Method::ExchangeDelete(_)
            | Method::ExchangeUnbind(_)
            | Method::QueueUnbind(_)
            | Method::QueueDelete(_)
    )
}
