//! A leader whose process is paused while another node comes to lead, and what its clients hear when it goes on.

use crate::cluster::get;
use crate::cluster_clients::limited;
use crate::cluster_members::request;
use crate::support::{Client, Heard, Process, short, wait_until};
use courser_codec::{basic, queue};
use courser_connection::Credentials;
use courser_connection::client::Config;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Clients of each kind: whether one is answered before the node hears of the other leader is a matter of luck.
const EACH: usize = 20;
const DESCRIPTORS: usize = 1024;
const LEADER_CHANGED: &str = "the leader of the vhost has changed";

async fn leader_by(http: SocketAddr) -> Option<usize> {
    let (_, status) = get(http, "/api/cluster").await;
    let status: Value = serde_json::from_str(&status).unwrap_or_default();
    status["leader"].as_str()?.parse().ok()
}

/// What comes of a request that is written, and what it says.
async fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut answer = String::new();
    // It may be reset where the node leads no more.
    let _ = stream.read_to_string(&mut answer).await;
    (answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default(), answer)
}

async fn written(http: SocketAddr, what: &str) -> TcpStream {
    let mut stream = TcpStream::connect(http).await.expect("a listener");
    let head = format!(
        "{what} HTTP/1.1\r\nHost: test\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("a listener");
    stream
}

/// Clients of a node, before it is paused.
struct Clients {
    declare: Vec<Client>,
    get: Vec<Client>,
    log_in: Vec<Client>,
}

impl Clients {
    async fn of(node: &Process) -> Self {
        let (mut declare, mut get, mut log_in) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..EACH {
            declare.push(Client::connect(node.address).await);
            get.push(Client::connect(node.address).await);
            let credentials = Credentials::Plain { user: "new".into(), password: "new".into() };
            let config = Config { credentials, ..Config::default() };
            log_in.push(Client::begin(node.address, config).await);
        }
        get[0].declare_durable("jobs").await;
        Clients { declare, get, log_in }
    }

    /// Asks what waits at the sockets then.
    async fn ask(&mut self) {
        for client in &mut self.declare {
            let queue = short("made");
            client.tell(queue::Declare { queue, passive: true, ..Default::default() }).await;
        }
        for client in &mut self.get {
            client.tell(basic::Get { queue: short("jobs"), no_ack: true }).await;
        }
    }

    /// Hears that another node leads, or where the way there leads, and nothing from before.
    async fn hear(self) {
        let logging_in = self
            .log_in
            .into_iter()
            .map(|mut client| tokio::spawn(async move { client.next().await }));
        let logging_in: Vec<_> = logging_in.collect();
        for mut client in self.declare.into_iter().chain(self.get) {
            let heard = client.next().await;
            let is_told =
                matches!(&heard, Heard::Closed(320, text) if text.contains(LEADER_CHANGED));
            assert!(is_told || heard == Heard::Gone, "{heard:?}");
        }
        for heard in logging_in {
            let heard = heard.await.expect("a client");
            let is_told =
                matches!(&heard, Heard::Closed(320, text) if text.contains(LEADER_CHANGED));
            // One that the node has not served yet is passed on to the next one.
            assert!(is_told || matches!(heard, Heard::Gone | Heard::Opened), "{heard:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_paused_answers_nothing_from_before() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let nodes = limited(&folders, 1, DESCRIPTORS);
    let mut first = None;
    wait_until("a leader that serves", async || {
        first = leader_by(nodes[0].1).await;
        match first {
            Some(at) => get(nodes[at].1, "/api/overview").await.0 == 200,
            None => false,
        }
    })
    .await;
    let first = first.expect("found above");
    let other = &nodes[(first + 1) % 3];
    let mut clients = Clients::of(&nodes[first].0).await;

    nodes[first].0.signal("STOP");
    wait_until("another leader", async || {
        leader_by(other.1).await.is_some_and(|leader| leader != first)
            && get(other.1, "/api/overview").await.0 == 200
    })
    .await;
    for user in ["new", "other"] {
        let sent = format!(r#"{{"password":"{user}","tags":"administrator"}}"#);
        let made = request(other.1, &format!("PUT /api/users/{user}"), &sent).await;
        assert_eq!(made.0, 201, "{made:?}");
        let all = r#"{"configure":".*","write":".*","read":".*"}"#;
        let may = request(other.1, &format!("PUT /api/permissions/%2F/{user}"), all).await;
        assert_eq!(may.0, 201, "{may:?}");
    }
    let mut publisher = Client::connect(other.0.address).await;
    publisher.declare_durable("made").await;
    publisher.publish_persistent("jobs", b"job").await;
    let declared = publisher.count("jobs").await;
    assert_eq!(declared, 1);

    clients.ask().await;
    let mut requests = Vec::new();
    for _ in 0..EACH {
        for what in ["GET /api/users/new", "GET /api/queues/%2F/made", "DELETE /api/users/gone"] {
            requests.push((what, written(nodes[first].1, what).await));
        }
    }
    let mut deletes = written(nodes[first].1, "DELETE /api/users/other").await;
    nodes[first].0.signal("CONT");
    clients.hear().await;
    for (what, mut stream) in requests {
        let (status, said) = answer(&mut stream).await;
        let good = match what {
            "DELETE /api/users/gone" => [0, 404, 503],
            _ => [0, 200, 503],
        };
        assert!(good.contains(&status), "{what}: {said}");
    }
    let (status, said) = answer(&mut deletes).await;
    assert!([0, 204, 503].contains(&status), "DELETE: {said}");
    let is_there = request(other.1, "GET /api/users/other", "").await.0 == 200;
    assert!(status != 204 || !is_there, "it is said to be deleted");
}
