//! Ending what clients have begun: a consumer, a channel.

use super::Admin;
use crate::fault::Fault;
use crate::outbox::Outbox;
use crate::queue::{Departure, Queue};
use crate::vhost::Vhost;
use crate::wakes::Wakes;
use std::sync::Arc;

impl Admin {
    /// Ends a consumer. Its client is told (`basic.cancel`) if it wants to hear of that; what it has not
    /// acknowledged stays with it.
    ///
    /// # Errors
    /// When there is no such connection, channel or consumer.
    pub fn cancel_consumer(&self, connection: &str, channel: u16, tag: &[u8]) -> Result<(), Fault> {
        let outbox = self.known_connection(connection)?;
        let vhost = self.known_vhost(&outbox.connection.vhost.name)?;
        let found = {
            let mut state = outbox.lock();
            let channel_out = state.channel(channel);
            channel_out.and_then(|channel| {
                let slot = channel.slot(channel.find_consumer(tag)?)?;
                Some((Arc::clone(&slot.queue), slot.consumer_key))
            })
        };
        let mut wakes = Wakes::default();
        let evicted = found.and_then(|(queue, key)| {
            let departure = queue.evict(key, (&outbox, channel), &mut wakes)?;
            Some((queue, departure))
        });
        let Some((queue, departure)) = evicted else {
            let tag = tag.escape_ascii();
            return Err(Fault::not_found(format_args!(
                "no consumer '{tag}' on channel {channel} of connection '{connection}'"
            )));
        };
        self.follow_departure(&vhost, &queue, departure, &mut wakes);
        wakes.wake_all();
        Ok(())
    }

    /// Does for a queue what has to be done without a consumer that has gone.
    fn follow_departure(
        &self,
        vhost: &Arc<Vhost>,
        queue: &Arc<Queue>,
        departure: Departure,
        wakes: &mut Wakes,
    ) {
        let shard = vhost.shard();
        let _gate = shard.gate.read();
        match departure {
            Departure::Unnoticed => {}
            // Refused if it has got another one in the meantime.
            Departure::QueueIsUseless => {
                drop(vhost.delete_queue_if(queue, true, false, |_, _| {}, wakes));
            }
            // A store that can't read has poisoned itself; its owner ends the broker.
            Departure::OthersMayGoOn => drop(queue.activate_next(&*shard.store, wakes)),
        }
        shard.post_dead_letters(wakes);
    }

    /// Has a channel closed; its client is told 406 (`PRECONDITION_FAILED`), which ends no connection,
    /// and the reason.
    ///
    /// # Errors
    /// When there is no such connection or channel.
    pub fn close_channel(&self, connection: &str, number: u16, reason: &str) -> Result<(), Fault> {
        let outbox: Arc<Outbox> = self.known_connection(connection)?;
        if !outbox.fail_channel(number, Fault::precondition_failed(reason)) {
            return Err(Fault::not_found(format_args!(
                "no channel {number} on connection '{connection}'"
            )));
        }
        outbox.wake();
        Ok(())
    }
}
