//! For tests within this crate: a broker that listens nowhere, what its connections share, and what a node says of itself.

use crate::accounts::GUEST;
use crate::clock::Clock;
use crate::driver::Shared;
use crate::login::{Elsewhere, Logins};
use crate::negotiated;
use crate::notices::Notices;
use crate::places::Places;
use crate::suspension::Suspension;
use crate::throttle::Throttles;
use crate::{Config, HttpListen, Management, Metrics, Server, VERSION};
use courser_auth::{PasswordHash, Tags, User};
use courser_broker::Broker;
use courser_cluster::NodeId;
use courser_cluster::transport::{About, Endpoint, Secret};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Connections that there may be: more than there are.
const PLACES: usize = 100;

/// The address of an issuer of tokens that takes questions and answers none, and how many there were.
pub(crate) async fn silent_issuer() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let questions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&questions);
    tokio::spawn(async move {
        let mut unanswered = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            unanswered.push(connection);
        }
    });
    (address, questions)
}

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

/// What connections share, where clients come without credentials: checking a password takes another thread.
pub(crate) fn shared(broker: Arc<Broker>, clock: &Clock) -> Shared {
    let mut config = Config::default();
    config.auth.anonymous_user = GUEST.to_owned();
    let mut user = User::new(GUEST, PasswordHash::quick(b"guest").expect("a hash"));
    user.tags = Tags::administrator();
    broker.add_file_user(user).expect("a user");
    let elsewhere = Elsewhere { anonymous: Some(GUEST.to_owned()), ..Elsewhere::default() };
    Shared {
        logins: Logins::new(broker.accounts(), elsewhere, clock.clone()),
        broker,
        clock: clock.clone(),
        connection: Arc::new(negotiated::plain(&config)),
        tls_connection: Arc::new(negotiated::with_tls(&config)),
        send_timeout: config.send_timeout(),
        places: Arc::new(Places::new(PLACES)),
        throttles: Arc::new(Throttles::default()),
        suspension: Suspension::new(&Arc::new(Notices::new(clock.clone()))),
        paced: 0.into(),
        farewell: OnceLock::new(),
    }
}

/// What a node of a cluster that is not formed says of itself, and how it proves that it may.
pub(crate) fn endpoint(node: NodeId, name: &str, address: &str) -> Arc<Endpoint> {
    let about = About {
        cluster: "test".into(),
        node,
        process: None,
        name: name.into(),
        address: address.into(),
        version: VERSION.into(),
        segment_bytes: 1 << 20,
        seed: 1,
        formation: None,
        has_data: false,
        known: Vec::new(),
    };
    let secret = Secret::new(b"what all nodes of this test know").expect("long enough");
    Endpoint::new(about, secret, None)
}
