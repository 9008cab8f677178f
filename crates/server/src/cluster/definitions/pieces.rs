//! Definitions on their way to a group, in pieces.
//!
//! All that there may be of them takes much memory and many bytes of the network, and all groups may want them at once. So one
//! group after the other gets them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use courser_broker::admin::GroupDefinitions;
use courser_cluster::GroupNumber;
use courser_store::Lsn;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::convert::Infallible;
use std::mem;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::Instant;

/// Bytes of a piece. One that has fewer is the last.
pub(in super::super) const PIECE_BYTES: usize = 1 << 20;
/// Bytes of all pieces: more than all that there may be of users, permissions and parameters.
const ALL_BYTES_MAX: usize = 8 << 30;

/// How long a group that has its turn may take to ask for the next piece, if another one waits.
pub(super) const NEXT_TIMEOUT: Duration = Duration::from_secs(5);
/// The same if none waits: the group may ask another node by now, which leads home.
pub(super) const KEPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Which piece a group asks for: what comes behind so many bytes of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Part {
    version: u64,
    from: usize,
}

#[cfg(test)]
impl Part {
    /// Whether nothing comes behind it, if there are so many bytes.
    pub fn is_last_of(self, all: usize, piece_bytes: usize) -> bool {
        all - self.from < piece_bytes
    }
}

/// What is on its way from this node.
pub(in super::super) struct Pieces {
    piece_bytes: usize,
    look: Arc<tokio::sync::Mutex<()>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Tells the last question of each group, by its end, that the group has asked anew.
    newest: HashMap<GroupNumber, oneshot::Sender<Infallible>>,
    /// What more than one piece is needed for, until the last of them is asked for or the group asks anew.
    begun: Option<Begun>,
    /// A task looks after what is begun.
    forgets: bool,
}

/// Definitions are taken, and on their way if they are many, for the group that has this.
pub(in super::super) type Turn = OwnedMutexGuard<()>;

/// A question of a group. Who has asked it may not wait for the answer any more, and then asks anew.
pub(in super::super) struct Asked {
    group: GroupNumber,
    have: Lsn,
    anew: oneshot::Receiver<Infallible>,
}

impl Asked {
    /// The answer, unless the group asks anew before there is one.
    ///
    /// # Errors
    /// That it did, or those of the answer.
    pub async fn unless_anew<T>(
        &mut self,
        answering: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        tokio::select! {
            biased;
            _ = &mut self.anew => Err(anew()),
            answer = answering => answer,
        }
    }

    fn is_newest(&mut self) -> bool {
        matches!(self.anew.try_recv(), Err(TryRecvError::Empty))
    }
}

fn anew() -> String {
    "the group has asked anew".to_owned()
}

struct Begun {
    group: GroupNumber,
    /// What is on its way is what has changed since that, or all of the version.
    have: Lsn,
    version: u64,
    encoded: Vec<u8>,
    asked: Instant,
    _turn: Option<Turn>,
}

/// Forgets what is begun when nothing has been asked of it for long, also what is begun later, and ends then.
async fn forget(state: Arc<Mutex<State>>, mut asked: Instant) {
    loop {
        tokio::time::sleep_until(asked + KEPT_TIMEOUT).await;
        let mut state = state.lock();
        match &state.begun {
            Some(one) if one.asked > asked => asked = one.asked,
            _ => {
                (state.begun, state.forgets) = (None, false);
                return;
            }
        }
    }
}

impl Pieces {
    pub fn of(piece_bytes: usize) -> Self {
        Pieces { piece_bytes, look: Arc::default(), turn: Arc::default(), state: Arc::default() }
    }

    /// A group that has this version asks. Its questions of before end, and so does what was begun for them.
    pub fn asked(&self, group: GroupNumber, have: Lsn) -> Asked {
        let (newest, anew) = oneshot::channel();
        let mut state = self.state.lock();
        state.newest.insert(group, newest);
        state.begun.take_if(|one| one.group == group);
        Asked { group, have, anew }
    }

    /// Waits until a group may take definitions to see how many they are, which is to be dropped once they are taken.
    pub async fn look(&self) -> Turn {
        Arc::clone(&self.look).lock_owned().await
    }

    /// Waits until a group has its turn.
    pub async fn turn(&self) -> Turn {
        let mut turn = pin!(Arc::clone(&self.turn).lock_owned());
        loop {
            if let Ok(turn) = tokio::time::timeout(NEXT_TIMEOUT, &mut turn).await {
                return turn;
            }
            // The node that asked may be gone.
            self.state.lock().begun.take_if(|one| one.asked.elapsed() >= NEXT_TIMEOUT);
        }
    }

    /// The first piece of what a group has to adopt, which has its turn until it has asked for the last. To be called away from the
    /// threads that serve connections: there may be many definitions.
    ///
    /// # Errors
    /// When the group has asked anew.
    pub fn first(
        &self,
        mut asked: Asked,
        definitions: &GroupDefinitions,
        turn: Option<Turn>,
    ) -> Result<String, String> {
        let (group, have, version) = (asked.group, asked.have, definitions.version.0);
        let encoded = definitions.encode();
        if encoded.len() < self.piece_bytes {
            return Ok(BASE64.encode(encoded));
        }
        let piece = BASE64.encode(&encoded[..self.piece_bytes]);
        let asked_at = Instant::now();
        let mut state = self.state.lock();
        // It would keep others from their turn, and nothing asks for the rest.
        if !asked.is_newest() {
            return Err(anew());
        }
        state.begun = Some(Begun { group, have, version, encoded, asked: asked_at, _turn: turn });
        if !mem::replace(&mut state.forgets, true) {
            tokio::spawn(forget(Arc::clone(&self.state), asked_at));
        }
        Ok(piece)
    }

    /// Another piece of it, for a group that has asked with this version.
    ///
    /// # Errors
    /// When this node has begun with none, or with another version meanwhile, or since another one.
    pub fn next(&self, group: GroupNumber, have: Lsn, part: Part) -> Result<String, String> {
        let begun = &mut self.state.lock().begun;
        let is_meant =
            |one: &&mut Begun| (one.group, one.have, one.version) == (group, have, part.version);
        let rest = begun.as_mut().filter(is_meant).and_then(|one| {
            one.asked = Instant::now();
            one.encoded.get(part.from..)
        });
        let rest = rest.ok_or("the definitions have to be asked for from their beginning")?;
        let piece = BASE64.encode(&rest[..rest.len().min(self.piece_bytes)]);
        if rest.len() < self.piece_bytes {
            *begun = None;
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
