//! Messages that are read from a disk that stands still: who needs their queue or their consumer waits, and no one else. The
//! broker has one thread for all its tasks.

use crate::slow_disk::{OnOneThread, see_served};
use crate::support::{Client, Heard, HeldDisk, short, wait_until};
use courser_codec::{basic, queue};

const QUEUES: usize = 6;

fn name(number: usize) -> String {
    format!("queue-{number}")
}

/// A broker whose queues have a message each that is in no memory.
async fn started(disk: &HeldDisk) -> OnOneThread {
    let server = OnOneThread::start(disk).await;
    let mut client = Client::connect(server.address()).await;
    for number in 0..QUEUES {
        client.declare_durable(&name(number)).await;
        client.publish_persistent(&name(number), b"kept").await;
    }
    // Behind what was published.
    client.declare_durable("last").await;
    client.close().await;
    server.restart(disk).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_whose_messages_are_read_hold_up_only_who_needs_the_same_queue() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let address = server.address();
    let (mut consumers, mut getters) = (Vec::new(), Vec::new());
    for _ in 0..QUEUES {
        consumers.push(Client::connect(address).await);
        getters.push(Client::connect(address).await);
    }
    let hold = disk.hold();
    for (number, client) in consumers.iter_mut().enumerate() {
        client.tell(basic::Consume { queue: short(&name(number)), ..Default::default() }).await;
    }
    wait_until("a message is read", async || disk.is_waited_for()).await;
    for (number, client) in getters.iter_mut().enumerate() {
        let name = name(number);
        let (queue, passive) = (short(&name), true);
        client.tell(queue::Declare { queue, passive, ..Default::default() }).await;
        client.publish(&name, b"new").await;
    }
    see_served(address).await;
    drop(hold);
    for client in &mut consumers {
        assert_eq!(client.next().await, Heard::Reply("basic.consume-ok"));
        assert_eq!(client.bodies(2).await, [&b"kept"[..], b"new"]);
    }
    for client in &mut getters {
        assert!(matches!(client.next().await, Heard::DeclareOk { .. }));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_whose_messages_are_read_holds_up_only_who_publishes_to_it() {
    let disk = HeldDisk::default();
    let server = started(&disk).await;
    let address = server.address();
    let (mut consumer, mut publisher) =
        (Client::connect(address).await, Client::connect(address).await);
    consumer.declare("other").await;
    consumer.consume("other", true).await;
    let hold = disk.hold();
    consumer.tell(basic::Consume { queue: short(&name(0)), ..Default::default() }).await;
    wait_until("a message is read", async || disk.is_waited_for()).await;
    see_served(address).await;
    publisher.publish("other", b"new").await;
    see_served(address).await;
    drop(hold);
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(match consumer.next().await {
            Heard::Delivery { body, .. } => String::from_utf8(body).expect("a text"),
            other => format!("{other:?}"),
        });
    }
    heard.sort_unstable();
    assert_eq!(heard, ["Reply(\"basic.consume-ok\")", "kept", "new"]);
    server.stop().await;
}
