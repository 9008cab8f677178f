//! What the user of a session may do: asked before every method that names a queue or an exchange,
//! and before it is known whether that exists.

use super::Session;
use crate::arguments;
use crate::direct_reply::REPLY_TO;
use crate::exchange::ExchangeKind;
use crate::fault::Fault;
use crate::outbox::ChannelOut;
use crate::vhost::{WriteTarget, clean_name, owned_arguments, refuse_default_exchange};
use courser_auth::{Access, Resource, Right};
use courser_codec::reply_code::RESOURCE_ERROR;
use courser_codec::{FieldTable, FieldValue, Method, ShortStr, ShortString, exchange, queue};
use courser_store::critical;

impl Session {
    /// Counts one more channel for the user.
    ///
    /// # Errors
    /// If the user has as many as it may have, or all clients together; ends the connection.
    pub fn admit_channel(&mut self) -> Result<(), Fault> {
        let admitted = self.admit_held(ChannelOut::NEW_BYTES);
        admitted.map_err(|fault| Fault::new(RESOURCE_ERROR, fault.explanation))?;
        let broker = &self.broker;
        self.client.admission.open_channel(|user| broker.limits_of(user))
    }

    /// Refuses what channels and consumers would use, of which each connection has some room at any time.
    pub(super) fn admit_held(&self, bytes: usize) -> Result<(), Fault> {
        let holds_within = |most| self.outbox.lock().holds_within(most);
        self.broker.memory.admit_held(bytes, holds_within)
    }

    /// Takes note of other rights that the user has from now on: routes are remembered together with the permission
    /// to take them. Those of other connections stay.
    pub fn rights_changed(&mut self) {
        self.forget_routes(self.routes.generation());
    }

    /// What knows the user's rights. It may have to ask another program, which takes its time.
    fn access(&mut self) -> &mut Access {
        critical::assert_outside("a permission is asked for");
        &mut self.client.admission.access
    }

    /// Refuses a method that the user may not carry out. Called outside the shard's gate.
    pub(super) fn permit(&mut self, number: u16, method: &Method<'_>) -> Result<(), Fault> {
        if self.client.admission.access.permits_everything() {
            return Ok(());
        }
        match method {
            Method::ExchangeDeclare(declare) => self.permit_exchange_declare(declare),
            Method::ExchangeDelete(delete) => {
                let name = clean_name(delete.exchange);
                self.vhost.refuse_system_exchange(&name)?;
                self.may(Right::Configure, Resource::Exchange(name.as_bytes()))
            }
            Method::ExchangeBind(bind) => {
                let destination = clean_name(bind.destination);
                let destination = Resource::Exchange(destination.as_bytes());
                self.permit_binding(destination, bind.source, bind.routing_key)
            }
            Method::ExchangeUnbind(unbind) => {
                let destination = clean_name(unbind.destination);
                let destination = Resource::Exchange(destination.as_bytes());
                self.permit_binding(destination, unbind.source, unbind.routing_key)
            }
            Method::QueueDeclare(declare) => self.permit_queue_declare(declare),
            Method::QueueBind(bind) => {
                let names = (clean_name(bind.queue), bind.routing_key);
                self.permit_queue_binding(number, names, bind.exchange)
            }
            Method::QueueUnbind(unbind) => {
                let names = (clean_name(unbind.queue), unbind.routing_key);
                self.permit_queue_binding(number, names, unbind.exchange)
            }
            Method::QueueDelete(delete) => {
                self.may_with_queue(Right::Configure, number, delete.queue)
            }
            Method::QueuePurge(purge) => self.may_with_queue(Right::Read, number, purge.queue),
            Method::BasicGet(get) => self.may_with_queue(Right::Read, number, get.queue),
            Method::BasicConsume(consume) => {
                self.may_with_queue(Right::Read, number, consume.queue)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a publish that the user may not make.
    #[cold]
    pub(super) fn permit_publish(&mut self, name: &[u8], keys: &[&[u8]]) -> Result<(), Fault> {
        if self.client.admission.access.permits_everything() {
            return Ok(());
        }
        self.vhost.publish_targets(name, keys).try_for_each(|target| {
            let access = self.access();
            let checked = match target {
                WriteTarget::Queue(name) => access.check(Right::Write, Resource::Queue(name)),
                WriteTarget::Exchange(name) => access.check(Right::Write, Resource::Exchange(name)),
                WriteTarget::Topic { exchange, key } => {
                    access.check_topic(Right::Write, exchange, key)
                }
            };
            checked.map_err(Fault::access_refused)
        })
    }

    /// Refuses a queue that the broker has just made up a name for.
    pub(super) fn permit_named(&mut self, name: &ShortString) -> Result<(), Fault> {
        self.may(Right::Configure, Resource::Queue(name.as_bytes()))
    }

    /// Refuses a new queue whose dead letters would go where its user may not publish.
    pub(super) fn permit_dead_letters(
        &mut self,
        name: &ShortString,
        given: &FieldTable,
    ) -> Result<(), Fault> {
        let own = Resource::Queue(name.as_bytes());
        self.permit_forwarding(own, given.get(arguments::DEAD_LETTER_EXCHANGE))
    }

    /// Refuses a new exchange whose unrouted messages would go where its user may not publish.
    pub(super) fn permit_alternate(
        &mut self,
        declare: &exchange::Declare<'_>,
    ) -> Result<(), Fault> {
        let name = clean_name(declare.exchange);
        let given = owned_arguments(declare.arguments)?;
        let own = Resource::Exchange(name.as_bytes());
        self.permit_forwarding(own, given.get(arguments::ALTERNATE_EXCHANGE))
    }

    fn permit_exchange_declare(&mut self, declare: &exchange::Declare<'_>) -> Result<(), Fault> {
        let name = clean_name(declare.exchange);
        refuse_default_exchange(name.as_bytes())?;
        let own = Resource::Exchange(name.as_bytes());
        if declare.passive {
            return self.access().check_any(own).map_err(Fault::access_refused);
        }
        self.may(Right::Configure, own)
    }

    fn permit_queue_declare(&mut self, declare: &queue::Declare<'_>) -> Result<(), Fault> {
        let name = clean_name(declare.queue);
        if self.find_reply_queue(&name).is_some() {
            return Ok(());
        }
        let own = Resource::Queue(name.as_bytes());
        match (declare.passive, name.is_empty()) {
            (true, _) => self.access().check_any(own).map_err(Fault::access_refused),
            // Asked when it has a name.
            (false, true) => Ok(()),
            (false, false) => self.may(Right::Configure, own),
        }
    }

    /// What something passes on to an exchange was read from it, and is written there.
    fn permit_forwarding(
        &mut self,
        own: Resource<'_>,
        to: Option<&FieldValue>,
    ) -> Result<(), Fault> {
        // Another type is refused with the other arguments.
        let Some(FieldValue::LongStr(to)) = to else { return Ok(()) };
        self.may(Right::Read, own)?;
        self.may(Right::Write, Resource::Exchange(to))
    }

    fn permit_queue_binding(
        &mut self,
        number: u16,
        (queue, key): (ShortString, ShortStr<'_>),
        source: ShortStr<'_>,
    ) -> Result<(), Fault> {
        let (queue, key) = self.queue_and_key(number, queue, key)?;
        self.permit_binding(Resource::Queue(queue.as_bytes()), source, key.as_short_str())
    }

    fn permit_binding(
        &mut self,
        destination: Resource<'_>,
        source: ShortStr<'_>,
        routing_key: ShortStr<'_>,
    ) -> Result<(), Fault> {
        self.may(Right::Write, destination)?;
        let source = clean_name(source);
        refuse_default_exchange(source.as_bytes())?;
        if let Resource::Exchange(name) = destination {
            refuse_default_exchange(name)?;
        }
        self.may(Right::Read, Resource::Exchange(source.as_bytes()))?;
        match self.vhost.exchange(source.as_bytes()) {
            Some(exchange) if exchange.settings.kind == ExchangeKind::Topic => {
                let (source, key) = (source.as_bytes(), routing_key.as_bytes());
                let read = self.access().check_topic(Right::Read, source, key);
                read.map_err(Fault::access_refused)
            }
            _ => Ok(()),
        }
    }

    fn may_with_queue(
        &mut self,
        right: Right,
        number: u16,
        name: ShortStr<'_>,
    ) -> Result<(), Fault> {
        let name = self.queue_name(number, clean_name(name))?;
        if name == *REPLY_TO {
            return Ok(());
        }
        self.may(right, Resource::Queue(name.as_bytes()))
    }

    fn may(&mut self, right: Right, resource: Resource<'_>) -> Result<(), Fault> {
        self.access().check(right, resource).map_err(Fault::access_refused)
    }
}
