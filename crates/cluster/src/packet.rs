//! What nodes of a group say to each other, and its bytes.
//!
//! ```text
//!   1  kind        1  reject (bit 0)
//!   8  to          8  from          8  term
//!   8  log_term    8  index         8  commit        8  commit_term
//!   8  reject_hint 8  priority
//!   1  length of the context, and the context
//!   4  number of entries; for each: 1 kind, 8 term, 8 index, 4 length, frame
//! ```
//! Integers are little-endian. The format version is agreed when nodes connect.

use crate::storage::{from_engine, to_engine};
use crate::{Entry, EntryId, EntryKind, NodeId};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use raft::eraftpb::{Message, MessageType};

/// Largest packet that is taken: the largest frame of a journal, and what is around it.
pub const PACKET_BYTES_MAX: usize = (1 << 30) + (1 << 20);

/// Bytes of a packet without context and entries.
const HEAD_LEN: usize = 2 + 9 * 8 + 1 + 4;
/// Bytes of an entry without its frame.
const ENTRY_HEAD_LEN: usize = 1 + 8 + 8 + 4;
/// What the engine writes into a context is shorter: the name of a reason to vote.
const CONTEXT_MAX: usize = 64;

/// Says from which entry on the leader has its log. The engine's own word for a copy, which it never says here.
const OFFER: MessageType = MessageType::MsgSnapshot;

/// What is said between nodes, by the numbers that stand for it.
const KINDS: [(u8, MessageType); 10] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgHeartbeat),
    (6, MessageType::MsgHeartbeatResponse),
    (7, MessageType::MsgTimeoutNow),
    (8, MessageType::MsgRequestPreVote),
    (9, MessageType::MsgRequestPreVoteResponse),
    (10, OFFER),
];

/// A message from one node's part of a group to another's. It may be lost, come late or twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    pub(crate) message: Message,
}

/// A packet can't be read. Its sender is no node of this cluster, or of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a packet between nodes is malformed: {0}")]
pub struct MalformedPacket(pub &'static str);

impl Packet {
    /// Who it is from.
    pub fn from(&self) -> NodeId {
        NodeId(self.message.from)
    }

    /// Who it is for.
    pub fn to(&self) -> NodeId {
        NodeId(self.message.to)
    }

    /// An offer of a copy of the log, of which the entries from `first` on can be read.
    pub(crate) fn offer(from: NodeId, to: NodeId, term: u64, first: u64) -> Self {
        let mut message =
            Message { from: from.0, to: to.0, term, index: first, ..Message::default() };
        message.set_msg_type(OFFER);
        Packet { message }
    }

    /// Whether it is one of [`Packet::offer`].
    pub(crate) fn is_offer(&self) -> bool {
        self.message.msg_type == OFFER
    }

    /// Whether a leader sends it entries, or says which ones the others should have.
    pub(crate) fn appends(&self) -> bool {
        self.message.msg_type == MessageType::MsgAppend
    }

    /// The follower that says by this, in which term, and up to which entry it has what its leader has.
    pub(crate) fn says_what_is_there(&self) -> Option<(NodeId, u64, u64)> {
        let message = &self.message;
        let says_so = message.msg_type == MessageType::MsgAppendResponse && !message.reject;
        says_so.then_some((self.from(), message.term, message.index))
    }

    /// Whether a node that gets it may lead by that.
    pub(crate) fn helps_to_lead(&self) -> bool {
        use MessageType::{MsgRequestPreVoteResponse, MsgRequestVoteResponse, MsgTimeoutNow};
        let kind = self.message.msg_type;
        matches!(kind, MsgTimeoutNow | MsgRequestVoteResponse | MsgRequestPreVoteResponse)
    }

    /// Whether it says only that a follower is there: it promises nothing that has to be on a disk.
    pub(crate) fn only_answers(&self) -> bool {
        self.message.msg_type == MessageType::MsgHeartbeatResponse
    }

    /// Asks a follower whether it still follows, in a round of this number: a heartbeat that says nothing else.
    pub(crate) fn ask_whether_followed(from: NodeId, to: NodeId, term: u64, round: u64) -> Self {
        let context = Bytes::copy_from_slice(&round.to_le_bytes());
        let mut message = Message { from: from.0, to: to.0, term, context, ..Message::default() };
        message.set_msg_type(MessageType::MsgHeartbeat);
        Packet { message }
    }

    /// What a follower says to that, as the engine would; none if this is another packet.
    pub(crate) fn answer_to_round(&self, commit: u64) -> Option<Self> {
        let asked = &self.message;
        if asked.msg_type != MessageType::MsgHeartbeat || round_in(asked).is_none() {
            return None;
        }
        let (from, to, term, context) = (asked.to, asked.from, asked.term, asked.context.clone());
        let mut message = Message { from, to, term, commit, context, ..Message::default() };
        message.set_msg_type(MessageType::MsgHeartbeatResponse);
        Some(Packet { message })
    }

    /// The round that this is an answer to, as a follower says it back. The engine's own heartbeats are of none.
    pub(crate) fn answers_round(&self) -> Option<u64> {
        round_in(&self.message).filter(|_| self.only_answers())
    }

    /// Whether there are entries in it.
    pub fn has_entries(&self) -> bool {
        !self.message.entries.is_empty()
    }

    /// The entries in it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Option<Entry>> + '_ {
        self.message.entries.iter().map(from_engine)
    }

    /// Whether nodes say such things to each other, and all entries have frames.
    pub(crate) fn can_be_sent(message: &Message) -> bool {
        KINDS.iter().any(|(_, kind)| *kind == message.msg_type)
            && message.entries.iter().all(|entry| from_engine(entry).is_some())
    }

    /// How many bytes it has.
    pub fn encoded_len(&self) -> usize {
        let frames = |entry: &raft::eraftpb::Entry| ENTRY_HEAD_LEN + entry.data.len();
        HEAD_LEN
            + self.message.context.len()
            + self.message.entries.iter().map(frames).sum::<usize>()
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut BytesMut) {
        self.encode_with(out, |out, frame| out.put_slice(frame));
    }

    /// Its bytes, with the frames of its entries where they are.
    pub(crate) fn pieces(&self) -> Vec<Bytes> {
        let (mut out, mut pieces) = (BytesMut::new(), Vec::new());
        self.encode_with(&mut out, |out, frame| {
            pieces.extend([out.split().freeze(), frame.clone()])
        });
        pieces.push(out.freeze());
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    fn encode_with(&self, out: &mut BytesMut, mut put: impl FnMut(&mut BytesMut, &Bytes)) {
        let message = &self.message;
        let kind = KINDS.iter().find(|(_, kind)| *kind == message.msg_type);
        out.put_u8(kind.map_or(0, |(number, _)| *number));
        out.put_u8(u8::from(message.reject));
        for number in [
            message.to,
            message.from,
            message.term,
            message.log_term,
            message.index,
            message.commit,
            message.commit_term,
            message.reject_hint,
        ] {
            out.put_u64_le(number);
        }
        out.put_i64_le(message.priority);
        out.put_u8(message.context.len() as u8);
        out.put_slice(&message.context);
        out.put_u32_le(message.entries.len() as u32);
        for entry in message.entries.iter().filter_map(from_engine) {
            out.put_u8(match entry.kind {
                EntryKind::Batch => 1,
                EntryKind::Start => 2,
                EntryKind::Members => 3,
            });
            out.put_u64_le(entry.id.term);
            out.put_u64_le(entry.id.index);
            out.put_u32_le(entry.frame.len() as u32);
            put(out, &entry.frame);
        }
    }

    /// Reads one packet, which is all of `bytes`; frames stay where they are.
    ///
    /// # Errors
    /// When it is not one.
    pub fn decode(mut bytes: Bytes) -> Result<Self, MalformedPacket> {
        if bytes.len() < HEAD_LEN {
            return Err(MalformedPacket("it is too short"));
        }
        let mut message = Message::default();
        let number = bytes.get_u8();
        let kind = KINDS.iter().find(|(kind, _)| *kind == number);
        message.set_msg_type(kind.ok_or(MalformedPacket("its kind is unknown"))?.1);
        message.reject = match bytes.get_u8() {
            0 => false,
            1 => true,
            _ => return Err(MalformedPacket("a flag is unknown")),
        };
        message.to = bytes.get_u64_le();
        message.from = bytes.get_u64_le();
        message.term = bytes.get_u64_le();
        message.log_term = bytes.get_u64_le();
        message.index = bytes.get_u64_le();
        message.commit = bytes.get_u64_le();
        message.commit_term = bytes.get_u64_le();
        message.reject_hint = bytes.get_u64_le();
        message.priority = bytes.get_i64_le();
        let len = usize::from(bytes.get_u8());
        if len > CONTEXT_MAX || bytes.len() < len + 4 {
            return Err(MalformedPacket("its context is too long"));
        }
        message.context = bytes.split_to(len);
        let entries = bytes.get_u32_le() as usize;
        if entries > bytes.len() / ENTRY_HEAD_LEN {
            return Err(MalformedPacket("it has fewer entries than it says"));
        }
        message.entries = (0..entries)
            .map(|_| decode_entry(&mut bytes).map(|entry| to_engine(&entry)))
            .collect::<Result<Vec<_>, _>>()?
            .into();
        if bytes.is_empty() {
            Ok(Packet { message })
        } else {
            Err(MalformedPacket("it is too long"))
        }
    }
}

/// The round that a heartbeat, or the answer to one, is of.
fn round_in(message: &Message) -> Option<u64> {
    message.context[..].try_into().ok().map(u64::from_le_bytes)
}

fn decode_entry(bytes: &mut Bytes) -> Result<Entry, MalformedPacket> {
    if bytes.len() < ENTRY_HEAD_LEN {
        return Err(MalformedPacket("an entry is cut off"));
    }
    let kind = match bytes.get_u8() {
        1 => EntryKind::Batch,
        2 => EntryKind::Start,
        3 => EntryKind::Members,
        _ => return Err(MalformedPacket("the kind of an entry is unknown")),
    };
    let id = EntryId { term: bytes.get_u64_le(), index: bytes.get_u64_le() };
    let len = bytes.get_u32_le() as usize;
    if len == 0 || len > bytes.len() {
        return Err(MalformedPacket("a frame is cut off"));
    }
    Ok(Entry { id, kind, frame: bytes.split_to(len) })
}
