//! Settings that are read again.

use super::*;
use crate::config::VhostSettings;
use courser_broker::Limits;
use courser_journal::testing::{Call, WatchedStore};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::mpsc;

fn broker() -> (Arc<Broker>, Arc<WatchedStore>) {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    (Broker::new(Arc::clone(&store) as _, gauge, Limits::default(), 7), store)
}

#[tokio::test]
async fn a_broker_is_not_kept_while_another_one_gets_its_settings() {
    let ((first, store), (second, _)) = (broker(), broker());
    let (begin, begun) = oneshot::channel();
    let (go_on, waiting) = mpsc::channel::<()>();
    let mut begin = Some(begin);
    store.set_faults(move |call| {
        if let Some(begin) = begin.take_if(|_| call == Call::Append) {
            let _ = begin.send(());
            // An error means that it is to go on.
            let _ = waiting.recv();
        }
        None
    });
    let vhost = VhostSettings { name: "new".to_owned(), max_connections: None, max_queues: None };
    let config = Config { vhosts: vec![vhost], ..Config::default() };
    let turn = Arc::new(Mutex::default()).lock_owned().await;
    let brokers = [&first, &second].map(Arc::downgrade);
    let gone = Weak::clone(&brokers[1]);
    let setting = tokio::spawn(in_turn(turn, move || {
        brokers.iter().try_for_each(|broker| set_up_again(broker, &config))
    }));
    begun.await.expect("it begins with the first");
    drop(second);
    assert!(gone.upgrade().is_none(), "nothing serves with it any more");
    drop(go_on);
    setting.await.expect("no panic").expect("good settings");
    assert!(first.vhost("new").is_some());
}
