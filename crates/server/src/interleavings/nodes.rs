//! The nodes of a cluster: one that leads, one that leads next, and one that passes clients on to the one that it takes for
//! the leader.

use super::led::Led;
use super::signal::Signal;
use super::socket::{Cut, Network, Socket};
use super::world::{PLACES, World};
use crate::cluster::{OtherNodes, Serves, SimulatedFront, Tunnel};
use crate::inside::INSIDE;
use crate::places::{Admission, Places};
use crate::service::Service;
use courser_cluster::NodeId;
use courser_cluster::transport::DialError;
use courser_management::Later;
use courser_store::Log;
use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a node tries to reach another one.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long after that it waits to hear that it is served there.
const SERVED_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a client waits where no node leads.
const NO_LEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a node may take to let go of clients, and of connections over which requests come.
const LET_GO_TIME: Duration = Duration::from_millis(100);

/// Groups of the cluster: home, and the one whose broker serves clients that are redirected.
const GROUPS: u16 = 2;

/// The brokers that a node leads with: the one that all clients come to, and the one that serves those that are redirected.
#[derive(Clone)]
pub(super) struct Lead {
    pub brokers: [Led; 2],
    pub stop: Arc<Signal>,
}

/// What comes to the node that passes clients on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassedOn {
    Amqp,
    /// A client of which another group has the vhost.
    Redirected,
    /// Requests, one of which may be for a WebSocket.
    Http,
}

/// The node that passes clients on.
pub(super) struct Follower {
    pub places: Arc<Places>,
    stop: Signal,
    stopped_at: Mutex<Option<Instant>>,
    /// A front for each client: those that wait for the same change of the leader would be told in an order that no seed determines.
    fronts: Mutex<Vec<SimulatedFront>>,
    /// Which of the nodes that have led leads now, as far as it knows.
    leader: Mutex<Option<usize>>,
    /// Its connections to others.
    tunnels: Mutex<Vec<Cut>>,
}

impl Follower {
    pub fn new() -> Self {
        Follower {
            places: Arc::new(Places::new(PLACES)),
            stop: Signal::new(false),
            stopped_at: Mutex::default(),
            fronts: Mutex::default(),
            leader: Mutex::new(Some(0)),
            tunnels: Mutex::default(),
        }
    }

    /// Takes note of who leads.
    pub fn set_leader(&self, leader: Option<usize>) {
        *self.leader.lock() = leader;
        self.fronts.lock().iter().for_each(|front| tell(front, leader));
    }

    /// Those by which clients are passed on now.
    fn carrying(&self) -> Vec<SimulatedFront> {
        self.fronts.lock().iter().filter(|front| front.clients() > 0).cloned().collect()
    }

    /// Clients that are passed on.
    pub fn clients(&self) -> usize {
        self.fronts.lock().iter().map(SimulatedFront::clients).sum()
    }

    /// Sees that it lets go of the connections that it has to another node, but for those of which it waits to hear that they are
    /// served.
    fn without_tunnels(&self) -> impl Future<Output = ()> + use<> {
        let tunnels = std::mem::take(&mut *self.tunnels.lock());
        async move {
            sleep(SERVED_TIMEOUT + LET_GO_TIME).await;
            let held = tunnels.iter().filter(|tunnel| !tunnel.is_let_go()).count();
            assert_eq!(held, 0, "connections to a node that leads no more are held");
        }
    }

    pub fn stopped_at(&self) -> Option<Instant> {
        *self.stopped_at.lock()
    }

    /// Takes clients again.
    pub fn resume(&self) {
        *self.stopped_at.lock() = None;
        self.stop.send(false);
    }
}

fn tell(front: &SimulatedFront, leader: Option<usize>) {
    for group in 0..front.groups() {
        let node = |leader| NodeId((leader * usize::from(GROUPS)) as u64 + u64::from(group));
        front.set_serves(
            group,
            leader.map_or(Serves::Unknown, |leader| Serves::There(node(leader))),
        );
    }
}

/// Which of the nodes that have led it is, and what it leads.
fn leader_and_group(node: NodeId) -> (usize, u16) {
    let number = node.0 as usize;
    (number / usize::from(GROUPS), (number % usize::from(GROUPS)) as u16)
}

/// How one client's front reaches other nodes.
struct Ways {
    world: Weak<World>,
    network: Network,
    client: String,
}

impl OtherNodes for Ways {
    fn dial(&self, node: NodeId, note: &str) -> Later<io::Result<Tunnel>> {
        let (world, note) = (self.world.upgrade(), note.to_owned());
        let (network, client) = (self.network.clone(), self.client.clone());
        Box::pin(async move {
            world.ok_or(io::ErrorKind::NotConnected)?.dial(node, note, &network, &client).await
        })
    }

    /// The only question is where a vhost is.
    fn ask(&self, _: NodeId, _: String) -> Later<Result<String, DialError>> {
        Box::pin(async { Ok("1".to_owned()) })
    }
}

impl World {
    /// Passes a client on, as a node does that does not lead.
    pub(super) fn pass_on(
        self: &Arc<Self>,
        (socket, network): (Socket, &Network),
        of: PassedOn,
        name: &str,
    ) {
        let follower = &self.follower;
        let groups = if of == PassedOn::Redirected { GROUPS } else { 1 };
        let (world, network) = (Arc::downgrade(self), network.clone());
        let ways = Ways { world, network, client: name.to_owned() };
        let send_timeout = self.brokers()[0].send_timeout;
        let front = SimulatedFront::new(groups, &follower.places, send_timeout, Box::new(ways));
        tell(&front, *follower.leader.lock());
        follower.fronts.lock().push(front.clone());
        let (front, stopping) = (front.front, follower.stop.subscribe());
        let (task, name) = (format!("the relay of {name}"), name.to_owned());
        if of == PassedOn::Http {
            let (peer, local) = (INSIDE.address, INSIDE.address);
            self.spawn(task, front.serve_http(socket, (peer, local), None, stopping));
            return;
        }
        let admission = follower.places.admit(|place| {
            self.spawn(task, front.serve_amqp(socket, INSIDE, place, name, stopping))
        });
        assert_eq!(admission, Admission::Admitted);
    }

    /// Connects the follower to a node that leads, or did.
    async fn dial(
        self: &Arc<Self>,
        node: NodeId,
        note: String,
        network: &Network,
        client: &str,
    ) -> io::Result<Tunnel> {
        let (leader, group) = leader_and_group(node);
        // Both say something twice.
        for _ in 0..4 {
            if self.is_silent(leader) {
                sleep(DIAL_TIMEOUT).await;
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(self.chance.ms(network.latency_ms.clone())).await;
        }
        let (ours, theirs) = network.connect();
        self.follower.tunnels.lock().push(ours.cutter());
        if self.is_silent(leader) {
            ours.cutter().cut();
        }
        let Lead { brokers, stop } = self.lead(leader);
        let shared = &brokers[usize::from(group)].shared;
        let ways = Ways { world: Weak::new(), network: network.clone(), client: String::new() };
        let front =
            SimulatedFront::new(group + 1, &shared.places, shared.send_timeout, Box::new(ways));
        if !brokers[0].store.is_deposed() {
            let service = Service::of(shared, stop.channel());
            front.set_serves(group, Serves::Here(Arc::new(service)));
        }
        self.spawn(format!("the tunnel of {client}"), front.serve_tunnel(note, theirs));
        Ok(Box::new(ours))
    }

    /// Stops the node that passes clients on.
    pub async fn stop_follower(&self) {
        *self.follower.stopped_at.lock() = Some(Instant::now());
        let carried = self.follower.carrying();
        self.follower.stop.send(true);
        let_go(&carried, "a node that has stopped").await;
    }

    /// Has another node lead. Where the one that leads vanishes, it is cut off from the cluster, and known to lead no more after a
    /// while. Where its logs have copies, the next one leads then or later, and it says goodbye to its clients when it knows.
    pub async fn change_leader(self: &Arc<Self>) {
        let vanishes = !self.is_copied || self.chance.one_in(2);
        *self.cut_at.lock() = Some(Instant::now());
        let lead = self.lead(0);
        if vanishes {
            *self.is_silent.lock() = true;
            self.follower.tunnels.lock().iter().for_each(Cut::cut);
            lead.brokers.iter().for_each(|led| led.store.cut_off());
            sleep(self.chance.ms(0..=3000)).await;
        }
        *self.lost_at.lock() = Some(Instant::now());
        for Led { store, .. } in &lead.brokers {
            store.cut_off();
            store.depose();
        }
        let carried = self.follower.carrying();
        self.follower.set_leader(None);
        self.watch("the end of tunnels".into(), self.follower.without_tunnels());
        let is_next_known = !vanishes && self.chance.one_in(2);
        if is_next_known {
            self.next_leads();
        }
        let_go(&carried, "a node that leads no more").await;
        if !self.is_copied {
            return;
        }
        sleep(self.chance.ms(0..=100)).await;
        lead.stop.send(true);
        if !is_next_known && self.chance.one_in(2) {
            sleep(self.chance.ms(0..=3000)).await;
            self.next_leads();
        }
    }

    /// Has the next node lead, with what the last one has committed.
    pub(super) fn next_leads(&self) {
        let brokers = self.led().map(|led| led.next(&self.chance, &self.clock));
        let next = {
            let mut leads = self.leads.lock();
            leads.push(Lead { brokers, stop: Arc::new(Signal::new(false)) });
            leads.len() - 1
        };
        *self.moved_at.lock() = Some(Instant::now());
        self.follower.set_leader(Some(next));
    }

    /// Whether nothing is heard of a node that has led.
    fn is_silent(&self, leader: usize) -> bool {
        leader == 0 && *self.is_silent.lock()
    }

    /// How long a client waits that has come then and is not let in.
    pub fn limit_to_enter(&self, since: Instant) -> Duration {
        let late = match (*self.cut_at.lock(), *self.moved_at.lock()) {
            (None, _) => Duration::ZERO,
            (Some(_), Some(moved_at)) => {
                moved_at.saturating_duration_since(since) + DIAL_TIMEOUT + SERVED_TIMEOUT
            }
            (Some(_), None) => NO_LEADER_TIMEOUT + DIAL_TIMEOUT + SERVED_TIMEOUT,
        };
        self.limit() + late
    }
}

async fn let_go(carried: &[SimulatedFront], by: &str) {
    sleep(LET_GO_TIME).await;
    let count: usize = carried.iter().map(SimulatedFront::clients).sum();
    assert_eq!(count, 0, "clients are still carried by, or to, {by}");
}
