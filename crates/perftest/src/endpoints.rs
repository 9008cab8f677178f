//! The brokers of a run, and how to connect to them.

use courser_client::{Connection, Error, Uri};

use crate::options::BrokerOptions;
use crate::run::RunError;
use crate::tls::{Tls, TlsError, given};

/// The brokers, at least one.
pub struct Endpoints(Vec<Endpoint>);

struct Endpoint {
    uri: Uri,
    /// For `amqps://`.
    tls: Option<Tls>,
}

impl Endpoints {
    /// Those that the options name.
    ///
    /// # Errors
    /// When one of the URIs is none, or what the options say of TLS can't be done.
    pub fn new(options: &BrokerOptions) -> Result<Self, RunError> {
        let mut endpoints = Vec::with_capacity(options.uri.len());
        for uri in &options.uri {
            let uri: Uri = uri.parse().map_err(|error| RunError::Uri(Error::Uri(error)))?;
            let tls = if uri.is_tls { Some(Tls::new(&options.tls, &uri)?) } else { None };
            endpoints.push(Endpoint { uri, tls });
        }
        match given(&options.tls) {
            Some(option) if endpoints.iter().all(|endpoint| endpoint.tls.is_none()) => {
                Err(TlsError::NotTls { option }.into())
            }
            _ => Ok(Self(endpoints)),
        }
    }

    /// Their URIs, without passwords.
    #[must_use]
    pub fn uris(&self) -> String {
        let uris: Vec<_> = self.0.iter().map(|endpoint| endpoint.uri.to_string()).collect();
        uris.join(", ")
    }

    /// Opens a connection, which the broker shows under this name: to the broker whose turn it is, or the next one that
    /// can be reached.
    ///
    /// # Errors
    /// When no broker can be reached, or one does not let the run in.
    pub async fn connect(&self, turn: usize, name: &str) -> Result<Connection, Error> {
        let first = turn % self.0.len();
        let mut others = self.0[first + 1..].iter().chain(&self.0[..first]);
        let mut connected = self.0[first].connect(name).await;
        while let Err(Error::Connect { .. }) = &connected {
            let Some(next) = others.next() else { break };
            connected = next.connect(name).await;
        }
        connected
    }
}

impl Endpoint {
    async fn connect(&self, name: &str) -> Result<Connection, Error> {
        let mut uri = self.uri.clone();
        uri.options.connection_name.get_or_insert_with(|| format!("perftest {name}"));
        match &self.tls {
            None => Connection::open_uri(&uri).await,
            Some(tls) => Connection::open_through(&uri, |stream| tls.handshake(stream)).await,
        }
    }
}
