//! Settings of a node of a cluster.

use super::ConfigError;
use crate::cluster::GROUPS_MAX;
use courser_cluster::transport::{Secret, WeakSecret};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Nodes that a new one is told of.
const JOIN_MAX: usize = 32;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// What makes this broker a node of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The name of the cluster, the same on all nodes.
    pub name: String,
    /// The name of this node; that of the machine if it is empty.
    pub node_name: String,
    /// Where to listen for other nodes, as `host:port`; a broker without it is in no cluster.
    pub listen: String,
    /// Where others reach this node, if not where it listens or where `join` says.
    pub advertise: String,
    /// The nodes that form the cluster, or that this one joins; this one may be among them.
    pub join: Vec<String>,
    /// Groups that the vhosts are spread over, each with a log and a leader of its own.
    pub groups: u16,
    /// What all nodes know, and prove to each other.
    pub secret: String,
    /// A file that holds it.
    pub secret_file: PathBuf,
    /// This node's certificate for the others, followed by those between it and its authority, in PEM form.
    pub tls_certificate: PathBuf,
    /// Its private key, in PEM form and not encrypted.
    pub tls_key: PathBuf,
    /// The authorities whose certificates other nodes may have, in PEM form.
    pub tls_ca: PathBuf,
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster {
            name: crate::CLUSTER_NAME.into(),
            node_name: String::new(),
            listen: String::new(),
            advertise: String::new(),
            join: Vec::new(),
            groups: 1,
            secret: String::new(),
            secret_file: PathBuf::new(),
            tls_certificate: PathBuf::new(),
            tls_key: PathBuf::new(),
            tls_ca: PathBuf::new(),
        }
    }
}

impl Cluster {
    /// Whether this broker is a node of a cluster.
    pub fn is_on(&self) -> bool {
        !self.listen.is_empty()
    }

    /// Where others reach this node, as far as its settings say.
    pub(crate) fn address(&self) -> &str {
        if self.advertise.is_empty() { &self.listen } else { &self.advertise }
    }

    /// Whether nodes encrypt what they say.
    pub(crate) fn has_tls(&self) -> bool {
        is_set(&self.tls_certificate)
    }

    /// Whether nodes prove nothing to each other.
    pub(crate) fn is_open_to_all(&self) -> bool {
        let has_secret = !self.secret.is_empty() || is_set(&self.secret_file);
        !has_secret && !self.has_tls()
    }

    /// Refuses settings that contradict each other, or that would do nothing.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |key: &str, why: &str| Err(ConfigError::invalid(key, why));
        if !(1..=GROUPS_MAX).contains(&self.groups) {
            return wrong("cluster.groups", "must be from 1 to 64");
        }
        if !self.is_on() {
            // The command line may still say so.
            return Ok(());
        }
        if !(1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return wrong("cluster.name", "must have 1 to 64 bytes");
        }
        if self.node_name.len() > NAME_BYTES_MAX || self.node_name.contains(char::is_whitespace) {
            return wrong("cluster.node_name", "must have at most 64 bytes, and no spaces");
        }
        if self.join.len() > JOIN_MAX {
            return wrong("cluster.join", "must name at most 32 nodes");
        }
        let addresses = [("cluster.listen", &self.listen), ("cluster.advertise", &self.advertise)];
        let joined = self.join.iter().map(|address| ("cluster.join", address));
        for (key, address) in addresses.into_iter().chain(joined) {
            let is_address =
                address.is_empty() && key == "cluster.advertise" || is_host_and_port(address);
            if !is_address {
                return wrong(
                    key,
                    &format!("'{address}' is no host and port such as 10.0.0.1:5680"),
                );
            }
        }
        let tls = [&self.tls_certificate, &self.tls_key, &self.tls_ca];
        if tls.iter().any(|path| is_set(path)) && !tls.iter().all(|path| is_set(path)) {
            return wrong(
                "cluster.tls_certificate",
                "goes with tls_key and tls_ca: all three or none",
            );
        }
        if !self.secret.is_empty() && is_set(&self.secret_file) {
            return wrong("cluster.secret", "and cluster.secret_file are both set: one is enough");
        }
        if self.is_open_to_all() && !is_loopback(&self.listen) {
            return wrong(
                "cluster.secret",
                "is needed where other machines reach cluster.listen: the same text on all nodes, such as that of \
                 'openssl rand -hex 32', also in a file (cluster.secret_file); or certificates (cluster.tls_certificate)",
            );
        }
        self.secret_in(self.secret.as_bytes()).map(drop)
    }

    /// Refuses settings of a node where the broker is none.
    pub(crate) fn check_unused(&self) -> Result<(), ConfigError> {
        match self.is_on() || *self == Cluster::default() {
            true => Ok(()),
            false => Err(ConfigError::invalid(
                "cluster.listen",
                "is needed for a node of a cluster: where other nodes reach this one, such as 10.0.0.1:5680",
            )),
        }
    }

    /// The secret of the cluster.
    ///
    /// # Errors
    /// When its file can't be read, or it is too short.
    pub(crate) fn read_secret(&self) -> Result<Secret, ConfigError> {
        if !is_set(&self.secret_file) {
            return self.secret_in(self.secret.as_bytes());
        }
        let path = self.secret_file.display();
        let text = std::fs::read(&self.secret_file).map_err(|error| {
            ConfigError::invalid("cluster.secret_file", &format!("can't be read: {path}: {error}"))
        })?;
        match text.trim_ascii() {
            b"" => Err(ConfigError::invalid("cluster.secret_file", &format!("is empty: {path}"))),
            secret => self.secret_in(secret),
        }
    }

    fn secret_in(&self, bytes: &[u8]) -> Result<Secret, ConfigError> {
        if bytes.is_empty() {
            return Ok(Secret::none());
        }
        Secret::new(bytes)
            .map_err(|weak: WeakSecret| ConfigError::invalid("cluster.secret", &weak.to_string()))
    }
}

fn is_set(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

fn is_host_and_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Whether other machines can't reach it.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let numeric = address.parse::<SocketAddr>().map(|address| address.ip());
    host == "localhost" || numeric.is_ok_and(|ip: IpAddr| ip.is_loopback())
}
