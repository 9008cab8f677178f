//! Finding the way of a publish: in what its channel and its connection remember, or anew.

use super::Session;
use super::publish::Inbound;
use crate::exchange::Envelope;
use crate::fault::Fault;
use crate::routing::Route;
use crate::routing::cache::{LastRoute, RouteCache};
use crate::vhost::clean_name;
use courser_codec::RawProperties;
use std::sync::Arc;

impl Session {
    pub(super) fn find_route(
        &mut self,
        inbound: &Inbound<'_>,
        properties: RawProperties<'_>,
    ) -> Result<Arc<Route>, Fault> {
        let generation = self.vhost.generation();
        let channel = self.channel(inbound.channel)?;
        if let Some(last) = &channel.last_route
            && last.generation == generation
            && *last.address == *inbound.address
        {
            return Ok(Arc::clone(&last.route));
        }
        if self.routes.generation() != generation {
            self.forget_routes(generation);
        }
        let route = match self.routes.get(inbound.address) {
            Some(route) => Arc::clone(route),
            None => self.make_route(inbound, properties)?,
        };
        if route.by_key_alone && RouteCache::takes(inbound.address, &route) {
            let channel = self.channel(inbound.channel)?;
            let address = inbound.address.into();
            channel.last_route = Some(LastRoute { address, generation, route: Arc::clone(&route) });
        }
        Ok(route)
    }

    /// Forgets all routes; the next ones are those of this generation.
    #[cold]
    pub(super) fn forget_routes(&mut self, generation: u64) {
        self.routes.clear(generation);
        self.channels.iter_mut().for_each(|(_, channel)| channel.last_route = None);
    }

    #[cold]
    fn make_route(
        &mut self,
        inbound: &Inbound<'_>,
        properties: RawProperties<'_>,
    ) -> Result<Arc<Route>, Fault> {
        let exchange = clean_name(inbound.publish.exchange);
        let keys = [inbound.publish.routing_key.as_bytes()];
        self.permit_publish(exchange.as_bytes(), &keys)?;
        let envelope = Envelope { keys: &keys, properties };
        let route = Arc::new(self.vhost.route(exchange.as_bytes(), &envelope, &[])?);
        if route.by_key_alone && RouteCache::takes(inbound.address, &route) {
            if !self.routes.has_room_for(inbound.address, &route) {
                self.forget_routes(self.routes.generation());
            }
            self.routes.put(inbound.address, &route);
        }
        Ok(route)
    }
}
