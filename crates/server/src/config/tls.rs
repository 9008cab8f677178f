//! Settings of listeners with TLS.

use super::{ConfigError, Network};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Listeners with TLS, their certificates, and what is asked of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Where to listen for AMQP connections with TLS; nowhere unless said otherwise.
    #[serde(deserialize_with = "super::addresses::list")]
    pub listen: Vec<SocketAddr>,
    /// The broker's certificate, followed by those between it and its authority, in PEM form.
    pub certificate: PathBuf,
    /// Its private key, in PEM form and not encrypted.
    pub key: PathBuf,
    /// The oldest version that clients may use.
    pub min_version: TlsVersion,
    /// Whether clients are asked for certificates.
    pub client_certificates: ClientCertificates,
    /// The authorities whose client certificates are accepted, in PEM form.
    pub client_ca: PathBuf,
    /// Lists of revoked client certificates, in PEM form: one from each authority of `client_ca`.
    pub crls: Vec<PathBuf>,
    /// Which name of its certificate a client that logs in with EXTERNAL has.
    pub external_name: ExternalName,
    /// Which one, from 0, of several alternative names.
    pub external_name_index: usize,
    /// Milliseconds that a handshake may take.
    pub handshake_timeout_ms: u64,
    /// Where proxies connect from that say whose connections they pass on (PROXY protocol), to `listen` of
    /// this section. Their header stands before the handshake.
    pub proxy_protocol_from: Vec<Network>,
    /// Certificates for clients that ask for certain host names.
    pub hosts: Vec<TlsHost>,
}

/// A certificate for clients that ask for one of these host names (SNI).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsHost {
    /// The host names; `*.example.com` stands for those with one label more.
    pub names: Vec<String>,
    /// As [`Tls::certificate`].
    pub certificate: PathBuf,
    /// As [`Tls::key`].
    pub key: PathBuf,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

impl TryFrom<Value> for TlsVersion {
    type Error = String;

    /// Without quotes it is a number in YAML.
    fn try_from(value: Value) -> Result<Self, String> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match text.trim() {
            "1.2" => Ok(TlsVersion::Tls12),
            "1.3" => Ok(TlsVersion::Tls13),
            other => Err(format!("'{other}' is neither 1.2 nor 1.3")),
        }
    }
}

/// Whether clients are asked for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificates {
    /// They are not.
    None,
    /// They may present one; if they do, it has to be good.
    Optional,
    /// Without a good one they do not get in.
    Required,
}

/// Which name in a client's certificate is the name of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExternalName {
    /// The whole subject, as RFC 4514 writes it: `CN=alice,O=Acme,C=SE`.
    DistinguishedName,
    /// The subject's common name.
    CommonName,
    /// An alternative name that is a host's.
    SanDns,
    /// An alternative name that is an address of the Internet Protocol.
    SanIp,
    /// An alternative name that is an address for mail.
    SanEmail,
    /// An alternative name that is a URI.
    SanUri,
}

impl Default for Tls {
    fn default() -> Self {
        Tls {
            listen: Vec::new(),
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            min_version: TlsVersion::Tls12,
            client_certificates: ClientCertificates::None,
            client_ca: PathBuf::new(),
            crls: Vec::new(),
            external_name: ExternalName::DistinguishedName,
            external_name_index: 0,
            handshake_timeout_ms: 5000,
            proxy_protocol_from: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

impl Tls {
    /// Refuses settings that contradict each other, or that would do nothing. `for_http` says that HTTP
    /// is served with these certificates.
    pub(super) fn check(&self, for_http: bool) -> Result<(), ConfigError> {
        let is_used = for_http || !self.listen.is_empty();
        let wrong = |key: &str, why: &str| Err(ConfigError::invalid(key, why));
        let is_set = |path: &Path| !path.as_os_str().is_empty();
        if !is_used && *self != Tls::default() {
            let why = "names no address, nor has HTTP a tls_listen: the other settings of tls would do nothing";
            return wrong("tls.listen", why);
        }
        if is_used && !is_set(&self.certificate) {
            return wrong("tls.certificate", "is needed to listen with TLS");
        }
        if is_used && !is_set(&self.key) {
            return wrong("tls.key", "is needed to listen with TLS");
        }
        let asks = self.client_certificates != ClientCertificates::None;
        if asks && !is_set(&self.client_ca) {
            return wrong("tls.client_ca", "is needed to check the certificates of clients");
        }
        if !asks && (is_set(&self.client_ca) || !self.crls.is_empty()) {
            let why = "must be optional or required where client_ca or crls is set";
            return wrong("tls.client_certificates", why);
        }
        if self.handshake_timeout_ms == 0 {
            return wrong("tls.handshake_timeout_ms", "must be at least 1");
        }
        for (index, host) in self.hosts.iter().enumerate() {
            if host.names.is_empty() || host.names.iter().any(String::is_empty) {
                return wrong(&format!("tls.hosts[{index}].names"), "needs at least one host name");
            }
        }
        Ok(())
    }
}
