//! The beginning of a connection between nodes.
//!
//! ```text
//!  dialler                                          acceptor
//!  8 magic, 2 oldest, 2 newest version, 32 nonce ─►
//!                                                ◄─ the same of the other end
//!  32 proof                                      ─►
//!                                                ◄─ 32 proof
//!  4 length, hello as JSON, 32 proof             ─►
//!                                                ◄─ 4 length, welcome as JSON, 32 proof
//! ```
//! A proof is an HMAC with the secret over all that was said so far. Each end has seen that of the other one before it tells
//! anything. The dialler proves first: those who only connect get nothing to try guesses of the secret against.
//! Fields that an end does not know are skipped; what has to be understood raises the version.

use super::about::{About, Apart};
use super::alive::keep_alive;
use super::frames::{malformed, read_exactly};
use super::proof::{PROOF_LEN, Prover, Secret};
use super::stream::{Security, Stream};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Versions of what nodes say to each other that this build understands.
const VERSIONS: (u16, u16) = (2, 2);
const MAGIC: &[u8; 8] = b"courser\n";
const OPENING_LEN: usize = 8 + 4 + 32;
/// Bytes of a hello, and of a welcome.
const HELLO_BYTES_MAX: usize = 64 << 10;
/// How long all of it may take, the connection included.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To learn who is there. It ends with the handshake.
    Meet,
    /// Packets of the home group, from the dialler.
    Packets,
    /// Packets of another group, whose number is the note.
    GroupPackets,
    /// A question, which stands in the note, and its answer.
    Ask,
    /// A copy of the home group's log, for a node whose next entries are gone.
    Copy,
    /// A copy of another group's log. The note says of which one.
    GroupCopy,
    /// The bytes of a client's connection. The note says what for a client.
    Tunnel,
}

/// What the dialler says.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    about: About,
    purpose: Purpose,
    #[serde(default)]
    note: String,
}

/// What the acceptor says.
#[derive(Debug, Serialize, Deserialize)]
struct Welcome {
    about: About,
    /// Why nothing follows; the dialler is let in if there is no reason.
    refused: Option<String>,
}

/// A connection to another node.
pub struct Dialled {
    /// Who is there.
    pub about: About,
    /// The connection.
    pub stream: Stream,
}

/// A connection of another node.
pub(super) struct Accepted {
    pub about: About,
    pub purpose: Purpose,
    pub note: String,
    pub stream: Stream,
}

/// Why there is no connection to a node.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No process listens there.
    #[error("can't be reached: {0}")]
    Unreachable(io::Error),
    /// No answer comes.
    #[error("does not answer")]
    TimedOut,
    /// It is no node, or breaks off.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The cluster was recovered without this node.
    #[error("refuses: {0}")]
    LeftBehind(String),
    /// It lets this node not in.
    #[error("refuses: {0}")]
    Refused(String),
}

/// Why a handshake has failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection was lost, or what came is no handshake.
    #[error("the handshake broke off: {0}")]
    Io(#[from] io::Error),
    /// The other end does not know the secret.
    #[error("it does not have the same secret (cluster.secret)")]
    Secret,
    /// The other end has closed the connection when it was to check the secret.
    #[error(
        "it closed the connection when it saw this node's proof: is cluster.secret the same there?"
    )]
    NotBelieved,
    /// The other end is much older or newer.
    #[error(
        "it speaks versions {oldest} to {newest} between nodes, this node {} to {}",
        VERSIONS.0,
        VERSIONS.1
    )]
    Version {
        /// The oldest version that it speaks.
        oldest: u16,
        /// The newest.
        newest: u16,
    },
    /// It takes too long.
    #[error("the handshake took too long")]
    TimedOut,
}

/// One end of connections between nodes: who it is, and how it knows others.
pub struct Endpoint {
    about: RwLock<About>,
    secret: Secret,
    security: Option<Arc<dyn Security>>,
}

impl Endpoint {
    /// The end of the node that `about` tells of.
    pub fn new(about: About, secret: Secret, security: Option<Arc<dyn Security>>) -> Arc<Self> {
        Arc::new(Endpoint { about: RwLock::new(about), secret, security })
    }

    /// What this node says of itself.
    pub fn about(&self) -> About {
        self.about.read().clone()
    }

    /// Changes what this node says of itself from now on.
    pub fn change(&self, change: impl FnOnce(&mut About)) {
        change(&mut self.about.write());
    }

    /// Connects to the node at `address`.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn dial(
        &self,
        address: &str,
        purpose: Purpose,
        note: &str,
    ) -> Result<Dialled, DialError> {
        let dialling = async {
            let stream = TcpStream::connect(address).await.map_err(DialError::Unreachable)?;
            let set = stream.set_nodelay(true).and_then(|()| keep_alive(&stream));
            set.map_err(DialError::Unreachable)?;
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream: Stream = match &self.security {
                None => Stream::Plain(stream),
                Some(security) => {
                    security.dialled(stream, host).await.map_err(HandshakeError::Io)?
                }
            };
            self.introduce(stream, purpose, note).await
        };
        tokio::time::timeout(TIMEOUT, dialling).await.unwrap_or(Err(DialError::TimedOut))
    }

    async fn introduce(
        &self,
        mut stream: Stream,
        purpose: Purpose,
        note: &str,
    ) -> Result<Dialled, DialError> {
        let own = opening()?;
        send(&mut stream, &own).await.map_err(HandshakeError::Io)?;
        let other = read_opening(&mut stream).await?;
        check_versions(&other)?;
        self.prove_first(&mut stream, &own, &other).await?;
        let hello = to_json(&Hello { about: self.about(), purpose, note: note.to_owned() })?;
        let proof = self.secret.prove(Prover::Dialler, &[&own, &other, &hello]);
        write(&mut stream, &hello, &proof).await.map_err(HandshakeError::Io)?;
        let (welcome, proof) = read(&mut stream).await.map_err(HandshakeError::Io)?;
        if !self.secret.is_proven(Prover::Acceptor, &[&own, &other, &hello, &welcome], &proof) {
            return Err(HandshakeError::Secret.into());
        }
        let Welcome { about, refused } = from_json(&welcome)?;
        if let Some(why) = about.refuses() {
            return Err(DialError::Refused(why.to_owned()));
        }
        // Each end looks by itself: one of an earlier version does not.
        let own = self.about();
        if let Some(why) = own.clash_with(&about).filter(|_| purpose != Purpose::Meet) {
            return Err(DialError::Refused(why));
        }
        match (own.apart_from(&about), refused) {
            (Some(apart), _) if apart.left_behind == Some(own.node) => {
                Err(DialError::LeftBehind(apart.why))
            }
            (Some(Apart { why, .. }), _) | (None, Some(why)) => Err(DialError::Refused(why)),
            (None, None) => Ok(Dialled { about, stream }),
        }
    }

    /// Exchanges proofs that both ends know the secret, before they tell anything.
    async fn prove_first(
        &self,
        stream: &mut Stream,
        own: &[u8; OPENING_LEN],
        other: &[u8; OPENING_LEN],
    ) -> Result<(), HandshakeError> {
        send(stream, &self.secret.prove(Prover::Dialler, &[own, other])).await?;
        let proof = match read_proof(stream).await {
            Err(error) if is_end(&error) => return Err(HandshakeError::NotBelieved),
            read => read?,
        };
        let is_proven = self.secret.is_proven(Prover::Acceptor, &[own, other], &proof);
        if is_proven { Ok(()) } else { Err(HandshakeError::Secret) }
    }

    /// Takes a connection of another node, which is told why if it is not let in.
    pub(super) async fn accept(&self, stream: TcpStream) -> Result<Accepted, HandshakeError> {
        let accepting = async {
            stream.set_nodelay(true)?;
            keep_alive(&stream)?;
            let stream: Stream = match &self.security {
                None => Stream::Plain(stream),
                Some(security) => security.accepted(stream).await?,
            };
            self.welcome(stream).await
        };
        tokio::time::timeout(TIMEOUT, accepting).await.unwrap_or(Err(HandshakeError::TimedOut))
    }

    async fn welcome(&self, mut stream: Stream) -> Result<Accepted, HandshakeError> {
        let other = read_opening(&mut stream).await?;
        let own = opening()?;
        send(&mut stream, &own).await?;
        check_versions(&other)?;
        let proof = read_proof(&mut stream).await?;
        if !self.secret.is_proven(Prover::Dialler, &[&other, &own], &proof) {
            return Err(HandshakeError::Secret);
        }
        send(&mut stream, &self.secret.prove(Prover::Acceptor, &[&other, &own])).await?;
        let (hello, proof) = read(&mut stream).await?;
        if !self.secret.is_proven(Prover::Dialler, &[&other, &own, &hello], &proof) {
            return Err(HandshakeError::Secret);
        }
        let said: Hello = from_json(&hello)?;
        let about = self.about();
        let refused = refusal(&about, &said);
        let is_refused = refused.clone();
        let welcome = to_json(&Welcome { about, refused })?;
        let proof = self.secret.prove(Prover::Acceptor, &[&other, &own, &hello, &welcome]);
        write(&mut stream, &welcome, &proof).await?;
        match is_refused {
            None => {
                let Hello { about, purpose, note } = said;
                Ok(Accepted { about, purpose, note, stream })
            }
            Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into()),
        }
    }
}

/// Why a node is not let in, if it is not.
fn refusal(own: &About, hello: &Hello) -> Option<String> {
    let other = &hello.about;
    if let Some(why) = other.refuses() {
        return Some(why.to_owned());
    }
    if own.cluster != other.cluster {
        return Some(format!(
            "node '{}' belongs to cluster '{}', not to '{}'",
            own.name, own.cluster, other.cluster
        ));
    }
    if let Some(apart) = own.apart_from(other) {
        return Some(apart.why);
    }
    // Those that meet find out whom else they have in common.
    if let Some(why) = own.clash_with(other).filter(|_| hello.purpose != Purpose::Meet) {
        return Some(why);
    }
    let groups = (own.formation.as_ref(), other.formation.as_ref());
    match groups {
        (Some(own_one), Some(other_one)) if own_one.group != other_one.group => Some(format!(
            "node '{}' belongs to another cluster of the name '{}', which was formed separately",
            own.name, own.cluster
        )),
        (own_one, other_one)
            if matches!(hello.purpose, Purpose::Packets | Purpose::Copy | Purpose::Tunnel)
                && (own_one.is_none() || other_one.is_none()) =>
        {
            Some(format!("nodes '{}' and '{}' are not in one cluster yet", own.name, other.name))
        }
        _ => None,
    }
}

fn opening() -> Result<[u8; OPENING_LEN], HandshakeError> {
    let mut out = [0; OPENING_LEN];
    out[..8].copy_from_slice(MAGIC);
    out[8..10].copy_from_slice(&VERSIONS.0.to_le_bytes());
    out[10..12].copy_from_slice(&VERSIONS.1.to_le_bytes());
    getrandom::fill(&mut out[12..]).map_err(io::Error::other)?;
    Ok(out)
}

async fn read_opening(stream: &mut Stream) -> Result<[u8; OPENING_LEN], HandshakeError> {
    let mut opening = [0; OPENING_LEN];
    stream.read_exact(&mut opening).await?;
    if &opening[..8] != MAGIC {
        return Err(malformed("the other end is no node of a Courser cluster").into());
    }
    Ok(opening)
}

fn check_versions(opening: &[u8; OPENING_LEN]) -> Result<(), HandshakeError> {
    let oldest = u16::from_le_bytes([opening[8], opening[9]]);
    let newest = u16::from_le_bytes([opening[10], opening[11]]);
    if newest < VERSIONS.0 || VERSIONS.1 < oldest {
        return Err(HandshakeError::Version { oldest, newest });
    }
    Ok(())
}

async fn write(stream: &mut Stream, body: &[u8], proof: &[u8; PROOF_LEN]) -> io::Result<()> {
    let mut out = Vec::with_capacity(4 + body.len() + PROOF_LEN);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(proof);
    send(stream, &out).await
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

async fn read(stream: &mut Stream) -> io::Result<(bytes::Bytes, [u8; PROOF_LEN])> {
    let len = stream.read_u32_le().await? as usize;
    if len > HELLO_BYTES_MAX {
        return Err(malformed("what the other end says of itself is too long"));
    }
    let body = read_exactly(stream, len).await?;
    Ok((body, read_proof(stream).await?))
}

async fn read_proof(stream: &mut Stream) -> io::Result<[u8; PROOF_LEN]> {
    let mut proof = [0; PROOF_LEN];
    stream.read_exact(&mut proof).await?;
    Ok(proof)
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, HandshakeError> {
    serde_json::to_vec(value).map_err(|error| io::Error::other(error).into())
}

fn from_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, HandshakeError> {
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    serde_json::from_slice(bytes).map_err(|error| wrong(error).into())
}
