//! Every call of the store fails once while definitions are imported: the truth is told, what is there is there whole, and
//! what was told is what a restart finds. Imported once more, all of it is there.

use crate::definitions::sample;
use crate::direct::{Asked, Direct};
use crate::pairs::FIRST;
use courser_auth::{Hashing, PasswordHash};
use courser_broker::admin::VhostSettings;
use courser_journal::testing::{FakeDisk, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_management::import;
use courser_store::{MemoryGauge, StoreError};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A broker with a journal on a disk of its own.
struct World {
    disk: FakeDisk,
    journal: Arc<JournalStore>,
    store: Arc<WatchedStore>,
    direct: Direct,
}

impl World {
    /// With some of what is imported, in another state.
    fn new() -> Self {
        let world = World::on(FakeDisk::new(7));
        // Each of these worlds has the same.
        let hash = PasswordHash::decode(FIRST, None);
        for user in ["root", "app"] {
            world.direct.add_user_with(hash.clone(), user, "administrator");
        }
        let admin = world.direct.broker.admin();
        let change = |settings: &mut VhostSettings| settings.description = "before".to_owned();
        admin.change_vhost("/", change).expect("a vhost");
        world
    }

    fn on(disk: FakeDisk) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let options = Options { segment_bytes: 1 << 20, threads: false, ..Options::default() };
        let (path, on) = (Path::new("journal"), Arc::new(disk.clone()));
        let opened =
            JournalStore::open(path, options, on, Arc::clone(&gauge), u64::MAX, &mut |_| {});
        let (journal, recovered, _) = opened.expect("a good journal");
        let store = Arc::new(WatchedStore::new(Arc::clone(&journal) as _));
        let direct = Direct::on(Arc::clone(&store) as _, gauge);
        direct.broker.restore(recovered).expect("what was written can be read");
        World { disk, journal, store, direct }
    }

    fn restart(self) -> Self {
        self.journal.journal().close().expect("nothing fails");
        let World { disk, journal, store, direct } = self;
        drop((journal, store, direct));
        disk.kill();
        World::on(disk)
    }

    fn import(&self) -> Result<(), String> {
        let text = sample().to_string();
        let done = import(&self.direct.broker.admin(), text.as_bytes(), Hashing::default(), 1);
        done.map(drop).map_err(|error| error.to_string())
    }

    /// All that is defined, without what the file says of itself.
    async fn defined(&self) -> Map<String, Value> {
        let answer = self.direct.ask(Asked::new("GET", "/api/definitions").by("root")).await;
        let Value::Object(mut document) = answer.json() else { panic!("{answer:?}") };
        document.retain(|_, list| list.is_array());
        document
    }

    /// Has a call of the store fail, and if the store fails for good, all later ones. Returns how many calls there were.
    fn fail(&self, nth: usize, error: fn() -> StoreError) -> Arc<AtomicUsize> {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        self.store.set_faults(move |_| {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            let is_for_good = matches!(error(), StoreError::Failed(_));
            (call == nth || call > nth && is_for_good).then(error)
        });
        calls
    }
}

/// The rows that are neither as before nor as after an import.
fn half_made<'r>(found: &'r Map<String, Value>, known: [&Map<String, Value>; 2]) -> Vec<&'r Value> {
    let rows = found
        .iter()
        .flat_map(|(list, rows)| rows.as_array().into_iter().flatten().map(move |row| (list, row)));
    let is_known = |list: &String, row: &Value| {
        known.iter().any(|all| all[list].as_array().is_some_and(|rows| rows.contains(row)))
    };
    rows.filter(|(list, row)| !is_known(list, row)).map(|(_, row)| row).collect()
}

#[tokio::test]
async fn every_call_of_the_store_may_fail_during_an_import() {
    let world = World::new();
    let before = world.defined().await;
    world.import().expect("nothing fails");
    let after = world.defined().await;
    assert_ne!(before, after);
    let errors: [fn() -> StoreError; 3] = [
        || StoreError::Full,
        || StoreError::TooLarge(7),
        || StoreError::Failed("on purpose".to_owned()),
    ];
    for (error, restarts) in errors.into_iter().flat_map(|one| [(one, true), (one, false)]) {
        for nth in 0.. {
            let world = World::new();
            let calls = world.fail(nth, error);
            let told = world.import();
            world.store.heal();
            if calls.load(Ordering::Relaxed) <= nth {
                assert_eq!(told, Ok(()), "nothing has failed");
                assert!(nth > 10, "there were {nth} calls");
                break;
            }
            let at = format!("{:?} at call {nth}, {told:?}", error());
            let why = told.expect_err(&at);
            assert!(why.contains('\''), "{at}: it does not say what is missing");
            let left = world.defined().await;
            assert_eq!(half_made(&left, [&before, &after]), Vec::<&Value>::new(), "{at}");
            let world = if restarts { world.restart() } else { world };
            assert_eq!(world.defined().await, left, "{at}: after a restart");
            world.import().expect("nothing fails any more");
            assert_eq!(world.defined().await, after, "{at}: imported again");
            assert_eq!(world.restart().defined().await, after, "{at}: after another restart");
        }
    }
}
