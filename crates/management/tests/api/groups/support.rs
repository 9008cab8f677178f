//! Three brokers behind the API of the first, which is home, and a single broker that is told the same.

use super::cut_short::{Few, OF_FEW};
use super::deposed::broker;
use super::late;
use super::same::{difference, same, unpacked};
use super::told::{OF_BRIEF_TOKEN, OF_ROOT_TOKEN, OF_SILENT, OF_TOKEN, Silent, Told};
use crate::support::{Answer, exchange_over};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_auth::{Authority, Grant, Login, LoginRefused, PasswordHash, Permission, Tags, User};
use courser_broker::admin::{Admin, ConnectionDetails};
use courser_broker::{Broker, Identity, Session};
use courser_codec::ShortString;
use courser_journal::testing::WatchedStore;
use courser_management::{
    Api, Groups, HOME, Later, LoginCounts, NodeFacts, RelayStream, Settings, Settled, Web,
};
use courser_store::Lsn;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::{RwLock, watch};

const PATIENCE: Duration = Duration::from_secs(60);
pub const GROUPS: u16 = 3;

type AtClock = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// The brokers of a cluster, as the node of home knows them.
#[derive(Default)]
pub struct Known {
    brokers: Vec<Arc<Broker>>,
    /// The APIs of the groups besides home.
    apis: OnceLock<Vec<Arc<Api>>>,
    /// The group that has no leader.
    pub down: AtomicU16,
    /// Those in which the node can't take part.
    pub without_part: Mutex<Vec<u16>>,
    /// Seconds after which the groups answer.
    pub late_s: AtomicU64,
    pub connections: AtomicUsize,
    /// Locked for writing while a vhost changes its group.
    pub changes: Arc<RwLock<()>>,
    /// Of what the groups were given last; one copy is made after the other.
    version: Mutex<u64>,
    /// How often more the others are asked to have what home has, and have it not yet.
    pub lags: AtomicUsize,
    /// What is done at home when the others next learn what it has.
    pub meanwhile: Mutex<Option<fn(&Admin)>>,
    /// What is done when a group besides home next looks at the clock.
    pub at_clock: AtClock,
    stop: Mutex<watch::Sender<bool>>,
}

impl Groups for Known {
    fn settled(&self) -> Later<Settled> {
        let changes = Arc::clone(&self.changes);
        Box::pin(async move { Some(changes.read_owned().await) })
    }

    fn others(&self) -> Vec<u16> {
        (1..GROUPS).collect()
    }

    fn without_part(&self) -> Vec<u16> {
        self.without_part.lock().clone()
    }

    fn led(&self) -> Vec<u16> {
        let down = self.down.load(Ordering::Relaxed);
        (1..GROUPS).filter(|group| *group != down).collect()
    }

    fn connect(&self, group: u16) -> Later<io::Result<RelayStream>> {
        if self.down.load(Ordering::Relaxed) == group {
            return Box::pin(async { Err(io::ErrorKind::NotConnected.into()) });
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        let stopping = self.stop.lock().subscribe();
        let apis = self.apis.get().expect("the groups are there");
        let (ours, theirs) = tokio::io::duplex(16 << 10);
        let api = Arc::clone(&apis[usize::from(group) - 1]);
        tokio::spawn(api.serve_inside(theirs, stopping));
        let by = Duration::from_secs(self.late_s.load(Ordering::Relaxed));
        Box::pin(async move { Ok(if by.is_zero() { Box::new(ours) } else { late::by(by, ours) }) })
    }

    fn changed(&self) -> Later<Vec<u16>> {
        if let Some(meanwhile) = self.meanwhile.lock().take() {
            meanwhile(&self.brokers[usize::from(HOME)].admin());
        }
        let fewer = |left: usize| left.checked_sub(1);
        if self.lags.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok() {
            return Box::pin(async { (1..GROUPS).collect() });
        }
        self.copy();
        Box::pin(async { Vec::new() })
    }
}

impl Known {
    /// Gives the groups what they have a copy of.
    fn copy(&self) {
        let mut version = self.version.lock();
        let home = self.brokers[usize::from(HOME)].admin();
        for group in 1..GROUPS {
            let mut definitions = home.definitions_of_group(group, Lsn(0)).expect("definitions");
            // A store in memory has no log that grows.
            *version += 1;
            definitions.version = Lsn(*version);
            let admin = self.brokers[usize::from(group)].admin();
            admin.adopt_definitions(definitions).expect("they are taken");
        }
    }
}

/// A cluster, and a broker that has all of it.
pub struct World {
    pub home: Arc<Api>,
    pub known: Arc<Known>,
    /// What home's definitions are kept in.
    pub home_store: Arc<WatchedStore>,
    pub single: Arc<Api>,
    single_broker: Arc<Broker>,
    pub now_ms: Arc<AtomicU64>,
    /// How far each look at the clock moves it.
    pub tick_ms: Arc<AtomicU64>,
    /// Whether the user of another authority would be let in no more, as far as home is told.
    pub is_out: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
}

/// The users whom no broker knows, by their names, which are their passports too.
fn known_elsewhere(name: &str, is_out: &Arc<AtomicBool>) -> Option<Arc<dyn Authority>> {
    match name {
        OF_TOKEN | OF_BRIEF_TOKEN | OF_ROOT_TOKEN => Some(Told::until(name, is_out)),
        OF_SILENT => Some(Silent::at_all()),
        OF_FEW => Some(Few::to_begin_with()),
        _ => None,
    }
}

fn guest() -> User {
    let hash = PasswordHash::quick(b"guest").expect("a hash");
    let mut user = User::new("guest", hash);
    user.tags = Tags::parse("administrator").expect("tags");
    user
}

fn add_guest(admin: &Admin, guest: User) {
    admin.create_user(guest).expect("a user");
    admin.set_permission("guest", "/", Permission::all()).expect("a permission");
}

fn api(
    broker: &Arc<Broker>,
    (now_ms, tick_ms, at_clock): (&Arc<AtomicU64>, &Arc<AtomicU64>, AtClock),
    is_out: &Arc<AtomicBool>,
    groups: Option<Arc<dyn Groups>>,
    audit_log: Option<PathBuf>,
) -> Arc<Api> {
    let accounts = Arc::clone(broker.accounts());
    let known = Arc::clone(&accounts);
    let (now_ms, tick_ms, is_out) = (Arc::clone(now_ms), Arc::clone(tick_ms), Arc::clone(is_out));
    let settings = Settings {
        accounts,
        log_in: Arc::new(move |name, password, _| {
            let name = String::from_utf8(name).expect("a name");
            if let Some(told) = known_elsewhere(&name, &is_out) {
                let user = Arc::clone(told.user());
                let grant = Some(Grant::new(told));
                return Box::pin(async {
                    Ok(Login { user, account: None, rehashed: None, grant })
                });
            }
            let user = known.directory().user(&name).cloned();
            let user = user.filter(|_| name.as_bytes() == &password[..]);
            let login = user.map(|user| Login { user, account: None, rehashed: None, grant: None });
            Box::pin(async move { login.ok_or(LoginRefused::InvalidCredentials(name)) })
        }),
        now_ms: Arc::new(move || {
            let now = at_clock.lock().take();
            now.into_iter().for_each(|now| now());
            now_ms.fetch_add(tick_ms.load(Ordering::Relaxed), Ordering::Relaxed)
        }),
        node: NodeFacts {
            name: "courser@one".into(),
            cluster_name: "test".into(),
            version: "1".into(),
            connections_max: 1000,
            ..NodeFacts::default()
        },
        web: Web::default(),
        websocket: None,
        log: Arc::default(),
        amqp_logins: Arc::new(|| LoginCounts { succeeded: 2, failed: 1 }),
        forget_amqp_logins: Arc::new(|| {}),
        suspend_listeners: Arc::new(|_| {}),
        listeners_suspended: Arc::new(|| false),
        scrub: None,
        runtime: Arc::new(|_| Err("nothing changes here".to_owned())),
        configured: Arc::new(serde_json::Value::default),
        certificates: Arc::new(Vec::new),
        notices: Arc::new(Vec::new),
        cluster: None,
        groups,
        readmit: Some(Arc::new(|passport| known_elsewhere(passport, &Arc::default()))),
        audit_log,
        audit_log_mode: 0o600,
    };
    Api::new(broker.admin(), settings)
}

impl World {
    /// With the vhosts `a` to `f`, two of them in each group, and `/` at home. Nothing in it waits for a thread of its own,
    /// so that paused time stands still while it works.
    pub async fn start() -> Self {
        Self::of(None).await
    }

    /// The same, whose home has an audit log in this file. A thread of its own writes that.
    pub async fn audited(audit_log: PathBuf) -> Self {
        Self::of(Some(audit_log)).await
    }

    async fn of(audit_log: Option<PathBuf>) -> Self {
        let now_ms = Arc::new(AtomicU64::new(1_000_000));
        let (is_out, tick_ms) = (Arc::default(), Arc::default());
        let clock = |at_clock| (&now_ms, &tick_ms, at_clock);
        let (brokers, mut stores): (Vec<_>, Vec<_>) = (0..GROUPS).map(broker).unzip();
        let home_store = stores.swap_remove(usize::from(HOME));
        let (single_broker, _) = broker(HOME);
        let guest = guest();
        for home in [&brokers[0], &single_broker] {
            add_guest(&home.admin(), guest.clone());
        }
        let known = Arc::new(Known { brokers, ..Known::default() });
        let others = known.brokers.iter().skip(1);
        let ticks = || clock(Arc::clone(&known.at_clock));
        let others = others.map(|broker| api(broker, ticks(), &is_out, None, None)).collect();
        assert!(known.apis.set(others).is_ok());
        known.copy();
        let groups: Arc<dyn Groups> = Arc::clone(&known) as _;
        let home = api(&known.brokers[0], clock(Arc::default()), &is_out, Some(groups), audit_log);
        let single = api(&single_broker, clock(Arc::default()), &is_out, None, None);
        let stop = watch::Sender::new(false);
        let world =
            World { home, known, home_store, single, single_broker, now_ms, tick_ms, is_out, stop };
        for (nth, name) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
            let path = format!("/api/vhosts/{name}");
            let placed = format!(r#"{{"group":{}}}"#, (nth + 1) % usize::from(GROUPS));
            assert_eq!(world.home("PUT", &path, &placed).await.status, 201, "{path}");
            assert_eq!(world.single("PUT", &path, "{}").await.status, 201, "{path}");
        }
        world
    }

    /// The APIs of all groups, home first.
    pub fn apis(&self) -> Vec<Arc<Api>> {
        let others = self.known.apis.get().expect("the groups are there");
        std::iter::once(&self.home).chain(others).cloned().collect()
    }

    /// The group of a vhost.
    pub fn group_of(&self, vhost: &str) -> Option<u16> {
        self.admin_of(HOME).group_of(vhost)
    }

    /// Has a group lose its leader, or all have theirs again.
    pub async fn lose(&self, group: u16) {
        self.known.down.store(group, Ordering::Relaxed);
        let before = std::mem::replace(&mut *self.known.stop.lock(), watch::Sender::new(false));
        before.send_replace(true);
        // The task that serves a connection may answer once more before it takes note.
        before.closed().await;
    }

    pub fn admin_of(&self, group: u16) -> Admin {
        self.known.brokers[usize::from(group)].admin()
    }

    /// What time the broker of home was told last.
    pub fn told_ms(&self) -> u64 {
        self.known.brokers[usize::from(HOME)].now_ms()
    }

    /// A client in a vhost, at the cluster and at the single broker.
    pub fn connect(&self, user: &str, vhost: &str, port: u16) -> [Session; 2] {
        let group = self.group_of(vhost).expect("it is there");
        let brokers = [&self.known.brokers[usize::from(group)], &self.single_broker];
        brokers.map(|broker| {
            let admission = broker.admit(user, vhost).expect("it may enter");
            let name = ShortString::try_from(user).expect("short");
            let identity = Identity { user: name, cancel_notify: true, impersonator: false };
            let details = ConnectionDetails {
                name: format!("127.0.0.1:{port} -> 127.0.0.1:5672"),
                ..Default::default()
            };
            let mut session = broker.open_connection(admission, identity, 131_072, details);
            session.open_channel(1);
            session
        })
    }

    pub async fn home(&self, method: &str, path: &str, body: &str) -> Answer {
        self.call(&self.home, method, path, "guest", &[], body).await
    }

    pub async fn single(&self, method: &str, path: &str, body: &str) -> Answer {
        self.call(&self.single, method, path, "guest", &[], body).await
    }

    /// The same request to both, which answer the same.
    pub async fn both(&self, method: &str, path: &str, body: &str) -> Answer {
        self.both_as(method, path, "guest", &[], body).await
    }

    pub async fn both_as(
        &self,
        method: &str,
        path: &str,
        user: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let home = self.call(&self.home, method, path, user, headers, body).await;
        let single = self.call(&self.single, method, path, user, headers, body).await;
        let text = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
        let what = format!("{method} {path} as {user}");
        assert_eq!(home.status, single.status, "{what}: {} / {}", text(&home), text(&single));
        match (serde_json::from_slice(&unpacked(&home)), serde_json::from_slice(&unpacked(&single)))
        {
            (Ok(found), Ok(expected)) => {
                let other = difference("", &same(found), &same(expected));
                assert_eq!(other, None, "{what}: found, and expected");
            }
            _ => assert_eq!(text(&home), text(&single), "{what}"),
        }
        for name in ["content-type", "allow", "vary", "cache-control", "content-encoding"] {
            assert_eq!(home.headers.get(name), single.headers.get(name), "{name} of {what}");
        }
        home
    }

    /// Listens to what home says.
    pub async fn follow(&self, path: &str, user: &str) -> DuplexStream {
        let (mut ours, theirs) = tokio::io::duplex(64 << 10);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let serving = Arc::clone(&self.home).serve(theirs, peer, peer, None, self.stop.subscribe());
        tokio::spawn(serving);
        let login = STANDARD.encode(format!("{user}:{user}"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: broker\r\naccept: text/event-stream\r\nauthorization: Basic {login}\r\n\r\n"
        );
        ours.write_all(request.as_bytes()).await.expect("it is taken");
        ours
    }

    pub async fn call(
        &self,
        api: &Arc<Api>,
        method: &str,
        path: &str,
        user: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let serving = Arc::clone(api).serve(theirs, peer, peer, None, self.stop.subscribe());
        tokio::spawn(serving);
        let login = STANDARD.encode(format!("{user}:{user}"));
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\
             authorization: Basic {login}\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("\r\n{body}");
        let is_head = method == "HEAD";
        let asking = exchange_over(ours, request.into_bytes(), is_head);
        tokio::time::timeout(PATIENCE, asking).await.expect("an answer")
    }
}
