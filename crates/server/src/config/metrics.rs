//! Settings of the metrics for Prometheus.

use super::http::{HttpListen, check_tls_listen};
use super::{ConfigError, Network};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Where metrics are served if the settings don't say.
static DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 15692);

/// Metrics for Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Where to serve them.
    pub listen: HttpListen,
    /// Where to serve them with TLS, with the certificates of `tls`.
    #[serde(deserialize_with = "super::addresses::list")]
    pub tls_listen: Vec<SocketAddr>,
    /// Where proxies connect from that say whose connections they pass on (PROXY protocol), to both.
    pub proxy_protocol_from: Vec<Network>,
    /// Let in only users with the tag `monitoring`, with HTTP Basic.
    pub authentication: bool,
}

impl Metrics {
    /// Where to serve them.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        self.listen.addresses(&DEFAULT)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_tls_listen("metrics", self.addresses(), &self.tls_listen)
    }
}
