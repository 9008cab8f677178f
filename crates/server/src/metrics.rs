//! The metrics of this broker: what the exporter can't ask the broker for.

use crate::config::Config;
use crate::driver::Shared;
use crate::tls::Acceptor;
use courser_gateway::{Gateway, Metrics};
use courser_management::{
    Api, CertificateFigures, EndpointFigures, Exporter, LoginCounts, ServerFigures,
};
use std::sync::Arc;

/// Shows the metrics of the broker that `api` is of.
pub(crate) fn exporter(
    config: &Config,
    shared: &Arc<Shared>,
    api: &Arc<Api>,
    acceptor: Option<&Arc<Acceptor>>,
    gateway: Option<&Gateway>,
) -> Arc<Exporter> {
    let (shared, acceptor) = (Arc::clone(shared), acceptor.cloned());
    let endpoints = gateway.map(Gateway::counters).unwrap_or_default();
    let figures = move || {
        let (succeeded, failed) = shared.logins.counts();
        ServerFigures {
            amqp_logins: LoginCounts { succeeded, failed },
            certificates: acceptor.as_deref().map(certificates).unwrap_or_default(),
            endpoints: endpoints.iter().map(|(name, counters)| endpoint(name, counters)).collect(),
        }
    };
    Exporter::new(Arc::clone(api), figures, config.metrics.authentication)
}

fn certificates(acceptor: &Acceptor) -> Vec<CertificateFigures> {
    let shown = acceptor.certificates().into_iter().map(|one| CertificateFigures {
        path: one.path.display().to_string(),
        subject: one.subject,
        not_after_s: one.not_after_s,
    });
    shown.collect()
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
