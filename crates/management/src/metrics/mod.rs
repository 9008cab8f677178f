//! Metrics for Prometheus, under the names that RabbitMQ's dashboards know, and some of our own.
//!
//! - [`families`]: the tables of metrics: every name stands there once;
//! - [`figures`]: what is read for a page of the broker as a whole;
//! - [`ledger`]: totals of the process, which never decrease;
//! - [`objects`]: queues, channels, connections and exchanges, each by itself;
//! - [`pages`]: what is on which page;
//! - [`query`]: what is wanted of a page;
//! - [`service`]: requests and answers;
//! - [`table`]: the form of the tables, and how their rows are written;
//! - [`telemetry`]: what scrapes have cost;
//! - [`text`]: the format.
//!
//! Nothing is computed unless a client asks. What is asked for is written while it is read from the
//! broker's `admin`, and waits for its reader: what is in memory of it is bounded.

mod families;
mod figures;
mod ledger;
mod objects;
mod pages;
mod query;
mod service;
mod table;
mod telemetry;
mod text;
mod wanted;

pub use figures::{EndpointFigures, LoginCounts, ServerFigures};
pub use ledger::Ledger;

use crate::Api;
use crate::http::places::Places;
use crate::shares::Shares;
use courser_broker::admin::Admin;
use std::fmt;
use std::sync::Arc;
use telemetry::Telemetry;

/// Pieces of pages that are made at the same time; others wait.
const PAGES_MAX: usize = 2;
/// Those for one user, or for one network where no login is wanted.
const PAGES_OF_ONE_MAX: usize = 1;

/// Shows the metrics of a broker.
pub struct Exporter {
    pub(crate) api: Arc<Api>,
    server: Box<dyn Fn() -> ServerFigures + Send + Sync>,
    wants_login: bool,
    places: Arc<Places>,
    pages: Arc<Shares>,
    telemetry: Telemetry,
    ledger: Arc<Ledger>,
    /// In the ledger.
    number: u64,
}

impl Exporter {
    /// The metrics of the broker that `api` is of, whose totals go into the `ledger` of its process.
    /// `server` says what the broker does not know; `wants_login` keeps out who can't log in as a user with
    /// the tag `monitoring`.
    pub fn new(
        api: Arc<Api>,
        ledger: Arc<Ledger>,
        server: impl Fn() -> ServerFigures + Send + Sync + 'static,
        wants_login: bool,
    ) -> Arc<Self> {
        Arc::new(Exporter {
            number: ledger.begin(&api),
            ledger,
            api,
            server: Box::new(server),
            wants_login,
            places: Arc::default(),
            pages: Arc::new(Shares::new(PAGES_MAX, PAGES_OF_ONE_MAX)),
            telemetry: Telemetry::default(),
        })
    }

    /// Has the ledger keep what the broker has counted, as it ends.
    pub fn end(&self) {
        self.ledger.end(self.number);
    }

    pub(crate) fn server_figures(&self) -> ServerFigures {
        (self.server)()
    }
}

/// The exporters of the brokers on a node: one, or those of all groups that it leads. What is of the node or of the process is read of the
/// first; what each broker has is added up, or told one after the other.
pub(crate) struct Exporters(Vec<Arc<Exporter>>);

impl Exporters {
    /// `None` if there is none.
    pub fn new(all: Vec<Arc<Exporter>>) -> Option<Self> {
        (!all.is_empty()).then_some(Exporters(all))
    }

    pub fn first(&self) -> &Arc<Exporter> {
        // There is one.
        &self.0[0]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Exporter>> {
        self.0.iter()
    }

    pub fn admins(&self) -> Vec<&Admin> {
        self.iter().map(|exporter| &exporter.api.admin).collect()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}
