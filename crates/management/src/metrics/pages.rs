//! What is on each page, in which order.

use super::families::{channels, cluster, exchanges, node, own, protocols, queues};
use super::figures::{LoginCounts, NodeFigures, ServerFigures, Totals};
use super::ledger::Counts;
use super::objects;
use super::query::Query;
use super::table::Page;
use super::text::{Kind, Labels, Text};
use super::{Exporter, Exporters};
use crate::API_VERSION;
use crate::api::{memory_parts, name_of_cluster};
use courser_broker::admin::{Admin, ConnectionFigures};

const PREFIX: &str = "rabbitmq_";
const DETAILED: &str = "rabbitmq_detailed_";
const CLUSTER: &str = "rabbitmq_cluster_";

/// What stands where dashboards show the version of Erlang.
const RUNTIME: &str = concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"));

/// Which page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Aggregated,
    PerObject,
    Detailed,
    Memory,
}

impl Endpoint {
    pub const ALL: [Endpoint; 4] =
        [Endpoint::Aggregated, Endpoint::PerObject, Endpoint::Detailed, Endpoint::Memory];

    /// As `identity_info` has it.
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Aggregated => "aggregated",
            Endpoint::PerObject => "per-object",
            Endpoint::Detailed => "detailed",
            Endpoint::Memory => "memory-breakdown",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Endpoint::Aggregated => "/metrics",
            Endpoint::PerObject => "/metrics/per-object",
            Endpoint::Detailed => "/metrics/detailed",
            Endpoint::Memory => "/metrics/memory-breakdown",
        }
    }
}

/// Makes a page. Looks at every queue and channel where sums of them are asked for.
pub(crate) fn page(exporters: &Exporters, endpoint: Endpoint, query: Query) -> Page {
    let mut page = Page::default();
    identity(&mut page, exporters.first(), endpoint);
    match endpoint {
        Endpoint::Aggregated => {
            let totals = Totals::read(exporters);
            add_sums(&mut page, &totals);
            add_node(&mut page, exporters, &totals);
        }
        Endpoint::PerObject => {
            let totals = Totals::read(exporters);
            add_node(&mut page, exporters, &totals);
            objects::add(&mut page, &exporters.admins(), &Query::everything(), PREFIX);
        }
        Endpoint::Detailed => add_detailed(&mut page, exporters, query),
        Endpoint::Memory => add_memory(&mut page, &exporters.admins()),
    }
    let mut telemetry = Text::default();
    exporters.first().telemetry.write(&mut telemetry);
    page.text(telemetry);
    page
}

fn identity(page: &mut Page, exporter: &Exporter, endpoint: Endpoint) {
    let facts = &exporter.api.settings.node;
    let build = Labels::default()
        .with("rabbitmq_version", API_VERSION)
        .with("prometheus_plugin_version", API_VERSION)
        .with("prometheus_client_version", &facts.version)
        .with("erlang_version", RUNTIME)
        .with("product_name", "Courser")
        .with("product_version", &facts.version);
    page.info(PREFIX, "build_info", "Versions", &[build]);
    let cluster = name_of_cluster(&exporter.api.admin, facts);
    let id = exporter.api.admin.log_figures().id;
    let identity = Labels::default()
        .with("rabbitmq_node", &facts.name)
        .with("rabbitmq_cluster", cluster)
        .with("rabbitmq_cluster_permanent_id", format!("courser-cluster-id-{id:08x}"))
        .with("rabbitmq_endpoint", endpoint.name());
    page.info(PREFIX, "identity_info", "Which node this is, and which page", &[identity]);
}

/// What is the same on the page of sums and on that of objects.
fn add_node(page: &mut Page, exporters: &Exporters, totals: &Totals) {
    let (consumers, exporter) = (totals.queues.consumers, exporters.first());
    let node = NodeFigures::read(exporters, consumers, totals.publishes().refused);
    let endpoints = exporters.iter().flat_map(|one| one.server_figures().endpoints);
    let server = ServerFigures { endpoints: endpoints.collect() };
    let rows = [(Labels::default(), node)];
    page.rows(PREFIX, node::OBJECTS, &rows);
    page.rows(PREFIX, node::ALARMS, &rows);
    for family in node::FAMILIES {
        page.rows(PREFIX, family.metrics, &rows);
    }
    page.rows(PREFIX, node::LOGINS.metrics, &logins(exporters));
    let Counts { messages, sizes, .. } = &totals.counts;
    protocols::add(page, messages, sizes, totals.publishers, consumers as u64);
    let [(_, node)] = rows;
    let settings = &exporter.api.settings;
    let scrub = settings.scrub.as_ref().map(|scrub| scrub.state());
    own::add(page, node, &server, &(settings.certificates)(), scrub);
    if let Some(cluster) = &exporter.api.settings.cluster {
        page.text(Text(cluster.metrics()));
    }
}

fn logins(exporters: &Exporters) -> [(Labels, LoginCounts); 2] {
    let counts = exporters.first().ledger.read();
    let of = |protocol: &str, counts| (Labels::default().with("protocol", protocol), counts);
    [of("http", counts.http_logins), of("amqp091", counts.amqp_logins)]
}

/// Queues, channels, connections and exchanges, those of a kind together.
fn add_sums(page: &mut Page, totals: &Totals) {
    let queues = [(Labels::default(), totals.queues.clone())];
    queues::FAMILIES.iter().for_each(|family| page.rows(PREFIX, family.metrics, &queues));
    let channels = [(Labels::default(), totals.channels)];
    channels::CHANNELS.iter().for_each(|family| page.rows(PREFIX, family.metrics, &channels));
    let connection = ConnectionFigures {
        name: String::new(),
        channels: totals.open_channels,
        traffic: totals.counts.traffic,
        pending_bytes: totals.pending_bytes,
    };
    let connections = [(Labels::default(), connection)];
    channels::CONNECTIONS.iter().for_each(|family| page.rows(PREFIX, family.metrics, &connections));
    page.plain(PREFIX, exchanges::ALL, totals.publishes());
    page.plain(PREFIX, exchanges::ROUTED, totals.counts.messages.routed);
}

fn add_detailed(page: &mut Page, exporters: &Exporters, query: Query) {
    let admins = exporters.admins();
    if query.wants(cluster::VHOSTS.name) {
        let vhosts = exporters.iter().flat_map(|one| {
            let all = one.api.admin.vhosts().into_iter();
            all.filter(|vhost| one.api.is_here(&vhost.name))
        });
        let vhosts = vhosts.filter(|vhost| query.has_vhost(&vhost.name));
        let rows: Vec<_> =
            vhosts.map(|vhost| (Labels::default().with("vhost", &vhost.name), vhost)).collect();
        page.rows(CLUSTER, cluster::VHOSTS.metrics, &rows);
    }
    objects::add_exchange_facts(page, &admins, &query, CLUSTER);
    let wants_node = node::FAMILIES.iter().any(|family| query.wants(family.name));
    if wants_node {
        let rows = [(Labels::default(), NodeFigures::read(exporters, 0, 0))];
        for family in node::FAMILIES.iter().filter(|family| query.wants(family.name)) {
            page.rows(DETAILED, family.metrics, &rows);
        }
    }
    if query.wants(node::LOGINS.name) {
        page.rows(DETAILED, node::LOGINS.metrics, &logins(exporters));
    }
    objects::add(page, &admins, &query, DETAILED);
}

fn add_memory(page: &mut Page, admins: &[&Admin]) {
    let mut text = Text::default();
    let held = admins.iter().map(|admin| admin.memory_used_bytes()).sum();
    for (part, bytes) in memory_parts(held) {
        let name = format!("memory_{part}_bytes");
        text.header((PREFIX, &name), Kind::Gauge, "Part of the memory that is in use");
        text.row((PREFIX, &name), &Labels::default(), bytes.into());
    }
    page.text(text);
}
