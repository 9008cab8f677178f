//! Connections with much to do let others have their turn: on one thread, all that others do is done between two turns.

use crate::Server;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::start;
use courser_client::{Connection, Options, QueueOptions};
use std::sync::Arc;
use std::task::Poll;

/// A client whose pipe takes a lot at once.
async fn connect(server: &Server) -> Connection {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(1 << 20);
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
