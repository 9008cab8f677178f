//! Channels that there is no room for.

use crate::clock::Clock;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::shared;
use courser_broker::{Broker, Limits};
use courser_client::{Connection, Credentials, Options};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use tokio::sync::watch;

#[tokio::test(start_paused = true)]
async fn a_connection_that_opens_more_channels_than_all_may_have_is_closed_and_others_are_served() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let limits = Limits { memory_high_bytes: 1_000_000, ..Limits::default() };
    let shared =
        Arc::new(shared(Broker::new(store, gauge, limits, 7), &Clock::of(|| 1_800_000_000_000)));
    let (_stop, stopping) = watch::channel(false);
    let connect = async || {
        let place = shared.places.admit_own().expect("a place");
        let (pipe, theirs) = tokio::io::duplex(1 << 20);
        let stopping = stopping.clone();
        tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(&shared), stopping));
        let options = Options { credentials: Credentials::Anonymous, ..Options::default() };
        Connection::open_on(theirs, options).await.expect("a login")
    };
    let (many, few) = (connect().await, connect().await);
    let mut channels = Vec::new();
    let refused = loop {
        match many.open_channel().await {
            Ok(channel) => channels.push(channel),
            Err(error) => break error.to_string(),
        }
        if channels.len() == 190 {
            few.open_channel().await.expect("a channel");
        }
    };
    assert!(
        refused.contains("506") && refused.contains("memory limit (250000 bytes)"),
        "{refused}"
    );
    assert!((150..250).contains(&channels.len()), "{}", channels.len());
    let many = connect().await;
    many.open_channel().await.expect("the others have gone with their connection");
    few.open_channel().await.expect("a channel");
}
