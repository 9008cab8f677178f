//! Messages that the broker publishes by itself: those whose time has come, and those of a history.

use super::{Logged, Routed};
use crate::exchange::{Envelope, Exchange};
use crate::routing::cc;
use crate::routing::deduplication::Remembered;
use crate::routing::{Namespace, Route};
use crate::wakes::Wakes;
use bytes::Bytes;
use courser_codec::ContentHeader;
use courser_store::{MessageRef, Position, Record, Store, StoreError, Sync};
use std::sync::Arc;

/// A message of the broker's own, and its way.
pub(crate) struct InternalPublish {
    address: Vec<u8>,
    header: Vec<u8>,
    body: Bytes,
    persistent: bool,
    route: Arc<Route>,
    /// When it is published, if that has to be known; or 0.
    published_ms: u64,
    /// It is a dead letter that was kept on its way.
    recorded_deaths: bool,
}

impl InternalPublish {
    /// A message that is published to `exchange`, by all its keys; none if it makes no sense. Queues
    /// that drop what they have had remember it, which is noted in `remembered`.
    pub fn route(
        message: &MessageRef<'_>,
        vhost: &dyn Namespace,
        exchange: &Arc<Exchange>,
        now_ms: u64,
        remembered: &mut Remembered,
    ) -> Option<Self> {
        let properties = ContentHeader::parse(message.header).ok()?.properties;
        let keys = cc::keys(message.routing_key(), properties).ok()?;
        let envelope = Envelope { keys: &keys, properties };
        let mut route = vhost.route_through(exchange, &envelope)?;
        if let Some(left) = route.without_those_who_had(properties, now_ms, remembered).ok()? {
            route = left;
        }
        let mut publish = InternalPublish::to(message, Arc::new(route), now_ms);
        publish.header = cc::shown(message.header).into_owned();
        Some(publish)
    }

    /// A message that takes this route.
    pub fn to(message: &MessageRef<'_>, route: Arc<Route>, now_ms: u64) -> Self {
        let properties = ContentHeader::parse(message.header).map(|header| header.properties);
        let mode = properties.and_then(|properties| properties.delivery_mode());
        InternalPublish {
            address: message.address.to_vec(),
            header: message.header.to_vec(),
            body: match message.shared_body {
                Some(body) => body.clone(),
                None => Bytes::copy_from_slice(message.body),
            },
            persistent: mode == Ok(Some(2)),
            published_ms: route.stamp(message.header, || now_ms),
            recorded_deaths: message.recorded_deaths,
            route,
        }
    }

    fn message(&self) -> MessageRef<'_> {
        MessageRef {
            address: &self.address,
            header: &self.header,
            body: &self.body,
            shared_body: Some(&self.body),
            published_ms: self.published_ms,
            recorded_deaths: self.recorded_deaths,
        }
    }

    fn routed(&self) -> Routed<'_> {
        let (message, persistent) = (self.message(), self.persistent);
        let refusable = self.route.may_refuse;
        Routed { message, kept: message, route: &self.route, persistent, refusable }
    }
}

/// Puts messages into the queues of their routes. In the same append, the place with the number
/// `from` is done with the messages at the ascending positions `settled`. Called with the broker's
/// gate held and without any lock.
pub(crate) fn post(
    store: &dyn Store,
    publishes: &[InternalPublish],
    from: u64,
    settled: &[Position],
    wakes: &mut Wakes,
) -> Result<(), StoreError> {
    let routed: Vec<Routed<'_>> = publishes.iter().map(InternalPublish::routed).collect();
    let settled =
        (!settled.is_empty()).then_some(Record::Settled { queue: from, positions: settled });
    Logged::append(store, &routed, settled, Sync::Later)?.distribute(&routed, store, wakes);
    Ok(())
}
