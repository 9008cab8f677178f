//! Making exchanges and queues, or finding that they are there already.

use super::{Vhost, clean_name};
use crate::arguments::{self, QueueType};
use crate::exchange::{BindingKey, Destination, Exchange, ExchangeKind, ExchangeSettings};
use crate::fault::{Fault, Resource};
use crate::memory::{binding_bytes, exchange_bytes, queue_bytes};
use crate::monitor::{EventKind, count, vhost_deleted};
use crate::policy::{ExchangePolicy, QueuePolicies};
use crate::queue::{ConnectionId, Queue, QueueSettings};
use crate::stream;
use crate::work;
use courser_codec::FieldTable;
use courser_codec::ShortString;
use courser_codec::exchange::Declare as ExchangeDeclare;
use courser_store::Lsn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How names begin that the broker alone gives.
pub(super) const RESERVED_PREFIX: &[u8] = b"amq.";

/// A `queue.declare` that is not passive.
pub(crate) struct QueueRequest {
    /// The name; made up by the broker if `named_by_broker`.
    pub name: ShortString,
    pub named_by_broker: bool,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: FieldTable,
}

impl QueueRequest {
    /// Refuses what no queue can be, whatever else there is.
    pub(crate) fn check<'q>(&self, queue: impl Fn() -> Resource<'q>) -> Result<(), Fault> {
        arguments::check_queue(&self.arguments, queue())?;
        self.check_type(queue())?;
        match QueueType::of(&self.arguments) {
            QueueType::Stream => stream::check_sizes(&self.arguments),
            _ => Ok(()),
        }
    }

    /// Refuses what queues of the type that the arguments name can't be. A replicated queue is there to
    /// stay: it is durable, has a name, and belongs to no connection.
    fn check_type(&self, queue: Resource<'_>) -> Result<(), Fault> {
        let queue_type = QueueType::of(&self.arguments);
        if queue_type == QueueType::Classic {
            return Ok(());
        }
        if self.named_by_broker {
            return Err(Fault::precondition_failed(format_args!(
                "Cannot declare a server-named queue for type {}",
                queue_type.printed()
            )));
        }
        let unfit = [
            ("auto-delete", self.auto_delete),
            ("exclusive-owner", self.exclusive),
            ("non-durable", !self.durable),
        ];
        match unfit.into_iter().find(|(_, wanted)| *wanted) {
            Some((property, _)) => Err(Fault::precondition_failed(format_args!(
                "invalid property '{property}' for {queue}"
            ))),
            None => Ok(()),
        }
    }
}

impl Vhost {
    /// `exchange.declare` (AMQP 0-9-1, 1.6.2.1) of an exchange that is there. Returns the LSN at which it survives, if it
    /// is to; `None` if there is none of this name.
    pub(crate) fn redeclare_exchange(
        &self,
        declare: &ExchangeDeclare<'_>,
    ) -> Result<Option<Lsn>, Fault> {
        let name = clean_name(declare.exchange);
        refuse_default_exchange(name.as_bytes())?;
        if declare.passive {
            let current = self.exchange_or_fault(name.as_bytes())?;
            return Ok(Some(current.defined.lsn()));
        }
        self.refuse_if_deleted()?;
        let Some(current) = self.exchange(name.as_bytes()) else { return Ok(None) };
        let (kind, arguments) = (kind(declare)?, owned_arguments(declare.arguments)?);
        self.check_equivalent_exchange(&current, declare, kind, &arguments)?;
        Ok(Some(current.defined.lsn()))
    }

    /// `exchange.declare`. Returns the LSN at which the exchange, new or not, survives, if it is to. The caller has made
    /// sure that the user may make one, and is outside the shard's gate.
    pub(crate) fn declare_exchange(
        &self,
        declare: &ExchangeDeclare<'_>,
        id: impl FnOnce() -> u64,
    ) -> Result<Lsn, Fault> {
        let (kind, arguments) = (kind(declare)?, owned_arguments(declare.arguments)?);
        let settings = ExchangeSettings {
            kind,
            durable: declare.durable,
            auto_delete: declare.auto_delete,
            internal: declare.internal,
            arguments,
        };
        let name = clean_name(declare.exchange);
        // With many policies it takes long to match it: only changes of policies wait for that.
        let policies = self.staying_policies();
        let policy = policies.of_exchange(&name, settings.durable);
        let mut is_last = false;
        loop {
            let gate = self.shard.gate.read();
            let write = self.write.lock();
            if let Some(lsn) = self.redeclare_exchange(declare)? {
                return Ok(lsn);
            }
            if self.has_time_for(&policy.took.now) {
                return self.add_exchange(id(), name, settings, policy);
            }
            drop((write, gate));
            if is_last || !policies.make_time_for(&policy.took.now) {
                return Err(self.no_time_for(self.exchange_resource(&name), &name, &policies.now));
            }
            is_last = true;
        }
    }

    /// Makes an exchange. The caller holds the gate and the write lock.
    fn add_exchange(
        &self,
        id: u64,
        name: ShortString,
        settings: ExchangeSettings,
        policy: ExchangePolicy,
    ) -> Result<Lsn, Fault> {
        if name.as_bytes().starts_with(RESERVED_PREFIX) {
            return Err(reserved("exchange", &name));
        }
        let arguments = &settings.arguments;
        arguments::check_exchange(settings.kind, arguments, self.exchange_resource(&name))?;
        if self.names.load().exchanges.len() >= self.exchanges_max {
            return Err(self.too_many("exchanges", self.exchanges_max));
        }
        self.shard.memory.admit_definition(exchange_bytes(&name, arguments))?;
        let exchange = self.make_exchange(id, name.clone(), settings, policy);
        self.define_exchange(&exchange)?;
        let lsn = exchange.defined.lsn();
        self.show(Destination::Exchange(exchange));
        self.tell(EventKind::ExchangeCreated, &name);
        Ok(lsn)
    }

    fn check_equivalent_exchange(
        &self,
        current: &Exchange,
        declare: &ExchangeDeclare<'_>,
        kind: ExchangeKind,
        arguments: &FieldTable,
    ) -> Result<(), Fault> {
        let resource = || self.exchange_resource(&current.name);
        let settings = &current.settings;
        if settings.kind != kind {
            let (received, current) = (kind.name(), settings.kind.name());
            let (received, current) = (print_type(received), print_type(current));
            return Err(arguments::inequivalent("type", resource(), &received, &current));
        }
        let flags = [
            ("durable", declare.durable, settings.durable),
            ("auto_delete", declare.auto_delete, settings.auto_delete),
            ("internal", declare.internal, settings.internal),
        ];
        for (name, received, current) in flags {
            same_flag(name, received, current, resource())?;
        }
        arguments::check_equivalent_exchange(&settings.arguments, arguments, resource())
    }

    /// `queue.declare` that is not passive (AMQP 0-9-1, 1.7.2.1), of a queue that is there; `None` if there is none of
    /// this name.
    pub(crate) fn redeclare_queue(
        &self,
        request: &mut QueueRequest,
        connection: ConnectionId,
    ) -> Result<Option<Arc<Queue>>, Fault> {
        self.refuse_if_deleted()?;
        self.give_default_type(request);
        let name = &request.name;
        if !request.named_by_broker && name.as_bytes().starts_with(RESERVED_PREFIX) {
            return Err(reserved("queue", name));
        }
        let Some(current) = self.queue(name.as_bytes()) else { return Ok(None) };
        count(&self.monitor.churn.queues_declared);
        self.check_owner(&current, connection)?;
        let resource = || self.queue_resource(name);
        let settings = &current.settings;
        if settings.exclusive_owner.is_some() != request.exclusive {
            return Err(self.locked(name));
        }
        if !request.exclusive {
            // What goes with its connection does not survive anyway.
            same_flag("durable", request.durable, settings.durable, resource())?;
        }
        same_flag("auto_delete", request.auto_delete, settings.auto_delete, resource())?;
        arguments::check_equivalent_queue(&settings.arguments, &request.arguments, resource())?;
        // Before its lease can end it, unless that has just happened.
        Ok(current.touch().then_some(current))
    }

    /// `queue.declare` that is not passive. Returns the queue, new or not. The caller has made sure that the user may make
    /// one, and is outside the shard's gate.
    pub(crate) fn declare_queue(
        &self,
        mut request: QueueRequest,
        connection: ConnectionId,
        id: impl FnOnce() -> u64,
    ) -> Result<Arc<Queue>, Fault> {
        // With many policies it takes long to match it: only changes of policies wait for that.
        let policies = self.staying_policies();
        let survives = request.durable && !request.exclusive;
        let (mut matched, mut is_last) = (None, false);
        loop {
            let queue_type = QueueType::of(&request.arguments);
            let of_queue = match matched.take() {
                Some((as_type, of_queue)) if as_type == queue_type => of_queue,
                _ => policies.of_queue(&request.name, queue_type, survives),
            };
            let gate = self.shard.gate.read();
            let write = self.write.lock();
            if let Some(current) = self.redeclare_queue(&mut request, connection)? {
                return Ok(current);
            }
            // The vhost may have given it a type just now, which stays.
            if queue_type != QueueType::of(&request.arguments) {
                continue;
            }
            if self.has_time_for(&of_queue.took.now) {
                return self.add_queue(id(), request, connection, of_queue);
            }
            drop((write, gate));
            if is_last || !policies.make_time_for(&of_queue.took.now) {
                let name = &request.name;
                return Err(self.no_time_for(self.queue_resource(name), name, &policies.now));
            }
            (matched, is_last) = (Some((queue_type, of_queue)), true);
        }
    }

    /// Makes a queue. The caller holds the gate and the write lock.
    fn add_queue(
        &self,
        id: u64,
        request: QueueRequest,
        connection: ConnectionId,
        policies: QueuePolicies,
    ) -> Result<Arc<Queue>, Fault> {
        count(&self.monitor.churn.queues_declared);
        let name = request.name.clone();
        request.check(|| self.queue_resource(&name))?;
        self.admit_queue(&name)?;
        self.shard.memory.admit_definition(queue_bytes(&name, &request.arguments))?;
        let settings = QueueSettings {
            durable: request.durable,
            exclusive_owner: request.exclusive.then_some(connection),
            auto_delete: request.auto_delete,
            arguments: request.arguments,
        };
        let queue = self.make_queue(id, name.clone(), settings, policies);
        self.define_queue(&queue)?;
        self.exclusive.add(&queue);
        self.show(Destination::Queue(Arc::clone(&queue)));
        count(&self.monitor.churn.queues_created);
        self.tell(EventKind::QueueCreated, &name);
        Ok(queue)
    }

    /// Nothing is made in a vhost that goes.
    pub(crate) fn refuse_if_deleted(&self) -> Result<(), Fault> {
        if self.is_deleted() { Err(vhost_deleted(&self.name)) } else { Ok(()) }
    }

    /// Refuses a binding for which there is no room.
    pub(super) fn admit_binding(&self, source: &Exchange, key: &BindingKey) -> Result<(), Fault> {
        if self.bindings.load(Ordering::Relaxed) >= self.bindings_max {
            return Err(self.too_many("bindings", self.bindings_max));
        }
        let bytes = binding_bytes(source.routes_as(), &key.routing_key, &key.arguments);
        self.shard.memory.admit_definition(bytes)
    }

    /// Counts one more binding.
    pub(super) fn count_binding(&self, source: &Exchange, key: &BindingKey) {
        self.bindings.fetch_add(1, Ordering::Relaxed);
        let mut charge = self.bindings_charge.lock();
        let bytes = binding_bytes(source.routes_as(), &key.routing_key, &key.arguments);
        let all = charge.bytes() + bytes;
        charge.set(all);
    }

    pub(super) fn too_many(&self, what: &str, most: usize) -> Fault {
        Fault::precondition_failed(format_args!(
            "vhost '{}' has the {most} {what} that it may have",
            self.name
        ))
    }
}

fn kind(declare: &ExchangeDeclare<'_>) -> Result<ExchangeKind, Fault> {
    ExchangeKind::parse(declare.kind.as_bytes()).ok_or_else(|| {
        Fault::precondition_failed(format_args!("unknown exchange type '{}'", declare.kind))
    })
}

pub(crate) fn owned_arguments(arguments: courser_codec::Table<'_>) -> Result<FieldTable, Fault> {
    arguments::check_bytes(arguments.as_bytes().len())?;
    let owned = arguments
        .to_owned()
        .map_err(|error| Fault::new(502, format_args!("malformed arguments: {error}")))?;
    work::count_values(&owned);
    Ok(owned)
}

pub(crate) fn refuse_default_exchange(name: &[u8]) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::access_refused("operation not permitted on the default exchange"));
    }
    Ok(())
}

fn reserved(kind: &str, name: &ShortString) -> Fault {
    Fault::access_refused(format_args!("{kind} name '{name}' contains reserved prefix 'amq.*'"))
}

fn same_flag(
    name: &str,
    received: bool,
    current: bool,
    resource: crate::fault::Resource<'_>,
) -> Result<(), Fault> {
    if received == current {
        return Ok(());
    }
    let (received, current) = (format!("'{received}'"), format!("'{current}'"));
    Err(arguments::inequivalent(name, resource, &received, &current))
}

/// The name of an exchange's type in an explanation, where names that are no plain atoms have
/// quotes of their own.
fn print_type(name: &str) -> String {
    if name.contains('-') { format!("''{name}''") } else { format!("'{name}'") }
}
