//! Connections with much to do let others have their turn: on one thread, all that others do is done between two turns.

use crate::Server;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::start;
use courser_client::{Connection, ConsumeOptions, Options, QueueOptions};
use courser_codec::FieldTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

/// A client whose pipe takes a lot at once.
async fn connect(server: &Server) -> Connection {
    connect_with(server, 1 << 20).await
}

/// A client whose pipe takes so many bytes at once.
async fn connect_with(server: &Server, bytes: usize) -> Connection {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(bytes);
    tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(shared), stopping));
    Connection::open_on(theirs, Options::default()).await.expect("a login")
}

/// Looks, between the turns of all others, how much is done, until that is `all`. Returns the most that was done in between.
async fn most_at_once(all: usize, done: impl Fn() -> usize + Send + 'static) -> usize {
    let looking = tokio::spawn(async move {
        let (mut last, mut most) = (0, 0);
        std::future::poll_fn(move |cx| {
            let now = done();
            most = most.max(now - last);
            last = now;
            if last == all {
                return Poll::Ready(most);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    });
    looking.await.expect("no panic")
}

#[tokio::test]
async fn methods_that_look_at_many_consumers_are_carried_out_a_few_in_a_turn() {
    const METHODS: usize = 400;
    let (server, _folder) = start().await;
    let connection = connect(&server).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::default()).await.expect("a queue");
    let mut consumers = Vec::new();
    for _ in 0..1000 {
        let consumer = channel.consume("q", ConsumeOptions::auto_ack()).await;
        consumers.push(consumer.expect("a consumer"));
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let channel = Arc::new(channel);
    for _ in 0..METHODS {
        let (channel, answered) = (Arc::clone(&channel), Arc::clone(&answered));
        tokio::spawn(async move {
            channel.qos_shared(10).await.expect("an answer");
            answered.fetch_add(1, Relaxed);
        });
    }
    let most = most_at_once(METHODS, move || answered.load(Relaxed)).await;
    assert!(most < 100, "{most} in a turn");
    drop(consumers);
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn a_connection_with_many_exclusive_queues_ends_in_several_turns_and_then_says_so() {
    const QUEUES: usize = 2000;
    let (server, _folder) = start().await;
    let connection = connect(&server).await;
    let channel = connection.open_channel().await.expect("a channel");
    for nth in 0..QUEUES {
        let name = format!("q{nth}");
        channel.queue_declare(&name, QueueOptions::exclusive()).await.expect("a queue");
    }
    let vhost = server.serving().0.broker.vhost("/").expect("the default vhost");
    let known = Arc::clone(&vhost);
    let closing = tokio::spawn(async move {
        connection.close().await.expect("closed");
        known.queues().len()
    });
    let most = most_at_once(QUEUES, move || QUEUES - vhost.queues().len()).await;
    assert!(most < 600, "{most} in a turn");
    assert_eq!(closing.await.expect("no panic"), 0, "none is left when the client is told");
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn publishes_for_many_queues_are_taken_in_a_few_in_a_turn() {
    const QUEUES: usize = 200;
    const MESSAGES: usize = 1000;
    let (server, _folder) = start().await;
    let connection = connect(&server).await;
    let channel = connection.open_channel().await.expect("a channel");
    for nth in 0..QUEUES {
        let name = format!("q{nth}");
        channel.queue_declare(&name, QueueOptions::default()).await.expect("a queue");
        let bound = channel.queue_bind(&name, "amq.fanout", "", FieldTable::new()).await;
        bound.expect("a binding");
    }
    let vhost = server.serving().0.broker.vhost("/").expect("the default vhost");
    let queue = vhost.queue(b"q7").expect("the queue");
    let publishing = tokio::spawn(async move {
        for _ in 0..MESSAGES {
            channel.publish("amq.fanout", "", "x").await.expect("published");
        }
        channel
    });
    let most = most_at_once(MESSAGES, move || queue.status().ready).await;
    assert!(most < 200, "{most} in a turn");
    drop(publishing);
    let last = vhost.queue(b"q199").expect("the queue").status();
    assert_eq!(last.ready, MESSAGES);
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn a_consumer_that_takes_all_it_is_sent_gets_a_part_of_it_in_a_turn() {
    const MESSAGES: usize = 60_000;
    let (server, _folder) = start().await;
    let vhost = server.serving().0.broker.vhost("/").expect("the default vhost");
    let connection = connect_with(&server, 64 << 20).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::default()).await.expect("a queue");
    for _ in 0..MESSAGES {
        channel.publish("", "q", "x").await.expect("published");
    }
    let queue = vhost.queue(b"q").expect("the queue");
    let filled = Arc::clone(&queue);
    most_at_once(MESSAGES, move || filled.status().ready).await;
    let consuming = tokio::spawn(async move {
        let mut consumer = channel.consume("q", ConsumeOptions::auto_ack()).await.expect("one");
        for _ in 0..MESSAGES {
            consumer.next().await.expect("no failure").expect("a message");
        }
    });
    let most = most_at_once(MESSAGES, move || MESSAGES - queue.status().ready).await;
    assert!(most < MESSAGES / 2, "{most} in a turn");
    consuming.await.expect("all of them");
    server.stop().await.expect("a clean stop");
}
