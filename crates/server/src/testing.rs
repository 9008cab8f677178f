//! For tests within this crate: a broker that listens nowhere, and what a node says of itself.

use crate::{Config, HttpListen, Management, Metrics, Server, VERSION};
use courser_cluster::NodeId;
use courser_cluster::transport::{About, Endpoint, Secret};
use std::sync::Arc;
use tempfile::TempDir;

/// A broker, and the folder of its data.
pub(crate) async fn start() -> (Server, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        listen: Vec::new(),
        management: Management { listen: HttpListen::none(), ..Management::default() },
        metrics: Metrics { listen: HttpListen::none(), ..Metrics::default() },
        data_dir: folder.path().to_owned(),
        ..Config::default()
    };
    (Server::start(config).await.expect("a broker"), folder)
}

/// What a node of a cluster that is not formed says of itself, and how it proves that it may.
pub(crate) fn endpoint(node: NodeId, name: &str, address: &str) -> Arc<Endpoint> {
    let about = About {
        cluster: "test".into(),
        node,
        name: name.into(),
        address: address.into(),
        version: VERSION.into(),
        segment_bytes: 1 << 20,
        formation: None,
        has_data: false,
        known: Vec::new(),
    };
    let secret = Secret::new(b"what all nodes of this test know").expect("long enough");
    Endpoint::new(about, secret, None)
}
