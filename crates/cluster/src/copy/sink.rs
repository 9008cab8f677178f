//! A copy as it is installed.

use super::{CopyError, head::Head};
use crate::{MemberConfig, MemberError, Origin};
use bytes::Bytes;
use courser_journal::replica::{Chunk, EntryId, Installer, Replica, ReplicaError, Vote};
use std::sync::Arc;

/// Where a copy of a group's log goes, on a node whose group does not run. From the first chunk on, what was there is gone;
/// when it ends before the last one, the node needs another copy.
pub struct CopySink {
    config: Place,
    here: Here,
    installer: Option<Installer>,
}

/// The parts of a [`MemberConfig`] that say where.
struct Place {
    dir: std::path::PathBuf,
    disk: Arc<dyn courser_journal::Disk>,
    identity: crate::Identity,
}

/// What the node has.
struct Here {
    vote: Vote,
    /// The end of its log, if that is whole, or was before another copy was begun.
    last: Option<EntryId>,
}

impl CopySink {
    /// Looks at what is there. Blocks, as the log is read.
    ///
    /// # Errors
    /// When the copy is in use or can't be read, or a new one could not mend it.
    pub fn new(config: &MemberConfig) -> Result<Self, MemberError> {
        let MemberConfig { dir, disk, identity, origin, journal, .. } = config;
        let options = courser_journal::Options { threads: false, ..journal.clone() };
        let here = match Replica::open(dir, options, Arc::clone(disk), Arc::new(())) {
            Ok(replica) => {
                let here = Here { vote: replica.vote(), last: Some(replica.last()) };
                replica.close().map_err(MemberError::Log)?;
                here
            }
            Err(ReplicaError::MustBeRebuilt { vote, .. }) => Here { vote, last: None },
            Err(ReplicaError::HalfInstalled { vote, last, .. }) => Here { vote, last },
            Err(ReplicaError::Missing(_)) if matches!(origin, Origin::Joining) => {
                Here { vote: Vote::default(), last: Some(EntryId::default()) }
            }
            Err(error) => return Err(error.into()),
        };
        let config = Place { dir: dir.clone(), disk: Arc::clone(disk), identity: *identity };
        Ok(CopySink { config, here, installer: None })
    }

    /// The leader has to be one of a later term than this, for it is not known what this node has acknowledged.
    pub fn needs_term_above(&self) -> Option<u64> {
        match self.here.last {
            Some(_) => None,
            None => Some(self.here.vote.term),
        }
    }

    /// Takes the next chunk. Blocks while it is written.
    ///
    /// # Errors
    /// When it is not the next one, or can't be written, or the copy may lack something.
    pub fn chunk(&mut self, bytes: &Bytes) -> Result<(), CopyError> {
        if let Some(installer) = &mut self.installer {
            let chunk = Chunk::decode(bytes).ok_or(CopyError::Malformed)?;
            return Ok(installer.chunk(chunk)?);
        }
        let head = Head::decode(bytes).filter(|head| head.group == self.config.identity.group);
        let head = head.ok_or(CopyError::Malformed)?;
        if !self.here.is_in(&head) {
            return Err(CopyError::TooOld);
        }
        let Place { dir, disk, identity } = &self.config;
        let vote = Vote {
            members: head.members.encode(),
            members_index: head.members_index,
            ..self.here.vote.clone()
        };
        let installer = Installer::begin(dir, Arc::clone(disk), *identity, &vote, self.here.last)?;
        self.installer = Some(installer);
        Ok(())
    }

    /// Makes what has come the node's copy. Blocks.
    ///
    /// # Errors
    /// When chunks are missing, or something can't be written.
    pub fn finish(self) -> Result<(), CopyError> {
        let installer = self.installer.ok_or(CopyError::Malformed)?;
        Ok(installer.finish()?)
    }
}

impl Here {
    /// Whether everything that this node has acknowledged, and that is committed, is in the copy: see the module's page.
    fn is_in(&self, head: &Head) -> bool {
        match self.last {
            Some(last) => last.index <= head.last.index || last.term < head.last.term,
            None => self.vote.term < head.last.term,
        }
    }
}
