//! Every call of the store fails once while definitions are imported, of a single broker and of one whose log is replicated:
//! the truth is told, what is there is there whole, and what was told is what a restart finds. Imported once more, all of it is
//! there.

use crate::definitions::sample;
use crate::direct::{Asked, Direct};
use crate::pairs::FIRST;
use courser_auth::{Hashing, PasswordHash};
use courser_broker::admin::VhostSettings;
use courser_cluster::testing::{LogOfGroup, LogOnDisk};
use courser_journal::testing::{Call, FakeDisk, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_management::import;
use courser_store::{MemoryGauge, Recovered, ShardId, StoreError};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What the broker logs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Journal,
    /// One copy of a replicated log.
    Copy,
}

impl On {
    fn open(self, disk: &FakeDisk, gauge: &Arc<MemoryGauge>) -> (LogOnDisk, Recovered) {
        let options = Options { segment_bytes: 1 << 20, threads: false, ..Options::default() };
        let gauge = Arc::clone(gauge);
        if self == On::Copy {
            let (copy, recovered) = LogOfGroup::open(disk, options, gauge).expect("a good log");
            return (LogOnDisk::Copy(Box::new(copy)), recovered);
        }
        let (path, disk) = (Path::new("journal"), Arc::new(disk.clone()));
        let opened = JournalStore::open(path, options, disk, gauge, u64::MAX, &mut |_| {});
        let (journal, recovered, _) = opened.expect("a good journal");
        (LogOnDisk::Alone(journal), recovered)
    }
}

/// A broker with a log on a disk of its own.
struct World {
    on: On,
    disk: FakeDisk,
    log: LogOnDisk,
    store: Arc<WatchedStore>,
    direct: Direct,
}

impl World {
    /// With some of what is imported, in another state.
    fn new(on: On) -> Self {
        let world = World::open(on, FakeDisk::new(7));
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

    fn open(on: On, disk: FakeDisk) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let (log, recovered) = on.open(&disk, &gauge);
        let store = Arc::new(WatchedStore::new(log.store()));
        let direct = Direct::on(Arc::clone(&store) as _, gauge);
        direct.broker.restore(recovered).expect("what was written can be read");
        World { on, disk, log, store, direct }
    }

    fn restart(self) -> Self {
        self.log.close();
        let World { on, disk, log, store, direct } = self;
        drop((log, store, direct));
        disk.kill();
        World::open(on, disk)
    }

    /// The same from a checkpoint.
    fn restart_from_checkpoint(self) -> Self {
        let state = self.direct.broker.state_of(ShardId::HOME).expect("always open");
        self.log.checkpoint(&state).expect("a checkpoint");
        drop(state);
        self.restart()
    }

    fn import(&self) -> Result<(), String> {
        let text = sample().to_string();
        let done = import(&self.direct.broker.admin(), text.as_bytes(), Hashing::default(), 1);
        done.map(drop).map_err(|error| error.to_string())
    }

    /// All that is defined, without what the file says of itself.
    async fn defined(&self) -> Map<String, Value> {
        let asked = self.direct.ask(Asked::new("GET", "/api/definitions").by("root"));
        // That it leads is proven meanwhile.
        let proving = async {
            loop {
                self.log.flush();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let answer = tokio::select! {
            answer = asked => answer,
            () = proving => unreachable!("it goes on for ever"),
        };
        assert_eq!(answer.status, 200, "{answer:?}");
        let Value::Object(mut document) = answer.json() else { panic!("{answer:?}") };
        document.retain(|_, list| list.is_array());
        document
    }

    /// Has a call of the store fail, and if the store fails for good, all later ones. Returns how many calls there were.
    fn fail(&self, nth: usize, error: fn() -> StoreError) -> Arc<AtomicUsize> {
        let calls = Arc::new(AtomicUsize::new(0));
        let (on, counted) = (self.on, Arc::clone(&calls));
        self.store.set_faults(move |call| {
            // A leader that can't gather what was done gives up its lead.
            if on == On::Copy && call == Call::Settle && !matches!(error(), StoreError::Failed(_)) {
                return None;
            }
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

/// Where the test looks at what is there.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Memory,
    Restart,
    Checkpoint,
}

impl Ending {
    fn of(self, world: World) -> World {
        match self {
            Ending::Memory => world,
            Ending::Restart => world.restart(),
            Ending::Checkpoint => world.restart_from_checkpoint(),
        }
    }
}

/// Has a call fail with this error: the first that an import needs, then the second, until all have passed.
async fn each_call_fails_with(error: fn() -> StoreError, on: On, ending: Ending) {
    let world = World::new(on);
    let before = world.defined().await;
    world.import().expect("nothing fails");
    let after = world.defined().await;
    assert_ne!(before, after);
    for nth in 0.. {
        let world = World::new(on);
        let calls = world.fail(nth, error);
        let told = world.import();
        world.store.heal();
        if calls.load(Ordering::Relaxed) <= nth {
            assert_eq!(told, Ok(()), "nothing has failed");
            assert!(nth > 10, "there were {nth} calls");
            return;
        }
        let at = format!("{on:?}, {ending:?}, {:?} at call {nth}, {told:?}", error());
        let why = told.expect_err(&at);
        assert!(why.contains('\''), "{at}: it does not say what is missing");
        let left = world.defined().await;
        assert_eq!(half_made(&left, [&before, &after]), Vec::<&Value>::new(), "{at}");
        let world = ending.of(world);
        assert_eq!(world.defined().await, left, "{at}: what is there has not stayed");
        world.import().expect("nothing fails any more");
        assert_eq!(world.defined().await, after, "{at}: imported again");
        assert_eq!(world.restart().defined().await, after, "{at}: after another restart");
    }
}

async fn every_call_fails_once(on: On) {
    let errors: [fn() -> StoreError; 3] = [
        || StoreError::Full,
        || StoreError::TooLarge(7),
        || StoreError::Failed("on purpose".to_owned()),
    ];
    for ending in [Ending::Memory, Ending::Restart, Ending::Checkpoint] {
        for error in errors {
            each_call_fails_with(error, on, ending).await;
        }
    }
}

#[tokio::test]
async fn every_call_of_the_store_may_fail_during_an_import() {
    every_call_fails_once(On::Journal).await;
}

#[tokio::test]
async fn every_call_of_a_replicated_store_may_fail_during_an_import() {
    every_call_fails_once(On::Copy).await;
}
