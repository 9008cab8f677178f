//! Where HTTP is served: the form of the settings that say so.

use super::{ConfigError, addresses};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::SocketAddr;

/// Where to serve HTTP: `default`, `none`, or a list of addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum HttpListen {
    /// At the usual address, unless another process is there.
    #[default]
    Default,
    /// At these addresses, and at no other; none switches it off.
    At(Vec<SocketAddr>),
}

impl HttpListen {
    /// Nowhere.
    pub fn none() -> Self {
        HttpListen::At(Vec::new())
    }

    /// The addresses, of which there is a usual one.
    pub(super) fn addresses(&self, usual: &'static SocketAddr) -> &[SocketAddr] {
        match self {
            HttpListen::Default => std::slice::from_ref(usual),
            HttpListen::At(addresses) => addresses,
        }
    }
}

impl TryFrom<Value> for HttpListen {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value.as_str().map(str::trim) {
            Some("default") => Ok(HttpListen::Default),
            Some("none") => Ok(HttpListen::none()),
            _ => match addresses::parse(&value) {
                Ok(addresses) => Ok(HttpListen::At(addresses)),
                Err(why) => Err(format!("{why}; or say default or none")),
            },
        }
    }
}

impl From<HttpListen> for Value {
    fn from(listen: HttpListen) -> Self {
        match listen {
            HttpListen::Default => "default".into(),
            HttpListen::At(addresses) => {
                addresses.iter().map(|address| Value::from(address.to_string())).collect()
            }
        }
    }
}

/// Refuses addresses of a section that are to be served with TLS and without.
pub(super) fn check_tls_listen(
    section: &str,
    listen: &[SocketAddr],
    tls_listen: &[SocketAddr],
) -> Result<(), ConfigError> {
    let twice = |address: &&SocketAddr| address.port() != 0 && listen.contains(address);
    match tls_listen.iter().find(twice) {
        Some(address) => {
            let why = format!("names {address}, which {section}.listen has, too");
            Err(ConfigError::invalid(&format!("{section}.tls_listen"), &why))
        }
        None => Ok(()),
    }
}
