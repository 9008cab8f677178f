//! What is asked for over HTTP and changes nothing that the log keeps: it is done and answered whatever the disk does.

use crate::slow_world::{GUEST, answered, status};
use crate::support::{Client, HeldDisk, TestServer, wait_until};
use courser::{Config, HttpListen};
use std::net::SocketAddr;

/// Requests that change what is in memory only, and trials, with what they say and are answered.
const OF_MEMORY: [(&str, &str, &str); 16] = [
    ("POST /api/login", r#"{"username":"guest","password":"guest"}"#, "200"),
    ("DELETE /api/login", "", "204"),
    ("PUT /api/nodes/NODE/listeners/suspend", "", "204"),
    ("PUT /api/nodes/NODE/listeners/resume", "", "204"),
    ("PUT /api/nodes/NODE/memory-limit", r#"{"fraction":0.4}"#, "200"),
    ("PUT /api/nodes/NODE/scrub", "", "202"),
    ("POST /api/definitions?dry_run=true", r#"{"vhosts":[{"name":"new"}]}"#, "200"),
    ("POST /api/queues/%2F/fleeting/move", r#"{"to":{"queue":"other"},"dry_run":true}"#, "200"),
    ("POST /api/exchanges/%2F/amq.default/publish", TRANSIENT, "200"),
    ("DELETE /api/connections/CONNECTION", "", "204"),
    ("DELETE /api/connections/username/guest", "", "204"),
    ("DELETE /api/reset", "", "204"),
    ("DELETE /api/reset/NODE", "", "204"),
    ("DELETE /api/auth/attempts/NODE", "", "204"),
    ("DELETE /api/auth/attempts/NODE/source", "", "204"),
    ("POST /api/rebalance/queues", "", "204"),
];
const TRANSIENT: &str =
    r#"{"routing_key":"fleeting","properties":{},"payload":"m","payload_encoding":"string"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_change_no_log_are_answered_while_the_disk_stands_still() {
    let disk = HeldDisk::default();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let with_http = |config: &mut Config| config.management.listen = HttpListen::At(vec![any_port]);
    let server = TestServer::start_on(disk.clone(), with_http).await;
    let mut client = Client::connect(server.address()).await;
    client.declare_durable("lasting").await;
    for queue in ["fleeting", "other"] {
        client.declare(queue).await;
    }
    // The disk hears of a login where a hash is made anew.
    assert_eq!(status(&server, "/api/whoami", GUEST).await, "200");
    let hold = disk.hold();
    client.publish_persistent("lasting", b"m").await;
    wait_until("the disk is waited for", async || disk.is_waited_for()).await;
    let machine = rustix::system::uname();
    let node = format!("courser@{}", machine.nodename().to_string_lossy());
    let connections = server.admin().connections(None).expect("a list");
    let name = &connections.iter().next().expect("the client").name;
    let connection = name.replace(' ', "%20").replace('>', "%3E");
    for (asked, body, expected) in OF_MEMORY {
        let asked = asked.replace("NODE", &node).replace("CONNECTION", &connection);
        let said = answered(&server, &asked, GUEST, body).await;
        assert_eq!(said, expected, "{asked}");
    }
    drop(hold);
    server.stop().await;
}
