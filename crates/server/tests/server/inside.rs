//! Clients in the same program, without a socket.

use crate::support::wait_until;
use courser::{Config, HttpListen, Management, Metrics, NoPlace, Server, StartError};
use courser_broker::admin::{PageRequest, PolicyKind};
use courser_client::{Connection, ConsumeOptions, Error, Options, QueueOptions, Uri};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Settings of a broker that can be reached from within only.
fn config_in(folder: &Path) -> Config {
    Config {
        listen: Vec::new(),
        management: Management { listen: HttpListen::none(), ..Management::default() },
        metrics: Metrics { listen: HttpListen::none(), ..Metrics::default() },
        data_dir: folder.to_owned(),
        ..Config::default()
    }
}

async fn start(folder: &Path, connections_max: usize) -> Server {
    let mut config = config_in(folder);
    config.limits.connections_max = connections_max;
    Server::start(config).await.expect("a broker")
}

async fn open(server: &Server) -> Connection {
    let pipe = server.connect().expect("a place");
    Connection::open_on(pipe, Options::default()).await.expect("a login")
}

#[tokio::test]
async fn messages_go_through_a_broker_that_listens_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 10).await;
    assert!(server.addresses().is_empty() && server.http_addresses().is_empty());
    let (publisher, consumer) = (open(&server).await, open(&server).await);
    let channel = publisher.open_channel().await.expect("a channel");
    channel.queue_declare("inside", QueueOptions::default()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    // Larger than the pipe, so that both ends have to take turns.
    let body = vec![7; 3 << 20];
    let confirm = channel.publish("", "inside", &body).await.expect("published");
    assert!(confirm.await.expect("a confirm").is_ack());

    let channel = consumer.open_channel().await.expect("a channel");
    let consuming = channel.consume("inside", ConsumeOptions::default());
    let mut deliveries = consuming.await.expect("a consumer");
    let delivery = deliveries.next().await.expect("open").expect("a delivery");
    assert!(delivery.body() == body, "the body is not what was published");
    delivery.ack().expect("acknowledged");
    publisher.close().await.expect("closed");
    consumer.close().await.expect("closed");
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn there_are_no_more_connections_than_the_settings_allow() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 1).await;
    let first = open(&server).await;
    let refused = server.connect().expect_err("one too many");
    assert_eq!(refused, NoPlace { connections_max: 1 });
    first.close().await.expect("closed");
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn clients_inside_log_in_and_are_told_when_the_broker_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 10).await;
    let wrong = "amqp://guest:wrong@localhost/".parse::<Uri>().expect("a URI").options;
    let refused = Connection::open_on(server.connect().expect("a place"), wrong).await;
    assert_eq!(refused.expect_err("a wrong password").reply_code(), Some(403));

    let client = open(&server).await;
    let seen = server.admin().connections(None).expect("a list").page(&PageRequest::first(10));
    assert!(format!("{:?}", seen.items).contains("in memory"), "{:?}", seen.items);
    server.stop().await.expect("a clean stop");
    match client.closed().await {
        Error::ConnectionClosed(reason) => assert_eq!(reason.code, 320),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn settings_that_no_broker_could_run_with_are_refused() {
    type Change = fn(&mut Config);
    let wrong: [(&str, Change); 4] = [
        ("amqp.frame_max must be at least 4096", |config| config.amqp.frame_max = 100),
        ("journal.scrub_days must be at most 365", |config| config.journal.scrub_days = 366),
        ("journal.spare_segments must be at least 3", |config| config.journal.spare_segments = 0),
        ("log", |config| config.log.level = "loud".into()),
    ];
    for (part, change) in wrong {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config_in(folder.path());
        change(&mut config);
        let error = Server::start(config).await.err().expect("it is refused");
        assert!(matches!(error, StartError::Config(_)), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
        let left = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(left, 0, "nothing was written");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 10).await;
    let mut config = config_in(folder.path());
    config.amqp.channel_max = 0;
    let error = server.reload(&config).await.expect_err("it is refused");
    assert!(matches!(error, StartError::Config(_)), "{error:?}");
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn of_two_reloads_at_once_the_later_one_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 10).await;
    let with = |vhosts: usize, policy: &str| {
        let vhosts = (0..vhosts).map(|nth| json!({ "name": format!("v{nth}") })).collect();
        let policies =
            json!([{ "name": policy, "pattern": "^q", "definition": { "max-length": 1 } }]);
        let mut config = config_in(folder.path());
        config.vhosts = serde_json::from_value(vhosts).expect("vhosts");
        config.policies = serde_json::from_value(policies).expect("policies");
        config
    };
    // The earlier one takes much longer.
    let (earlier, later) = (with(300, "earlier"), with(0, "later"));
    let (one, other) = tokio::join!(server.reload(&earlier), server.reload(&later));
    one.and(other).expect("good settings");
    let policies = server.admin().policies("/", PolicyKind::User).expect("the vhost");
    let names: Vec<_> = policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["later"]);
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn a_reload_that_is_not_waited_for_is_taken_over_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 10).await;
    let vhosts = (0..300).map(|nth| json!({ "name": format!("v{nth}") })).collect();
    let mut config = config_in(folder.path());
    config.vhosts = serde_json::from_value(vhosts).expect("vhosts");
    config.limits.memory_high_bytes = 123_456_789;
    // It begins, and is given up.
    drop(tokio::time::timeout(Duration::ZERO, server.reload(&config)).await);
    wait_until("the limit follows", async || server.admin().memory_high_bytes() == 123_456_789)
        .await;
    server.stop().await.expect("a clean stop");
}
