//! Publishes that go each by itself and not in a run: their properties name further routing keys or ask
//! for a direct reply, an exchange or a queue on their way drops repetitions or keeps them, or they
//! were made in a transaction, whose publishes go together.

use super::Session;
use super::direct_reply::wants_direct_reply;
use super::properties::{is_persistent, malformed};
use super::publish::{Batch, Inbound};
use super::transaction::{COMMIT_STEPS_MAX, takes_too_many_steps};
use crate::counts::PublishTally;
use crate::exchange::{Envelope, Steps};
use crate::fault::{Fault, store_fault};
use crate::posting::{Logged, Routed};
use crate::routing::cc;
use crate::routing::{Route, Screening};
use crate::vhost::clean_name;
use crate::work;
use courser_codec::{ContentHeader, RawProperties};
use courser_store::{Lsn, MessageRef, Record, Sync};
use std::borrow::Cow;
use std::sync::Arc;

/// A publish on its way, found good.
pub(super) struct Addressed<'m> {
    inbound: Inbound<'m>,
    properties: RawProperties<'m>,
    /// The content header that goes to consumers: without BCC.
    shown: Cow<'m, [u8]>,
    /// Where it goes by all its keys.
    route: Arc<Route>,
    persistent: bool,
}

/// What a message uses in each of its queues.
const PLACE_BYTES: usize = 16;

/// What came of publishes that went together.
pub(super) struct PutThrough {
    /// Where the log ends with all that they ask for.
    pub lsn: Lsn,
    /// Which of them a full queue has refused.
    pub refused: Vec<bool>,
    /// Whether the log could be told what they have driven out. If not, they have taken effect all the same: the store has failed, and
    /// its owner ends the broker.
    pub told: Result<(), Fault>,
}

/// Whether the way of a message is decided by more than its exchange and routing key, or it asks for
/// a direct reply.
pub(super) fn says_the_way(properties: RawProperties<'_>) -> Result<bool, Fault> {
    Ok(cc::names_more_keys(properties).map_err(malformed)? || wants_direct_reply(properties)?)
}

impl Session {
    /// Takes in a publish whose properties are more than passed on; it takes effect before the call
    /// returns.
    #[cold]
    pub(super) fn publish_readdressed(
        &mut self,
        batch: &mut Batch<'_>,
        inbound: &Inbound<'_>,
        properties: RawProperties<'_>,
    ) -> Result<(), Fault> {
        let mut inbound = *inbound;
        let mut properties = properties;
        let named;
        if wants_direct_reply(properties)? {
            named = self.name_reply_queue(inbound.channel, inbound.header)?;
            inbound.header = &named;
            properties = ContentHeader::parse(&named).map_err(malformed)?.properties;
        }
        let addressed = self.address(inbound, properties)?;
        if self.is_transactional(inbound.channel) {
            return self.publish_later(&inbound, addressed.route.queues.len());
        }
        self.publish_apart(batch, addressed)
    }

    /// The way of a publish by all its keys, if its user may send it there.
    pub(super) fn address<'m>(
        &mut self,
        inbound: Inbound<'m>,
        properties: RawProperties<'m>,
    ) -> Result<Addressed<'m>, Fault> {
        if !cc::names_more_keys(properties).map_err(malformed)? {
            let route = self.find_route(&inbound, properties)?;
            return Addressed::to(route, inbound, properties);
        }
        let keys = cc::keys(inbound.publish.routing_key.as_bytes(), properties)?;
        let exchange = clean_name(inbound.publish.exchange);
        self.permit_publish(exchange.as_bytes(), &keys)?;
        let envelope = Envelope { keys: &keys, properties };
        let route = Arc::new(self.vhost.route(exchange.as_bytes(), &envelope, &[])?);
        let shown = cc::shown(inbound.header);
        Ok(Addressed { shown, ..Addressed::to(route, inbound, properties)? })
    }

    /// Takes in a publish by itself, behind everything in the batch.
    #[cold]
    pub(super) fn publish_apart(
        &mut self,
        batch: &mut Batch<'_>,
        addressed: Addressed<'_>,
    ) -> Result<(), Fault> {
        self.flush_publishes(batch)?;
        if addressed.route.holds_no_two {
            // What this client has acknowledged before is not there any more.
            self.settle_acknowledged();
        }
        let Inbound { channel, confirm_seq, .. } = addressed.inbound;
        let sync = if confirm_seq == 0 { Sync::Later } else { Sync::Wanted };
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let published = self.put_through(channel, &[addressed], std::iter::empty(), sync);
        shard.post_dead_letters(&mut self.wakes);
        let published = published.and_then(|done| done.told.clone().map(|()| done));
        let PutThrough { lsn, refused, .. } =
            published.inspect_err(|_| self.forget_unconfirmed())?;
        self.confirms.not_before(lsn);
        match refused[..] {
            _ if confirm_seq == 0 => Ok(()),
            [true] => self.refuse(channel, confirm_seq),
            _ => self.confirm_later(channel, confirm_seq),
        }
    }

    /// Has publishes take effect together, and what `settled` says in the same append. Called with the
    /// shard's gate held; dead letters have to be posted before it is let go of.
    ///
    /// # Errors
    /// If there is no room in the store; then nothing has happened.
    pub(super) fn put_through<'s>(
        &mut self,
        channel: u16,
        addressed: &[Addressed<'_>],
        settled: impl Iterator<Item = Record<'s>>,
        sync: Sync,
    ) -> Result<PutThrough, Fault> {
        let now_ms = self.broker.now_ms();
        let shard = Arc::clone(&self.shard);
        let store = &*shard.store;
        let routes = addressed.iter().map(|one| &*one.route);
        let mut screening = Screening::begin(routes, store, now_ms).map_err(store_fault)?;
        let mut narrowed = Vec::with_capacity(addressed.len());
        let mut steps = Steps::at_most(COMMIT_STEPS_MAX as usize);
        for (index, one) in addressed.iter().enumerate() {
            narrowed.push(self.narrow(index, one, &mut screening, &mut steps)?);
            if steps.is_over() {
                return Err(takes_too_many_steps());
            }
        }
        let ways = addressed.iter().zip(&narrowed);
        let routed: Vec<Routed<'_>> =
            ways.map(|(one, narrowed)| one.routed(narrowed.as_deref(), now_ms)).collect();
        let mut logged = Logged::append(store, &routed, settled, sync).map_err(store_fault)?;
        self.pacing.is_logging |= logged.lsn != Lsn::default();
        let mut refused = Vec::with_capacity(routed.len());
        let mut pushed = Ok(());
        let mut tally = PublishTally::of(channel);
        let is_commit = self.is_transactional(channel);
        for (one, Addressed { inbound, persistent, .. }) in routed.iter().zip(addressed) {
            let Routed { message, route, .. } = one;
            if route.durable.is_empty() {
                self.hold_unlogged(inbound, route, *persistent);
            }
            tally.add(message.body.len());
            route.count(1, usize::from(!route.queues.is_empty()));
            if route.is_nowhere() {
                self.pass_by(message, inbound.publish.mandatory, &mut tally);
            }
            if route.is_traced {
                self.trace_publish(channel, message, route);
            }
            let mut run = logged.next_run();
            let queues = one.queues(&run);
            if is_commit {
                queues.iter().for_each(|queue| queue.bind_to_commit(logged.lsn));
            }
            pushed = pushed.and(self.push(&mut run, queues).map_err(store_fault));
            refused.push(run.is_refused(0));
        }
        if logged.lsn == Lsn::default() && routed.len() == 1 {
            // It is in no queue if there was no room for it.
            std::mem::replace(&mut pushed, Ok(()))?;
        }
        let mut lsn = logged.lsn;
        logged.keep(store);
        self.count_tally(&mut tally);
        let is_repeated = narrowed.iter().any(Option::is_some);
        if is_repeated || refused.contains(&true) || routed.iter().any(|one| one.route.holds_no_two)
        {
            // What was there before has to be durable, and what was refused must not come back.
            lsn = store.end();
        }
        screening.settle(|index| refused[index]);
        Ok(PutThrough { lsn, refused, told: pushed })
    }

    /// The route of a publish without the exchanges and queues that have had it; `None` if none has. Takes the steps of a way that is
    /// looked up anew.
    fn narrow<'a>(
        &self,
        index: usize,
        addressed: &'a Addressed<'_>,
        screening: &mut Screening<'a>,
        steps: &mut Steps,
    ) -> Result<Option<Arc<Route>>, Fault> {
        let Addressed { inbound, properties, route, .. } = addressed;
        let exchange = clean_name(inbound.publish.exchange);
        let reroute = |had: &[u64]| {
            let keys = cc::keys(inbound.publish.routing_key.as_bytes(), *properties).ok()?;
            let envelope = Envelope { keys: &keys, properties: *properties };
            steps.look(|| self.vhost.route(exchange.as_bytes(), &envelope, had)).ok()
        };
        screening.narrow(index, route, *properties, reroute).map_err(malformed)
    }
}

impl<'m> Addressed<'m> {
    /// A publish that names one key, with the route of that.
    pub fn to(
        route: Arc<Route>,
        inbound: Inbound<'m>,
        properties: RawProperties<'m>,
    ) -> Result<Self, Fault> {
        let (persistent, shown) = (is_persistent(properties)?, Cow::Borrowed(inbound.header));
        work::count(route.queues.len());
        Ok(Addressed { inbound, properties, shown, route, persistent })
    }

    /// Bytes that it uses itself, and that its places in queues will use: a route by one key is mostly one that
    /// many share.
    pub fn own_bytes(&self) -> usize {
        let route = if Arc::strong_count(&self.route) > 1 { 0 } else { self.route.used_bytes() };
        let shown = if let Cow::Owned(header) = &self.shown { header.len() } else { 0 };
        size_of::<Self>() + route + shown + self.route.queues.len() * PLACE_BYTES
    }

    fn routed<'a>(&'a self, narrowed: Option<&'a Route>, now_ms: u64) -> Routed<'a> {
        let route = narrowed.unwrap_or(&self.route);
        let published_ms = route.stamp(&self.shown, || now_ms);
        // What waits at an exchange begins to live when its time has come.
        let kept = self.message(self.inbound.header, 0);
        let (message, persistent) = (self.message(&self.shown, published_ms), self.persistent);
        let (refusable, redelivered) = (route.may_refuse, false);
        Routed { message, kept, route, persistent, refusable, redelivered }
    }

    fn message<'a>(&'a self, header: &'a [u8], published_ms: u64) -> MessageRef<'a> {
        let Inbound { address, body, shared_body, .. } = self.inbound;
        let (recorded_deaths, one_key) = (false, false);
        MessageRef { address, header, body, shared_body, published_ms, recorded_deaths, one_key }
    }
}
