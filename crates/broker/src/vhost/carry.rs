//! What is defined in a vhost, one by one, for another broker, and making it there as it was.

use super::{Vhost, is_predefined};
use crate::arguments::QueueType;
use crate::exchange::{BindingKey, Destination, Exchange, ExchangeSettings};
use crate::fault::{Fault, store_fault};
use crate::persistence::definition::{self, DefinedBinding};
use crate::policy::{CompiledPolicy, Policy, PolicyKind};
use crate::queue::{Queue, QueueSettings};
use courser_codec::ShortString;
use courser_store::Sync;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Vhost {
    /// Calls `each` with the key and the value of every policy.
    pub(crate) fn for_each_policy(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        let mut all = Vec::new();
        self.policies.read().for_each_kept(&mut |kind, policy| {
            let key = definition::policy_key(&self.name, kind, &policy.name);
            all.push((key, definition::policy_value(policy)));
        });
        // It may be slow, and no lock is held.
        all.iter().for_each(|(key, value)| each(key, value));
    }

    /// Whether an exchange has to be made where the vhost is made.
    pub(crate) fn defines(&self, exchange: &Exchange) -> bool {
        exchange.settings.durable && !is_predefined(&exchange.name)
    }

    /// Calls `each` with the key of every binding of an exchange that survives a restart.
    pub(crate) fn for_each_binding_of(&self, exchange: &Exchange, each: &mut dyn FnMut(&[u8])) {
        let _ = exchange.for_each_binding(None, &mut |destination, routing_key, arguments| {
            let key = BindingKey { routing_key: routing_key.clone(), arguments: arguments.clone() };
            if let Some(key) = self.durable_binding(exchange, destination, &key) {
                each(&key);
            }
            ControlFlow::Continue(())
        });
    }

    /// Has something come in, in the log and here, unless the vhost has been forgotten meanwhile: it is removed with that, or
    /// does not come any more. Called outside the gate.
    pub(crate) fn take_in<T>(&self, what: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        let _gate = self.shard.gate.read();
        // Taken once by the thread that forgets it, between its mark and its look at what is there.
        let _write = self.write.lock();
        self.refuse_if_deleted()?;
        what()
    }

    /// Makes a policy as it was elsewhere. So do the others here with what they are for; all of them outside the gate, as
    /// it is worked out first which policies count.
    pub(crate) fn bring_policy(&self, kind: PolicyKind, policy: Policy) -> Result<(), Fault> {
        let restored = CompiledPolicy::restored(kind, policy);
        let policy = &restored.policy;
        if let Some(why) = restored.refused() {
            // It may have matched where it comes from: queues would lose here what it says of them.
            return Err(Fault::precondition_failed(format_args!(
                "policy '{}' of vhost '{}' has to be changed or cleared before: {why}",
                policy.name, self.name
            )));
        }
        let key = definition::policy_key(&self.name, kind, &policy.name);
        let value = definition::policy_value(policy);
        self.take_in(|| {
            self.append_definition(&key, &value)?;
            self.restore_policy(restored);
            Ok(())
        })
    }

    pub(crate) fn bring_exchange(
        &self,
        name: ShortString,
        settings: ExchangeSettings,
    ) -> Result<Arc<Exchange>, Fault> {
        let policies = self.staying_policies();
        let policy = policies.of_exchange(&name, true);
        self.take_in(|| {
            let exchange = self.make_exchange(self.shard.next_id(), name, settings, policy);
            self.define_exchange(&exchange)?;
            self.show(Destination::Exchange(Arc::clone(&exchange)));
            Ok(exchange)
        })
    }

    pub(crate) fn bring_queue(
        &self,
        name: ShortString,
        settings: QueueSettings,
        is_paused: bool,
    ) -> Result<Arc<Queue>, Fault> {
        let policies = self.staying_policies();
        let of_queue = policies.of_queue(&name, QueueType::of(&settings.arguments), true);
        self.take_in(|| {
            let queue = self.make_queue(self.shard.next_id(), name, settings, of_queue);
            queue.set_paused(is_paused);
            self.define_queue(&queue)?;
            self.show(Destination::Queue(Arc::clone(&queue)));
            Ok(queue)
        })
    }

    /// Has a stream that was just made begin at an offset. Returns whether it is one.
    pub(crate) fn begin_stream(&self, queue: &Queue, first_offset: u64) -> Result<bool, Fault> {
        let Some(stream) = queue.stream() else { return Ok(false) };
        self.take_in(|| {
            stream.begin_at(first_offset);
            let record = [stream.record()];
            let appended = self.shard.store.append(&record, Sync::Later, &mut Vec::new());
            appended.map(|_| true).map_err(store_fault)
        })
    }

    /// Returns whether the ends of the binding are there.
    pub(crate) fn bring_binding(&self, key: &[u8], binding: DefinedBinding) -> Result<bool, Fault> {
        self.take_in(|| {
            let lsn = self.append_definition(key, &[])?;
            Ok(self.restore_binding(binding, lsn))
        })
    }
}
