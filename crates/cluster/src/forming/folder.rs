//! What a node keeps of itself and of its cluster in its data folder.

use super::kept::{Kept, NAME, read, write};
use crate::transport::{Formation, Node};
use crate::{GroupNumber, NodeId};
use courser_journal::replica::is_copy;
use courser_journal::{Disk, is_full};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a broker's journal that is in no cluster, or was in none before it was [adopted](crate::adopt).
const STANDALONE: &str = "journal";
/// Journals beside it begin so.
const SHARDS: &str = "journal-";
/// The folder of a copy of the home group's log; those of the others have their number behind it.
const COPY: &str = "group";
/// Nodes that are remembered.
const KNOWN_MAX: usize = 64;

/// Why a data folder is none of a node.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It can't be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{path}: {why}. It says which node this is: restore it, or move the data folder away and add the node anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The folder belongs to another cluster.
    #[error(
        "data folder {path} belongs to cluster '{found}', not to '{wanted}': check cluster.name and data_dir"
    )]
    OtherCluster {
        /// The folder.
        path: PathBuf,
        /// The cluster that it belongs to.
        found: String,
        /// The cluster that the settings name.
        wanted: String,
    },
    /// The folder is that of a member with another name.
    #[error(
        "data folder {path} is that of node '{found}', not of '{wanted}': a member of a cluster keeps its name. Set \
         cluster.node_name (--node-name) to '{found}', or remove the node and add it with an empty folder"
    )]
    OtherName {
        /// The folder.
        path: PathBuf,
        /// The name of the node that it belongs to.
        found: String,
        /// The name in the settings.
        wanted: String,
    },
    /// The folder is that of a broker by itself, with more than one journal.
    #[error(
        "data folder {0} has vhosts with journals of their own (journal-*), which there are not in a cluster: choose another \
         folder, and bring definitions and messages over (docs/cluster.md)"
    )]
    Shards(PathBuf),
    /// The node was removed from its cluster.
    #[error(
        "node '{node}' was removed from cluster '{cluster}', and data folder {path} is that of this node: start with an \
         empty folder, and add the node anew"
    )]
    Removed {
        /// The folder.
        path: PathBuf,
        /// The node.
        node: String,
        /// The cluster.
        cluster: String,
    },
    /// A recovery from the node's copy was begun.
    #[error(
        "data folder {path} is that of node '{node}', from whose copy the cluster was being recovered when that was interrupted: \
         complete it with 'courser cluster recover --from-this-copy'"
    )]
    Recovering {
        /// The folder.
        path: PathBuf,
        /// The node.
        node: String,
    },
    /// The folder is a node's, and the settings name no cluster.
    #[error(
        "data folder {path} is that of node '{node}' of cluster '{cluster}': start it with its cluster's settings \
         (--cluster-name, --cluster-listen), or choose another folder"
    )]
    OfNode {
        /// The folder.
        path: PathBuf,
        /// The node.
        node: String,
        /// The cluster.
        cluster: String,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl FolderError {
    /// Whether it can be done when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        matches!(self, FolderError::Io { error, .. } if is_full(error))
    }
}

/// The part of a data folder that says which node this is, and what it knows of others.
pub struct Folder {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    /// What is on the disk. Never locked while the disk works: clients are waiting for who reads it.
    kept: Mutex<Kept>,
    /// Held by who changes that, until it is on the disk.
    changing: Mutex<()>,
}

impl Folder {
    /// Reads what there is, or draws a number and keeps it.
    ///
    /// # Errors
    /// When the folder can't be that of a node of this cluster.
    pub fn open(
        dir: &Path,
        disk: Arc<dyn Disk>,
        cluster: &str,
        name: &str,
    ) -> Result<Self, FolderError> {
        let found = read(dir, &*disk)?;
        let mut kept = match found.clone() {
            Some(kept) => kept,
            None => fresh(dir, &*disk, cluster, name)?,
        };
        let alone = is_alone(dir, &*disk)?;
        check(dir, &kept, alone, cluster, name)?;
        if kept.recovering.is_some() {
            return Err(FolderError::Recovering { path: dir.to_owned(), node: kept.name });
        }
        if alone && folders(dir, &*disk)?.iter().any(|one| one.starts_with(SHARDS)) {
            return Err(FolderError::Shards(dir.to_owned()));
        }
        name.clone_into(&mut kept.name);
        if found.as_ref() == Some(&kept) {
            // Its name may be in the kernel's memory only. There may be no room to write it anew.
            let synced = disk.sync_dir(dir);
            synced.map_err(|error| FolderError::Io { path: dir.to_owned(), error })?;
        } else {
            write(dir, &*disk, &kept)?;
        }
        Ok(Folder { dir: dir.to_owned(), disk, kept: Mutex::new(kept), changing: Mutex::new(()) })
    }

    /// Refuses a folder that belongs to a node of a cluster. One that was only meant to become a node's does not.
    ///
    /// # Errors
    /// When it does, or when that can't be said.
    pub fn refuse(dir: &Path, disk: &dyn Disk) -> Result<(), FolderError> {
        match read(dir, disk)? {
            None => Ok(()),
            Some(_) if is_alone(dir, disk)? => Ok(()),
            Some(kept) => {
                let (node, cluster) = (kept.name, kept.cluster);
                Err(FolderError::OfNode { path: dir.to_owned(), node, cluster })
            }
        }
    }

    /// The number of this node.
    pub fn node(&self) -> NodeId {
        self.kept.lock().node
    }

    /// What the number of a cluster that this node founds is made of.
    pub fn seed(&self) -> u64 {
        self.kept.lock().seed
    }

    /// What this node belongs to.
    pub fn formation(&self) -> Option<Formation> {
        self.kept.lock().formation.clone()
    }

    /// Whether the folder still is that of a broker by itself: its journal can be [adopted](crate::adopt).
    ///
    /// # Errors
    /// When it can't be read.
    pub fn is_alone(&self) -> Result<bool, FolderError> {
        is_alone(&self.dir, &*self.disk)
    }

    /// Where the copy of a group's log is, or is to be.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn copy_dir(&self, group: GroupNumber) -> Result<PathBuf, FolderError> {
        copy_dir(&self.dir, &*self.disk, group)
    }

    /// The others that it knows of.
    pub fn known(&self) -> Vec<Node> {
        self.kept.lock().known.clone()
    }

    /// Keeps what this node belongs to, with a copy of its log. Blocks until it is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn set_formation(&self, formation: &Formation) -> Result<(), FolderError> {
        self.change(|kept| (kept.formation, kept.joins) = (Some(formation.clone()), false))
    }

    /// Keeps what this node was taken into, before it has a copy of its log. Blocks until it is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn set_joining(&self, formation: &Formation) -> Result<(), FolderError> {
        self.change(|kept| (kept.formation, kept.joins) = (Some(formation.clone()), true))
    }

    /// Whether that was the last word: the node has promised nothing that it could have forgotten.
    pub fn joins(&self) -> bool {
        self.kept.lock().joins
    }

    /// The other groups of which this node has a copy.
    pub fn groups(&self) -> BTreeMap<GroupNumber, Formation> {
        self.kept.lock().groups.clone()
    }

    /// Keeps that this node has a copy of another group's log. Blocks until that is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn set_group(&self, group: GroupNumber, formation: &Formation) -> Result<(), FolderError> {
        self.change(|kept| drop(kept.groups.insert(group, formation.clone())))
    }

    /// Keeps where a node is. What a node says of itself (`is_first_hand`) counts more than what others say.
    /// Returns whether it is new. Blocks until it is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn learn(&self, node: &Node, is_first_hand: bool) -> Result<bool, FolderError> {
        let is_new = |kept: &Kept| {
            let known = kept.known.iter().find(|one| one.id == node.id);
            node.id != kept.node && known.is_none_or(|known| known != node && is_first_hand)
        };
        if !is_new(&self.kept.lock()) {
            return Ok(false);
        }
        let mut is_kept = false;
        self.change(|kept| {
            // Another thread may have kept more until it was this one's turn.
            is_kept = is_new(kept);
            if !is_kept {
                return;
            }
            kept.known.retain(|one| one.id != node.id);
            if kept.known.len() >= KNOWN_MAX {
                kept.known.remove(0);
            }
            kept.known.push(node.clone());
        })?;
        Ok(is_kept)
    }

    /// Forgets the nodes that are gone. Blocks until that is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn forget(&self, is_gone: impl Fn(NodeId) -> bool) -> Result<(), FolderError> {
        self.change(|kept| kept.known.retain(|one| !is_gone(one.id)))
    }

    /// Keeps that this node is in the cluster no more. Blocks until that is on the disk.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn set_removed(&self) -> Result<(), FolderError> {
        self.change(|kept| kept.removed = true)
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) -> Result<(), FolderError> {
        let _changing = self.changing.lock();
        let before = self.kept.lock().clone();
        let mut changed = before.clone();
        change(&mut changed);
        if changed != before {
            write(&self.dir, &*self.disk, &changed)?;
            *self.kept.lock() = changed;
        }
        Ok(())
    }
}

/// Refuses a folder that belongs to another cluster or node than the settings name, or to one that was removed.
pub(super) fn check(
    dir: &Path,
    kept: &Kept,
    alone: bool,
    cluster: &str,
    name: &str,
) -> Result<(), FolderError> {
    let path = dir.to_owned();
    if kept.cluster != cluster {
        let (found, wanted) = (kept.cluster.clone(), cluster.to_owned());
        return Err(FolderError::OtherCluster { path, found, wanted });
    }
    // The others know it by its name. One that is in no cluster yet can still be given another.
    if kept.name != name && kept.formation.is_some() && !alone {
        let (found, wanted) = (kept.name.clone(), name.to_owned());
        return Err(FolderError::OtherName { path, found, wanted });
    }
    if kept.removed {
        let (node, cluster) = (kept.name.clone(), kept.cluster.clone());
        return Err(FolderError::Removed { path, node, cluster });
    }
    Ok(())
}

/// Where the copy of a group's log is, or is to be.
pub(super) fn copy_dir(
    dir: &Path,
    disk: &dyn Disk,
    group: GroupNumber,
) -> Result<PathBuf, FolderError> {
    if group != GroupNumber::HOME {
        return Ok(dir.join(format!("{COPY}-{group}")));
    }
    let folders = folders(dir, disk)?;
    let has = |name: &str| folders.iter().any(|folder| folder == name);
    let name = if has(STANDALONE) && !has(COPY) { STANDALONE } else { COPY };
    Ok(dir.join(name))
}

/// The groups besides home that have a folder.
pub(super) fn numbered(dir: &Path, disk: &dyn Disk) -> Result<Vec<GroupNumber>, FolderError> {
    let folders = folders(dir, disk)?.into_iter();
    let number = |name: String| name.strip_prefix(COPY)?.strip_prefix('-')?.parse().ok();
    Ok(folders.filter_map(number).map(GroupNumber).collect())
}

fn fresh(dir: &Path, disk: &dyn Disk, cluster: &str, name: &str) -> Result<Kept, FolderError> {
    let has_journal = folders(dir, disk)?.iter().any(|folder| folder == STANDALONE);
    if has_journal && !is_alone(dir, disk)? {
        let why = "it is missing, and there is a copy of a cluster's log beside it".to_owned();
        return Err(FolderError::Damaged { path: dir.join(NAME), why });
    }
    let random = || getrandom::u64().map_err(FolderError::Random);
    Ok(Kept {
        cluster: cluster.to_owned(),
        name: name.to_owned(),
        node: NodeId(random()?.max(1)),
        seed: random()?,
        formation: None,
        joins: false,
        known: Vec::new(),
        groups: BTreeMap::new(),
        recovering: None,
        removed: false,
    })
}

/// The folders in a data folder.
fn folders(dir: &Path, disk: &dyn Disk) -> Result<Vec<String>, FolderError> {
    match disk.folders(dir) {
        Ok(folders) => Ok(folders),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(FolderError::Io { path: dir.to_owned(), error }),
    }
}

/// Whether there is the journal of a broker by itself.
pub(super) fn is_alone(dir: &Path, disk: &dyn Disk) -> Result<bool, FolderError> {
    let folders = folders(dir, disk)?;
    let has = |name: &str| folders.iter().any(|folder| folder == name);
    if !has(STANDALONE) || has(COPY) {
        return Ok(false);
    }
    let path = dir.join(STANDALONE);
    let found = is_copy(disk, &path).map_err(|error| FolderError::Io { path, error })?;
    Ok(!found)
}
