//! The groups of the cluster that this node knows of.

use super::front::Serves;
use super::group::Group;
use super::roster::Roster;
use courser_cluster::GroupNumber;
use courser_cluster::transport::Endpoint;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Groups that a cluster may have.
pub(crate) const GROUPS_MAX: u16 = 64;

/// All groups, the home group among them.
pub(crate) struct Groups {
    home: Arc<Group>,
    /// The others; nothing is known of those for which the system has had no thread yet.
    others: RwLock<BTreeMap<GroupNumber, Option<Arc<Group>>>>,
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
            other => self.others.read().get(&other).cloned().flatten(),
        }
    }

    /// All of them, the home group first, but for those [without a thread](Self::all_and_unknown).
    pub fn all(&self) -> Vec<Arc<Group>> {
        self.all_and_unknown().0
    }

    /// All of them, and the numbers of those in which this node is to have a part, and of which it knows nothing yet. None is
    /// in both, and none in neither.
    pub fn all_and_unknown(&self) -> (Vec<Arc<Group>>, Vec<GroupNumber>) {
        let (mut all, mut unknown) = (vec![Arc::clone(&self.home)], Vec::new());
        for (number, group) in &*self.others.read() {
            match group {
                Some(group) => all.push(Arc::clone(group)),
                None => unknown.push(*number),
            }
        }
        (all, unknown)
    }

    /// Says that there is no thread for a group yet, until it is added.
    pub(super) fn lacks_thread(&self, number: GroupNumber) {
        self.others.write().entry(number).or_default();
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
        self.others.write().entry(group.number).or_default().get_or_insert(group);
    }
}
