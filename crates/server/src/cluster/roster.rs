//! Who and where the other nodes are: what they have said of themselves, and of each other.

use courser_cluster::NodeId;
use courser_cluster::forming::{Folder, FolderError};
use courser_cluster::transport::{About, Endpoint, Links, Node};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What waits to be kept; what comes beyond is said again at the next connection.
const WAITING_MAX: usize = 256;

/// Nodes that are no members, and are remembered all the same: one may just be on its way to be a member.
const STRANGERS_MAX: usize = 16;

/// The nodes that this one knows of.
pub(super) struct Roster {
    folder: Arc<Folder>,
    endpoint: Arc<Endpoint>,
    heard: mpsc::Sender<(Node, bool)>,
    /// Those that were removed and forgotten: others that still know them would teach them to this node again, and it to others.
    forgotten: Mutex<BTreeSet<NodeId>>,
    /// The versions of those that were met since this node has started.
    versions: Mutex<BTreeMap<NodeId, String>>,
}

impl Roster {
    /// The nodes that `folder` has, and those that are heard of from now on.
    pub fn start(folder: Arc<Folder>, endpoint: Arc<Endpoint>) -> Arc<Self> {
        let (heard, hearing) = mpsc::channel(WAITING_MAX);
        let roster = Arc::new(Roster {
            folder,
            endpoint,
            heard,
            forgotten: Mutex::default(),
            versions: Mutex::default(),
        });
        roster.tell();
        tokio::spawn(keep(Arc::downgrade(&roster), hearing));
        roster
    }

    /// Takes note of a node that was met, and of those that it knows.
    pub fn met(&self, other: &About) {
        self.versions.lock().insert(other.node, other.version.clone());
        let others = other.known.iter().map(|node| (node.clone(), false));
        // A node in no cluster that has a member's number may have a copy of its data folder: it counts as what others say.
        let is_first_hand = other.formation.is_some() || self.endpoint.about().formation.is_none();
        for heard in std::iter::once((other.node(), is_first_hand)).chain(others) {
            // Said again at the next connection.
            let _ = self.heard.try_send(heard);
        }
    }

    /// Keeps where a node is, as [`Folder::learn`] does, unless it is one that was forgotten and only others say it. Blocks until
    /// that is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn learn(&self, node: &Node, is_first_hand: bool) -> Result<(), FolderError> {
        if !is_first_hand && self.forgotten.lock().contains(&node.id) {
            return Ok(());
        }
        if self.folder.learn(node, is_first_hand)? {
            self.tell();
        }
        Ok(())
    }

    /// A node, by its number.
    pub fn node(&self, id: NodeId) -> Option<Node> {
        let own = self.endpoint.about();
        if own.node == id {
            return Some(own.node());
        }
        self.folder.known().into_iter().find(|node| node.id == id)
    }

    /// The version of a node's build, if it was met.
    pub fn version(&self, id: NodeId) -> Option<String> {
        let own = self.endpoint.about();
        if own.node == id {
            return Some(own.version);
        }
        self.versions.lock().get(&id).cloned()
    }

    /// The others.
    pub fn others(&self) -> Vec<Node> {
        self.folder.known()
    }

    /// Forgets those that are no members when there are many of them: each folder that is lost leaves one. Blocks until that
    /// is on the disk.
    pub fn forget_strangers(&self, is_member: impl Fn(NodeId) -> bool) {
        let known = self.folder.known().into_iter().map(|node| node.id);
        let strangers: Vec<NodeId> = known.filter(|node| !is_member(*node)).collect();
        let mut forgotten = self.forgotten.lock();
        forgotten.retain(|node| !is_member(*node));
        if strangers.len() <= STRANGERS_MAX {
            return;
        }
        forgotten.extend(strangers);
        drop(forgotten);
        self.versions.lock().retain(|node, _| is_member(*node));
        match self.folder.forget(|node| !is_member(node)) {
            Ok(()) => self.tell(),
            Err(error) => tracing::error!(%error, "nodes that were removed can't be forgotten"),
        }
    }

    /// Has connections to those others that `wanted` says.
    pub fn connect(&self, links: &Links, wanted: impl Fn(NodeId) -> bool) {
        let own = self.folder.node();
        links.retain(&wanted);
        for node in self.folder.known() {
            if node.id != own && wanted(node.id) {
                links.set_address(node.id, &node.address);
            }
        }
    }

    /// Says which nodes this one knows, to all that it meets from now on.
    fn tell(&self) {
        // Read under the lock: of two that tell at once, the later one says what both have learnt.
        self.endpoint.change(|about| about.known = self.folder.known());
    }
}

/// Keeps what is heard; the disk is not waited for where it is heard.
async fn keep(roster: std::sync::Weak<Roster>, mut hearing: mpsc::Receiver<(Node, bool)>) {
    while let Some((node, is_first_hand)) = hearing.recv().await {
        let Some(roster) = roster.upgrade() else { return };
        let keeping = tokio::task::spawn_blocking(move || {
            if let Err(error) = roster.learn(&node, is_first_hand) {
                tracing::error!(%error, "what is known of a node can't be kept");
            }
        });
        if keeping.await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::testing::endpoint;
    use courser_cluster::transport::Formation;
    use std::time::Duration;

    fn node(number: u64) -> Node {
        let address = format!("n{number}:1");
        Node { id: NodeId(number), name: format!("n{number}"), address }
    }

    /// One of a node that knows no others, and what is to be kept of those that it meets.
    fn roster() -> (tempfile::TempDir, Roster, mpsc::Receiver<(Node, bool)>) {
        let data_dir = tempfile::tempdir().expect("a folder");
        let disk = Config::default().disk();
        let folder = Folder::open(data_dir.path(), disk, "test", "a");
        let folder = Arc::new(folder.expect("an empty folder"));
        let endpoint = endpoint(folder.node(), "a", "a:1");
        let (heard, hearing) = mpsc::channel(WAITING_MAX);
        let (forgotten, versions) = (Mutex::default(), Mutex::default());
        (data_dir, Roster { folder, endpoint, heard, forgotten, versions }, hearing)
    }

    #[test]
    fn nodes_that_were_forgotten_are_not_taught_again_by_others_unless_they_are_members() {
        let (_data_dir, roster, _hearing) = roster();
        let gone: Vec<Node> = (1..=STRANGERS_MAX as u64 + 1).map(node).collect();
        gone.iter().for_each(|one| roster.learn(one, true).expect("kept"));
        roster.forget_strangers(|_| false);
        assert_eq!(roster.others(), []);
        // Another node has not forgotten them yet.
        gone.iter().for_each(|one| roster.learn(one, false).expect("nothing to keep"));
        assert_eq!(roster.others(), []);
        // One is there after all, and another one was added again.
        roster.learn(&node(1), true).expect("kept");
        roster.forget_strangers(|id| id == NodeId(2));
        gone.iter().for_each(|one| roster.learn(one, false).expect("kept"));
        assert_eq!(roster.others(), [node(1), node(2)]);
    }

    #[test]
    fn a_node_in_no_cluster_does_not_say_where_a_member_of_its_number_is() {
        let (_data_dir, roster, mut hearing) = roster();
        let mut counts = |own: Option<&Formation>, other: Option<&Formation>| {
            roster.endpoint.change(|about| about.formation = own.cloned());
            let copied = endpoint(NodeId(1), "copied", "c:1").about();
            roster.met(&About { formation: other.cloned(), ..copied });
            hearing.try_recv().expect("it was met").1
        };
        let founders = vec![NodeId(1)];
        let formed = Formation { group: 7, segment_bytes: 1 << 20, founders, recovery: None };
        assert!(counts(None, None), "they are about to form one");
        assert!(counts(Some(&formed), Some(&formed)), "a member is somewhere else now");
        assert!(!counts(Some(&formed), None), "it may be a copy of the member's data folder");
    }

    #[test]
    fn all_that_is_kept_is_told_when_two_threads_learn_at_once() {
        let (_data_dir, roster, _hearing) = roster();
        std::thread::scope(|scope| {
            roster.endpoint.change(|_| {
                scope.spawn(|| roster.learn(&node(1), true).expect("kept"));
                while roster.folder.known().is_empty() {
                    std::thread::yield_now();
                }
                // So that it is most likely about to tell.
                std::thread::sleep(Duration::from_millis(50));
                roster.folder.learn(&node(2), true).expect("kept");
            });
        });
        assert_eq!(roster.endpoint.about().known, [node(1), node(2)]);
    }
}
