//! The groups of the cluster that this node knows of.

use super::front::Serves;
use super::group::Group;
use super::roster::Roster;
use courser_cluster::GroupNumber;
use courser_cluster::transport::Endpoint;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Groups that a cluster may have.
pub(crate) const GROUPS_MAX: u16 = 64;

/// All groups, the home group among them.
pub(crate) struct Groups {
    home: Arc<Group>,
    others: RwLock<BTreeMap<GroupNumber, Arc<Group>>>,
    /// Those for which the system has had no thread yet.
    without_thread: RwLock<BTreeSet<GroupNumber>>,
    /// The system has no thread for another one while this is set.
    #[cfg(test)]
    pub(super) has_no_threads: std::sync::atomic::AtomicBool,
}

impl Groups {
    /// The home group alone.
    pub fn new(home: Arc<Group>) -> Arc<Self> {
        Arc::new(Groups {
            home,
            others: RwLock::default(),
            without_thread: RwLock::default(),
            #[cfg(test)]
            has_no_threads: Default::default(),
        })
    }

    /// Another one, in which this node has no part yet.
    ///
    /// # Errors
    /// As [`Group::start`].
    pub(super) fn start(
        &self,
        number: GroupNumber,
        endpoint: &Arc<Endpoint>,
        roster: &Arc<Roster>,
    ) -> io::Result<Arc<Group>> {
        #[cfg(test)]
        if self.has_no_threads.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Group::start(number, endpoint, roster)
    }

    /// The group that every cluster has.
    pub fn home(&self) -> &Arc<Group> {
        &self.home
    }

    /// A group, by its number.
    pub fn get(&self, number: GroupNumber) -> Option<Arc<Group>> {
        match number {
            GroupNumber::HOME => Some(Arc::clone(&self.home)),
            other => self.others.read().get(&other).cloned(),
        }
    }

    /// All of them, the home group first, but for those [without a thread](Self::without_thread).
    pub fn all(&self) -> Vec<Arc<Group>> {
        let others = self.others.read();
        std::iter::once(&self.home).chain(others.values()).cloned().collect()
    }

    /// Says that there is no thread for a group yet, until it is added.
    pub(super) fn lacks_thread(&self, number: GroupNumber) {
        self.without_thread.write().insert(number);
    }

    /// Groups in which this node is to have a part, and of which it knows nothing yet.
    pub fn without_thread(&self) -> Vec<GroupNumber> {
        self.without_thread.read().iter().copied().collect()
    }

    /// Whether there are others than the home group.
    pub fn are_several(&self) -> bool {
        !self.others.read().is_empty()
    }

    /// Whether other nodes lead all groups.
    pub fn are_led_elsewhere(&self) -> bool {
        self.all().iter().all(|group| matches!(group.serves(), Serves::There(_)))
    }

    /// Adds a group, unless it is there.
    pub(super) fn add(&self, group: Arc<Group>) {
        let number = group.number;
        self.others.write().entry(number).or_insert(group);
        self.without_thread.write().remove(&number);
    }
}
