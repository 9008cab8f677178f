//! The metrics of this broker: what the exporter can't ask the broker for.

use crate::config::Config;
use crate::gateway::{self, Gateway};
use courser_management::{Api, Exporter, Ledger, ServerFigures};
use std::sync::Arc;

/// Shows the metrics of the broker that `api` is of.
pub(crate) fn exporter(
    config: &Config,
    api: &Arc<Api>,
    ledger: &Arc<Ledger>,
    gateway: Option<&Gateway>,
) -> Arc<Exporter> {
    let endpoints = gateway::figures(gateway);
    let figures = move || ServerFigures { endpoints: endpoints() };
    Exporter::new(Arc::clone(api), Arc::clone(ledger), figures, config.metrics.authentication)
}
