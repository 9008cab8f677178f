//! Messages that are taken over HTTP while the disk makes nothing durable.

use crate::direct::{Asked, Direct};
use crate::support::Answer;
use courser_broker::admin::{GetMode, MESSAGES_MAX};
use courser_cluster::testing::LogOnDisk;
use courser_journal::testing::{FakeDisk, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_store::MemoryGauge;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A broker whose disk makes durable what it is told to, with a message in a queue.
struct World {
    log: LogOnDisk,
    store: Arc<WatchedStore>,
    direct: Direct,
}

impl World {
    async fn new() -> Self {
        let options = Options { segment_bytes: 1 << 20, threads: false, ..Options::default() };
        let (gauge, disk) = (Arc::new(MemoryGauge::default()), Arc::new(FakeDisk::new(7)));
        let path = Path::new("journal");
        let opened =
            JournalStore::open(path, options, disk, Arc::clone(&gauge), u64::MAX, &mut |_| {});
        let (journal, recovered, _) = opened.expect("a good journal");
        let log = LogOnDisk::Alone(journal);
        let store = Arc::new(WatchedStore::new(log.store()));
        let direct = Direct::on(Arc::clone(&store) as _, gauge);
        direct.broker.restore(recovered).expect("nothing is wrong");
        direct.add_user("root", "administrator");
        let world = World { log, store, direct };
        let all = json!({ "configure": ".*", "write": ".*", "read": ".*" });
        world.sent("PUT", "/api/permissions/%2F/root", &all).await;
        world.sent("PUT", "/api/queues/%2F/q", &json!({ "durable": true })).await;
        let message = json!({
            "routing_key": "q", "properties": { "delivery_mode": 2 }, "payload": "one", "payload_encoding": "string",
        });
        world.sent("POST", "/api/exchanges/%2F/amq.default/publish", &message).await;
        world
    }

    async fn asked(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.direct
            .ask(Asked { body: &body.to_string(), ..Asked::new(method, path).by("root") })
            .await
    }

    /// The same, while the disk does what it has to.
    async fn flushed(&self, asking: impl Future<Output = Answer>) -> Answer {
        let flushing = async {
            loop {
                self.log.flush();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            answer = asking => answer,
            () = flushing => unreachable!("it goes on"),
        }
    }

    async fn sent(&self, method: &str, path: &str, body: &Value) {
        let answer = self.flushed(self.asked(method, path, body)).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
    }

    async fn taken(&self) -> Answer {
        let body = json!({ "count": 5, "ackmode": "ack_requeue_false", "encoding": "auto" });
        self.asked("POST", "/api/queues/%2F/q/get", &body).await
    }

    fn waiting(&self) -> usize {
        let mode = GetMode::Requeue { counts: false };
        let found = self.direct.broker.admin().get("/", b"q", MESSAGES_MAX, mode, 100, 1 << 20);
        found.expect("a queue").len()
    }
}

#[tokio::test]
async fn messages_that_are_taken_reach_who_takes_them_though_the_disk_stands_still() {
    let world = World::new().await;
    tokio::time::pause();
    let answer = world.taken().await;
    assert_eq!((answer.status, world.waiting()), (200, 0));
    assert_eq!(answer.json()[0]["payload"], "one");
    assert_eq!(answer.headers.get("x-courser-uncertain").map(String::as_str), Some("true"));
}

#[tokio::test]
async fn messages_that_are_taken_for_good_are_certain() {
    let world = World::new().await;
    let answer = world.flushed(world.taken()).await;
    assert_eq!((answer.status, world.waiting()), (200, 0));
    assert!(!answer.headers.contains_key("x-courser-uncertain"));
}

#[tokio::test]
async fn messages_that_another_node_may_have_by_now_are_not_handed_out() {
    let world = World::new().await;
    world.store.contest();
    tokio::time::pause();
    let deposing = async {
        // Behind the time that the disk has.
        tokio::time::sleep(Duration::from_secs(40)).await;
        world.store.depose();
        std::future::pending::<()>().await;
    };
    let answer = tokio::select! {
        answer = world.taken() => answer,
        () = deposing => unreachable!("it goes on"),
    };
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(!answer.headers.contains_key("x-courser-uncertain"));
}
