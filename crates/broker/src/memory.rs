//! What clients make the broker hold besides the messages that wait: how much of memory it is, and how
//! much it may be.
//!
//! Waiting messages are counted by the store that keeps them. All else is counted here, by estimates
//! that are no less than what is used: each thing is charged when it is made or grows, and given back
//! when it goes. Both together raise the memory alarm. What an alarm can't make shrink, as it is not
//! consumed, is refused before it alone could raise one. Dead letters are neither refused nor held: what waits may be able to
//! leave only as such, so holding them could make an alarm that never ends.

use crate::exchange::ExchangeKind;
use crate::fault::Fault;
use crate::limits::Limits;
use crate::outbox::Shortage;
use courser_codec::reply_code::RESOURCE_ERROR;
use courser_codec::{FieldTable, FieldValue, ShortString};
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What memory is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Use {
    /// Queues, exchanges and bindings, with their names and arguments.
    #[default]
    Definitions,
    /// What open transactions hold until their commit.
    Transactions,
    /// The large bodies among that, which count for themselves as those of waiting messages do, and in no total here.
    TransactionBodies,
    /// Channels and consumers, and what is kept for these: stream filters, queues for direct replies.
    Channels,
    /// Remembered routes, the books of what is unacknowledged, deleted queues that are kept for these, and what clients say of
    /// themselves.
    Sessions,
    /// The places of what waits: in queues, and in exchanges that delay.
    Places,
    /// The places of what waits for another try.
    Retries,
    /// The places of what exchanges remember for those that are bound later.
    Histories,
    /// What is remembered of messages to drop their repetitions.
    Deduplication,
    /// What operators ask for, on its way to them.
    Answers,
    /// Copies of what is traced, on their way to their queues.
    Copies,
    /// Messages and frames that have come in part.
    Incomplete,
    /// Messages that are taken in when the disk has caught up.
    Unread,
    /// What has been read ahead of the messages that are handed out next.
    Readers,
    /// What clients have sent that have not opened a vhost yet.
    Newcomers,
    /// What clients are sent that have not read it yet.
    Outboxes,
}

const USES: usize = Use::Outboxes as usize + 1;

/// What definitions may use however early the alarm begins: the exchanges that every vhost has leave
/// room for some hundred queues.
const DEFINITIONS_MAX_LEAST: u64 = 1 << 20;

/// What each connection may have of messages that have come in part, whatever others have: the beginning of a small message. All
/// connections that there may be take little by it.
const INCOMPLETE_AT_ANY_TIME: usize = 4 * 1024;

/// What each connection may have of channels and consumers, whatever others have: a channel with a few consumers.
const HELD_AT_ANY_TIME: usize = 4096;

/// What may come with one of the largest messages: what one read leaves, or the frames around it.
const MESSAGE_SPARE: u64 = 256 * 1024;

/// Bytes that are used, by their use.
#[derive(Debug)]
pub(crate) struct Memory {
    used: [AtomicU64; USES],
    total: AtomicU64,
    /// Where the memory alarm begins. It may change at any time, and all that is derived from it with it.
    high_bytes: AtomicU64,
    /// What has come in part, and what is on its way to clients, may each use this much however early the alarm begins.
    two_messages: u64,
    /// Whether what is on its way to clients uses what it may.
    pub shortage: Shortage,
}

impl Memory {
    /// Books for a broker with these limits.
    pub fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Memory {
            used: Default::default(),
            total: AtomicU64::new(0),
            high_bytes: AtomicU64::new(limits.memory_high_bytes),
            // A connection that is alone may use half of it: enough for one of the largest messages.
            two_messages: 2 * (limits.message_max_bytes + MESSAGE_SPARE),
            shortage: Shortage::default(),
        })
    }

    /// Where the memory alarm begins.
    pub fn high_bytes(&self) -> u64 {
        self.high_bytes.load(Ordering::Relaxed)
    }

    /// Has the memory alarm begin elsewhere. What uses more than it may from now on keeps it, and does not grow.
    pub fn set_high_bytes(&self, bytes: u64) {
        self.high_bytes.store(bytes, Ordering::Relaxed);
        self.outboxes_changed();
    }

    /// The most that definitions may use.
    fn definitions_max(&self) -> u64 {
        (self.high_bytes() / 4).max(DEFINITIONS_MAX_LEAST)
    }

    /// The most that transactions, that what is remembered to drop repetitions, that recent histories, that
    /// channels and consumers, that places of what waits for another try, and that copies of what is traced may use.
    fn share_max(&self) -> u64 {
        self.high_bytes() / 4
    }

    /// The most that what has come in part, and that what is on its way to clients may use.
    fn half_max(&self) -> u64 {
        (self.high_bytes() / 2).max(self.two_messages)
    }

    /// Looks whether there is room for more that is on its way to clients.
    fn outboxes_changed(&self) {
        let used = || self.used[Use::Outboxes as usize].load(Ordering::SeqCst);
        self.shortage.note(used, self.half_max());
    }

    /// All bytes that are used.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes that count towards the memory alarm. Messages that have come in part, or are not taken in yet, count for no
    /// more than half of what raises it: a publisher that waits for its end can't send the rest of them. What is kept for
    /// clients that may be anyone counts for no more than they may have: they stop no publisher.
    pub fn alarming(&self) -> u64 {
        let held = self.used(Use::Incomplete) + self.used(Use::Unread);
        let newcomers = self.used(Use::Newcomers).saturating_sub(self.newcomers_max());
        let uncounted = held.saturating_sub(self.high_bytes() / 2) + newcomers;
        self.total().saturating_sub(uncounted)
    }

    /// The most that newcomers may use, all together. Their connections end where they would use more.
    pub fn newcomers_max(&self) -> u64 {
        self.high_bytes() / 16
    }

    /// Bytes of one use.
    pub fn used(&self, by: Use) -> u64 {
        self.used[by as usize].load(Ordering::Relaxed)
    }

    /// Counts `bytes` for as long as the charge lives.
    pub fn charge(self: &Arc<Self>, by: Use, bytes: usize) -> Charge {
        let mut charge = Charge { memory: Some(Arc::clone(self)), by, bytes: 0 };
        charge.set(bytes);
        charge
    }

    /// Refuses a definition of `bytes` when all together have what they may.
    pub fn admit_definition(&self, bytes: usize) -> Result<(), Fault> {
        let most = self.definitions_max();
        admit(self.used(Use::Definitions), bytes, most, "queues, exchanges and bindings")
    }

    /// Refuses to let transactions grow by `bytes` when all together have what they may.
    pub fn admit_transaction(&self, bytes: usize) -> Result<(), Fault> {
        let used = self.used(Use::Transactions) + self.used(Use::TransactionBodies);
        admit(used, bytes, self.share_max(), "open transactions")
    }

    /// Refuses to let channels and consumers grow by `bytes` when all together have what they may, and the connection that wants
    /// it has what each may have at any time: `holds_within` says whether its own use no more than so many bytes.
    pub fn admit_held(
        &self,
        bytes: usize,
        holds_within: impl FnOnce(usize) -> bool,
    ) -> Result<(), Fault> {
        let what = "channels, consumers and stream filters";
        let admitted = admit(self.used(Use::Channels), bytes, self.share_max(), what);
        let left = HELD_AT_ANY_TIME.checked_sub(bytes);
        admitted.or_else(|fault| if left.is_some_and(holds_within) { Ok(()) } else { Err(fault) })
    }

    /// Refuses what would keep one more queue, deleted or not, until it is acknowledged, when all together have what they may.
    pub fn admit_unacknowledged(&self) -> Result<(), Fault> {
        let what = "what is unacknowledged and keeps queues";
        admit(self.used(Use::Sessions), 1, self.share_max(), what)
    }

    /// Counts `bytes` of what a connection has of messages that have come in part, which `charge` counts. What one connection
    /// may have is what all of them together leave free, so that each newcomer still finds some room.
    pub fn hold_incomplete(&self, charge: &mut Charge, bytes: usize) -> Result<(), Fault> {
        let (before, most) = (charge.bytes(), self.half_max());
        let others = self.used(Use::Incomplete).saturating_sub(before as u64);
        let grows = bytes > before.max(INCOMPLETE_AT_ANY_TIME);
        if grows && 2 * bytes as u64 > most.saturating_sub(others) {
            return Err(Fault::new(
                RESOURCE_ERROR,
                format_args!(
                    "memory limit ({most} bytes) of messages that have come in part reached"
                ),
            ));
        }
        charge.set(bytes);
        Ok(())
    }

    /// Whether what is remembered to drop repetitions may grow by `bytes`, all together.
    pub fn admits_deduplication(&self, bytes: usize) -> bool {
        self.used(Use::Deduplication).saturating_add(bytes as u64) <= self.share_max()
    }

    /// Whether recent histories may grow by `bytes`, all together.
    pub fn admits_history(&self, bytes: usize) -> bool {
        self.used(Use::Histories).saturating_add(bytes as u64) <= self.share_max()
    }

    /// Whether copies of what is traced may grow by `bytes`, all together.
    pub fn admits_copies(&self, bytes: usize) -> bool {
        self.used(Use::Copies).saturating_add(bytes as u64) <= self.share_max()
    }

    /// Of so many bytes that recent histories had before a restart, those that they may have again: what the same memory had
    /// room for before has it twice over.
    pub fn restored_history_bytes(&self, bytes: u64) -> u64 {
        bytes.min((2 * self.share_max()).saturating_sub(self.used(Use::Histories)))
    }

    /// Whether what waits for another try uses more than it may, all together.
    pub fn has_too_many_retries(&self) -> bool {
        self.used(Use::Retries) > self.share_max()
    }

    /// Whether what has been read ahead may grow by `bytes`, all together.
    pub fn admits_reader(&self, bytes: usize) -> bool {
        self.used(Use::Readers).saturating_add(bytes as u64) <= self.high_bytes() / 8
    }
}

/// Refuses to let what uses so many bytes grow by `bytes` beyond `most`.
fn admit(used: u64, bytes: usize, most: u64, what: &str) -> Result<(), Fault> {
    if used.saturating_add(bytes as u64) <= most {
        return Ok(());
    }
    Err(Fault::precondition_failed(format_args!("memory limit ({most} bytes) of {what} reached")))
}

/// Bytes that are counted as used until this goes.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    memory: Option<Arc<Memory>>,
    by: Use,
    bytes: usize,
}

impl Charge {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The books in which it is counted, if any.
    pub fn memory(&self) -> Option<&Arc<Memory>> {
        self.memory.as_ref()
    }

    /// Another one in the same books, with nothing counted yet.
    pub fn another(&self) -> Self {
        Charge { memory: self.memory.clone(), by: self.by, bytes: 0 }
    }

    /// Counts what it does as another use from now on.
    pub fn count_as(&mut self, by: Use) {
        let bytes = self.bytes;
        self.set(0);
        self.by = by;
        self.set(bytes);
    }

    /// Counts this many from now on.
    pub fn set(&mut self, bytes: usize) {
        let Some(memory) = &self.memory else { return };
        if bytes == self.bytes {
            return;
        }
        let before = std::mem::replace(&mut self.bytes, bytes);
        let total = Some(&memory.total).filter(|_| self.by != Use::TransactionBodies);
        // In one order with what says that there is a shortage: otherwise no one might see that it is over.
        for count in total.into_iter().chain([&memory.used[self.by as usize]]) {
            if bytes >= before {
                count.fetch_add((bytes - before) as u64, Ordering::SeqCst);
            } else {
                count.fetch_sub((before - bytes) as u64, Ordering::SeqCst);
            }
        }
        if self.by == Use::Outboxes {
            memory.outboxes_changed();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A queue without its name and arguments.
const QUEUE_BYTES: usize = 2304;
/// What a queue does besides that has arguments.
const QUEUE_SETTINGS_BYTES: usize = 512;
/// An exchange without its name and arguments.
const EXCHANGE_BYTES: usize = 1536;
/// A binding without its key and arguments: an entry of its destination and one of its exchange's index.
const BINDING_BYTES: usize = 768;
/// A word of a topic: a node of the trie.
const WORD_BYTES: usize = 160;
/// A header that a binding asks for: an entry among those that bindings are found by.
const HEADER_BYTES: usize = 256;

/// What a queue uses.
pub(crate) fn queue_bytes(name: &ShortString, arguments: &FieldTable) -> usize {
    let settings = if arguments.is_empty() { 0 } else { QUEUE_SETTINGS_BYTES };
    QUEUE_BYTES + settings + named_bytes(name, arguments)
}

/// What an exchange uses.
pub(crate) fn exchange_bytes(name: &ShortString, arguments: &FieldTable) -> usize {
    EXCHANGE_BYTES + named_bytes(name, arguments)
}

fn named_bytes(name: &ShortString, arguments: &FieldTable) -> usize {
    2 * name.as_bytes().len() + table_bytes(arguments)
}

/// What a binding to an exchange that routes as this kind uses.
pub(crate) fn binding_bytes(
    kind: ExchangeKind,
    routing_key: &ShortString,
    arguments: &FieldTable,
) -> usize {
    let key = routing_key.as_bytes();
    let (tables, index) = match kind {
        ExchangeKind::Topic => {
            (1, WORD_BYTES * (1 + key.iter().filter(|byte| **byte == b'.').count()))
        }
        // As they were given, as the index has them, and by name and value.
        ExchangeKind::Headers => (4, HEADER_BYTES * arguments.len()),
        _ => (1, 0),
    };
    BINDING_BYTES + key.len() + index + tables * table_bytes(arguments)
}

/// Bytes that the entries of a table take.
pub fn table_bytes(table: &FieldTable) -> usize {
    let entry = |(key, value): (&ShortString, &FieldValue)| {
        size_of::<(ShortString, FieldValue)>() + key.as_bytes().len() + value_bytes(value)
    };
    table.iter().map(entry).sum()
}

/// What a value uses beyond itself. Tables are nested no deeper than the codec allows.
fn value_bytes(value: &FieldValue) -> usize {
    match value {
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => bytes.len(),
        FieldValue::Array(values) => {
            values.iter().map(|value| size_of::<FieldValue>() + value_bytes(value)).sum()
        }
        FieldValue::Table(table) => table_bytes(table),
        _ => 0,
    }
}
