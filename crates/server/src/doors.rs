//! All addresses at which clients and operators come in.

use crate::auth_http;
use crate::cluster::Front;
use crate::config::Config;
use crate::gateway;
use crate::host::Host;
use crate::http::{HttpAddresses, HttpBound, HttpService, What};
use crate::listener::{Bound, Inherited};
use crate::open_files::OpenFiles;
use crate::places::Places;
use crate::proxies::Proxies;
use crate::server::StartError;
use crate::service::Service;
use crate::tls::{Acceptor, FromFiles};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Where a broker listens, with the real ports where 0 was asked for.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// AMQP.
    pub amqp: Vec<SocketAddr>,
    /// AMQP with TLS.
    pub amqp_tls: Vec<SocketAddr>,
    /// The HTTP API.
    pub http: Vec<SocketAddr>,
    /// The HTTP API with TLS.
    pub https: Vec<SocketAddr>,
    /// Metrics.
    pub metrics: Vec<SocketAddr>,
    /// Metrics with TLS.
    pub metrics_tls: Vec<SocketAddr>,
}

/// Addresses that are taken; no client is served at them yet.
pub(crate) struct Doors {
    acceptor: Option<Arc<Acceptor>>,
    amqp: Bound,
    http: HttpBound,
    metrics: HttpBound,
    open_files: OpenFiles,
    /// Descriptors for handshakes at the gateway's endpoints.
    handshakes: usize,
    /// Descriptors for questions to the program that knows users.
    questions: usize,
}

impl Doors {
    /// Takes all addresses that the settings name.
    ///
    /// # Errors
    /// The first that can't be had, or what is wrong with certificates.
    pub fn bind(config: &Config, inherited: Inherited) -> Result<Self, StartError> {
        let amqp = Bound::new(config, inherited)?;
        let (http, metrics) = bind_http(config)?;
        let acceptor = match amqp.wants_tls() || http.wants_tls() || metrics.wants_tls() {
            true => Some(Arc::new(Acceptor::new(&config.tls)?)),
            false => None,
        };
        let mut open_files = OpenFiles::measure();
        let handshakes = open_files.lend(gateway::handshakes_wanted(&config.gateway.endpoints));
        let questions = open_files.lend(auth_http::sockets_wanted(&config.auth_http));
        Ok(Doors { acceptor, amqp, http, metrics, open_files, handshakes, questions })
    }

    /// The certificates of those with TLS.
    pub fn certificates(&self) -> Vec<Arc<dyn FromFiles>> {
        self.acceptor.iter().map(|acceptor| Arc::clone(acceptor) as _).collect()
    }

    /// Places for all connections that there may be.
    pub fn places(&self, config: &Config) -> Arc<Places> {
        let most = self.open_files.connections_max(config.limits.connections_max);
        Arc::new(Places::within(most, self.open_files.for_connections()))
    }

    /// How many descriptors handshakes at the gateway's endpoints may take.
    pub fn handshakes(&self) -> usize {
        self.handshakes
    }

    /// How many descriptors questions to the program that knows users may take.
    pub fn questions(&self) -> usize {
        self.questions
    }

    /// What is known of the descriptors of the process.
    pub fn open_files(&self) -> OpenFiles {
        self.open_files
    }

    /// Where they are.
    pub fn addresses(&self) -> Addresses {
        let (amqp, amqp_tls) = self.amqp.addresses();
        let HttpAddresses { plain: http, tls: https } = self.http.addresses();
        let HttpAddresses { plain: metrics, tls: metrics_tls } = self.metrics.addresses();
        Addresses { amqp, amqp_tls, http, https, metrics, metrics_tls }
    }

    /// Lets clients in to a broker.
    ///
    /// # Errors
    /// The first address that can't be listened on.
    pub fn open(
        self,
        service: &Service,
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let host = Host::own(&service.shared);
        let api = HttpService::Api(Arc::clone(&service.api));
        let metrics = HttpService::Metrics(Arc::clone(&service.exporter));
        self.serve(&host, &api, &metrics, stopping)
    }

    /// Lets clients in to a node.
    ///
    /// # Errors
    /// The first address that can't be listened on.
    pub fn open_node(
        self,
        front: &Arc<Front>,
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let api = HttpService::Node(Arc::clone(front));
        let metrics = HttpService::NodeMetrics(Arc::clone(front));
        self.serve(&Host::node(front), &api, &metrics, stopping)
    }

    fn serve(
        self,
        host: &Arc<Host>,
        api: &HttpService,
        metrics: &HttpService,
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let Doors { acceptor, open_files, .. } = self;
        self.amqp.serve(host, acceptor.clone(), open_files, stopping)?;
        self.metrics.serve(metrics, acceptor.as_ref(), open_files, stopping);
        self.http.serve(api, acceptor.as_ref(), open_files, stopping);
        Ok(())
    }
}

/// Listens for the HTTP API and for metrics.
fn bind_http(config: &Config) -> Result<(HttpBound, HttpBound), StartError> {
    let what = What {
        name: "HTTP API",
        setting: "management.listen",
        tls_setting: "management.tls_listen",
    };
    let api = &config.management;
    let http = HttpBound::new(
        &what,
        &api.listen,
        api.addresses(),
        &api.tls_listen,
        Proxies::new(&api.proxy_protocol_from),
    )?;
    let what =
        What { name: "metrics", setting: "metrics.listen", tls_setting: "metrics.tls_listen" };
    let metrics = &config.metrics;
    let metrics = HttpBound::new(
        &what,
        &metrics.listen,
        metrics.addresses(),
        &metrics.tls_listen,
        Proxies::new(&metrics.proxy_protocol_from),
    )?;
    Ok((http, metrics))
}
