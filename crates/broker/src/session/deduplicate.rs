//! Publishes on routes where somebody drops what has been there before.

use super::Session;
use super::properties::malformed;
use super::publish::{Batch, Inbound};
use crate::fault::Fault;
use crate::routing::Route;
use crate::routing::deduplication::{Remembered, Sighting};
use courser_codec::RawProperties;
use std::sync::Arc;

impl Session {
    /// What is left of a message's route without those who have had it. They remember it from now
    /// on; what they have to forget if it does not get there is added to `remembered`.
    pub(super) fn screen(
        &self,
        route: &Arc<Route>,
        properties: RawProperties<'_>,
        remembered: &mut Remembered,
    ) -> Result<Arc<Route>, Fault> {
        let now_ms = self.broker.now_ms();
        if let Some(exchange) = &route.exchange_screen {
            match exchange.see(properties, now_ms).map_err(malformed)? {
                Sighting::Unmarked => {}
                Sighting::First(key) => remembered.push(exchange, key),
                // Nobody gets it, and yet it was not lost.
                Sighting::Again => {
                    let exchange = route.exchange.clone();
                    return Ok(Arc::new(Route { answers: true, exchange, ..Route::default() }));
                }
            }
        }
        let left =
            route.without_those_who_had(properties, now_ms, remembered).map_err(malformed)?;
        Ok(left.map_or_else(|| Arc::clone(route), Arc::new))
    }

    /// Takes in a publish on a screened route.
    #[cold]
    pub(super) fn publish_screened<'m>(
        &mut self,
        batch: &mut Batch<'m>,
        inbound: Inbound<'m>,
        properties: RawProperties<'_>,
        route: &Arc<Route>,
        persistent: bool,
    ) -> Result<(), Fault> {
        if !self.settling.acknowledged.is_empty() {
            // What this client has acknowledged before is not there any more, and what it published
            // before that came while it was.
            self.flush_publishes(batch)?;
            self.settle_acknowledged();
        }
        let mut remembered = Remembered::default();
        let left = self.screen(route, properties, &mut remembered)?;
        let persistent = persistent && !left.durable.is_empty();
        self.publish_routed(batch, inbound, Arc::clone(&left), persistent)?;
        if !Arc::ptr_eq(&left, route) {
            // It is confirmed when what was there before is durable.
            self.confirms.not_before(self.shard.store.end());
        }
        if left.queues.is_empty() {
            remembered.settle(|_| left.keepers.is_empty());
        } else {
            batch.remember(remembered);
        }
        Ok(())
    }
}
