//! Who and where the other nodes are: what they have said of themselves, and of each other.

use courser_cluster::NodeId;
use courser_cluster::forming::{Folder, FolderError};
use courser_cluster::transport::{About, Endpoint, Links, Node};
use parking_lot::Mutex;
use std::collections::BTreeMap;
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
    /// The versions of those that were met since this node has started.
    versions: Mutex<BTreeMap<NodeId, String>>,
}

impl Roster {
    /// The nodes that `folder` has, and those that are heard of from now on.
    pub fn start(folder: Arc<Folder>, endpoint: Arc<Endpoint>) -> Arc<Self> {
        let (heard, hearing) = mpsc::channel(WAITING_MAX);
        let roster = Arc::new(Roster { folder, endpoint, heard, versions: Mutex::default() });
        roster.tell();
        tokio::spawn(keep(Arc::downgrade(&roster), hearing));
        roster
    }

    /// Takes note of a node that was met, and of those that it knows.
    pub fn met(&self, other: &About) {
        self.versions.lock().insert(other.node, other.version.clone());
        let others = other.known.iter().map(|node| (node.clone(), false));
        for heard in std::iter::once((other.node(), true)).chain(others) {
            // Said again at the next connection.
            let _ = self.heard.try_send(heard);
        }
    }

    /// Keeps where a node is, as [`Folder::learn`] does. Blocks until that is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn learn(&self, node: &Node, is_first_hand: bool) -> Result<(), FolderError> {
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
        let strangers = self.folder.known().iter().filter(|node| !is_member(node.id)).count();
        if strangers <= STRANGERS_MAX {
            return;
        }
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
    use std::time::Duration;

    fn node(number: u64) -> Node {
        let address = format!("n{number}:1");
        Node { id: NodeId(number), name: format!("n{number}"), address }
    }

    #[test]
    fn all_that_is_kept_is_told_when_two_threads_learn_at_once() {
        let data_dir = tempfile::tempdir().expect("a folder");
        let disk = Config::default().disk();
        let folder = Folder::open(data_dir.path(), disk, "test", "a");
        let folder = Arc::new(folder.expect("an empty folder"));
        let endpoint = endpoint(folder.node(), "a", "a:1");
        let (heard, _) = mpsc::channel(1);
        let roster = Roster { folder, endpoint, heard, versions: Mutex::default() };
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
