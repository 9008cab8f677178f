//! A model of who sends a confirm: the log thread or the connection's task, in every order of their
//! steps. It follows `Driver::poll`, `InlineConfirm::wake`, `Session::wait_for` and `Core::poll_durable`.

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// The connection behind its lock: what waits for which LSN, and what was sent.
#[derive(Default)]
struct Connection {
    awaiting: Vec<u64>,
    wake_at: Option<u64>,
    sent: Vec<u64>,
}

struct World {
    durable: AtomicU64,
    waiters: Mutex<Vec<u64>>,
    connection: Mutex<Connection>,
    /// The task has been woken and not run since.
    woken: AtomicBool,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(World {
            durable: AtomicU64::new(0),
            waiters: Mutex::new(Vec::new()),
            connection: Mutex::new(Connection::default()),
            woken: AtomicBool::new(false),
        })
    }

    fn wake(&self) {
        self.woken.swap(true, SeqCst);
    }

    /// Sends what is durable, and waits for the rest.
    fn confirm(&self, connection: &mut Connection) {
        let durable = self.durable.load(SeqCst);
        let (due, rest) = connection.awaiting.drain(..).partition(|lsn| *lsn <= durable);
        connection.awaiting = rest;
        connection.sent.extend::<Vec<u64>>(due);
        let next = connection.awaiting.first().copied();
        if std::mem::replace(&mut connection.wake_at, next) == next {
            return;
        }
        let Some(lsn) = next else { return };
        self.waiters.lock().unwrap().push(lsn);
        if self.durable.load(SeqCst) >= lsn {
            self.wake();
        }
    }

    /// The task runs once, and publishes what has come in.
    fn poll(&self, publish: Option<u64>) {
        // A change and no plain store, as in the runtime: it sees what came before the wake.
        self.woken.swap(false, SeqCst);
        let mut connection = self.connection.lock().unwrap();
        self.confirm(&mut connection);
        if let Some(lsn) = publish {
            connection.awaiting.push(lsn);
            self.confirm(&mut connection);
        }
    }

    /// The log thread has synced everything before `lsn`.
    fn publish_durable(&self, lsn: u64) {
        self.durable.store(lsn, SeqCst);
        let due = {
            let mut waiters = self.waiters.lock().unwrap();
            let before = waiters.len();
            waiters.retain(|waiting| *waiting > lsn);
            before - waiters.len()
        };
        for _ in 0..due {
            match self.connection.try_lock() {
                Ok(mut connection) => self.confirm(&mut connection),
                Err(_) => self.wake(),
            }
        }
    }
}

#[test]
fn each_confirm_is_sent_once_by_the_faster_of_the_two() {
    loom::model(|| {
        let world = World::new();
        let log = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.publish_durable(1);
                world.publish_durable(2);
            }
        });
        world.poll(Some(1));
        world.poll(Some(2));
        log.join().unwrap();
        while world.woken.load(SeqCst) {
            world.poll(None);
        }
        assert_eq!(world.connection.lock().unwrap().sent, [1, 2]);
        // At most one is asked for twice, by who saw it durable himself.
        assert!(world.waiters.lock().unwrap().len() <= 2);
    });
}
