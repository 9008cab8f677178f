//! Making and removing bindings.

use super::replay::Bound;
use super::{Vhost, clean_name};
use crate::arguments;
use crate::exchange::{BindingKey, Destination, Exchange, ExchangeKind, Removed, headers, weight};
use crate::fault::Fault;
use crate::monitor::{Event, EventKind};
use crate::persistence::gone::Gone;
use crate::queue::ConnectionId;
use crate::wakes::Wakes;
use courser_codec::{FieldTable, FieldValue};
use courser_codec::{ShortStr, ShortString};
use courser_store::Lsn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A binding as a client names it.
pub(crate) struct BindingRequest<'a> {
    /// The exchange that messages come from.
    pub source: ShortStr<'a>,
    pub destination: &'a ShortString,
    /// The destination is a queue, not an exchange.
    pub to_queue: bool,
    pub key: BindingKey,
}

impl Vhost {
    /// `queue.bind` and `exchange.bind`. Returns the LSN at which the binding survives, if it is to. Called
    /// outside the shard's gate. `may_go_on` is asked while what the exchange remembers is sent: whether there is a reason not
    /// to send the rest.
    ///
    /// # Errors
    /// The binding is not there then, unless another client has been told meanwhile that it is. Of what the
    /// exchange remembers, some may have been sent.
    pub(crate) fn bind(
        &self,
        request: BindingRequest<'_>,
        connection: ConnectionId,
        wakes: &mut Wakes,
        may_go_on: &dyn Fn() -> Result<(), Fault>,
    ) -> Result<Lsn, Fault> {
        arguments::check_size(&request.key.arguments)?;
        let (exchange, destination) = self.ends(&request, connection)?;
        // Without the lock, which may wait for the log. A binding whose history is being sent may be removed again.
        if exchange.history().is_none() && exchange.is_bound(&destination, &request.key) {
            return Ok(survives_at(&exchange, &destination));
        }
        let gate = self.shard.gate.read();
        let (lsn, bound) = self.make_binding(request, connection)?;
        drop(gate);
        let Some(bound) = bound else { return Ok(lsn) };
        if let Err(fault) = self.replay(&bound, wakes, may_go_on) {
            let _gate = self.shard.gate.read();
            let write = self.write.lock();
            if self.replays.end(&bound) {
                let removing = self.begin_removal();
                let mut gone = Gone::default();
                self.take_binding(&bound.exchange, &bound.destination, &bound.key, &mut gone);
                self.forget(gone, removing, Some(write))?;
            }
            return Err(fault);
        }
        self.replays.end(&bound);
        // What it remembers is in the log of a queue that survives now.
        Ok(if bound.destination.survives() { self.shard.store.end() } else { lsn })
    }

    /// Both ends of a binding that may be made, or is there.
    fn ends(
        &self,
        request: &BindingRequest<'_>,
        connection: ConnectionId,
    ) -> Result<(Arc<Exchange>, Destination), Fault> {
        let source = clean_name(request.source);
        self.refuse_if_deleted()?;
        super::declare::refuse_default_exchange(source.as_bytes())?;
        if !request.to_queue {
            super::declare::refuse_default_exchange(request.destination.as_bytes())?;
        }
        // Where both are missing, the exchange is the one that is named.
        let exchange = self.exchange_or_fault(source.as_bytes())?;
        let destination = self.destination(request.destination.as_bytes(), request.to_queue)?;
        match exchange.routes_as() {
            ExchangeKind::Headers => check_match_mode(&request.key.arguments)?,
            ExchangeKind::ConsistentHash => {
                weight(request.key.routing_key.as_bytes()).map_err(Fault::precondition_failed)?;
            }
            ExchangeKind::LocalRandom if !request.to_queue => {
                return Err(Fault::precondition_failed(format_args!(
                    "only queues can be bound to exchange '{source}' of type x-local-random"
                )));
            }
            _ => {}
        }
        if let Destination::Queue(queue) = &destination {
            self.check_owner(queue, connection)?;
        }
        Ok((exchange, destination))
    }

    /// Makes a binding, unless it is there. Returns the LSN at which it survives, and what is new, if its exchange
    /// has a history.
    fn make_binding(
        &self,
        request: BindingRequest<'_>,
        connection: ConnectionId,
    ) -> Result<(Lsn, Option<Arc<Bound>>), Fault> {
        let _write = self.write.lock();
        let (exchange, destination) = self.ends(&request, connection)?;
        let key = request.key;
        self.replays.take_over(&exchange, &destination, &key);
        if exchange.is_bound(&destination, &key) {
            // Perhaps with its arguments in another order: one definition stands for both.
            return Ok((survives_at(&exchange, &destination), None));
        }
        self.admit_binding(&exchange, &key)?;
        let lsn = self.define_binding(&exchange, &destination, &key)?;
        self.count_binding(&exchange, &key);
        self.tell_of_binding(EventKind::BindingCreated, &exchange, &destination, &key);
        let history = exchange.history().map(|history| (Arc::clone(history), history.numbers()));
        exchange.bind(&destination, key.clone());
        self.routes_changed();
        let bound = history.map(|(history, remembered)| {
            self.replays.begin(Bound { exchange, history, destination, key, remembered })
        });
        Ok((lsn, bound))
    }

    fn tell_of_binding(
        &self,
        kind: EventKind,
        source: &Exchange,
        destination: &Destination,
        key: &BindingKey,
    ) {
        self.monitor.events.tell(|| {
            Event::new(self.shard.timers.now_ms(), kind, &self.name, &source.name)
                .with("destination", destination.name())
                .with("routing_key", &key.routing_key)
        });
    }

    /// Removes a binding, if it is there. The caller holds the write lock.
    fn take_binding(
        &self,
        exchange: &Exchange,
        destination: &Destination,
        key: &BindingKey,
        gone: &mut Gone,
    ) -> Removed {
        let removed = exchange.unbind(destination, key, &mut |key| {
            self.tell_of_binding(EventKind::BindingDeleted, exchange, destination, key);
            self.binding_is_gone(exchange, destination, key, gone);
        });
        if removed.count > 0 {
            self.bindings.fetch_sub(removed.count, Ordering::Relaxed);
            self.routes_changed();
        }
        removed
    }

    /// `queue.unbind` and `exchange.unbind`. What is not bound is not an error. Returns the LSN at which
    /// the binding stays removed.
    pub(crate) fn unbind(
        &self,
        request: BindingRequest<'_>,
        connection: ConnectionId,
    ) -> Result<Lsn, Fault> {
        let source = clean_name(request.source);
        let write = self.write.lock();
        super::declare::refuse_default_exchange(source.as_bytes())?;
        if !request.to_queue {
            super::declare::refuse_default_exchange(request.destination.as_bytes())?;
        }
        let destination = self.destination(request.destination.as_bytes(), request.to_queue);
        let (Ok(destination), Some(exchange)) = (destination, self.exchange(source.as_bytes()))
        else {
            return Ok(self.logged());
        };
        let key = request.key;
        if let Destination::Queue(queue) = &destination
            && exchange.is_bound(&destination, &key)
        {
            self.check_owner(queue, connection)?;
        }
        let removing = self.begin_removal();
        let mut gone = Gone::default();
        let removed = self.take_binding(&exchange, &destination, &key, &mut gone);
        if removed.count == 0 {
            return Ok(self.logged());
        }
        if removed.none_left && exchange.settings.auto_delete {
            self.remove_exchange(&exchange, &mut gone);
        }
        self.forget(gone, removing, Some(write))
    }
}

/// How far the log has to be durable for a binding to survive that is there, if it is to.
fn survives_at(exchange: &Exchange, destination: &Destination) -> Lsn {
    match exchange.settings.durable && destination.survives() {
        true => destination.sources().defined.lsn(),
        false => Lsn::default(),
    }
}

/// The `x-match` argument of a binding to a headers exchange has few values.
fn check_match_mode(arguments: &FieldTable) -> Result<(), Fault> {
    let value = match arguments.get(headers::X_MATCH) {
        None => return Ok(()),
        Some(FieldValue::LongStr(_)) => headers::match_mode(arguments).unwrap_or_default(),
        Some(other) => {
            return Err(Fault::precondition_failed(format_args!(
                "Invalid x-match field type {} (value {}); expected longstr",
                other.type_name(),
                arguments::term(other)
            )));
        }
    };
    match value {
        b"all" | b"any" | b"all-with-x" | b"any-with-x" => Ok(()),
        other => Err(Fault::precondition_failed(format_args!(
            "Invalid x-match field value {}; expected all, any, all-with-x, or any-with-x",
            arguments::term(&FieldValue::LongStr(other.to_vec()))
        ))),
    }
}
