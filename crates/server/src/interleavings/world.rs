//! A broker, the ways that lead to it, and what is known of all messages.

use super::chance::{Chance, Overtaken};
use super::disk::SlowStore;
use super::signal::Signal;
use super::socket::{Cut, Network, Socket};
use super::wire::{ClientWebSocket, Wire};
use crate::accounts::GUEST;
use crate::clock::Clock;
use crate::cluster::{Newcomer, pass_on, serve_elsewhere};
use crate::config::Config;
use crate::driver::{self, ClientStream, Shared};
use crate::inside::INSIDE;
use crate::login::{Elsewhere, Logins};
use crate::negotiated;
use crate::notices::Notices;
use crate::places::{Admission, Places};
use crate::suspension::Suspension;
use crate::throttle::Throttles;
use crate::timers;
use crate::websocket::WebSocket;
use courser_auth::{PasswordHash, Tags, User};
use courser_broker::{Broker, Limits};
use courser_store::MemoryGauge;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// Queues whose messages are acknowledged.
pub(super) const QUEUES: [&str; 3] = ["a", "b", "c"];
/// Connections that there may be: more than there are.
const PLACES: usize = 100;
/// Milliseconds since 1970 when a world begins.
const BEGINNING_MS: u64 = 1_800_000_000_000;
/// What all that happens between a client and the broker takes together, where the network and the disk are quick. Buffers that
/// are given back after two seconds, which wakes a connection, must not hide that it has slept.
const QUICK_LIMIT: Duration = Duration::from_millis(1300);
/// The same where they are not.
const SLOW_LIMIT: Duration = Duration::from_secs(20);
/// The longest that anything takes that a client does not do its part of: two looks at each of a chain of connections, and
/// what they wait for.
pub(super) const END_LIMIT: Duration = Duration::from_secs(240);

/// On what a client comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub is_web_socket: bool,
    /// Another node passes it on.
    pub is_relayed: bool,
    /// Another broker serves it than the one that logs it in.
    pub is_redirected: bool,
}

impl Route {
    pub fn any(chance: &Chance) -> Self {
        Route {
            is_web_socket: chance.one_in(2),
            is_relayed: chance.one_in(2),
            is_redirected: chance.one_in(3),
        }
    }

    /// Bytes that wait between the broker and a client, at most: those in the windows, of a relay, and of a message of a
    /// WebSocket, which is not taken in part.
    pub fn bytes_on_its_way(self, network: &Network) -> usize {
        let windows = network.window * if self.is_relayed { 2 } else { 1 };
        let of_relay = if self.is_relayed { 64 << 10 } else { 0 };
        windows + of_relay + if self.is_web_socket { 80 << 10 } else { 0 }
    }
}

/// What is known of a message.
#[derive(Default)]
struct Message {
    queue: String,
    is_confirmed: bool,
    is_settled: bool,
}

/// The world.
pub(super) struct World {
    pub chance: Chance,
    pub network: Network,
    begun: Instant,
    is_quick: bool,
    /// The broker that all clients come to, and the one that serves those that are redirected.
    pub brokers: [Arc<Shared>; 2],
    stop: Signal,
    /// For what does not end with a stop, as others are served after it.
    ends: watch::Sender<bool>,
    /// Places at the node that passes clients on.
    follower: Arc<Places>,
    /// Whether the broker's node leads.
    leads: Signal,
    /// The connections between the nodes.
    tunnels: Mutex<Vec<Cut>>,
    messages: Mutex<BTreeMap<u64, Message>>,
    tasks: Mutex<Vec<(String, JoinHandle<()>)>>,
    stopped_at: Mutex<Option<Instant>>,
    /// Since when the node is cut off, and since when that is known.
    cut_at: Mutex<Option<Instant>>,
    lost_at: Mutex<Option<Instant>>,
}

impl World {
    pub fn new(seed: u64) -> Arc<Self> {
        let chance = Chance::new(seed);
        let begun = Instant::now();
        let is_quick = chance.one_in(2);
        let network = Network {
            chance: chance.clone(),
            latency_ms: if is_quick { 0..=3 } else { 0..=chance.within(3..=60) },
            window: if is_quick { 64 << 10 } else { chance.within(4000..=200_000) as usize },
            segment: usize::MAX,
            blocks_one_in: 20,
        };
        let sync_ms = if is_quick { 0..=10 } else { 0..=chance.within(10..=400) };
        let clock = Clock::of(move || BEGINNING_MS + begun.elapsed().as_millis() as u64);
        let brokers = [(); 2].map(|()| {
            let gauge = Arc::new(MemoryGauge::default());
            let store = SlowStore::new(&gauge, &chance, sync_ms.clone(), chance.within(2..=100));
            let broker = Broker::new(store, gauge, Limits::default(), chance.number());
            broker.set_time(clock.now_ms());
            Arc::new(shared(broker, &clock))
        });
        let world = Arc::new(World {
            chance,
            network,
            begun,
            is_quick,
            brokers,
            stop: Signal::new(false),
            ends: watch::Sender::new(false),
            follower: Arc::new(Places::new(PLACES)),
            leads: Signal::new(true),
            tunnels: Mutex::default(),
            messages: Mutex::default(),
            tasks: Mutex::default(),
            stopped_at: Mutex::default(),
            cut_at: Mutex::default(),
            lost_at: Mutex::default(),
        });
        for shared in &world.brokers {
            let broker = Arc::clone(&shared.broker);
            tokio::spawn(timers::run(broker, clock.clone(), world.ends.subscribe()));
        }
        world
    }

    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How long a client waits for anything that it may expect.
    pub fn limit(&self) -> Duration {
        if self.is_quick { QUICK_LIMIT } else { SLOW_LIMIT }
    }

    /// The same for what it waits for since then: what a node does not say that is cut off is known when it leads no more.
    pub fn limit_since(&self, since: Instant) -> Duration {
        let lost = self.lost_at.lock().unwrap_or_else(Instant::now);
        let cut = self.cut_at.lock().map(|_| lost.saturating_duration_since(since));
        self.limit() + cut.unwrap_or_default()
    }

    /// Runs a task of the broker, which others may overtake.
    pub fn spawn(
        &self,
        name: String,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let handle = tokio::spawn(Overtaken::new(task, &self.chance));
        let abort = handle.abort_handle();
        self.tasks.lock().push((name, handle));
        abort
    }

    /// A new connection of a client.
    pub async fn connect(
        &self,
        route: Route,
        network: &Network,
        name: &str,
    ) -> (Box<dyn Wire>, Cut) {
        let (client, mut server) = network.connect();
        if route.is_relayed {
            let (to_node, from_follower) = network.connect();
            self.tunnels.lock().push(to_node.cutter());
            self.relay(server, to_node, name);
            server = from_follower;
        }
        self.serve(server, route, name);
        let cutter = client.cutter();
        let wire: Box<dyn Wire> = match route.is_web_socket {
            true => Box::new(ClientWebSocket::new(client).await),
            false => Box::new(client),
        };
        (wire, cutter)
    }

    fn serve(&self, socket: Socket, route: Route, name: &str) {
        let [home, away] =
            self.brokers.each_ref().map(|shared| (Arc::clone(shared), self.stop.subscribe()));
        let deciding = self.chance.ms(0..=50);
        let name = name.to_owned();
        let admission = self.brokers[0].places.admit(|place| {
            self.spawn(format!("the connection of {name}"), async move {
                let client = Newcomer { peer: INSIDE, place, name };
                let frame_max = home.0.connection.frame_max;
                match (route.is_web_socket, route.is_redirected) {
                    (false, false) => serve_here(socket, client, home).await,
                    (false, true) => {
                        serve_elsewhere(Box::new(socket), client, home, away, deciding).await;
                    }
                    (true, is_redirected) => {
                        let socket = WebSocket::new(socket, frame_max).await;
                        if is_redirected {
                            serve_elsewhere(Box::new(socket), client, home, away, deciding).await;
                        } else {
                            serve_here(socket, client, home).await;
                        }
                    }
                }
            })
        });
        assert_eq!(admission, Admission::Admitted);
    }

    /// Passes a client on, as a node does that does not lead.
    fn relay(&self, mut client: Socket, mut node: Socket, name: &str) {
        let (mut leads, send_timeout) = (self.leads.subscribe(), self.brokers[0].send_timeout);
        let admission = self.follower.admit(|mut place| {
            self.spawn(format!("the relay of {name}"), async move {
                tokio::select! {
                    biased;
                    _ = pass_on(&mut client, &mut node, &mut place, send_timeout) => {}
                    _ = leads.wait_for(|leads| !leads) => {}
                }
            })
        });
        assert_eq!(admission, Admission::Admitted);
    }

    /// Stops the broker.
    pub fn stop(&self) {
        *self.stopped_at.lock() = Some(Instant::now());
        self.stop.send(true);
    }

    /// Has the broker's node vanish from the cluster, and its lead after a while.
    pub async fn vanish(&self) {
        *self.cut_at.lock() = Some(Instant::now());
        self.tunnels.lock().iter().for_each(Cut::cut);
        tokio::time::sleep(self.chance.ms(0..=3000)).await;
        *self.lost_at.lock() = Some(Instant::now());
        self.leads.send(false);
    }

    /// Whether clients on this way may find that their connections are gone.
    pub fn may_end(&self, route: Route) -> bool {
        self.stopped_at.lock().is_some() || route.is_relayed && self.cut_at.lock().is_some()
    }

    pub fn new_message(&self, queue: &str) -> u64 {
        let mut messages = self.messages.lock();
        let number = messages.len() as u64;
        messages.insert(number, Message { queue: queue.to_owned(), ..Message::default() });
        number
    }

    pub fn confirmed(&self, message: u64) {
        self.chance.note(message);
        self.messages.lock().entry(message).or_default().is_confirmed = true;
    }

    /// A message is acknowledged.
    pub fn settled(&self, message: u64) {
        self.chance.note(message);
        self.messages.lock().entry(message).or_default().is_settled = true;
    }

    /// Messages that were confirmed, are in a queue whose messages are acknowledged, and were not.
    pub fn missing(&self) -> Vec<u64> {
        let messages = self.messages.lock();
        let is_missing = |message: &Message| {
            message.is_confirmed && !message.is_settled && QUEUES.contains(&&*message.queue)
        };
        messages.iter().filter(|(_, one)| is_missing(one)).map(|(number, _)| *number).collect()
    }

    /// Serves clients again after a stop, or at a node that leads no more.
    pub fn resume(&self) {
        self.stop.send(false);
        *self.stopped_at.lock() = None;
    }

    /// Waits until nothing of the clients' connections is left, and sees that none of their tasks has panicked.
    pub async fn all_over(&self) {
        let until = Instant::now() + END_LIMIT;
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for (name, task) in tasks {
            match tokio::time::timeout_at(until, task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("{name}: {error}"),
                Err(_) => panic!("{name} does not end"),
            }
        }
    }

    /// What is left of connections when all are over.
    pub fn left(&self) -> Option<String> {
        let mut counts = vec![("places at the follower", self.follower.taken())];
        for shared in &self.brokers {
            let admin = shared.broker.admin();
            let uses = admin.memory_uses();
            counts.extend([
                ("places", shared.places.taken()),
                ("paced", shared.paced.load(Relaxed)),
                ("connections", admin.connections(None).map_or(0, |all| all.len())),
                ("bytes of newcomers", uses.newcomers as usize),
                ("bytes of sessions", uses.sessions as usize),
                ("bytes of incomplete messages", uses.incomplete as usize),
                ("bytes that are not read", uses.unread as usize),
            ]);
        }
        let left = counts.into_iter().find(|(_, count)| *count > 0);
        left.map(|(what, count)| format!("{count} {what}"))
    }

    /// Tasks that there are.
    pub fn task_count() -> usize {
        Handle::current().metrics().num_alive_tasks()
    }
}

/// What connections share, where clients come without credentials: checking a password takes another thread.
fn shared(broker: Arc<Broker>, clock: &Clock) -> Shared {
    let mut config = Config::default();
    config.auth.anonymous_user = GUEST.to_owned();
    let mut user = User::new(GUEST, PasswordHash::quick(b"guest").expect("a hash"));
    user.tags = Tags::administrator();
    broker.add_file_user(user).expect("a user");
    let elsewhere = Elsewhere { anonymous: Some(GUEST.to_owned()), ..Elsewhere::default() };
    Shared {
        logins: Logins::new(broker.accounts(), elsewhere, clock.clone()),
        broker,
        clock: clock.clone(),
        connection: Arc::new(negotiated::plain(&config)),
        tls_connection: Arc::new(negotiated::with_tls(&config)),
        send_timeout: config.send_timeout(),
        places: Arc::new(Places::new(PLACES)),
        throttles: Arc::new(Throttles::default()),
        suspension: Suspension::new(&Arc::new(Notices::new(clock.clone()))),
        paced: 0.into(),
        farewell: OnceLock::new(),
    }
}

async fn serve_here<S: ClientStream>(
    stream: S,
    Newcomer { peer, place, name }: Newcomer,
    (shared, stopping): (Arc<Shared>, watch::Receiver<bool>),
) {
    drop(driver::serve(stream, peer, place, name, shared, stopping).await);
}
