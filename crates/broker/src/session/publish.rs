//! Publishing: the path of most of the broker's work.

use super::apart::Addressed;
use super::properties::{is_persistent, malformed, need_no_check};
use super::{Session, pace::Pace};
use crate::counts::PublishTally;
use crate::fault::{Fault, store_fault};
use crate::posting::PublishRun;
use crate::queue::Queue;
use crate::routing::{Route, lock_streams};
use crate::trace::Traced;
use crate::vhost::clean_name;
use crate::work::{self, Budget};
use bytes::Bytes;
use courser_codec::{ContentHeader, basic};
use courser_store::record::SHARED_BODY_MIN_BYTES;
use courser_store::{MessageRef, SharedBody, StoreError, Sync};
use std::sync::Arc;

/// One `basic.publish` with its content.
#[derive(Clone, Copy, Debug)]
pub struct Inbound<'m> {
    /// The channel it came on.
    pub channel: u16,
    /// The method.
    pub publish: basic::Publish<'m>,
    /// Its exchange and routing key as encoded: two short strings.
    pub address: &'m [u8],
    /// The payload of the content header frame.
    pub header: &'m [u8],
    /// The whole body.
    pub body: &'m [u8],
    /// The same body, when it is owned and can be shared.
    pub shared_body: Option<&'m SharedBody>,
    /// The number to confirm it by, 0 if the channel does not confirm.
    pub confirm_seq: u64,
}

/// The publishes of one read: those with the same route travel together.
#[derive(Default)]
pub struct Batch<'m> {
    pub(super) run: PublishRun<'m>,
    route: Option<Arc<Route>>,
    persistent: bool,
    /// On a route that may refuse messages, for each in `run` its channel and confirm number.
    pub(super) publishers: Vec<(u16, u64)>,
    /// Messages on the current route that are not in `run`, as no queue gets them now.
    unrouted: usize,
    /// Messages in `run` that have been counted, and bytes of their bodies.
    tallied: (usize, u64),
    pub(super) tally: PublishTally,
}

impl Batch<'_> {
    /// Counts the messages of the run that have not been counted yet.
    pub(super) fn tally_run(&mut self) {
        let (messages, bytes) = self.tallied;
        if messages < self.run.len() {
            self.tally.add_all(self.run.body_bytes() - bytes, self.run.body_lens(messages));
            self.tallied = (self.run.len(), self.run.body_bytes());
        }
    }

    /// How often a queue will get one of the messages.
    pub(super) fn copies(&self) -> usize {
        self.route.as_ref().map_or(0, |route| route.queues.len() * self.run.len())
    }

    /// Empties the batch and keeps its memory for another read, which may be another connection's.
    pub fn recycle<'n>(self) -> Batch<'n> {
        let mut publishers = self.publishers;
        publishers.clear();
        Batch {
            run: self.run.recycle(),
            route: None,
            persistent: false,
            publishers,
            unrouted: 0,
            tallied: (0, 0),
            tally: PublishTally::default(),
        }
    }
}

impl Session {
    /// Takes in a publish; it reaches its queues at the latest when the batch is flushed.
    #[inline]
    pub fn publish<'m>(
        &mut self,
        batch: &mut Batch<'m>,
        inbound: Inbound<'m>,
    ) -> Result<(), Fault> {
        if inbound.publish.immediate {
            return Err(Fault::not_implemented("immediate=true"));
        }
        self.pacing.has_published = true;
        let properties = ContentHeader::parse(inbound.header).map_err(malformed)?.properties;
        if !need_no_check(properties) {
            let done = match self.check_properties(properties) {
                Ok(false) => None,
                Ok(true) => Some(self.publish_readdressed(batch, &inbound, properties)),
                Err(fault) => Some(Err(fault)),
            };
            if let Some(done) = done {
                return done.map_err(|fault| self.refusal(&inbound, fault));
            }
        }
        let route = self.find_route(&inbound, properties)?;
        if self.is_transactional(inbound.channel) {
            return self.publish_later(&inbound, route.queues.len());
        }
        if route.is_apart {
            return self.publish_apart(batch, Addressed::to(route, inbound, properties)?);
        }
        let persistent = match route.durable.is_empty() {
            false => is_persistent(properties)?,
            true => {
                let is_kept = inbound.confirm_seq != 0 && is_persistent(properties)?;
                self.hold_unlogged(&inbound, &route, is_kept);
                false
            }
        };
        self.publish_routed(batch, inbound, route, persistent)
    }

    /// Refuses a publish by what its method says alone, before its body has come.
    ///
    /// # Errors
    /// When there is no such exchange, or the user may not publish to it.
    pub fn admit_publish(&mut self, publish: &basic::Publish<'_>) -> Result<(), Fault> {
        let exchange = clean_name(publish.exchange);
        self.permit_publish(exchange.as_bytes(), &[publish.routing_key.as_bytes()])?;
        match exchange.is_empty() {
            true => Ok(()),
            false => self.vhost.published_to(exchange.as_bytes()).map(drop),
        }
    }

    /// What a publisher hears whose message is not good: of its exchange first, if that is not good
    /// either.
    #[cold]
    fn refusal(&mut self, inbound: &Inbound<'_>, fault: Fault) -> Fault {
        let exchange = clean_name(inbound.publish.exchange);
        let keys = [inbound.publish.routing_key.as_bytes()];
        if let Err(refused) = self.permit_publish(exchange.as_bytes(), &keys) {
            return refused;
        }
        self.vhost.published_to(exchange.as_bytes()).err().unwrap_or(fault)
    }

    #[inline]
    fn publish_routed<'m>(
        &mut self,
        batch: &mut Batch<'m>,
        inbound: Inbound<'m>,
        route: Arc<Route>,
        persistent: bool,
    ) -> Result<(), Fault> {
        let same_route = batch.route.as_ref().is_some_and(|current| Arc::ptr_eq(current, &route));
        if !same_route || batch.persistent != persistent {
            self.flush_publishes(batch)?;
            batch.route = Some(Arc::clone(&route));
            batch.persistent = persistent;
        }
        let message = MessageRef {
            address: inbound.address,
            header: inbound.header,
            body: inbound.body,
            shared_body: inbound.shared_body,
            published_ms: route.stamp(inbound.header, || self.broker.now_ms()),
            recorded_deaths: false,
            one_key: false,
        };
        if batch.tally.channel != inbound.channel {
            self.count_published(batch);
            batch.tally.channel = inbound.channel;
        }
        if route.is_traced {
            self.trace_publish(inbound.channel, &message, &route);
            // It may go nowhere, and nothing be flushed after it.
            let shard = Arc::clone(&self.shard);
            let _gate = shard.gate.read();
            shard.post_dead_letters(&mut self.wakes);
        }
        if !route.queues.is_empty() {
            batch.run.push(message);
            if route.queues.len() > 1 {
                // One queue gets no more than a read brings; the copies for several end the turn.
                work::count(route.queues.len());
            }
        } else {
            batch.unrouted += 1;
            batch.tally.add(inbound.body.len());
            if route.is_nowhere() {
                self.pass_by(&message, inbound.publish.mandatory, &mut batch.tally);
            }
        }
        if route.may_refuse {
            batch.publishers.push((inbound.channel, inbound.confirm_seq));
        } else if inbound.confirm_seq != 0 {
            self.confirm_later(inbound.channel, inbound.confirm_seq)?;
        }
        Ok(())
    }

    /// Has what the publisher hears of a message wait that goes to no durable queue: where another machine leads, it may have a
    /// way, or one to a queue that keeps it.
    pub(super) fn hold_unlogged(&mut self, inbound: &Inbound<'_>, route: &Route, persistent: bool) {
        let is_missing = route.queues.is_empty();
        if is_missing && inbound.publish.mandatory {
            // It is returned at once.
            self.hold_answer(inbound.channel);
        } else if (is_missing || persistent)
            && inbound.confirm_seq != 0
            && let Some(channel) = self.channels.get_mut(inbound.channel)
        {
            channel.has_unlogged = true;
        }
    }

    /// Notes a copy of a message that is published while that is traced.
    #[cold]
    pub(super) fn trace_publish(&mut self, channel: u16, message: &MessageRef<'_>, route: &Route) {
        if let Some(copy) = Traced::publish(&*self.vhost, &self.outbox, channel, message, route) {
            self.vhost.copies().push(copy, &mut self.wakes);
        }
    }

    /// Puts the collected run into its queues. Also where that fails, the batch has nothing of it
    /// afterwards.
    pub(super) fn flush_publishes(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        let Some(route) = batch.route.take() else { return Ok(()) };
        batch.tally_run();
        route.count(batch.run.len() + std::mem::take(&mut batch.unrouted), batch.run.len());
        if batch.run.is_empty() {
            return Ok(());
        }
        let put = self.put_run(batch, &route);
        if put.is_err() {
            self.forget_unconfirmed();
        }
        batch.run.clear();
        batch.publishers.clear();
        batch.tallied = (0, 0);
        put
    }

    fn put_run(&mut self, batch: &mut Batch<'_>, route: &Route) -> Result<(), Fault> {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        batch.run.set_refusable(route.may_refuse);
        let order = lock_streams(std::iter::once(route));
        let is_vain = route.refuses_all();
        let persisted = match route.logged(batch.persistent) {
            _ if is_vain => {
                batch.run.refuse_all();
                Ok(())
            }
            [] if route.queues.len() > 1 => batch.run.keep_for_several(&*shard.store),
            [] => Ok(()),
            _ => self.persist(batch, route),
        };
        persisted.map_err(store_fault)?;
        let pushed = match is_vain {
            true => Ok(()),
            false => self.push(&mut batch.run, &route.queues).map_err(store_fault),
        };
        drop(order);
        shard.post_dead_letters(&mut self.wakes);
        let confirmed = if route.may_refuse { self.confirm_or_refuse(batch) } else { Ok(()) };
        pushed.and(confirmed)
    }

    /// Appends a run to the store's log.
    fn persist(&mut self, batch: &mut Batch<'_>, route: &Route) -> Result<(), StoreError> {
        let Batch { run, persistent, publishers, .. } = batch;
        let persistent = *persistent;
        let wanted = !self.confirms.confirming.is_empty()
            || publishers.iter().any(|(_, confirm)| *confirm != 0);
        let sync = if wanted { Sync::Wanted } else { Sync::Later };
        let mut locations = Vec::with_capacity(run.len());
        let records = run.records(route.logged(persistent), route.holders(persistent));
        self.pacing.is_logging = true;
        let lsn = self.shard.store.append(&records, sync, &mut locations)?;
        self.confirms.not_before(lsn);
        run.set_locations(locations, persistent);
        Ok(())
    }

    /// Puts a run into the queues of its route: into all of them, also if the store fails meanwhile.
    pub(super) fn push(
        &mut self,
        run: &mut PublishRun<'_>,
        queues: &[Arc<Queue>],
    ) -> Result<(), StoreError> {
        let mut pushed = Ok(());
        for queue in queues {
            if let Err(failed) = queue.publish(run, &*self.shard.store, &mut self.wakes) {
                pushed = Err(failed);
            }
            self.note_backlog(queue, run.len());
        }
        run.let_go(&*self.shard.store);
        pushed
    }

    /// Takes in a publish that lives shorter than the batch, whose body is `body` and is shared if it is large: after everything in
    /// the batch, and with effect before the call returns.
    pub fn publish_alone(
        &mut self,
        batch: &mut Batch<'_>,
        inbound: Inbound<'_>,
        body: &Bytes,
    ) -> Result<(), Fault> {
        self.flush_publishes(batch)?;
        let is_large = body.len() >= SHARED_BODY_MIN_BYTES;
        let shared = is_large.then(|| SharedBody::new(body.clone(), &self.broker.gauge));
        let inbound = Inbound { shared_body: shared.as_ref(), ..inbound };
        let mut alone = Batch::default();
        let published = self.publish(&mut alone, inbound);
        let published = published.and_then(|()| self.flush_publishes(&mut alone));
        self.count_published(&mut alone);
        published
    }

    /// Ends a batch: everything taken in takes effect, publishes are confirmed, and every
    /// connection that got something is woken. Returns with whom this publisher should keep pace.
    pub fn flush(&mut self, batch: &mut Batch<'_>) -> Result<Option<Pace>, Fault> {
        let flushed = self.flush_publishes(batch);
        self.count_batch(batch);
        self.settle_acknowledged();
        self.pump_streams(&Budget::begin());
        if flushed.is_ok() {
            self.confirm();
        }
        self.wakes.wake_all();
        self.broker.check_alarms();
        if std::mem::take(&mut self.pacing.has_published) {
            self.pacing.published_in_alarm = self.broker.alarm().is_some();
        }
        self.pacing.has_logged = std::mem::take(&mut self.pacing.is_logging);
        let pace = self.pace_with_consumers();
        flushed.map(|()| pace.or_else(|| self.pace_with_store()))
    }
}
