//! What of a group's log this node's disk has damaged: the other nodes of the group are asked for it, and what one has is
//! written again. Only what no voter has is lost.

use super::front::Serves;
use super::group::Group;
use super::members::Members;
use super::questions::Question;
use crate::scrub::{Journals, Part, Pass, Piece, Readable, Scrubbing};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_broker::admin::Held;
use courser_cluster::transport::{DialError, Node};
use courser_cluster::{GroupNumber, Leadership, Member, MendError, NodeId, PACKET_BYTES_MAX};
use courser_management::ScrubState;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Pieces that are asked for before it is found out which are damaged next.
const PIECES_AT_ONCE: usize = 16;
/// How long is gone on while others bring what is damaged.
const MEND_TIME: Duration = Duration::from_secs(3);
/// Bytes that an answer brings at most.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Bytes of a piece at most, with whole pages around it: what is longer has not come to a log in a packet.
const PIECE_BYTES_MAX: usize = PACKET_BYTES_MAX;
/// How often the others are asked what they have found.
const HEAR_INTERVAL: Duration = Duration::from_secs(10);
/// How long another node may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take at first: one that takes longer is asked again behind the others.
const ANSWER_SOON: Duration = Duration::from_secs(1);
/// How long one that did not answer is left alone: each question to it would take as long again.
const SILENT_REST: Duration = Duration::from_secs(10);

/// Why a node has brought nothing.
enum NoPiece {
    /// It does not answer.
    Silent,
    /// It says so, or is not there.
    Failed(String),
    /// It has freed it.
    Freed,
}

/// What a node answers that is asked for a piece.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Answer {
    /// Some of it in base64, if it is whole there.
    Piece(Option<String>),
    /// It is needed there no more, and not kept.
    Freed { freed: bool },
}

impl<E: std::error::Error> From<E> for NoPiece {
    fn from(error: E) -> Self {
        NoPiece::Failed(error.to_string())
    }
}

/// This node's copy of a group's log, which is read for damage.
struct OwnCopy {
    members: Arc<Members>,
    group: GroupNumber,
    member: Arc<Member>,
}

impl Readable for OwnCopy {
    fn bytes(&self) -> u64 {
        self.member.scrub_bytes()
    }

    fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        self.member.scrub(by)
    }

    fn repair(&self, part: Part) -> bool {
        let piece = match part {
            Part::Record(position) => Piece::Record(position),
            Part::Frame(position) => Piece::Frame(position),
            Part::Header(_) | Part::Checkpoint(_) => return false,
        };
        // If no node can be asked now, others ask later.
        self.member.want(piece);
        self.members.mend_piece(self.group, &self.member, piece)
    }
}

/// Whether all of a piece has come. What is wrong with it is seen when it has, and until then a node is believed how long it is.
fn is_whole(piece: Piece, bytes: &[u8]) -> Result<bool, NoPiece> {
    match piece.len_of(bytes) {
        Some(len) if len > PIECE_BYTES_MAX => {
            Err(NoPiece::Failed("it says that it is longer than a log can have it".into()))
        }
        len => Ok(len.is_some_and(|len| bytes.len() >= len)),
    }
}

/// What a piece is called when it is found to be damaged.
fn part_of(piece: Piece) -> Part {
    match piece {
        Piece::Record(position) => Part::Record(position),
        Piece::Frame(position) => Part::Frame(position),
    }
}

/// What an own copy is called as a journal.
pub(super) fn journal_of(group: GroupNumber) -> String {
    format!("group {group}")
}

/// The logs of the groups of a node.
pub(super) fn journals(members: &Arc<Members>) -> Journals {
    let members: Weak<Members> = Arc::downgrade(members);
    Box::new(move || {
        let Some(all) = members.upgrade() else { return Vec::new() };
        let named = |group: Arc<Group>| {
            let (members, name) = (Weak::clone(&members), journal_of(group.number));
            let open = move || {
                let (members, member) = (members.upgrade()?, group.member()?);
                let own: Arc<dyn Readable> =
                    Arc::new(OwnCopy { members, group: group.number, member });
                Some(own)
            };
            (name, Box::new(open) as _)
        };
        all.groups.all().into_iter().map(named).collect()
    })
}

impl Members {
    /// Asks for what is damaged, and writes it again. Ends when nothing is brought, or after a while: to be called now and then.
    /// Blocks.
    pub(super) fn mend(&self, group: &Group, member: &Member) {
        let began = Instant::now();
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for piece in member.damaged(PIECES_AT_ONCE) {
                let is_written = self.mend_piece(group.number, member, piece);
                goes_on |= is_written && began.elapsed() < MEND_TIME;
            }
        }
    }

    /// Has another node bring a piece, and what comes with it, and tells operators what is written again. Returns whether
    /// anything is.
    fn mend_piece(&self, group: GroupNumber, member: &Member, piece: Piece) -> bool {
        let (position, voters) = (piece.position(), member.status().members.voters);
        let (mut unheard, mut is_freed) = (voters.is_empty(), false);
        let mut turns = self.turns(member);
        while let Some((id, patience)) = turns.pop_front() {
            let why = match self.runtime.block_on(self.piece_of(id, group, piece, patience)) {
                Ok(None) => continue,
                Ok(Some((bytes, _held))) => match member.mend(piece, &bytes) {
                    Ok(written) => {
                        tracing::warn!(%position, group = group.0, from = self.name(id), pieces = written.len(),
                            "a part of the log that the disk had damaged is written again; look after the disk");
                        self.tell_repaired(group, &written);
                        return !written.is_empty();
                    }
                    // It is damaged there too, which that node does not find in parts of a long piece.
                    Err(MendError::Bad(_)) => continue,
                    Err(error) => error.to_string(),
                },
                Err(NoPiece::Silent) if patience < ANSWER_TIMEOUT => {
                    turns.push_back((id, ANSWER_TIMEOUT));
                    continue;
                }
                Err(NoPiece::Freed) => {
                    is_freed = true;
                    continue;
                }
                Err(NoPiece::Silent) => "it does not answer".into(),
                Err(NoPiece::Failed(why)) => why,
            };
            tracing::debug!(%position, group = group.0, node = %id, why, "no answer about a damaged part of the log");
            unheard |= voters.contains(&id);
        }
        unheard |= self.silent.lock().keys().any(|id| voters.contains(id));
        if !unheard {
            if is_freed {
                member.is_freed_elsewhere(piece);
            }
            member.give_up(piece);
        }
        false
    }

    /// None of it counts as damaged any more, where an earlier look at the log has found it so.
    fn tell_repaired(&self, group: GroupNumber, written: &[Piece]) {
        let Some(scrub) = self.scrub.get() else { return };
        for piece in written {
            scrub.is_repaired(&journal_of(group), part_of(*piece));
        }
    }

    /// The nodes that are to be asked for a piece, and how long each may take. Those that did not answer are left alone for a
    /// while, and come last then.
    fn turns(&self, member: &Member) -> VecDeque<(NodeId, Duration)> {
        let (own, members) = (self.endpoint.about().node, member.status().members);
        let mut silent = self.silent.lock();
        silent.retain(|id, _| members.contains(*id));
        let others = members.voters.iter().chain(&members.learners).filter(|id| **id != own);
        let (last, first): (Vec<NodeId>, Vec<NodeId>) =
            others.partition(|id| silent.contains_key(id));
        let rested = |id: &NodeId| silent.get(id).is_some_and(|at| at.elapsed() >= SILENT_REST);
        let first = first.into_iter().map(|id| (id, ANSWER_SOON));
        first.chain(last.into_iter().filter(rested).map(|id| (id, ANSWER_TIMEOUT))).collect()
    }

    /// Has operators see, at the node that leads home, how the disks of the others are: whether they have room, also for groups that
    /// are new to them, and whether damage was found that nothing has repaired. To be called now and then. Blocks.
    pub(super) fn hear_of_disks(&self, home: &Member) {
        if !matches!(*home.leadership().borrow(), Leadership::Serving { .. }) {
            self.rooms.lock().clear();
            self.waiting.lock().clear();
            self.notices.group_waits_elsewhere(false);
            if let Some(scrub) = self.scrub.get() {
                scrub.is_damaged_elsewhere(false);
            }
            return;
        }
        let mut heard = self.heard_of_disks.lock();
        if heard.is_some_and(|heard| heard.elapsed() < HEAR_INTERVAL) {
            return;
        }
        *heard = Some(Instant::now());
        drop(heard);
        let members = home.status().members;
        let others = self.roster.others().into_iter().filter(|node| members.contains(node.id));
        let others: Vec<Node> = others.collect();
        let asking = async {
            let waits = self.ask_each(others.clone(), &Question::Waits);
            tokio::join!(self.ask_each(others.clone(), &Question::Room), waits)
        };
        let (rooms, waits): (Vec<(_, bool)>, Vec<(_, bool)>) = self.runtime.block_on(asking);
        *self.rooms.lock() =
            rooms.into_iter().map(|(node, has_room)| (node.id, has_room)).collect();
        self.note_waiting(&others, waits);
        self.hear_of_damage(&others);
    }

    /// Takes note of whether groups wait at the others. What one has said that does not answer counts until it does.
    fn note_waiting(&self, others: &[Node], answers: Vec<(Node, bool)>) {
        let mut waiting = self.waiting.lock();
        for (node, waits) in answers {
            match waits {
                true => waiting.insert(node.id),
                false => waiting.remove(&node.id),
            };
        }
        waiting.retain(|id| others.iter().any(|node| node.id == *id));
        self.notices.group_waits_elsewhere(!waiting.is_empty());
    }

    /// Takes note of whether others have found damage that nothing has repaired. Blocks.
    pub(super) fn hear_of_damage(&self, others: &[Node]) {
        let Some(scrub) = self.scrub.get() else { return };
        let asking = self.ask_each(others.to_vec(), &Question::Scrub { start: false });
        let answers: Vec<(_, String)> = self.runtime.block_on(asking);
        let states = answers.iter().map(|(_, answer)| serde_json::from_str(answer));
        let states: Vec<ScrubState> = states.filter_map(Result::ok).collect();
        // What was said by a node that does not answer now counts until it does.
        if states.iter().any(|state| state.unrepaired > 0) {
            scrub.is_damaged_elsewhere(true);
        } else if states.len() == others.len() {
            scrub.is_damaged_elsewhere(false);
        }
    }

    /// A piece of the log, as another node has it.
    async fn piece_of(
        &self,
        id: NodeId,
        group: GroupNumber,
        piece: Piece,
        patience: Duration,
    ) -> Result<Option<(Vec<u8>, Option<Held>)>, NoPiece> {
        let unknown = || NoPiece::Failed("its address is not known".into());
        let node = self.roster.node(id).ok_or_else(unknown)?;
        let (mut bytes, mut held) = (Vec::new(), self.hold());
        loop {
            let from = bytes.len();
            let question = match piece {
                Piece::Record(position) => Question::Record { group, position: position.0, from },
                Piece::Frame(position) => Question::Frame { group, position: position.0, from },
            };
            let question = serde_json::to_string(&question)?;
            let asked = self.endpoint.ask(&node.address, &question);
            let answer = match tokio::time::timeout(patience, asked).await {
                Err(_) | Ok(Err(DialError::TimedOut)) => {
                    self.silent.lock().insert(id, Instant::now());
                    return Err(NoPiece::Silent);
                }
                Ok(answer) => answer,
            };
            self.silent.lock().remove(&id);
            let some = match serde_json::from_str(&answer?)? {
                Answer::Piece(Some(some)) => some,
                Answer::Piece(None) => return Ok(None),
                Answer::Freed { .. } => return Err(NoPiece::Freed),
            };
            let some = STANDARD.decode(some)?;
            bytes.extend_from_slice(&some);
            if let Some(held) = &mut held {
                held.set(bytes.capacity());
            }
            if is_whole(piece, &bytes)? {
                return Ok(Some((bytes, held)));
            }
            if some.is_empty() {
                return Err(NoPiece::Failed("it sends a part of it".into()));
            }
        }
    }

    /// Counts what is kept meanwhile towards the memory limit, if this node serves a group: it has none otherwise.
    fn hold(&self) -> Option<Held> {
        self.groups.all().into_iter().find_map(|group| match group.serves() {
            Serves::Here(service) => Some(service.shared.broker.admin().hold(0)),
            _ => None,
        })
    }

    /// Answers [`Question::Record`] and [`Question::Frame`].
    pub(super) async fn piece_answer(
        &self,
        group: GroupNumber,
        piece: Piece,
        from: usize,
    ) -> Result<String, String> {
        let member = self.groups.get(group).and_then(|group| group.member());
        let member = member.ok_or("this node has no log of the group yet")?;
        let reading = move || member.part(piece, from, ANSWER_BYTES_MAX);
        let part = tokio::task::spawn_blocking(reading).await;
        let answer = match part.map_err(|error| error.to_string())? {
            Ok(part) => Answer::Piece(part.map(|bytes| STANDARD.encode(bytes))),
            Err(MendError::Gone(_)) => Answer::Freed { freed: true },
            Err(error) => return Err(error.to_string()),
        };
        serde_json::to_string(&answer).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
