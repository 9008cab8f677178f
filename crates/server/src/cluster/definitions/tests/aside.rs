//! What takes long with many definitions is done away from the threads that serve connections.

use super::super::super::front::Serves;
use super::super::super::other_nodes::{OtherNodes, Tunnel};
use super::super::super::simulated::SimulatedFront;
use super::super::super::testing::ONE;
use super::put_user;
use crate::clock::Clock;
use crate::places::Places;
use crate::service::Service;
use crate::testing::shared;
use courser_broker::{Broker, Limits};
use courser_cluster::NodeId;
use courser_cluster::transport::DialError;
use courser_management::Later;
use courser_store::{Lsn, MemoryGauge, MemoryStore};
use futures_util::FutureExt as _;
use std::future::pending;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::task::{spawn_blocking, yield_now};

/// What the group has: not what a log in memory always says.
const HAS: Lsn = Lsn(1);

/// A node that answers at once what is no definitions.
struct Nonsense;

impl OtherNodes for Nonsense {
    fn dial(&self, _: NodeId, _: &str) -> Later<io::Result<Tunnel>> {
        Box::pin(pending())
    }

    fn ask(&self, _: NodeId, _: String) -> Later<Result<String, DialError>> {
        Box::pin(async { Ok("!".to_owned()) })
    }
}

fn front() -> SimulatedFront {
    SimulatedFront::new(2, &Arc::new(Places::new(1)), None, Box::new(Nonsense))
}

fn broker(group: u16) -> Arc<Broker> {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    Broker::of_group(group, store, gauge, Limits::default(), 7)
}

/// Runs a test where one thread serves connections, and one other is there.
fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.expect("a runtime").block_on(test);
}

/// Has the other thread busy, once it is done with what it has to do, until what is returned is dropped. It says when.
fn hold() -> (oneshot::Receiver<()>, mpsc::Sender<()>) {
    let ((begun, begins), (leave, left)) = (oneshot::channel(), mpsc::channel());
    spawn_blocking(move || {
        _ = begun.send(());
        _ = left.recv();
    });
    (begins, leave)
}

/// Fails if it comes to its end.
async fn stands_still(asking: &mut Pin<&mut impl Future<Output: std::fmt::Debug>>) {
    for _ in 0..100 {
        let ended = asking.as_mut().now_or_never();
        assert!(ended.is_none(), "the thread that serves connections has done it: {ended:?}");
        yield_now().await;
    }
}

#[test]
fn definitions_are_encoded_on_another_thread() {
    run(async {
        let (simulated, home) = (front(), broker(0));
        put_user(&home.admin(), "u");
        let shared = Arc::new(shared(home, &Clock::system()));
        let service = Service::of(&shared, Arc::new(watch::channel(false).0));
        simulated.set_serves(0, Serves::Here(Arc::new(service)));
        let (begins, taking) = hold();
        begins.await.expect("it begins");
        let mut asking = pin!(simulated.front.definitions_text(ONE, HAS, None));
        stands_still(&mut asking).await;
        let (begins, encoding) = hold();
        drop(taking);
        begins.await.expect("they are taken");
        stands_still(&mut asking).await;
        drop(encoding);
        assert!(!asking.await.expect("there are some").is_empty());
    });
}

#[test]
fn definitions_are_decoded_on_another_thread() {
    run(async {
        let (simulated, group_broker) = (front(), broker(ONE.0));
        simulated.set_serves(0, Serves::There(NodeId(1)));
        let group = simulated.front.groups.get(ONE).expect("it is known");
        let (begins, decoding) = hold();
        begins.await.expect("it begins");
        let mut adopting = pin!(simulated.front.adopt(&group, &group_broker, None));
        stands_still(&mut adopting).await;
        drop(decoding);
        adopting.await.expect_err("it can't be read");
    });
}
