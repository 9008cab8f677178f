//! Scrapes that take long keep no others from their pages.

use crate::costly_expressions::{COSTLY, declare_long_names};
use crate::direct::Direct;
use crate::support::exchange_over;
use courser_management::{Exporter, ServerFigures};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Costly scrapes at the same time, each of which is given up after seconds.
const COSTLY_SCRAPES: usize = 8;

async fn scrape(exporter: Arc<Exporter>, from: [u8; 4], path: String) -> u16 {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let stop = watch::Sender::new(false);
    tokio::spawn(exporter.serve(theirs, SocketAddr::from((from, 1)), stop.subscribe()));
    let request = format!("GET {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n");
    exchange_over(ours, request.into_bytes(), false).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn costly_scrapes_of_one_address_leave_a_place_to_the_others() {
    let direct = Direct::new();
    declare_long_names(&direct.broker.admin());
    let (api, ledger) = (Arc::clone(&direct.api), Arc::default());
    let exporter = Exporter::new(api, ledger, ServerFigures::default, false);
    let costly = format!("/metrics/detailed?family=queue_consumer_count&queue={COSTLY}");
    let begin = |_| tokio::spawn(scrape(Arc::clone(&exporter), [192, 0, 2, 1], costly.clone()));
    let scrapes: Vec<_> = (0..COSTLY_SCRAPES).map(begin).collect();
    // They are to be there first.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(scrape(exporter, [192, 0, 2, 2], "/metrics".to_owned()).await, 200);
    let answered = scrapes.iter().filter(|scrape| scrape.is_finished()).count();
    assert!(answered < COSTLY_SCRAPES / 2, "it was answered behind {answered} of them");
}
