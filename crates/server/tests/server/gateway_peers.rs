//! What one peer or one message does to the others at an endpoint of the gateway: nothing.

use crate::gateway::{peer, send};
use crate::support::{Client, Heard, PATIENCE, TestServer, free_addresses, short, wait_until};
use courser_client::{
    Connection, ConsumeOptions, Outgoing, OwnedProperties, QueueOptions, ShortString,
};
use courser_codec::{FieldTable, queue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A broker with one endpoint.
pub(crate) async fn with_endpoint(endpoint: Value) -> TestServer {
    TestServer::start_with(|config| config.gateway.endpoints = endpoints(endpoint)).await
}

pub(crate) fn endpoints(endpoint: Value) -> Vec<courser_gateway::EndpointConfig> {
    courser_gateway::endpoints(json!([endpoint])).expect("a good endpoint")
}

pub(crate) fn links(server: &TestServer) -> u64 {
    server.gateway_counts(|endpoint| endpoint.links)
}

/// The frames of the next message, which comes before long.
pub(crate) async fn receive(stream: &mut TcpStream) -> Vec<Vec<u8>> {
    timeout(PATIENCE, next_message(stream)).await.expect("a message")
}

async fn next_message(stream: &mut TcpStream) -> Vec<Vec<u8>> {
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
        let request = receive(&mut worker).await;
        let [number, empty, body] = &request[..] else { panic!("three frames") };
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

#[tokio::test]
async fn a_request_with_long_frames_costs_no_other_where_amqps_frames_are_the_smallest() {
    let address = free_addresses(1)[0];
    let endpoint =
        json!({"socket": "router", "bind": format!("tcp://{address}"), "queue": "requests"});
    let server = TestServer::start_with(|config| {
        config.amqp.frame_max = 4096;
        config.gateway.endpoints = endpoints(endpoint);
    })
    .await;
    let mut peer = peer(address, b"DEALER").await.expect("a peer");
    send(&mut peer, &[b"first"]).await.expect("an open socket");
    // It is not so long that it would be put into the body.
    let long = [&[3, 0, 0, 0, 0, 0, 0, 0x0b, 0xe5][..], &[7; 0x0be5], b"\x00\x04long"].concat();
    peer.write_all(&long).await.expect("an open socket");
    send(&mut peer, &[b"last"]).await.expect("an open socket");
    wait_until("all are published", async || {
        assert_eq!(server.gateway_counts(|endpoint| endpoint.expired), 0, "one was forgotten");
        server.gateway_counts(|endpoint| endpoint.published) == 3
    })
    .await;
    let uri = format!("amqp://guest:guest@{}/", server.address());
    let connection = Connection::open(&uri).await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    let mut requests = channel.consume("requests", ConsumeOptions::default()).await.expect("it");
    for _ in 0..3 {
        let request = requests.next().await.expect("an open channel").expect("a request");
        let OwnedProperties { reply_to, correlation_id, .. } =
            request.message().owned_properties().expect("properties");
        let properties = OwnedProperties { correlation_id, ..OwnedProperties::default() };
        let reply = Outgoing::new(request.message().body()).properties(properties);
        let reply_to = reply_to.expect("a queue for the reply");
        channel.publish("", reply_to.to_str().expect("text"), reply).await.expect("it is open");
    }
    for body in [&b"first"[..], b"last"] {
        let mut reply = receive(&mut peer).await;
        if reply[0] != body {
            // The long one's, whose body is all of its frames.
            assert!(reply[0].ends_with(b"long"), "{reply:?}");
            reply = receive(&mut peer).await;
        }
        assert_eq!(reply, [body]);
    }
    assert_eq!(links(&server), 1, "the endpoint has lost its connection");
    server.stop().await;
}

#[tokio::test]
async fn requests_and_replies_are_persistent_unless_the_endpoint_says_otherwise() {
    for (persistent, delivery_mode) in [(true, Some(2)), (false, Some(1))] {
        let [router, dealer] = free_addresses(2)[..] else { panic!("two addresses") };
        let mut both = json!([
            {"socket": "router", "bind": format!("tcp://{router}"), "queue": "requests"},
            {"socket": "dealer", "bind": format!("tcp://{dealer}"), "queue": "jobs"},
        ]);
        if !persistent {
            (both[0]["persistent"], both[1]["persistent"]) = (json!(false), json!(false));
        }
        let both = courser_gateway::endpoints(both).expect("good endpoints");
        let server = TestServer::start_with(|config| config.gateway.endpoints = both).await;
        let uri = format!("amqp://guest:guest@{}/", server.address());
        let connection = Connection::open(&uri).await.expect("a connection");
        let channel = connection.open_channel().await.expect("a channel");
        for queue in ["requests", "jobs", "answers"] {
            channel.queue_declare(queue, QueueOptions::durable()).await.expect("a queue");
        }
        let reply_to = Some(ShortString::try_from("answers").expect("a name"));
        let properties = OwnedProperties { reply_to, ..OwnedProperties::default() };
        let job = Outgoing::new(b"job").properties(properties);
        channel.publish("", "jobs", job).await.expect("an open channel");
        let mut worker = peer(dealer, b"REP").await.expect("a peer");
        let job = receive(&mut worker).await;
        let [number, empty, _] = &job[..] else { panic!("three frames") };
        send(&mut worker, &[number, empty, b"done"]).await.expect("an open socket");
        let mut requester = peer(router, b"DEALER").await.expect("a peer");
        send(&mut requester, &[b"question"]).await.expect("an open socket");
        for (queue, body) in [("answers", &b"done"[..]), ("requests", b"question")] {
            let mut consumer = channel.consume(queue, ConsumeOptions::default()).await.expect("it");
            let message = timeout(PATIENCE, consumer.next()).await;
            let message = message.expect("it comes").expect("an open channel").expect("a message");
            let properties = message.message().owned_properties().expect("properties");
            assert_eq!((message.message().body(), properties.delivery_mode), (body, delivery_mode));
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn a_message_whose_way_is_too_long_costs_itself_alone() {
    let address = free_addresses(1)[0];
    let server = with_endpoint(json!({
        "socket": "sub", "bind": format!("tcp://{address}"), "exchange": "amq.topic",
    }))
    .await;
    let mut client = Client::connect(server.address()).await;
    client.declare("seen").await;
    // Patterns that part at their first words, and have a '#' in front of each of many more.
    let steep = (0..64u32).map(|nth| {
        let words = (0..63).map(|at| if at < 6 && nth >> at & 1 == 1 { "#.a" } else { "#.*" });
        words.collect::<Vec<_>>().join(".")
    });
    for pattern in steep.chain(["sensor.*".to_owned()]) {
        let (queue, exchange) = (short("seen"), short("amq.topic"));
        let bind =
            queue::Bind { queue, exchange, routing_key: short(&pattern), ..Default::default() };
        assert_eq!(client.call(bind).await, Heard::Reply("queue.bind-ok"));
    }
    client.consume("seen", true).await;
    let mut peer = peer(address, b"PUB").await.expect("a peer");
    let long = ["a"; 128].join(".");
    for (topic, body) in [("sensor.1", "1"), (&*long, "long"), ("sensor.2", "2"), (&long, "long")] {
        send(&mut peer, &[topic.as_bytes(), body.as_bytes()]).await.expect("an open socket");
    }
    send(&mut peer, &[b"sensor.3", b"3"]).await.expect("an open socket");
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    while bodies.last().is_none_or(|body| body != b"3") {
        assert!(bodies.len() < 20, "they come again and again");
        bodies.extend(client.bodies(1).await);
    }
    // Those that were under way beside it may come again.
    bodies.dedup();
    assert_eq!(bodies, [b"1", b"2", b"3"]);
    assert_eq!(server.gateway_counts(|endpoint| endpoint.dropped), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_request_whose_reply_a_full_queue_refuses_is_rejected() {
    let address = free_addresses(1)[0];
    let server = with_endpoint(json!({
        "socket": "dealer", "bind": format!("tcp://{address}"), "queue": "requests",
    }))
    .await;
    let uri = format!("amqp://guest:guest@{}/", server.address());
    let connection = Connection::open(&uri).await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    wait_until("the queue is there", async || links(&server) == 1).await;
    let full = FieldTable::new().with("x-max-length", 0).with("x-overflow", "reject-publish");
    let full = QueueOptions { arguments: full, ..QueueOptions::durable() };
    channel.queue_declare("answers", full).await.expect("a queue");
    let reply_to = Some(ShortString::try_from("answers").expect("a name"));
    let properties = OwnedProperties { reply_to, ..OwnedProperties::default() };
    let request = Outgoing::new(b"question").properties(properties);
    channel.publish("", "requests", request).await.expect("an open channel");
    let mut worker = peer(address, b"REP").await.expect("a peer");
    let request = receive(&mut worker).await;
    let [number, empty, _] = &request[..] else { panic!("three frames") };
    send(&mut worker, &[number, empty, b"answer"]).await.expect("an open socket");
    wait_until("it is rejected", async || server.gateway_counts(|endpoint| endpoint.dropped) == 1)
        .await;
    assert_eq!(server.gateway_counts(|endpoint| endpoint.published), 0);
    let mut client = Client::connect(server.address()).await;
    assert_eq!(client.count("answers").await, 0);
    assert_eq!(links(&server), 1, "the endpoint has lost its connection");
    server.stop().await;
}

#[tokio::test]
async fn a_dealer_goes_on_to_acknowledge_in_an_alarm_that_its_requests_have_caused() {
    let address = free_addresses(1)[0];
    let server = TestServer::start_with(|config| {
        config.limits.memory_high_bytes = 5_000_000;
        config.gateway.endpoints = endpoints(json!({
            "socket": "dealer", "bind": format!("tcp://{address}"), "queue": "requests",
            "max_message_bytes": 12_000_000, "timeout_ms": 3_600_000,
        }));
    })
    .await;
    let mut client = Client::connect(server.address()).await;
    client.declare_durable("requests").await;
    client.declare("answers").await;
    let uri = format!("amqp://guest:guest@{}/", server.address());
    let connection = Connection::open(&uri).await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    let reply_to = Some(ShortString::try_from("answers").expect("a name"));
    let properties = OwnedProperties { reply_to, ..OwnedProperties::default() };
    for body in [vec![7; 10], vec![7; 10_000_000]] {
        let request = Outgoing::new(&body).properties(properties.clone());
        channel.publish("", "requests", request).await.expect("an open channel");
    }
    wait_until("memory is short", async || server.admin().alarms().memory).await;
    let mut worker = peer(address, b"REP").await.expect("a peer");
    for answered in 1..=2 {
        let request = receive(&mut worker).await;
        let [number, empty, _] = &request[..] else { panic!("three frames") };
        send(&mut worker, &[number, empty, b"done"]).await.expect("an open socket");
        // From the first reply on, the broker reads nothing more from where it was published.
        wait_until("it is answered", async || client.count("answers").await == answered).await;
    }
    assert!(!server.admin().alarms().memory, "nothing waits any more");
    server.stop().await;
}
