//! The broker that the command runs.

use courser::{Config, Inherited, Node, Server, StartError, StopError, banner, node_banner};

/// The broker that runs: by itself, or as a node of a cluster.
pub enum Running {
    Alone(Box<Server>),
    Node(Box<Node>),
}

impl Running {
    pub async fn start(config: Config, inherited: Inherited) -> Result<Self, StartError> {
        match config.cluster.is_on() {
            true => Ok(Running::Node(Box::new(Node::start_on(config, inherited).await?))),
            false => Ok(Running::Alone(Box::new(Server::start_on(config, inherited).await?))),
        }
    }

    pub fn banner(&self, config: &Config) -> String {
        match self {
            Running::Alone(server) => banner(server, config),
            Running::Node(node) => node_banner(node, config),
        }
    }

    pub fn reload(&self, config: &Config) -> Result<(), StartError> {
        match self {
            Running::Alone(server) => server.reload(config),
            Running::Node(node) => node.reload(config),
        }
    }

    /// Waits until it can't go on, and says why.
    pub async fn failed(&self) -> String {
        match self {
            Running::Alone(server) => {
                let reason = server.failed().await;
                format!("the journal failed, so nothing can be confirmed: {reason}")
            }
            Running::Node(node) => node.failed().await.to_string(),
        }
    }

    pub async fn stop(self) -> Result<(), StopError> {
        match self {
            Running::Alone(server) => server.stop().await,
            Running::Node(node) => node.stop().await,
        }
    }

    pub fn log_gateway_counters(&self) {
        let gateway = match self {
            Running::Alone(server) => server.gateway(),
            Running::Node(_) => None,
        };
        match gateway {
            Some(gateway) => gateway.log_counters(),
            None => tracing::info!("there is no gateway to count for"),
        }
    }
}
