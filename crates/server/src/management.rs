//! The HTTP API of this broker.

use crate::VERSION;
use crate::cluster::Apis;
use crate::config::{ClientCertificates, Config};
use crate::driver::Shared;
use crate::log_lines;
use crate::login::Elsewhere;
use crate::service::Around;
use crate::tls::tls_facts;
use crate::websocket;
use courser_management::{
    Api, HOME, ListenerFacts, LogIn, LoginCounts, NodeFacts, Readmit, Scrub, Settings, Web,
};
use courser_oauth::TokenAuthority;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// The API, which also says where everything listens.
pub(crate) fn api(
    config: &Config,
    shared: &Arc<Shared>,
    around: &Around,
    stop: &Arc<watch::Sender<bool>>,
) -> Arc<Api> {
    let listening = |protocol: &'static str, addresses: &[SocketAddr]| {
        let facts = |address: &SocketAddr| ListenerFacts { protocol, address: *address };
        addresses.iter().map(facts).collect::<Vec<_>>()
    };
    let at = &around.addresses;
    let mut listeners = listening("amqp", &at.amqp);
    listeners.extend(listening("amqp/ssl", &at.amqp_tls));
    listeners.extend(listening("http", &at.http));
    listeners.extend(listening("https", &at.https));
    listeners.extend(listening("http/prometheus", &at.metrics));
    listeners.extend(listening("https/prometheus", &at.metrics_tls));
    let mut mechanisms = vec!["PLAIN".to_owned(), "AMQPLAIN".to_owned()];
    if config.tls.client_certificates != ClientCertificates::None {
        mechanisms.push("EXTERNAL".to_owned());
    }
    if !config.auth.anonymous_user.is_empty() {
        mechanisms.push("ANONYMOUS".to_owned());
    }
    let clock = shared.clock.clone();
    let node = NodeFacts {
        name: format!("courser@{}", node_name(config)),
        cluster_name: config.cluster.name.clone(),
        version: VERSION.to_owned(),
        started_ms: clock.now_ms(),
        data_dir: config.data_dir.clone(),
        connections_max: shared.places.most(),
        mechanisms,
        listeners,
        tls: tls_facts(&config.tls),
    };
    let (runtime, shown) = (Arc::clone(&around.runtime), Arc::clone(&around.runtime));
    let started = config.clone();
    let scrub = around.scrub.clone().map(|scrub| scrub as Arc<dyn Scrub>);
    let (certificates, notices) = (Arc::clone(&around.certificates), Arc::clone(&around.notices));
    let (logins, forgotten) = (Arc::clone(shared), Arc::clone(shared));
    let (suspended, suspending) = (Arc::clone(shared), Arc::clone(shared));
    let websocket =
        config.management.websocket.then(|| websocket::serve(shared, stop, &around.front));
    let settings = Settings {
        websocket,
        log: log_lines::lines(),
        amqp_logins: Arc::new(move || {
            let (succeeded, failed) = logins.logins.counts();
            LoginCounts { succeeded, failed }
        }),
        forget_amqp_logins: Arc::new(move || forgotten.logins.forget_counts()),
        suspend_listeners: Arc::new(move |on| suspending.suspension.set(on)),
        listeners_suspended: Arc::new(move || suspended.suspension.is_on()),
        scrub,
        runtime: Arc::new(move |asked| runtime.ask(asked)),
        configured: Arc::new(move || shown.in_effect(&started)),
        certificates: Arc::new(move || certificates.in_use()),
        notices: Arc::new(move || notices.all()),
        accounts: Arc::clone(shared.broker.accounts()),
        log_in: log_in(shared),
        now_ms: Arc::new(move || clock.now_ms()),
        node,
        cluster: around.cluster.clone(),
        groups: Apis::of(&around.front).filter(|_| shared.broker.group() == HOME),
        readmit: Some(readmit(&around.elsewhere)),
        audit_log: config.management.audit_log_in(&config.data_dir),
        audit_log_mode: config.file_mode(),
        web: web(config, around),
    };
    Api::new(shared.broker.admin(), settings)
}

fn web(config: &Config, around: &Around) -> Web {
    Web {
        page: config.management.page,
        path_prefix: config.management.path_prefix.clone(),
        cors_origins: config.management.cors_origins.clone(),
        hosts: config.management.hosts.clone(),
        hsts_max_age_s: config.management.hsts_seconds,
        session_idle_s: config.management.session_idle_minutes.saturating_mul(60),
        oauth: around.elsewhere.client.clone(),
    }
}

/// Knows users again whom the node of home has let in, by what that says of them.
fn readmit(elsewhere: &Elsewhere) -> Readmit {
    let (program, takes_tokens) = (elsewhere.program.clone(), elsewhere.tokens.is_some());
    Arc::new(move |passport| {
        if takes_tokens && let Some(known) = TokenAuthority::readmitted(passport) {
            return Some(Arc::new(known));
        }
        program.as_ref()?.readmitted(passport)
    })
}

/// Has callers of the HTTP API log in as AMQP clients do.
fn log_in(shared: &Arc<Shared>) -> LogIn {
    let shared = Arc::clone(shared);
    Arc::new(move |user, password, from| {
        let shared = Arc::clone(&shared);
        Box::pin(async move { shared.logins.log_in(&user, &password, from).await })
    })
}

/// The name of this node: that of the machine, unless it was given another one.
pub(crate) fn node_name(config: &Config) -> String {
    match config.cluster.node_name.as_str() {
        "" => host_name(),
        name => name.to_owned(),
    }
}

/// The name of this machine, as far as the system says it.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    if name.is_empty() { "localhost".to_owned() } else { name.into_owned() }
}
