//! A cluster of one, made of what one member has: for the day on which the others are lost.
//!
//! The log of each group stays as it is. Beside it is kept that this node is the only member, as of the last entry; and the
//! folder says that the cluster is another one from now on, so that members of before have no part in it.
//!
//! The folder says first that a recovery was begun: until it is complete, the node does not start. Then come the groups, home
//! last; then the folder says that it is done. So whenever it is interrupted, it can be repeated, and comes to the same.

use super::FolderError;
use super::folder::{check, copy_dir, is_alone, numbered};
use super::kept::{Kept, read, write};
use crate::transport::{Formation, Node, Recovery};
use crate::{GroupNumber, Members, NodeId};
use courser_journal::replica::{Contents, Replica, ReplicaError, Vote, is_copy};
use courser_journal::{Disk, Failure, Options};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why nothing can be recovered from a node's copies.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The folder can't be read or written, or is none of this node.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The folder is that of no member.
    #[error("data folder {0} is not that of a member of a cluster: there is nothing to recover")]
    NoMember(PathBuf),
    /// The node was added, and never had a whole copy.
    #[error("{0} has no copy of the cluster's log: recover from another node")]
    NoCopy(PathBuf),
    /// A copy can't be used.
    #[error("the copy of group {group} can't be used: {error}")]
    Copy {
        /// The group.
        group: GroupNumber,
        /// What is wrong.
        error: ReplicaError,
    },
    /// A group can't be left out.
    #[error("group {group} can't be left out: {why}")]
    Kept {
        /// The group.
        group: GroupNumber,
        /// Why.
        why: &'static str,
    },
    /// It can't be kept who the members are.
    #[error("the copy of group {group} can't be written to: {failure}")]
    Write {
        /// The group.
        group: GroupNumber,
        /// What the disk said.
        failure: Failure,
    },
}

/// What a node has of a group.
pub struct GroupCopy {
    /// Where it is.
    pub dir: PathBuf,
    /// What is in it.
    pub contents: Contents,
    /// Who the members were, as far as this one knows.
    pub members: Members,
}

/// The folder of a member that is stopped.
pub struct Survivor {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    kept: Kept,
    formation: Formation,
    groups: BTreeSet<GroupNumber>,
    left_out: BTreeSet<GroupNumber>,
}

impl Survivor {
    /// Reads the folder of this node of this cluster, which the caller keeps others out of. Changes nothing.
    ///
    /// # Errors
    /// When it is not that of a member.
    pub fn open(
        dir: &Path,
        disk: Arc<dyn Disk>,
        cluster: &str,
        name: &str,
    ) -> Result<Self, RecoverError> {
        let no_member = || RecoverError::NoMember(dir.to_owned());
        let kept = read(dir, &*disk)?.ok_or_else(no_member)?;
        let alone = is_alone(dir, &*disk)?;
        check(dir, &kept, alone, cluster, name)?;
        let formation = kept.formation.clone().filter(|_| !alone).ok_or_else(no_member)?;
        let mut groups: BTreeSet<_> = kept.groups.keys().copied().collect();
        groups.insert(GroupNumber::HOME);
        for group in numbered(dir, &*disk)? {
            if is_founded(&copy_dir(dir, &*disk, group)?, &disk)? {
                groups.insert(group);
            }
        }
        let left_out = BTreeSet::new();
        Ok(Survivor { dir: dir.to_owned(), disk, kept, formation, groups, left_out })
    }

    /// The number of this node.
    pub fn node(&self) -> NodeId {
        self.kept.node
    }

    /// The cluster as it is before the recovery.
    pub fn formation(&self) -> &Formation {
        &self.formation
    }

    /// The other nodes that it knew.
    pub fn known(&self) -> &[Node] {
        &self.kept.known
    }

    /// Whether a recovery was begun, and not completed.
    pub fn is_begun(&self) -> bool {
        self.kept.recovering.is_some()
    }

    /// Leaves a group out whose copy can't be used: it begins anew, and what is in the copy is set aside.
    ///
    /// # Errors
    /// When it is home, is not there, or has a copy that can be used.
    pub fn leave_out(&mut self, group: GroupNumber) -> Result<(), RecoverError> {
        let refused = |why| Err(RecoverError::Kept { group, why });
        if group == GroupNumber::HOME {
            return refused("it says who the users are and which vhosts there are");
        }
        // A recovery that was interrupted may have set it aside.
        if !self.groups.contains(&group) && !self.is_begun() {
            return refused("this node has no copy of it, and it begins anew by itself");
        }
        if self.groups.contains(&group) && self.copy(group).is_ok() {
            return refused("its copy can be used");
        }
        self.groups.remove(&group);
        self.left_out.insert(group);
        Ok(())
    }

    /// The groups of which a copy is recovered, home first.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = GroupNumber> {
        self.groups.iter().copied()
    }

    /// Reads the copy of a group, and changes nothing.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn copy(&self, group: GroupNumber) -> Result<GroupCopy, RecoverError> {
        let dir = self.copy_dir(group)?;
        let contents = Contents::read(&dir, Arc::clone(&self.disk));
        let contents = contents.map_err(|error| RecoverError::Copy { group, error })?;
        match Members::decode(&contents.vote.members) {
            Some(members) => Ok(GroupCopy { dir, contents, members }),
            None => Err(RecoverError::NoCopy(dir)),
        }
    }

    /// Completes cuts that were being made when the node was stopped, as its start would: before that it can't be said where a
    /// log ends. Returns the groups where it has; what can't be completed is told of the [copy](Survivor::copy).
    pub fn settle(&self, journal: &Options) -> Vec<GroupNumber> {
        let is_cut = |group: &GroupNumber| {
            let found = self.copy(*group);
            matches!(found, Err(RecoverError::Copy { error: ReplicaError::CutBegun(_), .. }))
        };
        let begun = self.groups().filter(is_cut);
        begun.filter(|group| self.open_copy(*group, journal).is_ok()).collect()
    }

    /// Makes a cluster of this node alone.
    ///
    /// # Errors
    /// It has to be repeated then, and the node does not start before.
    pub fn recover(&mut self, journal: &Options) -> Result<(), RecoverError> {
        let recovery = match self.kept.recovering {
            Some(recovery) => recovery,
            None => Recovery {
                times: self.formation.recovery.map_or(0, |before| before.times) + 1,
                number: getrandom::u64().map_err(FolderError::Random)?,
            },
        };
        self.kept.recovering = Some(recovery);
        write(&self.dir, &*self.disk, &self.kept)?;
        for group in &self.left_out {
            self.set_aside(*group, recovery)?;
            self.kept.groups.remove(group);
        }
        for group in self.groups().rev() {
            self.make_only_member(group, journal)?;
        }
        let founders = vec![self.kept.node];
        let recovery = Some(recovery);
        self.formation = Formation { founders, recovery, ..self.formation.clone() };
        self.kept.formation = Some(self.formation.clone());
        // The others of before would be dialled, and told to those that are added.
        self.kept.known.clear();
        self.kept.recovering = None;
        Ok(write(&self.dir, &*self.disk, &self.kept)?)
    }

    /// Moves the files of a copy to a folder that is none of a group.
    fn set_aside(&self, group: GroupNumber, recovery: Recovery) -> Result<(), RecoverError> {
        let dir = copy_dir(&self.dir, &*self.disk, group)?;
        let aside = format!("group-{group}-before-recovery-{}", recovery.times);
        let aside = self.dir.join(aside);
        let moving = || {
            let folders = self.disk.folders(&self.dir)?;
            if !folders.iter().any(|name| Some(name.as_ref()) == dir.file_name()) {
                return Ok(());
            }
            self.disk.create_dir(&aside)?;
            for file in self.disk.list(&dir)? {
                self.disk.rename(&dir.join(&file.name), &aside.join(&file.name))?;
            }
            self.disk.sync_dir(&aside)?;
            self.disk.remove_dir(&dir)
        };
        moving().map_err(|error| FolderError::Io { path: dir.clone(), error }.into())
    }

    /// Keeps that this node is the only member of a group, as of its last entry: all that is here counts as committed.
    fn make_only_member(&self, group: GroupNumber, journal: &Options) -> Result<(), RecoverError> {
        let replica = self.open_copy(group, journal)?;
        let vote = Vote {
            members: Members::founders(&[self.kept.node]).encode(),
            members_index: replica.last().index,
            ..replica.vote()
        };
        let saved = replica.save_vote(&vote).and_then(|()| replica.close());
        saved.map_err(|failure| RecoverError::Write { group, failure })
    }

    /// Opens a copy as a start of the node does: what was being cut is gone then, and what is there is on the disk.
    fn open_copy(&self, group: GroupNumber, journal: &Options) -> Result<Replica, RecoverError> {
        let (dir, disk) = (self.copy_dir(group)?, Arc::clone(&self.disk));
        let opened = Replica::open(&dir, journal.clone(), disk, Arc::new(()));
        opened.map_err(|error| RecoverError::Copy { group, error })
    }

    fn copy_dir(&self, group: GroupNumber) -> Result<PathBuf, RecoverError> {
        let dir = copy_dir(&self.dir, &*self.disk, group)?;
        match is_copy(&*self.disk, &dir) {
            Ok(true) => Ok(dir),
            Ok(false) => Err(RecoverError::NoCopy(dir)),
            Err(error) => Err(FolderError::Io { path: dir, error }.into()),
        }
    }
}

/// Whether there is a copy that has members. It may not be kept in the folder's file yet that the node has it; one that was made
/// and has no members is made anew by a start.
fn is_founded(dir: &Path, disk: &Arc<dyn Disk>) -> Result<bool, FolderError> {
    let found = is_copy(&**disk, dir);
    let is_copy = found.map_err(|error| FolderError::Io { path: dir.to_owned(), error })?;
    let has_none = || {
        let contents = Contents::read(dir, Arc::clone(disk));
        contents.is_ok_and(|contents| contents.vote.members.is_empty())
    };
    Ok(is_copy && !has_none())
}
