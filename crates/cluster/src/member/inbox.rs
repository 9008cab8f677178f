//! What waits for a group's thread.

use crate::copy::Giver;
use crate::{Change, NodeId, Packet, ProposeError};
use courser_journal::{Failure, replica::Events};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use tokio::sync::Notify;

/// Packets that may wait; what comes beyond is lost, and sent again by whom it is from.
const PACKETS_MAX: usize = 4096;
/// Bytes of these, unless it is one alone.
const BYTES_MAX: usize = 64 << 20;

/// An operator's wish, and who waits for the answer.
pub(crate) enum Command {
    Change {
        /// The entry that made the members by which it was decided on.
        since: u64,
        changes: Vec<Change>,
        answer: SyncSender<Result<(), ProposeError>>,
    },
    /// What a copy needs to know of who gives it; and another leader, if this one's term is not above that.
    Give {
        above: Option<u64>,
        answer: SyncSender<Option<Giver>>,
    },
    Transfer {
        node: NodeId,
        answer: SyncSender<Result<(), ProposeError>>,
    },
}

/// Everything that waits.
#[derive(Default)]
pub(crate) struct Waiting {
    pub packets: VecDeque<Packet>,
    packet_bytes: usize,
    /// The log has synced something.
    pub synced: bool,
    /// The log has more files, or none.
    pub room: bool,
    /// Entries that followers lack were read.
    pub fetched: bool,
    /// Something was appended that has to be proposed.
    pub gathered: bool,
    /// An answer waits for a proof that this node leads.
    pub proof_wanted: bool,
    pub commands: Vec<Command>,
    /// The log can't take what this leader's broker has done.
    pub overrun: bool,
    /// The log has failed.
    pub failed: Option<String>,
    pub stop: bool,
}

/// Filled by many threads, emptied by one.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

impl Inbox {
    pub fn put_packet(&self, packet: Packet) {
        let bytes = packet.encoded_len();
        let mut waiting = self.waiting.lock();
        let is_full = waiting.packets.len() >= PACKETS_MAX
            || waiting.packet_bytes > 0 && waiting.packet_bytes + bytes > BYTES_MAX;
        if is_full || waiting.stop {
            return;
        }
        waiting.packet_bytes += bytes;
        waiting.packets.push_back(packet);
        drop(waiting);
        self.filled.notify_one();
    }

    /// False if the member has stopped.
    pub fn put_command(&self, command: Command) -> bool {
        let mut waiting = self.waiting.lock();
        let is_there = !waiting.stop;
        if is_there {
            waiting.commands.push(command);
            self.filled.notify_one();
        }
        is_there
    }

    /// Has the thread end, and nothing be taken any more.
    pub fn stop(&self) {
        let mut waiting = self.waiting.lock();
        waiting.stop = true;
        waiting.commands.clear();
        drop(waiting);
        self.filled.notify_one();
    }

    /// Waits until something has come in since this was last awaited.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Whether there is something to be taken.
    pub fn is_filled(&self) -> bool {
        let waiting = self.waiting.lock();
        let Waiting { packets, packet_bytes: _, synced, room, fetched, gathered, .. } = &*waiting;
        let Waiting { proof_wanted, commands, overrun, failed, stop, .. } = &*waiting;
        let has_said = *synced || *room || *fetched || *gathered || *proof_wanted || *overrun;
        let has_said = has_said || *stop || failed.is_some();
        has_said || !packets.is_empty() || !commands.is_empty()
    }

    /// Takes what is there.
    pub fn take(&self) -> Waiting {
        let mut waiting = self.waiting.lock();
        let stop = waiting.stop;
        std::mem::replace(&mut *waiting, Waiting { stop, ..Waiting::default() })
    }
}

impl Events for Inbox {
    fn synced(&self, _ticket: u64) {
        self.waiting.lock().synced = true;
        self.filled.notify_one();
    }

    fn gathered(&self) {
        self.waiting.lock().gathered = true;
        self.filled.notify_one();
    }

    fn proof_wanted(&self) {
        self.waiting.lock().proof_wanted = true;
        self.filled.notify_one();
    }

    fn room(&self) {
        self.waiting.lock().room = true;
        self.filled.notify_one();
    }

    fn fetched(&self) {
        self.waiting.lock().fetched = true;
        self.filled.notify_one();
    }

    fn failed(&self, failure: &Failure) {
        self.waiting.lock().failed = Some(failure.to_string());
        self.filled.notify_one();
    }

    fn overrun(&self) {
        self.waiting.lock().overrun = true;
        self.filled.notify_one();
    }
}
