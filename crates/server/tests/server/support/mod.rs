//! Brokers to test, in this process and in one of their own, and clients made of sockets and frames.

mod auth_program;
mod certificates;
mod client;
mod held_disk;
mod issuer;
pub mod operated;
mod owners;
mod ports;
mod process;

pub use auth_program::AuthProgram;
pub use certificates::{Authority, Issued};
pub use client::{Client, Heard, short};
pub use held_disk::HeldDisk;
pub use issuer::{Answers, Issuer, Signer, now_s};
pub use owners::{ANOTHER_USER, give_away, owners};
pub(crate) use ports::free_addresses;
pub use process::{Process, ended, output};

use courser::{Clock, Config, HttpListen, Management, Metrics, Server, Surroundings};
use courser_broker::admin::Admin;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than anything takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A broker in this process, with a data folder of its own.
pub struct TestServer {
    server: Server,
    folder: TempDir,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config_in(&folder);
        change(&mut config);
        let server = Server::start(config).await.expect("a broker");
        TestServer { server, folder }
    }

    /// A broker whose clock is ahead of the machine's by so many milliseconds, which the test may change.
    pub async fn start_with_clock(ahead_ms: &Arc<AtomicI64>) -> Self {
        let clock = Clock::shifted(Arc::clone(ahead_ms));
        Self::start_within(Surroundings { clock, ..Surroundings::default() }, |_| {}).await
    }

    /// A broker on a disk that the test may hold.
    pub async fn start_on(disk: HeldDisk, change: impl FnOnce(&mut Config)) -> Self {
        let surroundings = Surroundings { disk: Some(Arc::new(disk)), ..Surroundings::default() };
        Self::start_within(surroundings, change).await
    }

    /// A broker with a clock and a disk of the test's.
    pub async fn start_within(
        surroundings: Surroundings,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config_in(&folder);
        change(&mut config);
        let server = Server::start_within(config, surroundings).await.expect("a broker");
        TestServer { server, folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub fn http_addresses(&self) -> &[SocketAddr] {
        self.server.http_addresses()
    }

    pub fn metrics_addresses(&self) -> &[SocketAddr] {
        self.server.metrics_addresses()
    }

    pub fn metrics_tls_addresses(&self) -> &[SocketAddr] {
        self.server.metrics_tls_addresses()
    }

    pub fn https_addresses(&self) -> &[SocketAddr] {
        self.server.https_addresses()
    }

    pub fn tls_address(&self) -> SocketAddr {
        self.server.tls_addresses()[0]
    }

    /// Has the certificates read again, and whatever else a reload takes over.
    pub async fn reload(&self, config: &Config) {
        self.server.reload(config).await.expect("good settings");
    }

    pub fn admin(&self) -> Admin {
        self.server.admin()
    }

    /// What the endpoints of the gateway have counted together.
    #[cfg(feature = "gateway")]
    pub fn gateway_counts(&self, of: impl Fn(&courser_gateway::Snapshot) -> u64) -> u64 {
        let endpoints = self.server.gateway().map(courser_gateway::Gateway::snapshot);
        endpoints.unwrap_or_default().iter().map(|(_, snapshot)| of(snapshot)).sum()
    }

    /// Stops the broker in order and starts it again, with other settings.
    pub async fn restart_with(self, change: impl FnOnce(&mut Config)) -> Self {
        let TestServer { server, folder } = self;
        server.stop().await.expect("a clean stop");
        let mut config = config_in(&folder);
        change(&mut config);
        let server = Server::start(config).await.expect("a broker");
        TestServer { server, folder }
    }

    /// The same, with a clock that is ahead of the machine's by so many milliseconds, which the test may change.
    pub async fn restart_with_clock(
        self,
        ahead_ms: &Arc<AtomicI64>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let clock = Clock::shifted(Arc::clone(ahead_ms));
        self.restart_within(Surroundings { clock, ..Surroundings::default() }, change).await
    }

    /// The same, on a disk that the test may hold.
    pub async fn restart_on(self, disk: HeldDisk, change: impl FnOnce(&mut Config)) -> Self {
        let surroundings = Surroundings { disk: Some(Arc::new(disk)), ..Surroundings::default() };
        self.restart_within(surroundings, change).await
    }

    /// The same, with a clock and a disk of the test's.
    pub async fn restart_within(
        self,
        surroundings: Surroundings,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let TestServer { server, folder } = self;
        server.stop().await.expect("a clean stop");
        let mut config = config_in(&folder);
        change(&mut config);
        let server = Server::start_within(config, surroundings).await.expect("a broker");
        TestServer { server, folder }
    }

    pub async fn stop(self) {
        self.server.stop().await.expect("a clean stop");
        drop(self.folder);
    }
}

/// The defaults, but on a free port and with data in `folder`.
pub fn config_in(folder: &TempDir) -> Config {
    Config {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        data_dir: folder.path().join("data"),
        management: Management { listen: HttpListen::none(), ..Management::default() },
        metrics: Metrics { listen: HttpListen::none(), ..Metrics::default() },
        ..Config::default()
    }
}

/// Waits until `done`, or fails.
pub async fn wait_until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
