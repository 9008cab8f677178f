//! Nodes that prove to each other by certificates who they are.

use crate::cluster::{Three, connect, get};
use crate::support::{Authority, PATIENCE, wait_until};
use courser::{Cluster, Config, HttpListen};
use courser_client::QueueOptions;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const CA: &str = "ca.pem";

/// Writes a certificate of `authority` for nodes on this machine.
fn write(authority: &Authority, folder: &Path, serial: u64) {
    authority.issue(&["127.0.0.1"], &[], serial).write(folder, "node");
    std::fs::write(folder.join(CA), authority.pem()).expect("a file");
}

fn encrypt(config: &mut Config, folder: &Path) {
    config.metrics.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    config.cluster = Cluster {
        secret: String::new(),
        tls_certificate: folder.join("node.pem"),
        tls_key: folder.join("node.key"),
        tls_ca: folder.join(CA),
        ..config.cluster.clone()
    };
}

/// The certificate that the node shows, if it takes one of this authority.
async fn shown(config: &Config, authority: &Authority) -> io::Result<Vec<u8>> {
    let issued = authority.issue(&["127.0.0.1"], &[], 99);
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).expect("an authority");
    let tls = TlsConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(issued.chain(), issued.private_key())
        .expect("a certificate");
    let stream = TcpStream::connect(&config.cluster.listen).await?;
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connecting = TlsConnector::from(Arc::new(tls)).connect(name, stream);
    let stream = timeout(PATIENCE, connecting).await??;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    Ok(shown.expect("a certificate").to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_certificates_of_nodes_are_used_without_a_restart() {
    let old = Authority::new("old authority");
    let files = tempfile::tempdir().expect("a folder");
    write(&old, files.path(), 1);
    let three = Three::start_with(|config| encrypt(config, files.path())).await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let first = shown(&three.configs[leader], &old).await.expect("a handshake");

    // The old ones might expire now: nothing of them is left.
    let new = Authority::new("new authority");
    write(&new, files.path(), 2);
    for (node, config) in three.running().zip(&three.configs) {
        node.reload(config).await.expect("settings in order");
        wait_until("the renewed certificate", async || {
            shown(config, &new).await.is_ok_and(|shown| shown != first)
        })
        .await;
        assert!(shown(config, &old).await.is_err());
    }

    // A client at a follower has a connection between nodes of its own.
    let connection = connect(three.node(follower)).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");

    let page = get(three.node(leader).addresses().metrics[0], "/metrics").await.1;
    let file = files.path().join("node.pem").display().to_string();
    let expiry = "courser_certificate_expiry_timestamp_seconds";
    let told = page.lines().any(|line| line.starts_with(expiry) && line.contains(&file));
    assert!(told, "{page}");
    three.stop().await;
}
