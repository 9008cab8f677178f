//! What a group adopts, and what is asked about it, beside changes that take long.

use super::{MEANWHILE, MOST, limits, policy};
use crate::support::{World, WorldOnDisk, lasting};
use courser_auth::{PasswordHash, User};
use courser_broker::admin::{Admin, GroupDefinitions, NewQueue};
use courser_broker::{Broker, Limits, PolicyKind, VhostSettings};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Only what waits for ever takes so long.
const FOR_EVER: Duration = Duration::from_secs(60);

/// The broker of a group of a cluster.
fn group(limits: Limits) -> World {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    World { broker: Broker::of_group(1, store, gauge, limits, 7), log: None }
}

/// Does this on a thread.
fn apart(call: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new().spawn(call).expect("a thread")
}

/// Has the group know what home says, on another thread. Returns when that is done, and fails if it never is.
fn adopt(home: &Admin, group: &World) -> JoinHandle<()> {
    adopt_when(home, group, || ())
}

fn adopt_when(
    home: &Admin,
    group: &World,
    begin: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    let admin = group.broker.admin();
    let definitions = home.definitions_of_group(1, admin.adopted_version()).expect("at home");
    let definitions = GroupDefinitions::decode(&definitions.encode()).expect("as it was");
    apart(move || {
        begin();
        admin.adopt_definitions(definitions).expect("it is newer");
    })
}

/// Whether a thread ends before one that waits for ever.
fn ends(thread: JoinHandle<()>) -> bool {
    // A millisecond each time, or more.
    for _ in 0..FOR_EVER.as_millis() {
        if thread.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let is_finished = thread.is_finished();
    if is_finished {
        thread.join().expect("no panic");
    }
    is_finished
}

fn create_user(admin: &Admin) {
    let password = PasswordHash::quick(b"secret").expect("a hash");
    admin.create_user(User::new("u", password)).expect("a user");
}

#[test]
fn what_home_has_taken_away_waits_for_no_reload() {
    let (home, group) = (WorldOnDisk::new(), group(limits(MOST)));
    let admin = home.broker.admin();
    create_user(&admin);
    admin.change_vhost("slow", |vhost| vhost.group = 1).expect("a vhost");
    assert!(ends(adopt(&admin, &group)));
    let (event, begun, let_go) = lasting();
    let broker = Arc::clone(&group.broker);
    let change = apart(move || {
        MEANWHILE.set(Some(Box::new(event)));
        let set = broker.set_policy("slow", PolicyKind::User, policy("p", "^x", 0));
        set.expect("a good policy");
    });
    begun.recv_timeout(FOR_EVER).expect("it is found out what it comes to");
    let broker = Arc::clone(&group.broker);
    let reload = apart(move || {
        let policies = vec![("slow".to_owned(), PolicyKind::Operator, policy("file", "^y", 0))];
        broker.configure_policies(policies).expect("good policies");
    });
    // By then it mostly waits for the change.
    std::thread::sleep(Duration::from_millis(100));
    assert!(!reload.is_finished());
    admin.change_vhost("new", |vhost| vhost.group = 1).expect("a vhost");
    let is_new = ends(adopt(&admin, &group));
    admin.delete_user("u").expect("deleted");
    let is_gone = is_new && ends(adopt(&admin, &group));
    drop(let_go);
    assert!(is_gone, "adopting waits for the reload");
    assert!(group.broker.admin().accounts().user("u").is_none());
    assert!(ends(change) && ends(reload));
    let slow = group.broker.vhost("slow").expect("it is there");
    assert_eq!(slow.policies(PolicyKind::Operator).len(), 1);
}

#[test]
fn an_arrival_is_let_in_with_its_policies_and_matched_with_none_then() {
    let (home, group) = (WorldOnDisk::with(limits(MOST)), group(limits(MOST)));
    let admin = home.broker.admin();
    admin.change_vhost("v", |_| ()).expect("a vhost");
    admin.set_policy("v", PolicyKind::User, policy("p", "^q", 0)).expect("a good policy");
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("v", "q", queue).expect("a queue");
    assert!(ends(adopt(&admin, &group)));
    let known = admin.vhost_handle("v").expect("it is there");
    admin.stop_vhost("v", 0).expect("it is there");
    let mut export = admin.export_vhost("v").expect("all of it can be carried");
    let target = group.broker.admin();
    let mut import = target.import_vhost("v", 0, &VhostSettings::default()).expect("it begins");
    while let Some(piece) = export.next_piece().expect("it can be read") {
        import.take(&piece).expect("it is taken in");
    }
    import.finish().expect("it is whole");
    admin.set_vhost_group(&known, 1).expect("said");
    let configured = vec![("v".to_owned(), PolicyKind::Operator, policy("file", "^q", 0))];
    group.broker.configure_policies(configured).expect("good policies");
    let (event, begun, _let_go) = lasting();
    assert!(ends(adopt_when(&admin, &group, || MEANWHILE.set(Some(Box::new(event))))));
    assert!(begun.try_recv().is_err(), "what home takes away next would wait for it");
    let queue = target.queue("v", b"q").expect("it is there");
    assert_eq!(queue.operator_policy.as_deref(), Some("file"));
}

#[test]
fn who_asks_for_the_version_of_definitions_waits_for_no_change_of_them() {
    let home = WorldOnDisk::new();
    let admin = home.broker.admin();
    let before = admin.definitions_version();
    let (asking, (answer, answered)) = (admin.clone(), channel());
    let (heard, was_answered) = channel();
    home.store().before_next_append(move || {
        let ask = move || answer.send(asking.definitions_version());
        Builder::new().spawn(ask).expect("a thread");
        heard.send(answered.recv_timeout(FOR_EVER).ok()).expect("it is waited for");
    });
    create_user(&admin);
    assert_eq!(was_answered.recv().expect("it was asked"), Some(before));
    assert!(admin.definitions_version() > before);
}
