//! Publishes that take more than the plain way: their properties name further routing keys or ask
//! for a direct reply, or an exchange on their way keeps them.

use super::Session;
use super::direct_reply::wants_direct_reply;
use super::properties::{is_persistent, malformed};
use super::publish::{Batch, Inbound};
use crate::exchange::Envelope;
use crate::fault::{Fault, store_fault};
use crate::routing::Route;
use crate::routing::cc;
use crate::routing::deduplication::Remembered;
use crate::vhost::clean_name;
use courser_codec::{ContentHeader, RawProperties};
use courser_store::{MessageRef, Sync};
use std::borrow::Cow;
use std::sync::Arc;

/// A publish on its way: where it goes, and the content header that goes with it.
pub(super) struct Readdressed<'m> {
    pub route: Arc<Route>,
    pub header: Cow<'m, [u8]>,
}

/// Whether the way of a message is decided by more than its exchange and routing key, or it asks for
/// a direct reply.
pub(super) fn says_the_way(properties: RawProperties<'_>) -> Result<bool, Fault> {
    Ok(cc::names_more_keys(properties).map_err(malformed)? || wants_direct_reply(properties)?)
}

impl Session {
    /// The way of a message by all its keys, and its content header without BCC.
    pub(super) fn readdress<'m>(
        &mut self,
        inbound: &Inbound<'m>,
        properties: RawProperties<'_>,
    ) -> Result<Readdressed<'m>, Fault> {
        if !cc::names_more_keys(properties).map_err(malformed)? {
            let route = self.find_route(inbound, properties)?;
            return Ok(Readdressed { route, header: Cow::Borrowed(inbound.header) });
        }
        let keys = cc::keys(inbound.publish.routing_key.as_bytes(), properties)?;
        let exchange = clean_name(inbound.publish.exchange);
        self.permit_publish(exchange.as_bytes(), &keys)?;
        let envelope = Envelope { keys: &keys, properties };
        let route = Arc::new(self.vhost.route(exchange.as_bytes(), &envelope)?);
        Ok(Readdressed { route, header: cc::shown(inbound.header) })
    }

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
        let Readdressed { route, header } = self.readdress(&inbound, properties)?;
        if self.is_transactional(inbound.channel) {
            return self.publish_later(&inbound, properties);
        }
        let persistent = !route.durable.is_empty() && is_persistent(properties)?;
        self.flush_publishes(batch)?;
        let mut route = route;
        let mut remembered = Remembered::default();
        if route.is_screened {
            route = self.screen(&route, properties, &mut remembered)?;
        }
        if !route.keepers.is_empty() {
            // Those of its keys that consumers don't see are needed again when its time has come.
            self.keep_aside(&inbound, &route)?;
            if route.queues.is_empty() {
                remembered.settle(|_| false);
            }
            route = Arc::new(Route { keepers: Vec::new(), ..Route::clone(&route) });
        }
        let mut alone = Batch::default();
        alone.remember(remembered);
        let inbound = Inbound { header: &header, ..inbound };
        let published = self.publish_routed(&mut alone, inbound, route, persistent);
        let published = published.and_then(|()| self.flush_publishes(&mut alone));
        self.count_published(&mut alone);
        published
    }

    /// Has the exchanges that a message passes keep it, after everything before it in the batch.
    #[cold]
    pub(super) fn keep_aside(&mut self, inbound: &Inbound<'_>, route: &Route) -> Result<(), Fault> {
        let properties = ContentHeader::parse(inbound.header).map_err(malformed)?.properties;
        let persistent = is_persistent(properties)?;
        let message = MessageRef {
            address: inbound.address,
            header: inbound.header,
            body: inbound.body,
            shared_body: inbound.shared_body,
            // Its life begins when its time has come.
            published_ms: 0,
            recorded_deaths: false,
        };
        let sync = if inbound.confirm_seq == 0 { Sync::Later } else { Sync::Wanted };
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        for retention in &route.keepers {
            let kept = retention.keep(&message, persistent, sync, &*shard.store);
            let lsn = kept.map_err(store_fault)?;
            self.confirms.not_before(lsn);
        }
        Ok(())
    }
}
