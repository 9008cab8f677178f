//! For tests within this crate: a broker that listens nowhere.

use crate::{Config, HttpListen, Management, Metrics, Server};
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
