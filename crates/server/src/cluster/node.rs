//! A node: its doors are open from its start to its end; the broker behind them is there while it leads.

use super::answers::{metrics_relay, relay};
use super::front::Front;
use super::group::Group;
use super::groups::{GROUPS_MAX, Groups};
use super::incoming::Switch;
use super::members::Members;
use super::mending;
use super::other_nodes::ByAddress;
use super::reloads;
use super::roster::Roster;
use super::security::MutualTls;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::definitions;
use crate::doors::{Addresses, Doors};
use crate::listener::Inherited;
use crate::notices::{Notices, Reloaded};
use crate::operator_socket::{OperatorSocket, Operators, SocketFile};
use crate::runtime_settings::RuntimeSettings;
use crate::scrub::ScrubThread;
use crate::server::{StartError, Surroundings};
use crate::service::{self, Around, Reloads};
use crate::storage::{Disk, StopError, StoreFailed};
use crate::tls::{Certificates, FromFiles};
use crate::{VERSION, management};
use courser_cluster::forming::{Folder, FolderError};
use courser_cluster::transport::{About, Endpoint, Formation, Incoming, Security, listen};
use courser_cluster::{GroupNumber, Leadership};
use courser_management::Cluster as _;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, RwLock, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// How long a node that stops waits for another one to lead.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long it waits for what it was doing with its log.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A broker that is a node of a cluster. Dropping it ends it without ceremony.
pub struct Node {
    addresses: Addresses,
    certificates: Arc<Certificates>,
    notices: Arc<Notices>,
    pub(super) inner: Arc<Inner>,
    /// Before what it reads.
    scrub: Option<ScrubThread>,
    running: JoinHandle<()>,
    /// Listens for other nodes.
    listening: JoinSet<()>,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<Option<String>>,
    _socket: Option<SocketFile>,
    _data_dir: DataDir,
}

/// What the tasks of a node share.
pub(super) struct Inner {
    pub(super) config: Mutex<Config>,
    pub(super) reloads: Reloads,
    /// Where its data folder is.
    pub(super) disk: Arc<dyn Disk>,
    pub(super) around: Around,
    pub(super) folder: Arc<Folder>,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) groups: Arc<Groups>,
    pub(super) roster: Arc<Roster>,
    pub(super) front: Arc<Front>,
    pub(super) members: Arc<Members>,
    /// Groups that this node is told of.
    pub(super) founded: AsyncMutex<mpsc::Receiver<(GroupNumber, Formation)>>,
    pub(super) ended: watch::Sender<Option<String>>,
    /// Held for reading by what uses the log and blocks.
    pub(super) busy: Arc<RwLock<()>>,
}

impl Node {
    /// Starts a node on the current tokio runtime, on sockets that the system listens on already where there are any. It
    /// takes clients at once, who wait for the cluster to be there.
    ///
    /// # Errors
    /// Why there is no node.
    pub async fn start_on(config: Config, inherited: Inherited) -> Result<Node, StartError> {
        Self::begin(config, inherited, Surroundings::default()).await
    }

    /// As [`Node::start_on`], with a clock or a disk other than the machine's.
    ///
    /// # Errors
    /// Why there is no node.
    pub async fn start_within(
        config: Config,
        surroundings: Surroundings,
    ) -> Result<Node, StartError> {
        Self::begin(config, Inherited::default(), surroundings).await
    }

    async fn begin(
        config: Config,
        inherited: Inherited,
        surroundings: Surroundings,
    ) -> Result<Node, StartError> {
        let Surroundings { clock, disk } = surroundings;
        let disk = disk.unwrap_or_else(|| config.disk());
        config.check_values()?;
        definitions::check(&config.management)?;
        let _data_dir = DataDir::open(&config.data_dir, &*disk)?;
        let doors = Doors::bind(&config, inherited)?;
        let elsewhere = service::elsewhere(&config, doors.questions())?;
        config.limits.warn_of_memory();
        config.management.open_audit_log(&config.data_dir, config.file_mode())?;
        let socket = OperatorSocket::bind(&config);
        let name = management::node_name(&config);
        let (data_dir, own_disk) = (&config.data_dir, Arc::clone(&disk));
        let folder = Arc::new(Folder::open(data_dir, own_disk, &config.cluster.name, &name)?);
        let security = MutualTls::load(&config.cluster)?;
        let (endpoint, listener) = open_endpoint(&config, &folder, name, security.clone()).await?;
        let roster = Roster::start(Arc::clone(&folder), Arc::clone(&endpoint));
        let home = Group::start(GroupNumber::HOME, &endpoint, &roster);
        let groups = Groups::new(home.map_err(StartError::GroupThread)?);
        let notices = Arc::new(Notices::new(clock.clone()));
        let own = Arc::clone(&endpoint);
        let others =
            Box::new(ByAddress { endpoint: Arc::clone(&own), roster: Arc::clone(&roster) });
        let places = (doors.places(&config), doors.open_files());
        let front = Front::new(places, config.send_timeout(), own, others, &groups, &notices);
        let (tell, founded) = mpsc::channel(GROUPS_MAX.into());
        let runtime = RuntimeSettings::new(&config, &clock);
        let wanted = config.cluster.groups;
        let members = Members::new(&front, &roster, wanted, tell, (&notices, &runtime));
        front.set_relays(relay(&config, &members), metrics_relay(&config, &members));
        let journals = mending::journals(&members);
        let days = config.journal.scrub_days;
        let scrub = ScrubThread::start(journals, days, &clock, &notices);
        scrub.iter().for_each(|scrub| drop(members.scrub.set(scrub.scrubber())));
        let (stop, stopping) = watch::channel(false);
        let (sender, ended) = watch::channel(None);
        let addresses = doors.addresses();
        let security = security.map(|security| security as Arc<dyn FromFiles>);
        let certificates = doors.certificates().into_iter().chain(security).collect();
        let certificates = Certificates::new(certificates, &notices);
        let around = Around {
            clock,
            notices: Arc::clone(&notices),
            runtime,
            places: Arc::clone(&front.places),
            handshakes: doors.handshakes(),
            addresses: addresses.clone(),
            certificates: Arc::clone(&certificates),
            elsewhere,
            scrub: None,
            cluster: Some(Arc::clone(&members) as _),
            front: Arc::downgrade(&front),
            ledger: Arc::default(),
        };
        let inner = Inner {
            config: Mutex::new(config),
            reloads: Reloads::default(),
            disk,
            around,
            folder,
            endpoint,
            groups,
            roster,
            front,
            members,
            founded: AsyncMutex::new(founded),
            ended: sender,
            busy: Arc::default(),
        };
        let inner = Arc::new(inner);
        certificates.watch(stopping.clone());
        let mut listening = JoinSet::new();
        let switch: Arc<dyn Incoming> = Arc::new(inner.switch());
        listening.spawn(listen(listener, Arc::clone(&inner.endpoint), switch));
        doors.open_node(&inner.front, &stopping)?;
        let _socket = socket.map(|socket| {
            socket.serve(Operators::Node(Arc::clone(&inner.front)), stopping.clone())
        });
        let running = tokio::spawn(Arc::clone(&inner).run(stopping));
        Ok(Node {
            addresses,
            certificates,
            notices,
            inner,
            scrub,
            running,
            listening,
            stop,
            ended,
            _socket,
            _data_dir,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.inner.endpoint.about().name
    }

    /// Where other nodes reach it, as far as it knows.
    pub fn address(&self) -> String {
        self.inner.endpoint.about().address
    }

    /// The cluster as this node sees it: its members, who leads, how far they are.
    pub fn status(&self) -> serde_json::Value {
        self.inner.members.status()
    }

    /// Takes the node at an address into the cluster, if this one leads. It votes when it has caught up.
    ///
    /// # Errors
    /// Why it can't be.
    pub async fn add(&self, address: &str) -> Result<(), String> {
        let (members, address) = (Arc::clone(&self.inner.members), address.to_owned());
        let adding = tokio::task::spawn_blocking(move || members.add(&address)).await;
        let added = adding.map_err(|error| error.to_string())?;
        added.map(drop).map_err(|error| error.to_string())
    }

    /// Takes over what can change while the node runs, if it leads: see
    /// [`Server::reload`](crate::Server::reload). Otherwise it counts when it does: whether the vhosts of policies are there
    /// is not known before.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub async fn reload(&self, config: &Config) -> Result<(), StartError> {
        self.certificates.reload();
        config.check_values()?;
        let turn = Arc::clone(&self.inner.reloads).lock_owned().await;
        let management = config.management.clone();
        let checking = tokio::task::spawn_blocking(move || definitions::check(&management));
        checking.await.map_err(|error| StartError::Reload(error.into()))??;
        let (inner, config) = (Arc::downgrade(&self.inner), config.clone());
        service::in_turn(turn, move || reloads::take_over(&inner, &config)).await
    }

    /// Has operators see what came of reading the settings again, as far as it needs their attention.
    pub fn note_reload(&self, reloaded: Reloaded) {
        self.notices.reloaded(reloaded);
    }

    /// Waits until the node can't go on, and says why: its disk has failed, or its copy is damaged.
    pub async fn failed(&self) -> StoreFailed {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => StoreFailed { reason: reason.clone().unwrap_or_default() },
            Err(_) => std::future::pending().await,
        }
    }

    /// Has another node lead, says goodbye to clients, and makes everything durable.
    ///
    /// # Errors
    /// When the log has failed.
    pub async fn stop(mut self) -> Result<(), StopError> {
        let scrub = self.scrub;
        scrub.iter().for_each(ScrubThread::stop);
        self.inner.hand_over().await;
        // An error means that no receiver is left.
        let _ = self.stop.send(true);
        self.running.await.map_err(StopError::Panicked)?;
        // A node that is started next may listen there.
        self.listening.shutdown().await;
        // It may be reading what is closed below.
        tokio::task::spawn_blocking(move || drop(scrub)).await.map_err(StopError::Panicked)?;
        let mut closed = Ok(());
        for group in self.inner.groups.all() {
            let Some(member) = group.set_member(None) else { continue };
            let closing = tokio::task::spawn_blocking(move || member.close());
            closed = closed.and(closing.await.map_err(StopError::Panicked)?);
        }
        // What was under way when the node was stopped still has the log. The process may end without it; another node in the
        // same process could not open the log.
        let done = tokio::time::timeout(BUSY_TIMEOUT, self.inner.busy.write()).await;
        if done.is_err() {
            tracing::warn!("the node ends while its log is still being read");
        }
        closed.map_err(|reason| StoreFailed { reason }.into())
    }
}

/// What this node says of itself, and where it listens for others.
async fn open_endpoint(
    config: &Config,
    folder: &Folder,
    name: String,
    security: Option<Arc<MutualTls>>,
) -> Result<(Arc<Endpoint>, TcpListener), StartError> {
    let settings = &config.cluster;
    let secret = settings.read_secret()?;
    if settings.is_open_to_all() {
        tracing::warn!(
            address = settings.listen,
            "any user of this machine can connect as a node, and may do what its operator may: set cluster.secret"
        );
    }
    let listener = TcpListener::bind(&settings.listen).await;
    let listener = listener
        .map_err(|error| StartError::ClusterListen { address: settings.listen.clone(), error })?;
    let about = About {
        cluster: settings.name.clone(),
        node: folder.node(),
        process: Some(getrandom::u64().map_err(FolderError::Random)?),
        name,
        address: settings.address().to_owned(),
        version: VERSION.to_owned(),
        segment_bytes: config.journal.segment_bytes,
        seed: folder.seed(),
        formation: folder.formation(),
        has_data: folder.is_alone()?,
        known: folder.known(),
    };
    let security = security.map(|security| security as Arc<dyn Security>);
    Ok((Endpoint::new(about, secret, security), listener))
}

impl Inner {
    fn switch(&self) -> Switch {
        Switch {
            roster: Arc::clone(&self.roster),
            front: Arc::clone(&self.front),
            members: Arc::clone(&self.members),
            groups: Arc::clone(&self.groups),
        }
    }

    pub(super) fn config(&self) -> Config {
        self.config.lock().clone()
    }

    /// Has other nodes lead before this one ends, if they can. It takes no lead that it is offered from then on.
    pub(super) async fn hand_over(self: &Arc<Self>) {
        self.members.is_ending.store(true, Ordering::Relaxed);
        let mut handing = JoinSet::new();
        for group in self.groups.all() {
            handing.spawn(Arc::clone(self).hand_over_one(group));
        }
        handing.join_all().await;
    }

    async fn hand_over_one(self: Arc<Self>, group: Arc<Group>) {
        let Some(member) = group.member() else { return };
        let mut leadership = member.leadership();
        if !matches!(*leadership.borrow(), Leadership::Serving { .. }) {
            return;
        }
        let Some(next) = self.members.successor(group.number, &member.status()).await else {
            return;
        };
        let handing = Arc::clone(&member);
        let handed = tokio::task::spawn_blocking(move || handing.transfer_to(next)).await;
        if matches!(handed, Ok(Ok(()))) {
            let follows = |now: &Leadership| !matches!(now, Leadership::Serving { .. });
            // If it takes too long, the others elect one.
            let _ = tokio::time::timeout(HAND_OVER_TIMEOUT, leadership.wait_for(follows)).await;
        }
    }
}
