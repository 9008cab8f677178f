//! Declaring queues and exchanges without a connection.
//!
//! A new one may need permissions of its own, as messages go on from it. `redeclare_*` makes nothing, and says whether
//! there is one; `declare_*` makes one that is not there. The caller asks for these permissions between the two.

use super::Admin;
use super::commands::{NO_CONNECTION, new_name, short};
use crate::exchange::ExchangeSettings;
use crate::fault::Fault;
use crate::vhost::QueueRequest;
use courser_codec::{FieldTable, Table, exchange};

/// A queue to be declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewQueue {
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// The arguments of `queue.declare`.
    pub arguments: FieldTable,
}

impl Admin {
    /// Declares an exchange that is there. Returns whether there is one of this name.
    ///
    /// # Errors
    /// As `exchange.declare`.
    pub fn redeclare_exchange(
        &self,
        vhost: &str,
        name: &str,
        settings: &ExchangeSettings,
    ) -> Result<bool, Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let entries = settings.arguments.to_entries();
        let found = vhost.redeclare_exchange(&exchange_declare(name, settings, &entries)?)?;
        Ok(found.is_some())
    }

    /// Declares an exchange, which may be there already.
    ///
    /// # Errors
    /// As `exchange.declare`.
    pub fn declare_exchange(
        &self,
        vhost: &str,
        name: &str,
        settings: &ExchangeSettings,
    ) -> Result<(), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let entries = settings.arguments.to_entries();
        let declare = exchange_declare(name, settings, &entries)?;
        vhost.declare_exchange(&declare, || vhost.shard().next_id()).map(drop)
    }

    /// Declares a queue that is there. Returns whether there is one of this name.
    ///
    /// # Errors
    /// As `queue.declare`.
    pub fn redeclare_queue(&self, vhost: &str, name: &str, queue: NewQueue) -> Result<bool, Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let found = vhost.redeclare_queue(&mut request(name, queue)?, NO_CONNECTION)?;
        Ok(found.is_some())
    }

    /// Declares a queue, which may be there already.
    ///
    /// # Errors
    /// As `queue.declare`.
    pub fn declare_queue(&self, vhost: &str, name: &str, queue: NewQueue) -> Result<(), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let _change = vhost.begin_change()?;
        let request = request(name, queue)?;
        vhost.declare_queue(request, NO_CONNECTION, || vhost.shard().next_id()).map(drop)
    }
}

fn exchange_declare<'a>(
    name: &'a str,
    settings: &'a ExchangeSettings,
    entries: &'a [u8],
) -> Result<exchange::Declare<'a>, Fault> {
    Ok(exchange::Declare {
        exchange: new_name(name)?,
        kind: short(settings.kind.name())?,
        durable: settings.durable,
        auto_delete: settings.auto_delete,
        internal: settings.internal,
        arguments: Table::from_entries(entries),
        ..Default::default()
    })
}

pub(super) fn request(name: &str, queue: NewQueue) -> Result<QueueRequest, Fault> {
    if name.is_empty() {
        return Err(Fault::precondition_failed("a queue needs a name"));
    }
    Ok(QueueRequest {
        name: new_name(name)?.into(),
        named_by_broker: false,
        durable: queue.durable,
        exclusive: false,
        auto_delete: queue.auto_delete,
        arguments: queue.arguments,
    })
}
