//! The file in which a node keeps what it knows of itself.

use super::FolderError;
use crate::transport::{Formation, Node, Recovery};
use crate::{GroupNumber, NodeId};
use courser_journal::{Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The file, and what it is written as before it takes its place.
pub const NAME: &str = "cluster.json";
const NEW_NAME: &str = "cluster.json.new";
/// Bytes of the file.
const BYTES_MAX: u64 = 256 << 10;

/// What is in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub cluster: String,
    pub name: String,
    pub node: NodeId,
    /// What the number of a cluster that this node founds is made of.
    #[serde(default)]
    pub seed: u64,
    pub formation: Option<Formation>,
    /// It was taken in, and has never had a copy of the log.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    pub known: Vec<Node>,
    /// The other groups of which this node has a copy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<GroupNumber, Formation>,
    /// What the cluster is being recovered by with this node's copy. Until that is done, nothing may be started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovering: Option<Recovery>,
    /// It is in the cluster no more.
    #[serde(default)]
    pub removed: bool,
}

/// What is in the folder's file, if there is one.
pub fn read(dir: &Path, disk: &dyn Disk) -> Result<Option<Kept>, FolderError> {
    let path = dir.join(NAME);
    let file = match disk.open(&path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FolderError::Io { path, error }),
    };
    let reading = || {
        let len = file.size_bytes()?.min(BYTES_MAX);
        let mut bytes = vec![0; len as usize];
        let mut done = 0;
        while done < bytes.len() {
            match file.read_at(&mut bytes[done..], done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(bytes)
    };
    let bytes = reading().map_err(|error| FolderError::Io { path: path.clone(), error })?;
    match serde_json::from_slice::<Kept>(&bytes) {
        Ok(kept) if kept.node.0 != 0 => Ok(Some(kept)),
        Ok(_) => Err(FolderError::Damaged { path, why: "the number of the node is 0".into() }),
        Err(error) => Err(FolderError::Damaged { path, why: error.to_string() }),
    }
}

/// Writes the file anew, and has it take the place of the old one when all of it is on the disk.
pub fn write(dir: &Path, disk: &dyn Disk, kept: &Kept) -> Result<(), FolderError> {
    let path = dir.join(NEW_NAME);
    let writing = || {
        let bytes = serde_json::to_vec_pretty(kept).map_err(io::Error::other)?;
        let file = disk.open(&path, OpenMode::Create)?;
        let mut done = 0;
        while done < bytes.len() {
            match file.write_at(&bytes[done..], done as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => done += count,
            }
        }
        file.sync_data()?;
        disk.rename(&path, &dir.join(NAME))?;
        disk.sync_dir(dir)
    };
    writing().map_err(|error| FolderError::Io { path: path.clone(), error })
}
