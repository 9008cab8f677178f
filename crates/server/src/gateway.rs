//! The gateway's way into the broker: pipes in memory, served as sockets are. So what its endpoints may do is for the
//! broker to say, as with every other client.

use crate::config::Config;
use crate::driver::{self, Counted, Shared};
use courser_gateway::{Connector, Gateway, StartError, Stream};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Octets on their way in a pipe, each direction.
const PIPE_BYTES: usize = 256 * 1024;

/// Starts the gateway, if there is an endpoint for it.
pub(crate) async fn start(
    config: &Config,
    shared: &Arc<Shared>,
    stopping: &watch::Receiver<bool>,
) -> Result<Option<Gateway>, StartError> {
    let endpoints = &config.gateway.endpoints;
    if endpoints.is_empty() {
        return Ok(None);
    }
    let connector = connector(shared, config.limits.connections_max, stopping);
    Gateway::start(endpoints, connector).await.map(Some)
}

fn connector(
    shared: &Arc<Shared>,
    connections_max: usize,
    stopping: &watch::Receiver<bool>,
) -> Connector {
    let (shared, stopping) = (Arc::clone(shared), stopping.clone());
    Arc::new(move || {
        let counted = Counted::admit(&shared, connections_max)?;
        let (brokers, gateways) = tokio::io::duplex(PIPE_BYTES);
        // Users who may come from this machine only may come from inside the broker.
        let peer = SocketAddr::from(([127, 0, 0, 1], 0));
        tokio::spawn(driver::serve(brokers, peer, counted, stopping.clone()));
        Some(Box::new(gateways) as Box<dyn Stream>)
    })
}
