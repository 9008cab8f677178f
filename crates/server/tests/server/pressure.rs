//! Clients that take too little or send too much: bounded, and at no other client's cost.

use crate::support::{Client, Heard, PATIENCE, Process, TestServer, wait_until};
use courser_codec::{FieldTable, basic, queue};
use courser_connection::client::Config;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

const MIB: u64 = 1024 * 1024;

/// Writes `bytes` again and again until the broker has taken none for a while, or until `most`
/// have gone. Returns how many have, and how many are still to be sent of the last time.
async fn write_until_stuck(client: &mut Client, bytes: &[u8], most: u64) -> (u64, usize) {
    let mut written = 0;
    while written < most {
        let mut rest = bytes;
        while !rest.is_empty() {
            let writing = client.stream.write(rest);
            match tokio::time::timeout(Duration::from_secs(2), writing).await {
                Ok(count) => rest = &rest[count.expect("an open connection")..],
                Err(_) => return (written + (bytes.len() - rest.len()) as u64, rest.len()),
            }
        }
        written += bytes.len() as u64;
    }
    (written, 0)
}

#[tokio::test]
async fn consumers_that_do_not_read_neither_slow_another_nor_fill_the_memory() {
    const STUCK: usize = 10;
    const MESSAGES: u64 = 20_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Process::command();
    // On a busy machine, this takes longer than clients may leave their sockets full.
    command.env("COURSER_LOG_LEVEL", "error").env("COURSER_AMQP_SEND_TIMEOUT_MS", "0");
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let broker = Process::start_with(command);
    let mut publisher = Client::connect(broker.address).await;
    let mut other = Client::connect(broker.address).await;
    other.declare_and_bind("other", "amq.fanout").await;
    other.consume("other", true).await;
    let mut stuck = Vec::new();
    for number in 0..STUCK {
        let mut client = Client::connect(broker.address).await;
        let queue = format!("stuck {number}");
        client.declare_and_bind(&queue, "amq.fanout").await;
        client.consume(&queue, true).await;
        stuck.push(client);
    }
    let before = broker.resident_bytes();
    for _ in 0..MESSAGES / 100 {
        let read = publisher.encode("amq.fanout", "", &[7; 1000]).repeat(100);
        publisher.stream.write_all(&read).await.expect("an open connection");
        assert_eq!(other.bodies(100).await.len(), 100);
    }
    for number in 0..STUCK {
        let waiting = publisher.count(&format!("stuck {number}")).await;
        assert!(waiting > 5000, "{waiting}: more than sockets and the outbox take");
    }
    // The messages themselves are there once, 20 MB; each stuck connection has its bound.
    let grown = broker.resident_bytes().saturating_sub(before) / MIB;
    assert!(grown < 100, "{grown} MiB");
    for client in &mut stuck[..2] {
        assert_eq!(client.bodies(MESSAGES as usize).await.len(), MESSAGES as usize);
    }
}

#[tokio::test]
async fn a_client_that_reads_no_answers_is_not_asked_for_more_questions() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    let declare = queue::Declare {
        queue: "q".try_into().expect("short"),
        passive: true,
        ..Default::default()
    };
    let mut question = Vec::new();
    declare.write_frame(1, &mut question);
    let questions = question.repeat(1000);
    let most = 200 * MIB;
    let (written, _) = write_until_stuck(&mut client, &questions, most).await;
    assert!(written < most / 2, "{written} bytes of questions were taken");
    // As soon as it reads, everything is answered.
    let mut answers = written / question.len() as u64;
    while answers > 0 {
        assert!(matches!(client.next().await, Heard::DeclareOk { .. }));
        answers -= 1;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_no_deliveries_can_still_send() {
    let server = TestServer::start_with(|config| {
        // Room for everything that waits in this test.
        config.limits.memory_high_bytes = 1 << 30;
    })
    .await;
    let mut client = Client::connect(server.address()).await;
    let mut other = Client::connect(server.address()).await;
    client.declare("in").await;
    client.declare("out").await;
    client.consume("in", true).await;
    let body = vec![7; 100_000];
    for _ in 0..200 {
        other.publish("in", &body).await;
    }
    wait_until("deliveries have filled the socket", async || other.count("in").await > 0).await;
    let message = client.encode("", "out", &body);
    let most = 50 * MIB;
    let (written, _) = write_until_stuck(&mut client, &message, most).await;
    assert!(written >= most, "{written} bytes");
    let sent = (most as usize).div_ceil(message.len()) as u32;
    wait_until("all has arrived", async || other.count("out").await == sent).await;
    server.stop().await;
}

fn with_blocked(wanted: bool) -> Config {
    let capabilities = FieldTable::new().with("connection.blocked", wanted);
    let client_properties = FieldTable::new().with("capabilities", capabilities);
    Config { client_properties, ..Config::default() }
}

/// A broker whose memory is short as soon as it holds one message of [`LARGE`] bytes.
async fn short_of_memory() -> TestServer {
    TestServer::start_with(|config| config.limits.memory_high_bytes = 5 * MIB).await
}

const LARGE: usize = 10_000_000;
const SMALL: usize = 50_000;

#[tokio::test]
async fn who_publishes_when_memory_is_short_is_held_back_until_there_is_room() {
    let server = short_of_memory().await;
    let mut publisher = Client::connect_with(server.address(), with_blocked(true)).await;
    let mut silent = Client::connect_with(server.address(), with_blocked(false)).await;
    let mut consumer = Client::connect(server.address()).await;
    publisher.declare("q").await;
    publisher.publish("q", &vec![7; LARGE]).await;
    let blocked = Heard::Blocked("low on memory".into());
    assert_eq!(publisher.next().await, blocked);
    let message = publisher.encode("", "q", &[7; SMALL]);
    let (written, rest) = write_until_stuck(&mut publisher, &message, 200 * MIB).await;
    assert!(written < 50 * MIB, "{written} bytes, which is more than sockets hold");
    // Another publisher's last read is taken; then it waits as well.
    let (written, _) = write_until_stuck(&mut silent, &message, 200 * MIB).await;
    assert!(written < 50 * MIB, "{written} bytes");
    let said = silent.stream.try_read(&mut [0; 8]);
    assert!(said.is_err(), "who has not announced connection.blocked is not told");
    let waiting = consumer.count("q").await as usize;
    assert!((1..1 + 2 * MIB as usize / SMALL).contains(&waiting), "{waiting} were taken");

    consumer.consume("q", false).await;
    let Heard::Delivery { tag, body } = consumer.next().await else { panic!("a delivery") };
    assert_eq!((tag, body.len()), (1, LARGE));
    assert!(publisher.is_silent(200).await, "it is not acknowledged yet");
    consumer.tell(basic::Ack { delivery_tag: 1, multiple: false }).await;
    assert_eq!(publisher.next().await, Heard::Unblocked);
    let rest = &message[message.len() - rest..];
    publisher.stream.write_all(rest).await.expect("an open connection");
    publisher.publish("q", b"the last").await;
    loop {
        let heard = consumer.next().await;
        let Heard::Delivery { tag, body } = heard else { panic!("{heard:?}") };
        if body == b"the last" {
            break;
        }
        consumer.tell(basic::Ack { delivery_tag: tag, multiple: false }).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn clients_that_do_not_read_hold_publishers_back_until_they_are_gone() {
    const STUCK: usize = 12;
    let server = TestServer::start_with(|config| {
        config.limits.memory_high_bytes = 4 * MIB;
        // They are gone when the test says so.
        config.amqp.send_timeout_ms = 0;
    })
    .await;
    let admin = server.admin();
    let mut publisher = Client::connect_with(server.address(), with_blocked(true)).await;
    let mut stuck = Vec::new();
    for number in 0..STUCK {
        let mut client = Client::connect(server.address()).await;
        client.declare_and_bind(&format!("stuck {number}"), "amq.fanout").await;
        client.consume(&format!("stuck {number}"), true).await;
        stuck.push(client);
    }
    // Their sockets take a lot first, and all of them share what waits in their queues.
    let mut rounds = 0;
    while !admin.alarms().memory {
        publisher.publish_to("amq.fanout", "", &[7; 100_000]).await;
        rounds += 1;
        assert!(rounds < 1000, "no alarm: {:?}", admin.memory_uses());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let uses = admin.memory_uses();
    assert!(uses.outboxes > uses.messages, "{uses:?}");
    publisher.publish_to("amq.fanout", "", b"one more").await;
    assert_eq!(publisher.next().await, Heard::Blocked("low on memory".into()));
    drop(stuck);
    assert_eq!(publisher.next().await, Heard::Unblocked);
    wait_until("nothing waits to be sent", async || admin.memory_uses().outboxes < MIB).await;
    server.stop().await;
}

/// A broker that is short of memory for what it has to send to a client, and who is held back.
async fn short_for_one_client() -> (TestServer, Client, Client) {
    let server = TestServer::start_with(|config| {
        config.limits.memory_high_bytes = 5 * MIB;
        config.amqp.send_timeout_ms = 0;
    })
    .await;
    let mut publisher = Client::connect_with(server.address(), with_blocked(true)).await;
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    client.consume("q", true).await;
    // More than sockets take.
    publisher.publish("q", &vec![7; UNREAD]).await;
    assert_eq!(publisher.next().await, Heard::Blocked("low on memory".into()));
    assert_eq!(server.admin().memory_uses().places, 0, "nothing waits in a queue");
    (server, client, publisher)
}

const UNREAD: usize = 15_000_000;

#[tokio::test]
async fn a_large_message_that_is_not_read_holds_publishers_back_until_it_is() {
    let (server, mut client, mut publisher) = short_for_one_client().await;
    assert_eq!(client.bodies(1).await[0].len(), UNREAD);
    assert_eq!(publisher.next().await, Heard::Unblocked);
    server.stop().await;
}

#[tokio::test]
async fn a_large_message_that_is_not_read_keeps_the_alarm_on_until_its_client_is_gone() {
    let (server, client, publisher) = short_for_one_client().await;
    let admin = server.admin();
    let connections = || admin.connections(None).expect("all vhosts").len();
    drop(publisher);
    wait_until("the client is the last", async || connections() == 1).await;
    assert!(admin.alarms().memory);
    drop(client);
    // No other connection is there to look, and the timers do so once a minute.
    let over = wait_until("the alarm is over", async || !admin.alarms().memory);
    tokio::time::timeout(PATIENCE / 2, over).await.expect("its end is seen");
    server.stop().await;
}

#[tokio::test]
async fn who_publishes_no_more_may_acknowledge_when_memory_is_short() {
    let server = short_of_memory().await;
    let mut both = Client::connect_with(server.address(), with_blocked(true)).await;
    let mut other = Client::connect_with(server.address(), with_blocked(true)).await;
    both.declare("q").await;
    both.publish("q", b"in better days").await;
    both.consume("q", false).await;
    assert_eq!(both.bodies(1).await, [b"in better days"]);
    other.publish("q", &vec![7; LARGE]).await;
    assert!(matches!(other.next().await, Heard::Blocked(_)));
    assert_eq!(both.bodies(1).await[0].len(), LARGE);
    // No other client can end the alarm.
    both.tell(basic::Ack { delivery_tag: 2, multiple: false }).await;
    assert_eq!(other.next().await, Heard::Unblocked);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_dies_while_it_is_held_back_is_noticed() {
    let server = short_of_memory().await;
    // Neither sends heartbeats, which would tell after a while.
    let without = Config { heartbeat_s: 0, ..with_blocked(true) };
    let mut publisher = Client::connect_with(server.address(), without.clone()).await;
    let mut other = Client::connect_with(server.address(), without).await;
    publisher.declare("q").await;
    publisher.publish("q", b"unacknowledged").await;
    publisher.consume("q", false).await;
    assert_eq!(publisher.bodies(1).await, [b"unacknowledged"]);
    other.declare("large").await;
    other.publish("large", &vec![7; LARGE]).await;
    assert!(matches!(other.next().await, Heard::Blocked(_)));
    let message = publisher.encode("", "large", &[7; SMALL]);
    publisher.stream.write_all(&message).await.expect("an open connection");
    assert!(matches!(publisher.next().await, Heard::Blocked(_)));
    // This one is in the socket, and not read.
    publisher.stream.write_all(&message).await.expect("an open connection");
    drop(publisher);
    let mut witness = Client::connect(server.address()).await;
    wait_until("what it had comes back", async || witness.count("q").await == 1).await;
    assert_eq!(witness.count("large").await, 3, "what it had sent has come");
    server.stop().await;
}
