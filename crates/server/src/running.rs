//! The broker that the command runs.

use courser::{
    Config, Inherited, Node, Reloaded, Server, StartError, StopError, banner, node_banner,
};
use std::path::Path;

/// The broker that runs: by itself, or as a node of a cluster.
pub enum Running {
    Alone(Box<Server>),
    Node(Box<Node>),
}

impl Running {
    /// `file` is that of the settings, if there is one.
    pub async fn start(
        config: Config,
        inherited: Inherited,
        file: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let naming_file = |error| naming_file(error, file);
        if config.cluster.is_on() {
            let node = Node::start_on(config, inherited).await.map_err(naming_file)?;
            return Ok(Running::Node(Box::new(node)));
        }
        let server = Server::start_on(config, inherited).await.map_err(naming_file)?;
        Ok(Running::Alone(Box::new(server)))
    }

    pub fn banner(&self, config: &Config) -> String {
        match self {
            Running::Alone(server) => banner(server, config),
            Running::Node(node) => node_banner(node, config),
        }
    }

    pub async fn reload(&self, config: &Config, file: Option<&Path>) -> anyhow::Result<()> {
        let reloaded = match self {
            Running::Alone(server) => server.reload(config).await,
            Running::Node(node) => node.reload(config).await,
        };
        reloaded.map_err(|error| naming_file(error, file))
    }

    pub fn note_reload(&self, reloaded: Reloaded) {
        match self {
            Running::Alone(server) => server.note_reload(reloaded),
            Running::Node(node) => node.note_reload(reloaded),
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

/// An error with the file of the settings before it, if it is one of settings.
fn naming_file(error: StartError, file: Option<&Path>) -> anyhow::Error {
    match file {
        Some(file) if error.is_of_settings() => {
            anyhow::Error::from(error).context(file.display().to_string())
        }
        _ => error.into(),
    }
}
