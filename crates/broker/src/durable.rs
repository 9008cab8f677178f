//! Restarts: what the broker hands to a store's checkpoint, and what it takes back at a start.

use crate::broker::Broker;
use crate::definition::{self, Definition};
use crate::exchange::Destination;
use courser_store::recovered::CheckpointWriter;
use courser_store::{Lsn, Recovered};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

/// Why what a store has recovered can't be taken back.
#[derive(Debug)]
pub struct RestoreError {
    key: Vec<u8>,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the definition '{}' can't be read", self.key.escape_ascii())
    }
}

impl std::error::Error for RestoreError {}

impl Broker {
    /// Takes back what was there before a restart. Returns how many messages that is.
    pub fn restore(&self, recovered: Recovered) -> Result<usize, RestoreError> {
        let mut bindings = Vec::new();
        let mut queues = HashMap::new();
        let (mut delays, mut histories) = (HashMap::new(), HashMap::new());
        self.reserve_ids(&recovered);
        for (key, value) in recovered.definitions {
            match definition::parse(&key, &value)
                .ok_or_else(|| RestoreError { key: key.clone() })?
            {
                Definition::Exchange { vhost, name, id, settings } => {
                    let vhost = self.add_vhost(&vhost);
                    let exchange = vhost.restore_exchange(name, id, settings, || self.next_id());
                    if let Some(delay) = exchange.delay() {
                        delays.insert(exchange.id, Arc::clone(delay));
                    }
                    if let Some(history) = exchange.history() {
                        histories.insert(exchange.id, Arc::clone(history));
                    }
                }
                Definition::Queue { vhost, name, id, settings } => {
                    let vhost = self.add_vhost(&vhost);
                    let queue = vhost.make_queue(id, name, settings);
                    queues.insert(id, queue.clone());
                    vhost.restore(Destination::Queue(queue));
                }
                Definition::Binding { vhost, binding } => bindings.push((vhost, binding)),
                Definition::Vhost { vhost, limits } => self.add_vhost(&vhost).set_limits(limits),
                // Before every queue and exchange: definitions come in the order of their keys.
                Definition::Policy { vhost, kind, policy } => {
                    let restored = self.add_vhost(&vhost).restore_policy(kind, policy);
                    restored.map_err(|_| RestoreError { key })?;
                }
            }
        }
        for (vhost, binding) in bindings {
            self.add_vhost(&vhost).restore_binding(binding);
        }
        let mut messages = 0;
        for (id, index) in recovered.queues {
            // Those of a queue or an exchange that was deleted are nobody's.
            if let Some(queue) = queues.get(&id) {
                messages += queue.restore(&index, &*self.store);
            } else if let Some(history) = histories.get(&id) {
                history.restore(index.positions());
            }
        }
        for (id, index) in recovered.streams {
            if let Some(stream) = queues.get(&id).and_then(|queue| queue.stream()) {
                messages += stream.restore(index) as usize;
            }
        }
        for (id, index) in recovered.delayed {
            let Some(delay) = delays.get(&id) else { continue };
            messages += delay.restore(index.pairs());
        }
        Ok(messages)
    }

    /// Numbers are never used again: those that the log has are taken before any is given out.
    fn reserve_ids(&self, recovered: &Recovered) {
        let in_log = recovered.queues.keys().chain(recovered.streams.keys());
        in_log.chain(recovered.delayed.keys()).for_each(|id| self.reserve_id(*id));
        for (key, value) in &recovered.definitions {
            if let Some(Definition::Exchange { id: Some(id), .. } | Definition::Queue { id, .. }) =
                definition::parse(key, value)
            {
                self.reserve_id(id);
            }
        }
    }

    /// Where a checkpoint begins that is written now: everything before it has taken effect.
    pub fn checkpoint_start(&self) -> Lsn {
        // Whoever is between appending and taking effect holds the gate for reading.
        let _gate = self.gate.write();
        self.store.end()
    }

    /// Writes everything that has to survive and lies before `start`.
    pub fn write_checkpoint(&self, start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = CheckpointWriter::new(out);
        let mut written = Ok(());
        for vhost in self.vhosts() {
            vhost.for_each_definition(&mut |key, value| {
                if written.is_ok() {
                    written = writer.definition(key, value);
                }
            });
            for exchange in vhost.exchanges() {
                if let Some(history) = exchange.history().filter(|history| history.survives())
                    && written.is_ok()
                {
                    written =
                        writer.queue(history.number(), &history.positions_below(start.0, true));
                }
                let Some(delay) = exchange.delay().filter(|delay| delay.survives()) else {
                    continue;
                };
                delay.for_each_run_below(start.0, true, &mut |run| {
                    if written.is_ok() {
                        written = writer.delayed(delay.number, run.iter().copied());
                    }
                });
            }
            for queue in vhost.queues() {
                if let Some(stream) = queue.stream() {
                    stream.for_each_piece(&mut |piece| {
                        if written.is_ok() {
                            written = writer.stream(queue.id, piece);
                        }
                    });
                } else if queue.settings.survives() {
                    queue.for_each_run_below(start.0, true, &mut |run| {
                        if written.is_ok() {
                            written = writer.queue(queue.id, run);
                        }
                    });
                    let returns = queue.returns_below(start.0);
                    if written.is_ok() && !returns.is_empty() {
                        written = writer.returns(queue.id, returns.into_iter());
                    }
                }
            }
        }
        written
    }

    /// Calls `each` with the position before `start` of every message in the log that some queue
    /// still has.
    pub fn for_each_live(&self, start: Lsn, each: &mut dyn FnMut(u64)) {
        for vhost in self.vhosts() {
            for exchange in vhost.exchanges() {
                if let Some(delay) = exchange.delay() {
                    delay.for_each_run_below(start.0, false, &mut |run| {
                        run.iter().for_each(|(position, _)| each(*position));
                    });
                }
                if let Some(history) = exchange.history() {
                    history.positions_below(start.0, false).into_iter().for_each(&mut *each);
                }
            }
            for queue in vhost.queues().into_iter().chain(vhost.replies.all()) {
                if let Some(stream) = queue.stream() {
                    stream.for_each_position_below(start.0, each);
                }
                queue.for_each_run_below(start.0, false, &mut |run| {
                    run.iter().for_each(|position| each(*position));
                });
            }
        }
    }
}
