//! Looking at messages, taking them, and moving them, without a connection.

use super::Admin;
use super::shown::{MessageView, Shown};
use crate::fault::{Fault, Resource, store_fault};
use crate::memory::Charge;
use crate::monitor::{Connection, ConnectionDetails};
use crate::outbox::Outbox;
use crate::posting::{InternalPublish, post};
use crate::queue::{
    Cursor, Freed, Outcome, Peeked, Poll, Polled, Poller, Queue, Seen, Settled, Taking,
};
use crate::routing::Route;
use crate::vhost::Vhost;
use crate::wakes::Wakes;
use courser_codec::ShortString;
use courser_store::{Lsn, StoreError};
use std::sync::Arc;

/// Messages that one call looks at or takes at most.
pub const MESSAGES_MAX: usize = 1000;
/// Messages that are moved in one append.
const MOVED_AT_ONCE: usize = 256;
/// Bytes of bodies that are moved in one append, unless the first message alone is larger.
const MOVED_BYTES_AT_ONCE: usize = 1 << 20;

/// What becomes of messages that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetMode {
    /// They are gone.
    Acknowledge,
    /// They return to their places, marked as redelivered.
    Requeue {
        /// Whether that counts towards a delivery limit.
        counts: bool,
    },
    /// They are refused for good: dead letters, where the queue wants that.
    Reject,
}

impl Admin {
    /// Shows messages that wait in a queue, behind `skip` others, without a change to any. Of each
    /// body `body_bytes_max` bytes at most; nothing of one that is lost, or not committed. There may be more where fewer
    /// than `count` come, unless none do.
    ///
    /// # Errors
    /// When the queue is not there, is another connection's own, is a stream, or the store can't read.
    pub fn peek(
        &self,
        vhost: &str,
        queue: &[u8],
        skip: usize,
        count: usize,
        body_bytes_max: usize,
    ) -> Result<Vec<Option<MessageView>>, Fault> {
        let (vhost, queue) = self.own_queue(vhost, queue)?;
        refuse_streams("peek", &vhost, &queue)?;
        let (mut shown, mut looked_at) = (Shown::new(body_bytes_max), Vec::new());
        let store = &*vhost.shard().store;
        let (cursor, count) = (Cursor::skipping(skip), count.min(MESSAGES_MAX));
        let peeked = queue.peek(cursor, count, store, &mut |seen| {
            if seen.is_held_back() {
                looked_at.push(None);
                return true;
            }
            let has_room = shown.see(seen);
            looked_at.push(shown.messages.pop());
            has_room
        });
        peeked.map_err(|error| queue.fault(error))?;
        Ok(looked_at)
    }

    /// Takes messages from the front of a queue up to one that is not committed, and does with them what `mode` says when
    /// all are taken. Of each body `body_bytes_max` bytes are shown at most, and of all headers and bodies `bytes_max`, unless
    /// the first message alone has more.
    ///
    /// # Errors
    /// When the queue is not there, is another connection's own, is a stream, or the store fails.
    pub fn get(
        &self,
        vhost: &str,
        queue: &[u8],
        count: usize,
        mode: GetMode,
        body_bytes_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<MessageView>, Fault> {
        let (vhost, queue) = self.own_queue(vhost, queue)?;
        let _change = vhost.begin_change()?;
        refuse_streams("basic.get", &vhost, &queue)?;
        let mut shown = Shown::new(body_bytes_max).with_room(bytes_max);
        let mut ends_early = false;
        let (mut taken, failed) =
            self.take(&vhost, &queue, true, count.min(MESSAGES_MAX), &mut |peeked| {
                ends_early = peeked.held_back;
                !ends_early && shown.add(peeked)
            });
        let mut wakes = Wakes::default();
        let settled = {
            let shard = vhost.shard();
            let _gate = shard.gate.read();
            let store = &*shard.store;
            let returned = match taken.pop_if(|_| ends_early) {
                Some(unseen) => queue.return_untouched(vec![unseen], store, &mut wakes),
                None => Ok(()),
            };
            let settled = match mode {
                _ if failed.is_some() => queue.return_untouched(taken, store, &mut wakes),
                GetMode::Acknowledge => queue.acknowledge(&taken, false, store, &mut wakes),
                GetMode::Requeue { counts } => {
                    let lots = vec![(taken, Outcome::Requeued { counts })];
                    queue.take_back(lots, store, &mut wakes).map(drop)
                }
                GetMode::Reject => queue.reject(&taken, true, store, &mut wakes),
            };
            shard.post_dead_letters(&mut wakes);
            failed.map_or(returned.and(settled), Err)
        };
        wakes.wake_all();
        self.broker.check_alarms();
        settled.map_err(|error| queue.fault(error))?;
        Ok(shown.messages)
    }

    /// Moves messages from the front of a queue to the end of another one in the same vhost: `count`
    /// of them, or all that there are now. Each is in one of the two, whatever crashes. Returns how
    /// many have been moved: fewer when the other queue refuses more, or would drop the next one.
    ///
    /// # Errors
    /// When one of the queues is not there or is another connection's own, both are the same, the
    /// first is a stream, or the store fails.
    pub fn move_messages(
        &self,
        vhost: &str,
        from: &[u8],
        to: &[u8],
        count: Option<usize>,
    ) -> Result<usize, Fault> {
        let (vhost, source) = self.own_queue(vhost, from)?;
        let _change = vhost.begin_change()?;
        refuse_streams("move", &vhost, &source)?;
        let target = || match vhost.queue_for(to, 0)? {
            target if Arc::ptr_eq(&source, &target) => {
                Err(Fault::precondition_failed("a queue's messages can't be moved to itself"))
            }
            target => Ok(target),
        };
        target()?;
        let most = count.unwrap_or(usize::MAX).min(source.status().ready);
        let mut moved = 0;
        while moved < most {
            // It may have been deleted since the last portion.
            let some = self.move_some(&vhost, &source, &target()?, most - moved)?;
            if some == 0 {
                break;
            }
            moved += some;
        }
        self.broker.check_alarms();
        Ok(moved)
    }

    /// Moves as many messages as go into one append.
    fn move_some(
        &self,
        vhost: &Arc<Vhost>,
        source: &Arc<Queue>,
        target: &Arc<Queue>,
        most: usize,
    ) -> Result<usize, Fault> {
        let route = Arc::new(Route::to(target));
        let mut at_once = MOVED_AT_ONCE;
        if target.may_refuse() || target.holds_no_two() {
            // Whether the next one would be taken is only known when this one is there.
            at_once = 1;
            let (store, mut is_taken) = (&*vhost.shard().store, None);
            // The next one may stand behind some that are lost, which taking it leaves out.
            for count in [1, MESSAGES_MAX] {
                let peeked = source.peek(Cursor::default(), count, store, &mut |seen| {
                    let Seen::Message(Peeked { message, .. }) = seen else { return true };
                    let is_full = target.is_full(message.body.len());
                    let holds_same = route.holds_same(&message, vhost.shard());
                    is_taken = Some(holds_same.map(|holds_same| !is_full && !holds_same));
                    false
                });
                peeked.map_err(|error| source.fault(error))?;
                if is_taken.is_some() {
                    break;
                }
            }
            if is_taken.transpose().map_err(store_fault)? != Some(true) {
                return Ok(0);
            }
        }
        let (mut publishes, mut bytes, now_ms) = (Vec::new(), 0, self.broker.now_ms());
        let (taken, failed) = self.take(vhost, source, true, at_once.min(most), &mut |peeked| {
            publishes.push(InternalPublish::to(&peeked.message, Arc::clone(&route), now_ms));
            bytes += peeked.message.body.len();
            bytes < MOVED_BYTES_AT_ONCE
        });
        let publishes = failed.map_or(Ok(publishes), Err);
        publish_taken(vhost, source, taken, publishes).map_err(store_fault)
    }

    /// Drops messages from the front of a queue, `count` at most. Returns how many those were.
    ///
    /// # Errors
    /// When the queue is not there, is another connection's own, is a stream, or the store fails.
    pub fn purge_some(&self, vhost: &str, name: &[u8], count: usize) -> Result<usize, Fault> {
        let (vhost, queue) = self.own_queue(vhost, name)?;
        let _change = vhost.begin_change()?;
        refuse_streams("queue.purge", &vhost, &queue)?;
        // What comes in the meantime is not meant.
        let most = count.min(queue.status().ready);
        let mut purged = 0;
        while purged < most {
            let at_once = MOVED_AT_ONCE.min(most - purged);
            let (taken, failed) = self.take(&vhost, &queue, false, at_once, &mut |_| true);
            let some = taken.len();
            let mut wakes = Wakes::default();
            let dropped = {
                let shard = vhost.shard();
                let _gate = shard.gate.read();
                let dropped = queue.drop_taken(&taken, &*shard.store, &mut wakes);
                shard.post_dead_letters(&mut wakes);
                dropped
            };
            wakes.wake_all();
            failed.map_or(dropped, Err).map_err(|error| queue.fault(error))?;
            purged += some;
            if some < at_once {
                break;
            }
        }
        self.broker.check_alarms();
        Ok(purged)
    }

    /// Takes messages from the front of a queue until `each` has enough. Returns what has been taken,
    /// which has to be settled, and why there is no more if the store has failed. It counts as got if something `gets` it.
    pub(super) fn take(
        &self,
        vhost: &Arc<Vhost>,
        queue: &Arc<Queue>,
        gets: bool,
        most: usize,
        each: &mut dyn FnMut(Peeked<'_>) -> bool,
    ) -> (Vec<Settled>, Option<StoreError>) {
        let shard = vhost.shard();
        let store = &*shard.store;
        let holder = self.holder(vhost);
        let poller = Poller { outbox: &holder, channel: 0, gets };
        let (mut taken, mut wakes, mut failed) = (Vec::new(), Wakes::default(), None);
        let mut wants_more = true;
        while wants_more && taken.len() < most && failed.is_none() {
            let _gate = shard.gate.read();
            let polled = queue.poll(poller, store, &mut wakes, &mut |sequence, polled| {
                let Polled { message, redelivered, sent_at, .. } = polled;
                let held_back = sent_at != Lsn::default();
                wants_more = each(Peeked { number: sequence, message, redelivered, held_back });
                taken.push(Settled { sequence, freed: Freed::Nothing });
                Taking::UntilAcked
            });
            shard.post_dead_letters(&mut wakes);
            match polled {
                Ok(Poll::Offered | Poll::Again) => {}
                Ok(Poll::Empty) => break,
                Err(error) => failed = Some(error),
            }
        }
        wakes.wake_all();
        (taken, failed)
    }

    /// What has messages while they are taken. No list shows it.
    pub(super) fn holder(&self, vhost: &Arc<Vhost>) -> Arc<Outbox> {
        let (label, user) = (Arc::clone(&vhost.label), ShortString::default());
        let details = ConnectionDetails::default();
        let (now_ms, interned) = (self.broker.now_ms(), &self.broker.monitor.properties);
        let connection = Connection::new(0, label, user, details, now_ms, interned);
        // Its messages are only looked at.
        Outbox::new(usize::MAX, 0, false, connection, Charge::default())
    }

    /// A queue that is no connection's own.
    pub(super) fn own_queue(
        &self,
        vhost: &str,
        name: &[u8],
    ) -> Result<(Arc<Vhost>, Arc<Queue>), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let queue = vhost.queue_for(name, 0)?;
        Ok((vhost, queue))
    }
}

/// Publishes what has been taken from a queue, and ends it there, in one append: a crash leaves each
/// message in one place. What can't be published, or would go to a queue that is deleted, returns to the
/// queue. Returns how many have been published.
pub(super) fn publish_taken(
    vhost: &Arc<Vhost>,
    source: &Arc<Queue>,
    taken: Vec<Settled>,
    publishes: Result<Vec<InternalPublish>, StoreError>,
) -> Result<usize, StoreError> {
    let mut wakes = Wakes::default();
    let count = taken.len();
    let moved = {
        let shard = vhost.shard();
        let _gate = shard.gate.read();
        let store = &*shard.store;
        let is_logged = source.settings.survives();
        let mut positions = Vec::new();
        if is_logged {
            let logged = taken.iter().filter_map(|one| source.unacked_position(one.sequence));
            positions.extend(logged);
            positions.sort_unstable();
        }
        let posted = publishes.and_then(|publishes| {
            if publishes.iter().any(InternalPublish::is_for_a_deleted_queue) {
                return Ok(false);
            }
            let moved: Vec<_> = publishes.into_iter().map(InternalPublish::moved).collect();
            post(&**vhost, &moved, source.id, &positions, &mut wakes).map(|()| true)
        });
        let moved = match posted {
            Ok(true) => source.acknowledge(&taken, is_logged, store, &mut wakes).map(|()| count),
            Ok(false) => source.return_untouched(taken, store, &mut wakes).map(|()| 0),
            Err(error) => {
                // They are where they were.
                let returned = source.return_untouched(taken, store, &mut wakes);
                returned.and(Err(error))
            }
        };
        shard.post_dead_letters(&mut wakes);
        moved
    };
    wakes.wake_all();
    moved
}

pub(super) fn refuse_streams(what: &str, vhost: &Vhost, queue: &Queue) -> Result<(), Fault> {
    if queue.stream().is_none() {
        return Ok(());
    }
    let resource = Resource { kind: "queue", name: queue.name.as_short_str(), vhost: &vhost.name };
    Err(Fault::not_implemented(format_args!("{what} not supported by stream queues {resource}")))
}
