//! What an operator sees of connections that are sockets, and closing them.

use crate::support::{Client, Heard, TestServer, short, wait_until};
use courser_broker::admin::{ConnectionState, ConnectionView, DEFAULT_CLOSE_REASON, EventKind};
use courser_codec::{FieldTable, basic, queue};
use courser_connection::client::Config;

fn connections(server: &TestServer) -> Vec<ConnectionView> {
    server.admin().connections(None).expect("all vhosts").iter().collect()
}

#[tokio::test]
async fn a_connection_is_listed_by_its_addresses_with_what_its_client_says() {
    let server = TestServer::start().await;
    let properties = FieldTable::new().with("product", "a test").with("connection_name", "mine");
    let config = Config { client_properties: properties.clone(), ..Config::default() };
    let client = Client::connect_with(server.address(), config).await;
    let peer = client.stream.local_addr().expect("an address");
    let shown = connections(&server);
    assert_eq!(shown.len(), 1);
    let connection = &shown[0];
    assert_eq!(connection.name, format!("{peer} -> {}", server.address()));
    assert_eq!((connection.peer, connection.local), (Some(peer), Some(server.address())));
    assert_eq!((connection.user.to_string(), connection.vhost.as_str()), ("guest".into(), "/"));
    assert_eq!((connection.mechanism, connection.channels), ("PLAIN", 1));
    assert_eq!(connection.state, ConnectionState::Running);
    assert_eq!(
        connection.client_properties.get("product"),
        properties.get("product"),
        "{:?}",
        connection.client_properties
    );
    assert!(connection.since_ms > 1_700_000_000_000, "since {}", connection.since_ms);
    assert!(connection.received_bytes > 0 && connection.sent_bytes > 0);
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_ends_leaves_the_list() {
    let server = TestServer::start().await;
    let client = Client::connect(server.address()).await;
    assert_eq!(connections(&server).len(), 1);
    drop(client);
    wait_until("the list is empty", async || connections(&server).is_empty()).await;
    let churn = server.admin().churn();
    assert_eq!((churn.connections_opened, churn.connections_closed), (1, 1));
    assert_eq!((churn.channels_opened, churn.channels_closed), (1, 1));
    server.stop().await;
}

#[tokio::test]
async fn a_client_whose_connection_is_closed_is_told_320_and_the_reason() {
    let server = TestServer::start().await;
    let mut one = Client::connect(server.address()).await;
    let mut other = Client::connect(server.address()).await;
    let peer = one.stream.local_addr().expect("an address");
    let name = format!("{peer} -> {}", server.address());
    server.admin().close_connection(&name, "maintenance at noon").expect("it is there");
    let closed = Heard::Closed(320, "CONNECTION_FORCED - maintenance at noon".to_owned());
    assert_eq!(one.next().await, closed);
    wait_until("it has left the list", async || connections(&server).len() == 1).await;
    // The other one goes on.
    other.tell(queue::Declare { queue: short("q"), ..Default::default() }).await;
    assert!(matches!(other.next().await, Heard::DeclareOk { .. }));
    assert_eq!(server.admin().close_connections_of_user("guest", DEFAULT_CLOSE_REASON), 1);
    let text = format!("CONNECTION_FORCED - {DEFAULT_CLOSE_REASON}");
    assert_eq!(other.next().await, Heard::Closed(320, text));
    assert_eq!(server.admin().close_connection(&name, "again").expect_err("gone").code, 404);
    server.stop().await;
}

#[tokio::test]
async fn channels_and_consumers_are_listed_with_their_settings() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.tell(queue::Declare { queue: short("q"), ..Default::default() }).await;
    client.tell(basic::Qos { prefetch_count: 7, ..Default::default() }).await;
    let consume =
        basic::Consume { queue: short("q"), consumer_tag: short("tag"), ..Default::default() };
    client.tell(consume).await;
    client.wait_for(|heard| *heard == Heard::Reply("basic.consume-ok")).await;
    let mut consumers = Vec::new();
    let admin = server.admin();
    admin.for_each_consumer(None, &mut |consumer| consumers.push(consumer)).expect("all vhosts");
    assert_eq!(consumers.len(), 1);
    let consumer = &consumers[0];
    assert_eq!((consumer.tag.to_string(), consumer.queue.to_string()), ("tag".into(), "q".into()));
    assert_eq!((consumer.prefetch, consumer.ack_required, consumer.active), (7, true, true));
    let channels = admin.channels_of(&consumer.connection).expect("the connection");
    assert_eq!(channels.len(), 1);
    assert_eq!((channels[0].number, channels[0].consumers, channels[0].prefetch), (1, 1, 7));
    server.stop().await;
}

#[tokio::test]
async fn who_follows_hears_of_connections_channels_and_queues() {
    let server = TestServer::start().await;
    let mut follower = server.admin().follow();
    let mut client = Client::connect(server.address()).await;
    client.tell(queue::Declare { queue: short("q"), ..Default::default() }).await;
    client.wait_for(|heard| matches!(heard, Heard::DeclareOk { .. })).await;
    drop(client);
    let mut kinds = Vec::new();
    wait_until("the connection is closed", async || {
        kinds.extend(follower.take(100).events.iter().map(|event| event.kind));
        kinds.last() == Some(&EventKind::ConnectionClosed)
    })
    .await;
    let expected = [
        EventKind::ConnectionOpened,
        EventKind::ChannelOpened,
        EventKind::QueueCreated,
        EventKind::ChannelClosed,
        EventKind::ConnectionClosed,
    ];
    assert_eq!(kinds, expected);
    server.stop().await;
}
