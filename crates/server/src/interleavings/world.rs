//! A broker, the ways that lead to it, and what is known of all messages.

use super::chance::{Chance, Overtaken};
use super::client::{Gone, Lives};
use super::disk::Kind;
use super::led::Led;
use super::nodes::{Follower, Lead, PassedOn};
use super::route::Route;
use super::signal::Signal;
use super::socket::{Cut, Network, Socket};
use super::wire::{ClientWebSocket, Wire, upgrade};
use crate::clock::Clock;
use crate::cluster::{Newcomer, serve_elsewhere};
use crate::driver::{self, ClientStream, Shared};
use crate::inside::INSIDE;
use crate::places::Admission;
use crate::websocket::WebSocket;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// Queues whose messages are acknowledged.
pub(super) const QUEUES: [&str; 3] = ["a", "b", "c"];
/// Connections that there may be: more than there are.
pub(super) const PLACES: usize = 100;
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

/// What is known of a message.
#[derive(Default)]
struct Message {
    queue: String,
    is_persistent: bool,
    is_confirmed: bool,
    is_settled: bool,
}

/// The world.
pub(super) struct World {
    pub chance: Chance,
    pub network: Network,
    begun: Instant,
    is_quick: bool,
    pub(super) clock: Clock,
    /// Other nodes have copies of the brokers' logs.
    pub(super) is_copied: bool,
    /// What leads now, and what has led before.
    pub(super) leads: Mutex<Vec<Lead>>,
    pub(super) follower: Follower,
    messages: Mutex<BTreeMap<u64, Message>>,
    tasks: Mutex<Vec<(String, JoinHandle<()>)>>,
    stopped_at: Mutex<Option<Instant>>,
    /// Since when the first node that leads can't lead any more, whether nothing is heard of it, since when it is known that it does
    /// not lead, and since when it is known that another one does.
    pub(super) cut_at: Mutex<Option<Instant>>,
    pub(super) is_silent: Mutex<bool>,
    pub(super) lost_at: Mutex<Option<Instant>>,
    pub(super) moved_at: Mutex<Option<Instant>>,
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
        let kind = Kind::any(&chance, sync_ms);
        let is_copied = kind.is_copied;
        let brokers = [(); 2].map(|()| Led::first(&chance, &kind, &clock));
        Arc::new(World {
            chance,
            network,
            begun,
            is_quick,
            clock,
            is_copied,
            leads: Mutex::new(vec![Lead { brokers, stop: Arc::new(Signal::new(false)) }]),
            follower: Follower::new(),
            messages: Mutex::default(),
            tasks: Mutex::default(),
            stopped_at: Mutex::default(),
            cut_at: Mutex::default(),
            is_silent: Mutex::default(),
            lost_at: Mutex::default(),
            moved_at: Mutex::default(),
        })
    }

    /// The brokers that are in their places now.
    pub fn brokers(&self) -> [Arc<Shared>; 2] {
        self.led().map(|led| led.shared)
    }

    pub(super) fn led(&self) -> [Led; 2] {
        self.last_lead().brokers
    }

    fn last_lead(&self) -> Lead {
        self.leads.lock().last().expect("there is one from the beginning").clone()
    }

    /// One of those that have led.
    pub(super) fn lead(&self, number: usize) -> Lead {
        self.leads.lock()[number].clone()
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

    /// Runs a task that looks at something.
    pub(super) fn watch(&self, name: String, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().push((name, tokio::spawn(task)));
    }

    /// A new connection of a client.
    pub async fn connect(
        self: &Arc<Self>,
        route: Route,
        network: &Network,
        name: &str,
    ) -> Lives<(Box<dyn Wire>, Cut)> {
        let (mut client, server) = network.connect();
        match route {
            Route { is_relayed: false, .. } => self.serve(server, route, name),
            Route { is_web_socket: true, .. } => {
                self.pass_on((server, network), PassedOn::Http, name);
                self.upgraded(&mut client).await?;
            }
            Route { is_redirected: true, .. } => {
                self.pass_on((server, network), PassedOn::Redirected, name)
            }
            _ => self.pass_on((server, network), PassedOn::Amqp, name),
        }
        let cutter = client.cutter();
        let wire: Box<dyn Wire> = match route.is_web_socket {
            true => Box::new(ClientWebSocket::new(client).await),
            false => Box::new(client),
        };
        Ok((wire, cutter))
    }

    /// Has a connection over which requests come become a WebSocket.
    async fn upgraded(&self, client: &mut Socket) -> Lives<()> {
        let (since, mut upgrading) = (Instant::now(), std::pin::pin!(upgrade(client)));
        loop {
            match tokio::time::timeout(self.limit(), upgrading.as_mut()).await {
                Ok(upgraded) => return upgraded.map_err(|error| Gone(error.to_string())),
                Err(_) if since.elapsed() < self.limit_to_enter(since) => {}
                Err(_) => panic!("a client waits for its WebSocket at {:?}", self.age()),
            }
        }
    }

    fn serve(&self, socket: Socket, route: Route, name: &str) {
        let Lead { brokers, stop } = self.last_lead();
        let [home, away] = brokers.map(|led| (led.shared, stop.subscribe()));
        let deciding = self.chance.ms(0..=50);
        let name = name.to_owned();
        let places = Arc::clone(&home.0.places);
        let admission = places.admit(|place| {
            self.spawn(format!("the connection of {name}"), async move {
                let client = Newcomer { peer: INSIDE, place, name };
                let frame_max = home.0.connection.frame_max;
                match (route.is_web_socket, route.is_redirected) {
                    (false, false) => serve_here(socket, client, home).await,
                    (false, true) => {
                        serve_elsewhere(Box::new(socket), client, home, away, deciding).await;
                    }
                    (true, is_redirected) => {
                        let socket = WebSocket::new(socket, frame_max);
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

    /// Stops the broker.
    pub fn stop(&self) {
        *self.stopped_at.lock() = Some(Instant::now());
        self.last_lead().stop.send(true);
    }

    /// Whether clients that have come then on this way may find that their connections are gone.
    pub fn may_end(&self, route: Route, came_at: Instant) -> bool {
        let [cut, lost, moved] = [&self.cut_at, &self.lost_at, &self.moved_at].map(|at| *at.lock());
        // Those that know that no node leads wait until one does, or a request no longer than it may.
        let waits = route.is_relayed && !route.is_web_socket;
        let knows = if waits { cut } else { moved };
        let is_before = moved.is_none() || knows.is_none_or(|knows| came_at <= knows);
        let is_ended =
            if route.is_relayed { cut.is_some() } else { self.is_copied && lost.is_some() };
        let is_follower_gone = route.is_relayed && self.follower.stopped_at().is_some();
        self.stopped_at.lock().is_some() || is_follower_gone || is_ended && is_before
    }

    /// Since when a client that was let in then, by way of another node, should know that it is served no more.
    pub fn ended_for(&self, let_in_at: Instant) -> Option<Instant> {
        let is_lost = self.cut_at.lock().is_some_and(|cut_at| let_in_at < cut_at);
        let lost_at = self.lost_at.lock().filter(|_| is_lost);
        let stopped_at = self.follower.stopped_at().filter(|stopped_at| let_in_at < *stopped_at);
        lost_at.or(stopped_at)
    }

    pub fn new_message(&self, queue: &str, is_persistent: bool) -> u64 {
        let mut messages = self.messages.lock();
        let number = messages.len() as u64;
        messages.insert(
            number,
            Message { queue: queue.to_owned(), is_persistent, ..Message::default() },
        );
        number
    }

    pub fn confirmed(&self, message: u64) {
        self.chance.note(message);
        self.check_committed(message, "confirmed");
        self.messages.lock().entry(message).or_default().is_confirmed = true;
    }

    /// A message is handed to a client.
    pub fn delivered(&self, message: u64) {
        if self.is_copied {
            self.check_committed(message, "delivered");
        }
    }

    /// A question of then, by a client that was let in before, is answered that only the node that leads can answer.
    pub fn answered(&self, let_in_at: Instant, asked_at: Instant) {
        let is_by_next = self.moved_at.lock().is_some_and(|moved_at| let_in_at >= moved_at);
        let is_known = is_by_next || self.cut_at.lock().is_none_or(|cut_at| asked_at < cut_at);
        assert!(!self.is_copied || is_known, "a node that is cut off can't know this any more");
    }

    fn check_committed(&self, message: u64, what: &str) {
        let is_committed = self.led().iter().all(|led| led.store.has_committed(message));
        assert!(is_committed, "message {message} is {what}, and the next leader may not have it");
    }

    /// A message is acknowledged.
    pub fn settled(&self, message: u64) {
        self.chance.note(message);
        self.messages.lock().entry(message).or_default().is_settled = true;
    }

    /// Messages that were confirmed, are in a queue whose messages are acknowledged, and were not.
    pub fn missing(&self) -> Vec<u64> {
        let (messages, has_moved) = (self.messages.lock(), self.leads.lock().len() > 1);
        let is_missing = |message: &Message| {
            let survives = message.is_persistent || !has_moved;
            let is_owed = message.is_confirmed && !message.is_settled && survives;
            is_owed && QUEUES.contains(&&*message.queue)
        };
        messages.iter().filter(|(_, one)| is_missing(one)).map(|(number, _)| *number).collect()
    }

    /// Serves clients again after a stop, at a node that leads no more, or at the one that leads now.
    pub fn resume(&self) {
        *self.is_silent.lock() = false;
        match self.is_copied && self.lost_at.lock().is_some() {
            true if self.moved_at.lock().is_none() => self.next_leads(),
            true => {}
            false => self.follower.set_leader(Some(0)),
        }
        self.follower.resume();
        self.last_lead().stop.send(false);
        (*self.stopped_at.lock(), *self.cut_at.lock()) = (None, None);
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
        // Those that come by way of another node are served by tasks of their own.
        while self.places_taken() > 0 {
            assert!(Instant::now() < until, "{} places are taken", self.places_taken());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn places_taken(&self) -> usize {
        let leads = self.leads.lock();
        let brokers = leads.iter().flat_map(|lead| &lead.brokers);
        brokers.map(|led| led.shared.places.taken()).sum::<usize>() + self.follower.places.taken()
    }

    /// Whether a broker that leads holds publishers back.
    pub fn has_alarm(&self) -> bool {
        self.brokers().iter().any(|shared| shared.broker.alarm().is_some())
    }

    /// What is left of connections when all are over.
    pub fn left(&self) -> Option<String> {
        let mut counts = vec![
            ("places at the follower", self.follower.places.taken()),
            ("clients of the follower", self.follower.clients()),
        ];
        let now = self.brokers();
        let all = self.leads.lock().clone();
        for Led { shared, .. } in all.into_iter().flat_map(|lead| lead.brokers) {
            // What comes back to the queues of a node that leads no more stays counted, until its broker is dropped.
            let is_led = now.iter().any(|one| Arc::ptr_eq(one, &shared));
            let admin = shared.broker.admin();
            let uses = admin.memory_uses();
            counts.extend([
                ("places", shared.places.taken()),
                ("paced", shared.paced.load(Relaxed)),
                ("connections", admin.connections(None).map_or(0, |all| all.len())),
                ("bytes of newcomers", uses.newcomers as usize),
                ("bytes of sessions", if is_led { uses.sessions as usize } else { 0 }),
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

async fn serve_here<S: ClientStream>(
    stream: S,
    Newcomer { peer, place, name }: Newcomer,
    (shared, stopping): (Arc<Shared>, watch::Receiver<bool>),
) {
    drop(driver::serve(stream, peer, place, name, shared, stopping).await);
}
