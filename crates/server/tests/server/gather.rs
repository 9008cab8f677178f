//! Threads that pause before they wait for sockets: where that gathers work, and where no thread waits.

use crate::support::{Client, Heard, TestServer};
use courser::Gather;
use courser_codec::basic;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A broker on threads that pause, and its clients on one that does not.
struct Paused {
    gather: Arc<Gather>,
    server: Option<TestServer>,
    threads: Runtime,
    clients: Runtime,
}

impl Paused {
    fn start(pause: Duration, busy_share: f64) -> Self {
        let gather = Arc::new(Gather::assuming(pause, busy_share));
        let mut builder = Builder::new_multi_thread();
        Arc::clone(&gather).install(builder.worker_threads(2).enable_all());
        let threads = builder.build().expect("threads");
        let clients = Builder::new_current_thread().enable_all().build().expect("a thread");
        let server = Some(threads.block_on(TestServer::start()));
        Paused { gather, server, threads, clients }
    }

    /// Runs clients, and returns how many pauses there were meanwhile.
    fn pauses_while<F: Future<Output = ()>>(&self, run: impl FnOnce(SocketAddr) -> F) -> u64 {
        let before = self.gather.pauses();
        let address = self.server.as_ref().expect("a broker").address();
        self.clients.block_on(run(address));
        self.gather.pauses() - before
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.threads.block_on(server.stop());
        }
    }
}

/// Publishes five messages at a time to a queue that is made for it, and waits for each five.
async fn stream_of_messages(address: SocketAddr, queue: &str, times: usize) {
    let mut publisher = Client::connect(address).await;
    publisher.declare(queue).await;
    let mut consumer = Client::connect(address).await;
    consumer.consume(queue, true).await;
    for _ in 0..times {
        for _ in 0..5 {
            publisher.publish(queue, b"message").await;
        }
        consumer.bodies(5).await;
    }
}

#[test]
fn busy_processors_make_threads_pause_for_more_messages() {
    let broker = Paused::start(Duration::from_millis(1), 1.0);
    let pauses = broker.pauses_while(|address| stream_of_messages(address, "some", 200));
    assert!(pauses > 10, "{pauses} pauses in 200 turns");
}

#[test]
fn no_thread_pauses_while_processors_are_idle() {
    let broker = Paused::start(Duration::from_secs(1), 0.5);
    assert_eq!(broker.pauses_while(|address| stream_of_messages(address, "some", 50)), 0);
}

#[test]
fn a_consumer_that_gets_one_message_at_a_time_is_not_kept_waiting() {
    let broker = Paused::start(Duration::from_millis(1), 1.0);
    let pauses = broker.pauses_while(|address| async move {
        let mut client = Client::connect(address).await;
        client.declare("one by one").await;
        for _ in 0..500 {
            client.publish("one by one", b"message").await;
        }
        client.call(basic::Qos { prefetch_count: 1, ..Default::default() }).await;
        client.consume("one by one", false).await;
        for _ in 0..500 {
            let Heard::Delivery { tag, .. } = client.next().await else { panic!("no delivery") };
            client.tell(basic::Ack { delivery_tag: tag, multiple: false }).await;
            // What has no answer and is not waited for makes turns of more than one event.
            client.publish("", b"").await;
            client.publish("", b"").await;
        }
    });
    assert!(pauses < 100, "{pauses} pauses in 500 turns");
}
