//! What one peer or one message does to the others at an endpoint of the gateway: nothing.

use crate::gateway::{peer, send};
use crate::support::{Client, TestServer, free_addresses, wait_until};
use courser_client::{Connection, Outgoing, OwnedProperties, QueueOptions, ShortString};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A broker with one endpoint.
async fn with_endpoint(endpoint: Value) -> TestServer {
    TestServer::start_with(|config| config.gateway.endpoints = endpoints(endpoint)).await
}

fn endpoints(endpoint: Value) -> Vec<courser_gateway::EndpointConfig> {
    courser_gateway::endpoints(json!([endpoint])).expect("a good endpoint")
}

fn links(server: &TestServer) -> u64 {
    server.gateway_counts(|endpoint| endpoint.links)
}

/// The frames of the next message.
async fn receive(stream: &mut TcpStream) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let flags = stream.read_u8().await.expect("a frame");
        let size_bytes = match flags & 2 {
            0 => stream.read_u8().await.expect("its size").into(),
            _ => stream.read_u64().await.expect("its size"),
        };
        let mut frame = vec![0; size_bytes as usize];
        stream.read_exact(&mut frame).await.expect("its bytes");
        if flags & 4 == 0 {
            frames.push(frame);
            if flags & 1 == 0 {
                return frames;
            }
        }
    }
}

#[tokio::test]
async fn a_request_with_a_strange_reply_to_costs_no_other_request() {
    let address = free_addresses(1)[0];
    let server = with_endpoint(json!({
        "socket": "dealer", "bind": format!("tcp://{address}"), "queue": "requests",
    }))
    .await;
    let uri = format!("amqp://guest:guest@{}/", server.address());
    let connection = Connection::open(&uri).await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("answers", QueueOptions::durable()).await.expect("a queue");
    let mut worker = peer(address, b"REP").await.expect("a peer");
    wait_until("the queue is there", async || links(&server) == 1).await;
    // Its length in UTF-8, with a replacement for each of the bytes, would be 300.
    let strange: &[u8] = &[0xff; 100];
    for (reply_to, body) in [(strange, "strange"), (b"answers", "good")] {
        let reply_to = Some(ShortString::try_from(reply_to).expect("a name"));
        let properties = OwnedProperties { reply_to, ..OwnedProperties::default() };
        let request = Outgoing::new(body).properties(properties);
        channel.publish("", "requests", request).await.expect("an open channel");
    }
    let mut done = false;
    while !done {
        let request = tokio::time::timeout(Duration::from_secs(30), receive(&mut worker)).await;
        let [number, empty, body] = &request.expect("a request")[..] else {
            panic!("three frames")
        };
        let reply = [b"re:", &body[..]].concat();
        send(&mut worker, &[number, empty, &reply]).await.expect("an open socket");
        assert_eq!(links(&server), 1, "the endpoint has lost its connection");
        done = body == b"good";
    }
    let mut client = Client::connect(server.address()).await;
    wait_until("it is answered", async || client.count("answers").await == 1).await;
    client.consume("answers", true).await;
    assert_eq!(client.bodies(1).await, [b"re:good"]);
    assert_eq!(links(&server), 1, "the endpoint has lost its connection");
    assert_eq!(server.gateway_counts(|endpoint| endpoint.dropped), 1);
    server.stop().await;
}
