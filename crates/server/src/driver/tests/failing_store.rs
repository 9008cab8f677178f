//! Publishes that the store does not take, behind which only a channel ends.

use crate::clock::Clock;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::shared;
use courser_broker::{Broker, Limits};
use courser_client::{Connection, Credentials, Options, Outgoing, QueueOptions};
use courser_journal::testing::{Call, WatchedStore};
use courser_store::{MemoryGauge, MemoryStore, StoreError};
use std::sync::Arc;
use tokio::sync::watch;

/// How a channel ends.
#[derive(Clone, Copy, Debug)]
enum End {
    ByClient,
    ByFault,
}

#[tokio::test]
async fn a_publish_that_failed_while_another_channel_ended_is_not_confirmed_with_later_ones() {
    for end in [End::ByClient, End::ByFault] {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
        let broker = Broker::new(Arc::clone(&store) as _, gauge, Limits::default(), 7);
        let shared = Arc::new(shared(broker, &Clock::of(|| 1_800_000_000_000)));
        let place = shared.places.admit_own().expect("a place");
        let (pipe, theirs) = tokio::io::duplex(1 << 20);
        let (_stop, stopping) = watch::channel(false);
        tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(&shared), stopping));
        let connection = Connection::open_on(theirs, options()).await.expect("a login");
        let ending = connection.open_channel().await.expect("a channel");
        let staying = connection.open_channel().await.expect("a channel");
        staying.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
        staying.confirm_select().await.expect("confirms");

        store.set_faults(|call| (call == Call::Append).then_some(StoreError::Full));
        let message = || Outgoing::new(b"m").persistent();
        let lost = staying.publish("", "q", message()).await.expect("it is sent");
        match end {
            End::ByClient => drop(ending.close().await),
            End::ByFault => drop(ending.queue_info("no queue").await),
        }
        store.heal();
        // An ack of several covers the first, if the channel is still there.
        let mut later = Vec::new();
        for _ in 0..2 {
            later.extend(staying.publish("", "q", message()).await.ok());
        }
        let mut confirmed = 0;
        for confirm in std::iter::once(lost).chain(later) {
            confirmed += usize::from(confirm.await.is_ok_and(|confirm| confirm.is_ack()));
        }
        let vhost = shared.broker.vhost("/").expect("the default vhost");
        let waiting = vhost.queue(b"q").expect("the queue").status().ready;
        assert!(confirmed <= waiting, "{end:?}: {confirmed} confirmed, {waiting} there");
    }
}

/// A client without credentials.
fn options() -> Options {
    Options { credentials: Credentials::Anonymous, ..Options::default() }
}
