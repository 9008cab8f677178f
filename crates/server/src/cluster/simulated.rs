//! For the simulator: the front of a node that has nothing else, and that reaches others by connections of the simulator's.

use super::front::{Front, Serves};
use super::group::Group;
use super::groups::Groups;
use super::other_nodes::OtherNodes;
use crate::clock::Clock;
use crate::driver::ClientStream;
use crate::notices::Notices;
use crate::open_files::OpenFiles;
use crate::places::Places;
use crate::testing::endpoint;
use courser_cluster::transport::Links;
use courser_cluster::{GroupNumber, GroupThread, NodeId};
use courser_management::Relay;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The thread that groups have, of which none has anything to do.
static THREAD: OnceLock<Arc<GroupThread>> = OnceLock::new();

/// A front, and the groups that its node knows.
#[derive(Clone)]
pub(crate) struct SimulatedFront {
    pub front: Arc<Front>,
    groups: Vec<Arc<Group>>,
}

impl SimulatedFront {
    /// One of a node that knows so many groups.
    pub fn new(
        groups: u16,
        places: &Arc<Places>,
        send_timeout: Option<Duration>,
        others: Box<dyn OtherNodes>,
    ) -> Self {
        let own = endpoint(NodeId(u64::MAX), "a", "a:1");
        let thread = THREAD.get_or_init(|| Arc::new(GroupThread::start().expect("a thread")));
        let group = |number| {
            let runtime = thread.handle().clone();
            let links = Links::new(Arc::clone(&own), GroupNumber(number), runtime, |_| {});
            Group::on(GroupNumber(number), Arc::clone(thread), links)
        };
        let groups: Vec<Arc<Group>> = (0..groups).map(group).collect();
        let all = Groups::new(Arc::clone(&groups[0]));
        groups.iter().skip(1).for_each(|group| all.add(Arc::clone(group)));
        let places = (Arc::clone(places), OpenFiles::measure());
        let notices = Arc::new(Notices::new(Clock::system()));
        let front = Front::new(places, send_timeout, own, others, &all, &notices);
        front.set_relays(Relay::new(|_, _| None), Relay::of_own(|_, _| None));
        SimulatedFront { front, groups }
    }

    /// Says who serves what is in a group from now on.
    pub fn set_serves(&self, group: u16, serves: Serves) {
        self.groups[usize::from(group)].set_serves(serves);
    }

    /// How many groups its node knows.
    pub fn groups(&self) -> u16 {
        self.groups.len() as u16
    }

    /// Clients that are passed on.
    pub fn clients(&self) -> usize {
        self.front.clients.count()
    }

    /// Takes a connection of another node.
    pub async fn serve_tunnel<S: ClientStream>(self, note: String, stream: S) {
        let note = serde_json::from_str(&note).expect("a note");
        self.front.serve_tunnel(note, stream).await;
    }
}
