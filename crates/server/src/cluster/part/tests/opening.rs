//! A node that comes to lead, and whose disk does not give what its broker needs.

use super::{HOME, ONE, Three, elect, leading, wait_until};
use crate::clock::Clock;
use crate::cluster::front::Serves;
use crate::cluster::node::Inner;
use crate::notices::Settings;
use crate::server::StartError;
use crate::service::Service;
use crate::testing::shared;
use courser_broker::{Broker, Limits, PolicyKind};
use courser_cluster::{GroupNumber, Member};
use courser_journal::testing::{Call, FakeDisk, Faults, WatchedStore};
use courser_store::{MemoryGauge, MemoryStore, StoreError};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;

/// Comes to lead a group on a disk that has something wrong by then, and opens its broker. Returns why it can't, and how many
/// openings have failed: each tells its number to `failed`.
async fn open_on(
    inner: &Inner,
    wrong: impl Fn(&FakeDisk),
    failed: impl Fn(&FakeDisk, &Member, u32),
) -> (Result<(), StartError>, u32) {
    let disk = FakeDisk::new(1);
    let (group, member, term) = leading(inner, GroupNumber(9), &disk).await;
    wrong(&disk);
    let failures = AtomicU32::new(0);
    let leads = || {
        failed(&disk, &member, failures.fetch_add(1, Relaxed) + 1);
        true
    };
    let opened = inner.open_while_leading(&group, &member, term, &inner.config(), leads).await;
    (opened.expect("no panic").map(drop), failures.into_inner())
}

fn refuse(disk: &FakeDisk, fail_reads: bool) {
    disk.set_faults(Faults { fail_reads, ..Faults::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_to_lead_serves_when_its_disk_gives_its_checkpoints_again() {
    let three = Three::start().await;
    let wrong = |disk: &FakeDisk| refuse(disk, true);
    let failed = |disk: &FakeDisk, _: &Member, failures| refuse(disk, failures < 3);
    let (opened, failures) = open_on(&three.nodes[0].inner, wrong, failed).await;
    opened.expect("it serves");
    assert_eq!(failures, 3);
    three.stop().await;
}

/// Has the disk refuse to be read from when the log is read for the first time.
fn refuse_log(disk: &FakeDisk) {
    let log = Path::new("group/0000000000000000.log");
    let (disk, hold) = (disk.clone(), disk.hold_reads(log).expect("it is there"));
    thread::spawn(move || {
        hold.wait_until_reached();
        refuse(&disk, true);
        hold.let_go();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_to_lead_serves_when_its_disk_gives_its_log_again() {
    let three = Three::start().await;
    let failed = |disk: &FakeDisk, member: &Member, failures| {
        refuse(disk, false);
        // Before others are asked for what was refused, it is found to be whole.
        assert_eq!(member.damaged(2), []);
        if failures < 2 {
            refuse_log(disk);
        }
    };
    let (opened, failures) = open_on(&three.nodes[0].inner, refuse_log, failed).await;
    opened.expect("it serves");
    assert_eq!(failures, 2);
    three.stop().await;
}

/// Changes all checkpoints, or changes them back.
fn flip_checkpoints(disk: &FakeDisk) {
    let names = disk.names();
    let checkpoints =
        names.iter().filter(|name| name.extension().is_some_and(|of| of == "checkpoint"));
    checkpoints.for_each(|name| disk.corrupt(name, 20, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_to_lead_serves_though_it_has_read_its_checkpoints_wrong_once() {
    let three = Three::start().await;
    let failed = |disk: &FakeDisk, _: &Member, _| flip_checkpoints(disk);
    let (opened, failures) = open_on(&three.nodes[0].inner, flip_checkpoints, failed).await;
    opened.expect("it serves");
    assert_eq!(failures, 1);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_to_lead_ends_when_its_checkpoints_are_damaged() {
    let three = Three::start().await;
    let (opened, failures) = open_on(&three.nodes[0].inner, flip_checkpoints, |_, _, _| ()).await;
    let why = opened.expect_err("they are damaged").to_string();
    assert!(why.contains(".checkpoint is damaged"), "{why}");
    assert_eq!(failures, 2);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_read_again_while_a_node_comes_to_lead_count_when_it_serves() {
    let three = Three::start().await;
    let home = three.admin(HOME).await;
    home.change_vhost("v", |settings| settings.group = ONE.0).expect("a vhost");
    drop(home);
    let next = (three.leader(ONE).await + 1) % 3;
    let node = &three.nodes[next];
    // What it does with its disk is not done while this is held.
    let disk = Arc::clone(&node.inner.busy).write_owned().await;
    elect(&three, next).await;
    // Long enough to come to the opening.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut config = node.inner.config();
    let policy = json!([{ "name": "short", "vhost": "v", "pattern": ".*", "definition": { "max-length": 1 } }]);
    config.policies = serde_json::from_value(policy).expect("a policy");
    node.reload(&config).await.expect("good settings");
    drop(disk);
    three.move_lead(ONE, next).await;
    let admin = three.admin(ONE).await;
    wait_until("the policy is there", async || {
        let policies = admin.policies("v", PolicyKind::User).unwrap_or_default();
        policies.iter().any(|policy| policy.name.as_str() == "short")
    })
    .await;
    drop(admin);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_applied_by_a_reload_are_not_told_any_more() {
    let three = Three::start().await;
    let node = &three.nodes[three.leader(ONE).await];
    let notices = &node.inner.around.notices;
    let is_told = || notices.all().iter().any(|notice| notice.kind == "settings_not_applied");
    for (which, stays) in [(Settings::Reloaded, false), (Settings::AtFirst, true)] {
        notices.settings_applied(ONE.0, which, false);
        assert!(is_told());
        node.reload(&node.inner.config()).await.expect("good settings");
        assert_eq!(is_told(), stays, "{which:?}");
    }
    three.stop().await;
}

/// Has a node serve home with a broker whose log is a test's.
fn serve_home_with(inner: &Inner, store: &Arc<WatchedStore>) {
    let broker = Broker::new(Arc::clone(store) as _, Arc::default(), Limits::default(), 7);
    let shared = Arc::new(shared(broker, &Clock::system()));
    let service = Service::of(&shared, Arc::new(watch::channel(false).0));
    inner.groups.home().set_serves(Serves::Here(Arc::new(service)));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_home_can_not_take_over_count_nowhere() {
    let three = Three::start().await;
    let node = &three.nodes[three.leader(HOME).await];
    let store =
        Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::<MemoryGauge>::default()))));
    serve_home_with(&node.inner, &store);
    let (before, runtime) = (node.inner.config(), &node.inner.around.runtime);
    let limit = runtime.memory_high_bytes();
    let mut config = before.clone();
    config.vhosts = serde_json::from_value(json!([{ "name": "new" }])).expect("vhosts");
    config.limits.memory_high_bytes = limit / 2;
    store.set_faults(|call| (call == Call::Append).then_some(StoreError::Full));
    node.reload(&config).await.expect_err("the log takes nothing");
    assert!(node.inner.config() == before, "a group that is led next has what the others have");
    assert_eq!(runtime.memory_high_bytes(), limit);
    store.heal();
    node.reload(&config).await.expect("good settings");
    assert!(node.inner.config() == config);
    assert_eq!(runtime.memory_high_bytes(), limit / 2);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_good_are_taken_over_though_the_lead_is_lost_meanwhile() {
    let three = Three::start().await;
    let home = three.leader(HOME).await;
    let node = &three.nodes[home];
    let store =
        Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::<MemoryGauge>::default()))));
    let group = Arc::clone(node.inner.groups.home());
    serve_home_with(&node.inner, &store);
    store.set_faults(move |call| {
        (call == Call::Append).then(|| {
            group.set_serves(Serves::Unknown);
            StoreError::Deposed
        })
    });
    let mut config = node.inner.config();
    config.vhosts = serde_json::from_value(json!([{ "name": "new" }])).expect("vhosts");
    node.reload(&config).await.expect("they count when it leads again");
    assert!(node.inner.config() == config);
    three.stop().await;
}
