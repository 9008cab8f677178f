//! The metrics of this broker: what the exporter can't ask the broker for.

use crate::config::Config;
use courser_gateway::{Gateway, Metrics};
use courser_management::{Api, EndpointFigures, Exporter, ServerFigures};
use std::sync::Arc;

/// Shows the metrics of the broker that `api` is of.
pub(crate) fn exporter(
    config: &Config,
    api: &Arc<Api>,
    gateway: Option<&Gateway>,
) -> Arc<Exporter> {
    let endpoints = gateway.map(Gateway::counters).unwrap_or_default();
    let figures = move || ServerFigures {
        endpoints: endpoints.iter().map(|(name, counters)| endpoint(name, counters)).collect(),
    };
    Exporter::new(Arc::clone(api), figures, config.metrics.authentication)
}

fn endpoint(name: &str, counters: &Metrics) -> EndpointFigures {
    let counted = counters.snapshot();
    EndpointFigures {
        name: name.to_owned(),
        peers: counted.peers,
        received: counted.received,
        received_bytes: counted.received_bytes,
        published: counted.published,
        refused: counted.refused,
        unroutable: counted.unroutable,
        sent: counted.sent,
        sent_bytes: counted.sent_bytes,
        dropped: counted.dropped,
        expired: counted.expired,
        turned_away: counted.turned_away,
        links: counted.links,
    }
}
