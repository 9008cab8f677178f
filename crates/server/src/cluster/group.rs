//! One group of the cluster, as this node takes part in it.

use super::front::Serves;
use super::roster::Roster;
use super::succession::HandOvers;
use crate::clock;
use arc_swap::ArcSwapOption;
use courser_cluster::transport::{Endpoint, Links};
use courser_cluster::{GroupNumber, GroupThread, Member, NodeId, Status};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

/// How far behind a node may be that is about to vote. Two looks at a group lie further apart when other nodes are silent.
const RECENT: Duration = Duration::from_secs(5);

/// A group: its part of the consensus, the connections on which its packets go, and who serves what is in it.
pub(crate) struct Group {
    pub number: GroupNumber,
    pub(super) thread: Arc<GroupThread>,
    pub(super) links: Arc<Links>,
    /// There is none while this node needs a copy of the log.
    member: ArcSwapOption<Member>,
    /// Told when `member` is that no more. Who sends copies of the log of one listens until it has let go of that.
    sent: watch::Sender<()>,
    /// The copies that are sent, by the nodes that take them: changes when a node has asked for another one.
    copies: Mutex<BTreeMap<NodeId, Weak<watch::Sender<bool>>>>,
    serves: watch::Sender<Serves>,
    /// Up to which entry it was committed when this was asked for the last time, and when that was.
    committed: Mutex<Option<(u64, Instant)>>,
    /// Since when no node is known that serves what is in it.
    unserved_since: Mutex<Option<Instant>>,
    /// When this node hands the lead over that it would rather not have.
    pub(super) hand_overs: HandOvers,
    /// Held while its broker adopts the definitions of home.
    pub(super) adopting: AsyncMutex<()>,
    /// Held while what this node has served it with is let go of.
    ending: Arc<AsyncMutex<()>>,
}

impl Group {
    /// A group that this node has no part in yet.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(
        number: GroupNumber,
        endpoint: &Arc<Endpoint>,
        roster: &Arc<Roster>,
    ) -> io::Result<Arc<Self>> {
        let thread = Arc::new(GroupThread::start()?);
        let (met, runtime) = (Arc::clone(roster), thread.handle().clone());
        let links = Links::new(Arc::clone(endpoint), number, runtime, move |about| met.met(about));
        Ok(Self::on(number, thread, links))
    }

    /// One on a thread that there is.
    pub(super) fn on(
        number: GroupNumber,
        thread: Arc<GroupThread>,
        links: Arc<Links>,
    ) -> Arc<Self> {
        let (member, serves) = (ArcSwapOption::empty(), watch::Sender::new(Serves::Unknown));
        let (adopting, ending, sent) =
            (AsyncMutex::new(()), Arc::default(), watch::Sender::new(()));
        let (unserved_since, copies) = (Mutex::new(Some(clock::now())), Mutex::default());
        let (committed, hand_overs) = (Mutex::default(), HandOvers::default());
        Arc::new(Group {
            number,
            thread,
            links,
            member,
            sent,
            copies,
            serves,
            committed,
            unserved_since,
            hand_overs,
            adopting,
            ending,
        })
    }

    /// Whether it is the group that every cluster has.
    pub fn is_home(&self) -> bool {
        self.number == GroupNumber::HOME
    }

    /// Its consensus on this node, while it runs.
    pub fn member(&self) -> Option<Arc<Member>> {
        self.member.load_full()
    }

    pub(super) fn set_member(&self, member: Option<Arc<Member>>) -> Option<Arc<Member>> {
        let before = self.member.swap(member);
        if before.is_some() {
            self.sent.send_replace(());
        }
        before
    }

    /// To be asked for before the member whose log is sent, and held as long as the log is: it changes when that is to end.
    pub(super) fn begin_sending(&self) -> watch::Receiver<()> {
        self.sent.subscribe()
    }

    /// Begins a copy for a node, to be held as long as something is kept for it; it is told when the node asks for another one. There
    /// is none while something is kept for the copy before, which ends now: what it has kept is freed before the next one begins.
    pub(super) fn begin_copy(&self, to: NodeId) -> Option<Arc<watch::Sender<bool>>> {
        let mut copies = self.copies.lock();
        if let Some(before) = copies.get(&to).and_then(Weak::upgrade) {
            before.send_replace(true);
            return None;
        }
        let copy = Arc::new(watch::Sender::new(false));
        copies.insert(to, Arc::downgrade(&copy));
        Some(copy)
    }

    /// Waits until no copy is sent any more, when it has no member.
    pub(super) async fn nothing_sent(&self) {
        self.sent.closed().await;
    }

    /// How its consensus does, while it runs.
    pub fn status(&self) -> Option<Status> {
        self.member.load().as_ref().map(|member| member.status())
    }

    /// Up to which entry it was committed when this was called before, unless that is long ago: [`u64::MAX`] then. Keeps up to
    /// which it is committed `now`.
    pub(super) fn committed_before(&self, committed: u64, now: Instant) -> u64 {
        let before = self.committed.lock().replace((committed, now));
        let recent = before.filter(|(_, at)| now.duration_since(*at) <= RECENT);
        recent.map_or(u64::MAX, |(committed, _)| committed)
    }

    /// Who serves what is in it.
    pub fn serves(&self) -> Serves {
        self.serves.borrow().clone()
    }

    /// Who serves what is in it, as that changes.
    pub fn watch_serves(&self) -> watch::Receiver<Serves> {
        self.serves.subscribe()
    }

    /// Says who serves from now on.
    pub(super) fn set_serves(&self, serves: Serves) {
        self.note_served(!matches!(serves, Serves::Unknown), clock::now());
        self.serves.send_replace(serves);
    }

    /// Notes at a moment whether a node is known that serves what is in it.
    pub(super) fn note_served(&self, is_served: bool, now: Instant) {
        let mut since = self.unserved_since.lock();
        *since = (!is_served).then(|| since.unwrap_or(now));
    }

    /// For how long no node has been known that serves what is in it: for no time if one is.
    pub(super) fn unserved_for(&self) -> Duration {
        self.unserved_since.lock().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// What this node has served it with is let go of until this is dropped.
    pub(super) async fn begin_ending(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.ending).lock_owned().await
    }

    /// Waits until nothing that this node has served it with has its log any more.
    pub(super) async fn ended(&self) {
        drop(self.ending.lock().await);
    }

    /// The node that leads it, if this one knows.
    pub fn leader(&self, own: NodeId) -> Option<NodeId> {
        match &*self.serves.borrow() {
            Serves::Unknown => None,
            Serves::There(node) => Some(*node),
            Serves::Here(_) => Some(own),
        }
    }

    /// Waits until a node does not lead it any more.
    pub async fn serves_no_more(&self, node: NodeId) {
        let mut serves = self.serves.subscribe();
        let is_other = |now: &Serves| !matches!(now, Serves::There(there) if *there == node);
        // Without a sender, this node has ended.
        let _ = serves.wait_for(is_other).await;
    }
}
