//! Home's leader takes a question and does not answer.

use super::super::super::front::Serves;
use super::super::super::other_nodes::{OtherNodes, Tunnel};
use super::super::super::simulated::SimulatedFront;
use super::super::super::testing::ONE;
use crate::places::Places;
use courser_broker::{Broker, Limits};
use courser_cluster::NodeId;
use courser_cluster::transport::DialError;
use courser_management::Later;
use courser_store::{MemoryGauge, MemoryStore};
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SILENT: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

/// One of them takes questions and answers none, the other has nothing new.
struct Others;

impl OtherNodes for Others {
    fn dial(&self, _: NodeId, _: &str) -> Later<io::Result<Tunnel>> {
        Box::pin(pending())
    }

    fn ask(&self, node: NodeId, _: String) -> Later<Result<String, DialError>> {
        Box::pin(async move {
            match node {
                SILENT => pending().await,
                _ => Ok(String::new()),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_the_lead_of_the_node_that_has_it() {
    let simulated = SimulatedFront::new(2, &Arc::new(Places::new(1)), None, Box::new(Others));
    simulated.set_serves(0, Serves::There(SILENT));
    let group = simulated.front.groups.get(ONE).expect("it is known");
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let broker = Broker::of_group(ONE.0, store, gauge, Limits::default(), 7);
    let (front, asking) = (Arc::clone(&simulated.front), Arc::clone(&broker));
    let of = Arc::clone(&group);
    let adopting = tokio::spawn(async move { front.adopt(&of, &asking, None).await });
    sleep(Duration::from_secs(1)).await;
    assert!(!adopting.is_finished());
    let since = Instant::now();
    simulated.set_serves(0, Serves::There(OTHER));
    let ended = tokio::time::timeout(Duration::from_secs(60), adopting).await;
    let ended = ended.expect("it ends").expect("no panic");
    assert_eq!(ended, Err("the lead of the cluster has moved".into()));
    assert_eq!(simulated.front.adopt(&group, &broker, None).await, Ok(()));
    assert_eq!(since.elapsed(), Duration::ZERO);
}
