//! The gateway's way into the broker.

use crate::config::Config;
use crate::driver::Shared;
use crate::inside::{self, INSIDE};
use courser_auth::LoginRefused;
pub(crate) use courser_gateway::handshakes_wanted;
use courser_gateway::{Connector, Metrics, Stream};
use courser_management::EndpointFigures;
use std::sync::Arc;
use tokio::sync::watch;

pub use courser_gateway::{EndpointConfig, Gateway, StartError, endpoints};

/// Starts the gateway, if there is an endpoint for it, with so many descriptors for handshakes.
pub(crate) async fn start(
    config: &Config,
    shared: &Arc<Shared>,
    handshakes: usize,
    stopping: &watch::Receiver<bool>,
) -> Result<Option<Gateway>, StartError> {
    let endpoints = &config.gateway.endpoints;
    if endpoints.is_empty() {
        return Ok(None);
    }
    for endpoint in endpoints {
        check_logins(shared, endpoint).await?;
        check_sizes(config, endpoint)?;
    }
    let connector = connector(shared, stopping);
    Gateway::start(endpoints, connector, handshakes).await.map(Some)
}

/// Refuses users that could never log in. A vhost may be made later, and another program that knows the user may answer later;
/// until then the endpoint tries again.
async fn check_logins(shared: &Shared, endpoint: &EndpointConfig) -> Result<(), StartError> {
    for login in endpoint.logins() {
        let user = login.user.clone();
        let (name, password) = (login.user.as_bytes(), login.password.as_bytes());
        match shared.logins.log_in(name, password, INSIDE.address.ip()).await {
            Ok(_) => {}
            Err(
                why @ (LoginRefused::NotAnswered { .. }
                | LoginRefused::NotChecked(_)
                | LoginRefused::Wait { .. }),
            ) => {
                let endpoint = endpoint.name();
                tracing::warn!(endpoint, %why, "it is not known whether the user of this endpoint may log in");
            }
            Err(_) => return Err(StartError::Login { endpoint: endpoint.name(), user }),
        }
    }
    Ok(())
}

/// Refuses messages that the broker would not take: the endpoint would try one of them for ever.
fn check_sizes(config: &Config, endpoint: &EndpointConfig) -> Result<(), StartError> {
    let broker_max = config.amqp.max_message_bytes;
    if endpoint.max_message_bytes as u64 <= broker_max {
        return Ok(());
    }
    Err(StartError::Size { endpoint: endpoint.name(), broker_max })
}

fn connector(shared: &Arc<Shared>, stopping: &watch::Receiver<bool>) -> Connector {
    let (shared, stopping) = (Arc::clone(shared), stopping.clone());
    Arc::new(move || {
        let pipe = inside::connect(&shared, "gateway", stopping.clone()).ok()?;
        Some(Box::new(pipe) as Box<dyn Stream>)
    })
}

/// What the metrics show of the endpoints.
pub(crate) fn figures(gateway: Option<&Gateway>) -> impl Fn() -> Vec<EndpointFigures> + use<> {
    let endpoints = gateway.map(Gateway::counters).unwrap_or_default();
    move || endpoints.iter().map(|(name, counters)| endpoint(name, counters)).collect()
}

fn endpoint(name: &str, counters: &Metrics) -> EndpointFigures {
    let counted = counters.snapshot();
    EndpointFigures {
        name: name.to_owned(),
        peers: counted.peers,
        received: counted.received,
        received_bytes: counted.received_bytes,
        published: counted.published,
        refused: counted.refused,
        unroutable: counted.unroutable,
        sent: counted.sent,
        sent_bytes: counted.sent_bytes,
        dropped: counted.dropped,
        expired: counted.expired,
        turned_away: counted.turned_away,
        links: counted.links,
    }
}
