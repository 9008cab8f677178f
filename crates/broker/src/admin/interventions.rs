//! Ending what clients have begun: a consumer, a channel; and holding back what they would get.

use super::{Admin, Event, EventKind};
use crate::direct_reply::is_reply_name;
use crate::fault::{Fault, store_fault};
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
        let _change = vhost.begin_change()?;
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
            Departure::QueueIsUseless { .. } if is_reply_name(queue.name.as_bytes()) => {
                vhost.end_reply_queue(queue);
            }
            // Refused if it has got another one in the meantime.
            Departure::QueueIsUseless { leaves_place } => {
                drop(vhost.delete_queue_if(queue, true, false, |_, _| {}, wakes));
                if leaves_place {
                    drop(queue.activate_next(true, &*shard.store, wakes));
                }
            }
            // What fails is an append: the store is of no use any more, and its owner ends the broker.
            Departure::OthersMayGoOn { leaves_place } => {
                drop(queue.activate_next(leaves_place, &*shard.store, wakes));
            }
        }
        shard.post_dead_letters(wakes);
    }

    /// Pauses a queue: it takes messages, and clients get none of them, until it is resumed. If the queue
    /// survives a restart, so does that. Returns whether it was not paused before.
    ///
    /// # Errors
    /// When the queue is not there, or that can't be kept.
    pub fn pause_queue(&self, vhost: &str, name: &[u8]) -> Result<bool, Fault> {
        self.set_paused(vhost, name, true)
    }

    /// Resumes a queue: clients get its messages again. Returns whether it was paused.
    ///
    /// # Errors
    /// As [`Admin::pause_queue`]; or when the store can't read what waits.
    pub fn resume_queue(&self, vhost: &str, name: &[u8]) -> Result<bool, Fault> {
        self.set_paused(vhost, name, false)
    }

    fn set_paused(&self, vhost: &str, name: &[u8], on: bool) -> Result<bool, Fault> {
        let (vhost, queue) = self.own_queue(vhost, name)?;
        let _change = vhost.begin_change()?;
        let (mut wakes, mut fed) = (Wakes::default(), Ok(()));
        let changed = {
            let shard = vhost.shard();
            let _gate = shard.gate.read();
            let changed = vhost.pause_queue(&queue, on);
            if !on && matches!(changed, Ok(true)) {
                fed = queue.go_on(&*shard.store, &mut wakes);
                shard.post_dead_letters(&mut wakes);
            }
            changed
        };
        wakes.wake_all();
        let changed = changed?;
        if changed {
            let kind = if on { EventKind::QueuePaused } else { EventKind::QueueResumed };
            let event = || Event::new(self.broker.now_ms(), kind, &vhost.name, &queue.name);
            self.broker.monitor.events.tell(event);
        }
        fed.map_err(store_fault)?;
        Ok(changed)
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
