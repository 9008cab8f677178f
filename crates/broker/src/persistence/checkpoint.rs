//! What a checkpoint of a shard asks of the broker.

use crate::broker::Broker;
use crate::shard::Shard;
use crate::vhost::Vhost;
use courser_store::recovered::CheckpointWriter;
use courser_store::{Lsn, Position, ShardId, ShardState};
use std::io::{self, Write};
use std::sync::Arc;

/// The state of a shard, for its checkpoints.
pub struct StateOfShard {
    broker: Arc<Broker>,
    shard: Arc<Shard>,
}

impl Broker {
    /// What a checkpoint of a shard has to know; none if it is not open.
    pub fn state_of(self: &Arc<Self>, shard: ShardId) -> Option<StateOfShard> {
        Some(StateOfShard { broker: Arc::clone(self), shard: self.shard(shard)? })
    }
}

impl StateOfShard {
    /// The vhosts on the shard; an error if it has been closed, and they are not known any more.
    fn vhosts(&self) -> io::Result<Vec<Arc<Vhost>>> {
        // Those that arrive first: one that has arrived meanwhile is among the others then.
        let arrivals = self.broker.arrivals.all();
        let mut vhosts = self.broker.vhosts();
        vhosts.retain(|vhost| !arrivals.iter().any(|arrival| Arc::ptr_eq(arrival, vhost)));
        vhosts.extend(arrivals);
        vhosts.retain(|vhost| Arc::ptr_eq(vhost.shard(), &self.shard));
        // Asked after they were listed: some of them may have gone before.
        match self.shard.is_closed() {
            false => Ok(vhosts),
            true => Err(io::Error::other(format!("shard {} is closed", self.shard.id))),
        }
    }
}

impl ShardState for StateOfShard {
    fn start(&self) -> Lsn {
        let end = self.shard.store.end();
        // A thread that has appended a change before that is in the gate until the change has taken effect.
        self.shard.gate.wait_for_passers();
        end
    }

    fn write(&self, start: Lsn, out: &mut dyn Write) -> io::Result<()> {
        let vhosts = self.vhosts()?;
        let mut writer = CheckpointWriter::new(out);
        let mut written = Ok(());
        if self.shard.id == ShardId::HOME {
            self.broker.for_each_broker_definition(&mut |key, value| {
                if written.is_ok() {
                    written = writer.definition(key, value);
                }
            });
        }
        for vhost in vhosts {
            vhost.for_each_definition(&mut |key, value| {
                if written.is_ok() {
                    written = writer.definition(key, value);
                }
            });
            for exchange in vhost.exchanges() {
                if let Some(history) = exchange.history().filter(|history| history.survives())
                    && written.is_ok()
                {
                    written = writer.queue(history.number(), &history.positions_below(start, true));
                }
                let Some(delay) = exchange.delay().filter(|delay| delay.survives()) else {
                    continue;
                };
                delay.for_each_run_below(start, true, &mut |run| {
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
                    queue.for_each_run_below(start, true, &mut |run, priority| {
                        if written.is_ok() {
                            written = writer.messages(queue.id, run, priority);
                        }
                        let keys = queue.keys_at(run);
                        if written.is_ok() && !keys.is_empty() {
                            written = writer.keys(queue.id, &keys);
                        }
                    });
                    let returns = queue.returns_below(start);
                    if written.is_ok() && !returns.is_empty() {
                        written = writer.returns(queue.id, returns.into_iter());
                    }
                }
            }
        }
        // What is removed is missing here before the log is told so, both in the gate. When all are out that were in
        // it, the log has every change that may have been written.
        self.shard.gate.wait_for_passers();
        written
    }

    fn for_each_live(&self, start: Lsn, each: &mut dyn FnMut(Position)) {
        // Of a closed shard no checkpoint is made: writing it fails.
        for vhost in self.vhosts().unwrap_or_default() {
            for exchange in vhost.exchanges() {
                if let Some(delay) = exchange.delay() {
                    delay.for_each_run_below(start, false, &mut |run| {
                        run.iter().for_each(|(position, _)| each(*position));
                    });
                }
                if let Some(history) = exchange.history() {
                    history.positions_below(start, false).into_iter().for_each(&mut *each);
                }
            }
            for queue in vhost.queues().into_iter().chain(vhost.replies.all()) {
                if let Some(stream) = queue.stream() {
                    stream.for_each_position_below(start, each);
                }
                queue.for_each_run_below(start, false, &mut |run, _| {
                    run.iter().for_each(|(position, _)| each(*position));
                });
            }
        }
    }
}
