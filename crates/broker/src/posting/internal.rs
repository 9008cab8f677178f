//! Messages that the broker publishes by itself: those whose time has come, those of a history, and those
//! that an operator moves.

use super::{Logged, Routed};
use crate::exchange::{Envelope, Exchange};
use crate::queue::Queue;
use crate::routing::cc;
use crate::routing::{Namespace, Route, Screening};
use crate::wakes::Wakes;
use crate::work;
use courser_codec::{ContentHeader, RawProperties};
use courser_store::{KeptBody, MessageRef, Position, Record, StoreError};
use std::borrow::Cow;
use std::sync::Arc;

/// A message of the broker's own, and its way.
pub(crate) struct InternalPublish {
    address: Vec<u8>,
    header: Vec<u8>,
    body: KeptBody,
    route: Arc<Route>,
    /// The exchange that sends it on.
    through: Option<Arc<Exchange>>,
    /// When it is published, if that has to be known; or 0.
    published_ms: u64,
    /// It is a dead letter that was kept on its way.
    recorded_deaths: bool,
    /// As in [`MessageRef`].
    one_key: bool,
    /// Exchanges on its way keep copies of it.
    with_copies: bool,
    /// It leaves another queue in the same append: its queues take it, also beyond their limits.
    is_moved: bool,
}

impl InternalPublish {
    /// The same as it comes to `exchange`, and goes through its bindings by all its keys; none if it makes no
    /// sense.
    pub fn arriving_at(
        self,
        exchange: &Arc<Exchange>,
        vhost: &dyn Namespace,
        now_ms: u64,
    ) -> Option<Self> {
        let route = route_through(exchange, &self.message(&self.header), vhost, &[])?;
        let publish = self.by(Arc::new(route), now_ms);
        Some(InternalPublish { through: Some(Arc::clone(exchange)), ..publish })
    }

    /// The same as `exchange` sends it to a queue that has just been bound to it.
    pub fn sent_to(self, queue: &Arc<Queue>, exchange: &Arc<Exchange>, now_ms: u64) -> Self {
        let route = Route { queues: vec![Arc::clone(queue)], ..Route::default() };
        let publish = self.by(Arc::new(route.finish_in_part()), now_ms);
        InternalPublish { through: Some(Arc::clone(exchange)), ..publish }
    }

    /// A message that `exchange` has had, and sends on now; none if it makes no sense.
    pub fn sent_on_by(
        exchange: &Arc<Exchange>,
        message: &MessageRef<'_>,
        vhost: &dyn Namespace,
        now_ms: u64,
    ) -> Option<Self> {
        let mut route = route_through(exchange, message, vhost, &[])?;
        route.screens.retain(|screen| screen.place != exchange.id);
        let publish = InternalPublish::to(message, Arc::new(route), now_ms);
        Some(InternalPublish { through: Some(Arc::clone(exchange)), ..publish })
    }

    /// A message that takes this route, also where it has been before.
    pub fn to(message: &MessageRef<'_>, route: Arc<Route>, now_ms: u64) -> Self {
        InternalPublish::copied(message, route).stamped(now_ms)
    }

    /// A copy of a message that has no way yet.
    pub fn unrouted(message: &MessageRef<'_>) -> Self {
        InternalPublish::copied(message, Arc::default())
    }

    /// The same by this route, also where it has been before.
    fn by(self, route: Arc<Route>, now_ms: u64) -> Self {
        InternalPublish { route, ..self }.stamped(now_ms)
    }

    fn copied(message: &MessageRef<'_>, route: Arc<Route>) -> Self {
        InternalPublish {
            address: message.address.to_vec(),
            header: message.header.to_vec(),
            body: KeptBody::of(message),
            published_ms: 0,
            recorded_deaths: message.recorded_deaths,
            one_key: message.one_key,
            with_copies: true,
            is_moved: false,
            through: None,
            route,
        }
    }

    fn stamped(self, now_ms: u64) -> Self {
        work::count_copies(self.route.queues.len());
        let published_ms = self.route.stamp(&self.header, || now_ms);
        InternalPublish { published_ms, ..self }
    }

    /// The same of a message that leaves its queue with the append of it: no queue may refuse it, as it
    /// would be in none then.
    pub fn moved(self) -> Self {
        InternalPublish { is_moved: true, ..self }
    }

    /// Whether one of the queues of its route is deleted.
    pub fn is_for_a_deleted_queue(&self) -> bool {
        self.route.queues.iter().any(|queue| queue.is_deleted())
    }

    /// The same, of which no exchange on its way keeps a copy.
    pub fn without_copies(mut self) -> Self {
        Arc::make_mut(&mut self.route).leave_out_copies();
        self.with_copies = false;
        self
    }

    fn properties(&self) -> RawProperties<'_> {
        ContentHeader::parse(&self.header).map(|header| header.properties).unwrap_or_default()
    }

    fn is_persistent(&self) -> bool {
        self.properties().delivery_mode() == Ok(Some(2))
    }

    /// The message with the content header that consumers get.
    fn message<'a>(&'a self, header: &'a [u8]) -> MessageRef<'a> {
        MessageRef {
            address: &self.address,
            header,
            body: &self.body,
            shared_body: self.body.shared(),
            published_ms: self.published_ms,
            recorded_deaths: self.recorded_deaths,
            one_key: self.one_key,
        }
    }

    /// The route without the exchanges and queues that have had the message; `None` if none of them has.
    fn narrow<'r>(
        &'r self,
        index: usize,
        screening: &mut Screening<'r>,
        vhost: &dyn Namespace,
    ) -> Option<Arc<Route>> {
        let through = self.through.as_ref()?;
        let message = self.message(&self.header);
        let reroute = |had: &[u64]| {
            let mut route = route_through(through, &message, vhost, had)?;
            if !self.with_copies {
                route.leave_out_copies();
            }
            Some(route)
        };
        // What makes no sense has no route.
        screening.narrow(index, &self.route, self.properties(), reroute).ok().flatten()
    }
}

fn route_through(
    exchange: &Arc<Exchange>,
    message: &MessageRef<'_>,
    vhost: &dyn Namespace,
    without: &[u64],
) -> Option<Route> {
    let properties = ContentHeader::parse(message.header).ok()?.properties;
    let keys = cc::keys_of(message, properties).ok()?;
    vhost.route_through(exchange, &Envelope { keys: &keys, properties }, without)
}

/// Puts messages into the queues of their routes, in one append if they are not too large for that: one by
/// one otherwise, and one that is too large with all copies that exchanges on its way keep, without these.
/// Called as [`post`].
pub(crate) fn post_in_parts(
    vhost: &dyn Namespace,
    publishes: Vec<InternalPublish>,
    wakes: &mut Wakes,
) -> Result<(), StoreError> {
    let together = post(vhost, &publishes, 0, &[], wakes);
    let Err(StoreError::TooLarge(_)) = together else { return together };
    for publish in publishes {
        match post(vhost, std::slice::from_ref(&publish), 0, &[], wakes) {
            Err(StoreError::TooLarge(_)) => {
                post(vhost, &[publish.without_copies()], 0, &[], wakes)?
            }
            posted => posted?,
        }
    }
    Ok(())
}

/// Puts messages into the queues of their routes. In the same append, the place with the number
/// `from` is done with the messages at the ascending positions `settled`. Called with the broker's
/// gate held and without any lock.
pub(crate) fn post(
    vhost: &dyn Namespace,
    publishes: &[InternalPublish],
    from: u64,
    settled: &[Position],
    wakes: &mut Wakes,
) -> Result<(), StoreError> {
    let store = &*vhost.shard().store;
    let (screened, others): (Vec<_>, Vec<_>) =
        publishes.iter().partition(|publish| publish.through.is_some());
    others.iter().try_for_each(|publish| publish.route.tell_untold(store))?;
    let now_ms = vhost.shard().timers.now_ms();
    let routes = screened.iter().map(|publish| &*publish.route);
    let mut screening = Screening::begin(routes, store, now_ms)?;
    let narrow = |(index, publish): (usize, _)| {
        InternalPublish::narrow(publish, index, &mut screening, vhost)
    };
    let narrowed: Vec<Option<Arc<Route>>> = publishes.iter().enumerate().map(narrow).collect();
    let shown: Vec<Cow<'_, [u8]>> = publishes.iter().map(|one| cc::shown(&one.header)).collect();
    let ways = publishes.iter().zip(&narrowed).zip(&shown);
    let routed: Vec<Routed<'_>> = ways
        .map(|((publish, narrowed), shown)| {
            let route = narrowed.as_ref().unwrap_or(&publish.route);
            Routed {
                message: publish.message(shown),
                kept: publish.message(&publish.header),
                route,
                persistent: publish.is_persistent(),
                refusable: route.may_refuse && !publish.is_moved,
                redelivered: false,
            }
        })
        .collect();
    let settled =
        (!settled.is_empty()).then_some(Record::Settled { queue: from, positions: settled });
    let logged = Logged::append_own(store, &routed, settled)?;
    let refused = logged.distribute(&routed, store, wakes);
    screening.settle(|index| refused[index]);
    Ok(())
}
