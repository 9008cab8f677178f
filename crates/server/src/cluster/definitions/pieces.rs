//! Definitions on their way to a group, in pieces: an answer between nodes has fewer bytes than definitions may have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use courser_broker::admin::GroupDefinitions;
use courser_cluster::GroupNumber;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Bytes of a piece: as base64 an answer has room for them. One that has fewer is the last.
pub(in super::super) const PIECE_BYTES: usize = 48 << 20;
/// Bytes of all pieces: more than all that there may be of users, permissions and parameters.
const ALL_BYTES_MAX: usize = 8 << 30;

/// Which piece a group asks for: what comes behind so many bytes of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Part {
    version: u64,
    from: usize,
}

/// What is on its way from this node.
pub(in super::super) struct Pieces {
    piece_bytes: usize,
    /// What more than one piece is needed for, until the last of them is asked for or the group asks anew.
    begun: Mutex<BTreeMap<GroupNumber, Begun>>,
}

struct Begun {
    version: u64,
    encoded: Vec<u8>,
}

impl Pieces {
    pub fn of(piece_bytes: usize) -> Self {
        Pieces { piece_bytes, begun: Mutex::default() }
    }

    /// The first piece of what a group has to adopt.
    pub fn first(&self, group: GroupNumber, definitions: &GroupDefinitions) -> String {
        let encoded = definitions.encode();
        let mut begun = self.begun.lock();
        if encoded.len() < self.piece_bytes {
            begun.remove(&group);
            return BASE64.encode(encoded);
        }
        let piece = BASE64.encode(&encoded[..self.piece_bytes]);
        begun.insert(group, Begun { version: definitions.version.0, encoded });
        piece
    }

    /// Another piece of it.
    ///
    /// # Errors
    /// When this node has begun with none, or with another version meanwhile.
    pub fn next(&self, group: GroupNumber, part: Part) -> Result<String, String> {
        let mut begun = self.begun.lock();
        let rest = begun.get(&group).filter(|one| one.version == part.version);
        let rest = rest.and_then(|one| one.encoded.get(part.from..));
        let rest = rest.ok_or("the definitions have to be asked for from their beginning")?;
        let piece = BASE64.encode(&rest[..rest.len().min(self.piece_bytes)]);
        if rest.len() < self.piece_bytes {
            begun.remove(&group);
        }
        Ok(piece)
    }
}

/// What has come of it so far.
pub(super) struct Gathering {
    piece_bytes: usize,
    all: Vec<u8>,
    wants: Option<Part>,
}

impl Gathering {
    /// Nothing yet, of pieces of so many bytes.
    pub fn of(piece_bytes: usize) -> Self {
        Gathering { piece_bytes, all: Vec::new(), wants: None }
    }

    /// Which piece comes next: none stands for the first.
    pub fn wants(&self) -> Option<Part> {
        self.wants
    }

    /// Adds the piece that was wanted. At the end there is all of it, or nothing if there is nothing new.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn add(&mut self, text: &str) -> Result<ControlFlow<Option<GroupDefinitions>>, String> {
        let malformed = || "the definitions that home has sent can't be read".to_owned();
        if text.is_empty() && self.wants.is_none() {
            return Ok(ControlFlow::Break(None));
        }
        let piece = BASE64.decode(text).map_err(|error| error.to_string())?;
        self.all.extend_from_slice(&piece);
        if piece.len() < self.piece_bytes {
            let all = GroupDefinitions::decode(&self.all).ok_or_else(malformed)?;
            return Ok(ControlFlow::Break(Some(all)));
        }
        if self.all.len() > ALL_BYTES_MAX {
            return Err("home has sent more definitions than there can be".to_owned());
        }
        let version = GroupDefinitions::version_of(&self.all).ok_or_else(malformed)?.0;
        self.wants = Some(Part { version, from: self.all.len() });
        Ok(ControlFlow::Continue(()))
    }
}
