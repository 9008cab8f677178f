//! Records of a group's log that this node's disk has damaged: the other nodes of the group are asked for them, and what one
//! has is written again. Only what no voter has is lost.

use super::group::Group;
use super::members::Members;
use super::questions::Question;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_cluster::transport::Node;
use courser_cluster::{GroupNumber, Member};
use courser_store::Lsn;
use std::time::Duration;

/// Records that are asked for in one go.
const RECORDS_AT_ONCE: usize = 16;
/// Bytes of a record that an answer brings at most.
const PIECE_BYTES_MAX: usize = 8 << 20;
/// How long another node may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes in front of a record, the first four of which say how many follow them all.
const HEAD_BYTES: usize = 8;

impl Members {
    /// Asks for what is damaged, some of it, and writes it again. To be called now and then. Blocks.
    pub(super) fn mend(&self, group: &Group, member: &Member) {
        for position in member.damaged(RECORDS_AT_ONCE) {
            self.mend_record(group.number, member, position);
        }
    }

    fn mend_record(&self, group: GroupNumber, member: &Member, position: Lsn) {
        let (own, members) = (self.endpoint.about().node, member.status().members);
        let mut unheard = members.voters.is_empty();
        for id in members.voters.iter().chain(&members.learners).filter(|id| **id != own) {
            let node = self.roster.node(*id).ok_or_else(|| "its address is not known".to_owned());
            let found = node.and_then(|node| {
                let found = self.runtime.block_on(self.record_of(&node, group, position))?;
                let Some(record) = found else { return Ok(None) };
                member.mend(position, &record).map_err(|error| error.to_string())?;
                Ok(Some(node.name))
            });
            match found {
                Ok(Some(from)) => {
                    tracing::warn!(%position, group = group.0, from,
                        "a message that the disk had damaged is written again; look after the disk");
                    return;
                }
                Ok(None) => {}
                Err(why) => {
                    tracing::debug!(%position, group = group.0, node = %id, why, "no answer about a damaged message");
                    unheard |= members.voters.contains(id);
                }
            }
        }
        if !unheard {
            member.give_up(position);
        }
    }

    /// The record at this position, as another node has it.
    async fn record_of(
        &self,
        node: &Node,
        group: GroupNumber,
        position: Lsn,
    ) -> Result<Option<Vec<u8>>, String> {
        let mut record = Vec::new();
        loop {
            let question = Question::Record { group, position: position.0, from: record.len() };
            let question = serde_json::to_string(&question).map_err(|error| error.to_string())?;
            let asked = self.endpoint.ask(&node.address, &question);
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, asked).await;
            let answer = answer.map_err(|_| "it does not answer".to_owned())?;
            let answer = answer.map_err(|error| error.to_string())?;
            let piece: Option<String> =
                serde_json::from_str(&answer).map_err(|error| error.to_string())?;
            let Some(piece) = piece else { return Ok(None) };
            let piece = STANDARD.decode(piece).map_err(|error| error.to_string())?;
            record.extend_from_slice(&piece);
            match whole_len(&record) {
                Some(len) if record.len() >= len => return Ok(Some(record)),
                _ if piece.is_empty() => return Err("it sends a part of the record".into()),
                _ => {}
            }
        }
    }

    /// Answers [`Question::Record`].
    pub(super) async fn record_answer(
        &self,
        group: GroupNumber,
        position: Lsn,
        from: usize,
    ) -> Result<String, String> {
        let member = self.groups.get(group).and_then(|group| group.member());
        let member = member.ok_or("this node has no log of the group yet")?;
        let reading = tokio::task::spawn_blocking(move || member.record(position));
        let record = reading.await.map_err(|error| error.to_string())?;
        let record = record.map_err(|error| error.to_string())?;
        let piece = record.map(|record| {
            let rest = record.get(from..).unwrap_or_default();
            STANDARD.encode(&rest[..rest.len().min(PIECE_BYTES_MAX)])
        });
        serde_json::to_string(&piece).map_err(|error| error.to_string())
    }
}

/// Bytes of a record with its head, as soon as that has come.
fn whole_len(record: &[u8]) -> Option<usize> {
    let head = record.first_chunk::<HEAD_BYTES>()?;
    let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    Some(HEAD_BYTES + len as usize)
}
