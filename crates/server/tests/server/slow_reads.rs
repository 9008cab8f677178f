//! Messages that are read from a disk that stands still: who needs their queue or their consumer waits, and no one else. The
//! broker has one thread for all its tasks.

use crate::slow_disk::{OnOneThread, see_served};
use crate::support::{Client, Heard, HeldDisk, short, wait_until};
use courser_codec::{basic, queue};

const QUEUES: usize = 6;

fn name(number: usize) -> String {
    format!("queue-{number}")
}

/// A broker whose queues have messages with this body that are in no memory, as many each.
async fn started(disk: &HeldDisk, (count, body): (usize, &[u8])) -> OnOneThread {
    let server = OnOneThread::start(disk).await;
    let mut client = Client::connect(server.address()).await;
    for number in 0..QUEUES {
        client.declare_durable(&name(number)).await;
        for _ in 0..count {
            client.publish_persistent(&name(number), body).await;
        }
    }
    // Behind what was published.
    client.declare_durable("last").await;
    client.close().await;
    server.restart(disk).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_whose_messages_are_read_hold_up_only_who_needs_the_same_queue() {
    let disk = HeldDisk::default();
    let server = started(&disk, (1, b"kept")).await;
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
    // More than is read at once, so that the next one is read for itself.
    static BODY: [u8; 300_000] = [7; 300_000];
    let disk = HeldDisk::default();
    let server = started(&disk, (2, &BODY)).await;
    let address = server.address();
    let mut consumer = Client::connect(address).await;
    consumer.call(basic::Qos { prefetch_count: 1, ..Default::default() }).await;
    consumer.declare("other").await;
    consumer.consume("other", true).await;
    consumer.consume(&name(0), false).await;
    assert_eq!(consumer.bodies(1).await, [BODY]);
    let mut publisher = Client::connect(address).await;
    let hold = disk.hold();
    consumer.tell(basic::Ack { delivery_tag: 1, multiple: false }).await;
    wait_until("a message is read", async || disk.is_waited_for()).await;
    publisher.publish("other", b"new").await;
    see_served(address).await;
    drop(hold);
    let mut bodies = consumer.bodies(2).await;
    bodies.sort_unstable_by_key(Vec::len);
    assert_eq!(bodies, [&b"new"[..], &BODY]);
    server.stop().await;
}
