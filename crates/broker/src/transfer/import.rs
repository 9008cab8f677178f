//! Taking in a vhost, piece by piece, as another broker reads it out.

use super::batch::{Batch, Target};
use super::item::{self, Item, Totals};
use crate::broker::Broker;
use crate::fault::{Fault, store_fault};
use crate::persistence::definition::{self, Definition};
use crate::persistence::scope::Definitions;
use crate::queue::{CameBack, Returns};
use crate::vhost::{Vhost, VhostSettings};
use bytes::{Bytes, BytesMut};
use courser_store::MessageRef;
use courser_store::change::Replayed;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// A vhost that arrives. What has come of it is thrown away if this is dropped before it is finished.
pub struct Import {
    broker: Arc<Broker>,
    vhost: Arc<Vhost>,
    /// By the numbers of the broker that it comes from, who holds messages here.
    targets: FxHashMap<u64, Target>,
    /// What has come and can't be taken in yet: the rest of it, or of what is noted of it, is still to come.
    half: BytesMut,
    has_begun: bool,
    totals: Totals,
    /// What there has to be, once that is known: nothing comes after it.
    promised: Option<Totals>,
    is_finished: bool,
}

impl Import {
    /// Begins to take a vhost in. It is not found yet.
    ///
    /// # Errors
    /// When there is a vhost of this name, or one is arriving.
    pub(crate) fn begin(
        broker: &Arc<Broker>,
        name: &str,
        number: u64,
        settings: &VhostSettings,
    ) -> Result<Self, Fault> {
        let import = Import {
            broker: Arc::clone(broker),
            vhost: broker.begin_arrival(name, number, settings)?,
            targets: FxHashMap::default(),
            half: BytesMut::new(),
            has_begun: false,
            totals: Totals::default(),
            promised: None,
            is_finished: false,
        };
        // What comes follows these at once: nothing may be lost that they keep.
        broker.configure_vhost(&import.vhost).map_err(Fault::precondition_failed)?;
        Ok(import)
    }

    /// Takes in the next piece. Blocks while the log has too much to write.
    ///
    /// # Errors
    /// When it is none, the vhost has been forgotten meanwhile, or it can't be kept.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), Fault> {
        if self.vhost.is_deleted() {
            return Err(self.broken("it has been given up"));
        }
        self.half.extend_from_slice(piece);
        let complete = self.half.split_to(item::complete(&self.half)).freeze();
        let taken = self.take_items(&complete);
        self.broker.check_alarms();
        taken
    }

    fn take_items(&mut self, items: &Bytes) -> Result<(), Fault> {
        let (mut rest, mut batch) = (&items[..], Batch::default());
        while let Some(bytes) = item::take(&mut rest) {
            let item = Item::parse(bytes).map_err(|why| self.broken(why))?;
            if self.promised.is_some() || self.has_begun == matches!(item, Item::Begin(_)) {
                return Err(self.broken("its parts are not in their order"));
            }
            match item {
                Item::Begin(name) if name == self.vhost.name => self.has_begun = true,
                Item::Begin(name) => return Err(self.broken(format_args!("it is vhost '{name}'"))),
                Item::End(totals) => self.promised = Some(totals),
                Item::Record(record, message) => self.take_record(record, message, &mut batch)?,
            }
        }
        if !batch.is_empty() {
            let store = &*self.vhost.shard().store;
            let settled = self.vhost.take_in(|| batch.settle_in(store).map_err(store_fault));
            self.totals.messages += settled?;
        }
        Ok(())
    }

    fn take_record<'a>(
        &mut self,
        record: Replayed<'a>,
        message: Option<MessageRef<'a>>,
        batch: &mut Batch<'a>,
    ) -> Result<(), Fault> {
        match (record, message) {
            (Replayed::Defined { key, value }, _) if batch.is_empty() => {
                self.totals.definitions += 1;
                self.define(key, value)
            }
            (Replayed::Stream { queue, first_offset, .. }, _) if batch.is_empty() => {
                match self.targets.get(&queue) {
                    Some(Target::Queue(queue))
                        if self.vhost.begin_stream(queue, first_offset)? =>
                    {
                        Ok(())
                    }
                    _ => Err(self.broken("a stream is none")),
                }
            }
            (Replayed::Message { queues, .. }, Some(message)) => {
                let targets: Option<Vec<Target>> =
                    queues.iter().map(|queue| self.targets.get(queue).cloned()).collect();
                let keeps = |target: &Target| !matches!(target, Target::Delay(_));
                let targets = targets.filter(|all| all.iter().all(keeps));
                let targets = targets.ok_or_else(|| self.broken("a message is in no queue"))?;
                batch.push(message, targets, None);
                Ok(())
            }
            (Replayed::Delayed { queue, due_ms }, Some(message)) => {
                match self.targets.get(&queue) {
                    Some(target @ Target::Delay(_)) => {
                        batch.push(message, vec![target.clone()], Some(due_ms));
                        Ok(())
                    }
                    _ => Err(self.broken("a message waits nowhere")),
                }
            }
            (Replayed::Returned { queue, returns }, _) => {
                let queue = self.targets.get(&queue);
                let returns = match &returns[..] {
                    [(_, code)] => Some((code, 0)),
                    [(_, code), (_, unharmed)] => Some((code, *unharmed)),
                    _ => None,
                };
                let noted = match (queue, returns) {
                    (Some(Target::Queue(queue)), Some((code, unharmed))) => {
                        let how = CameBack::of_code(*code);
                        batch.note_returns(queue.id, Returns { how, unharmed })
                    }
                    _ => false,
                };
                if noted { Ok(()) } else { Err(self.broken("a message came back to no queue")) }
            }
            _ => Err(self.broken("there is a record in it that has no place there")),
        }
    }

    /// Makes what is defined in the vhost.
    fn define(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        if key.first() == Some(&definition::PARAMETER) {
            if !key.starts_with(&definition::parameter_prefix(&self.vhost.name)) {
                return Err(self.broken("it has a parameter of another vhost"));
            }
            let is_there = |_: &Definitions| self.vhost.refuse_if_deleted();
            return self.broker.define_for_broker_if(key.to_vec(), value, is_there).map(drop);
        }
        let parsed = definition::parse(key, value);
        let definition = parsed.ok_or_else(|| self.broken("a definition makes no sense"))?;
        let (of, is_made) = match definition {
            Definition::Policy { vhost, kind, policy } => {
                self.vhost.bring_policy(kind, policy)?;
                (vhost, true)
            }
            Definition::Exchange { vhost, name, id, settings } => {
                let exchange = self.vhost.bring_exchange(name, settings)?;
                if let Some(id) = id {
                    let is_delay = exchange.delay().is_some();
                    let target = if is_delay { Target::Delay } else { Target::History };
                    self.targets.insert(id, target(exchange));
                }
                (vhost, true)
            }
            Definition::Queue { vhost, name, id, settings, paused } => {
                let queue = self.vhost.bring_queue(name, settings, paused)?;
                self.targets.insert(id, Target::Queue(queue));
                (vhost, true)
            }
            Definition::Binding { vhost, binding } => {
                (vhost, self.vhost.bring_binding(key, binding)?)
            }
            Definition::Vhost { vhost, .. } => (vhost, false),
        };
        match of == self.vhost.name && is_made {
            true => Ok(()),
            false => Err(self.broken("a definition has no place in it")),
        }
    }

    /// Ends it: the vhost is here as a whole, once the log is durable. It can be accepted then, or
    /// forgotten.
    ///
    /// # Errors
    /// When something is missing, or that can't be kept. What has come is thrown away then.
    pub fn finish(mut self) -> Result<(), Fault> {
        if !self.half.is_empty() || self.promised != Some(self.totals) {
            let Totals { definitions, messages } = self.totals;
            return Err(self.broken(format_args!(
                "it ends after {definitions} definitions and {messages} messages"
            )));
        }
        self.vhost.follow_restored_policies();
        self.broker.end_arrival(&self.vhost)?;
        self.is_finished = true;
        Ok(())
    }

    /// How many messages have been taken in.
    pub fn messages(&self) -> u64 {
        self.totals.messages
    }

    fn broken(&self, why: impl fmt::Display) -> Fault {
        Fault::internal_error(format_args!(
            "vhost '{}' can't be taken in as it comes: {why}",
            self.vhost.name
        ))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        if !self.is_finished {
            // What the store does not forget now, the next start does.
            let is_own = |now: &Arc<Vhost>| Arc::ptr_eq(now, &self.vhost);
            drop(self.broker.forget_arrival(&self.vhost.name, is_own));
        }
    }
}

impl fmt::Debug for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import").field("vhost", &self.vhost.name).finish_non_exhaustive()
    }
}
