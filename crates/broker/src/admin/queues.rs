//! Queues as an operator sees them.

use super::page::{Listing, Page, PageRequest, View};
use crate::arguments::QueueType;
use crate::counts::QueueCounts;
use crate::monitor::Named;
use crate::policy::{PolicyKind, QueuePolicies};
use crate::queue::{
    ConnectionId, DelayedRetry, DelayedStatus, Look, Queue, QueueContents, QueueStatus, Unread,
};
use crate::vhost::Vhost;
use courser_codec::{FieldTable, ShortString};
use std::sync::Arc;

/// A queue and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    /// The vhost it is in.
    pub vhost: String,
    /// Its name.
    pub name: ShortString,
    /// `classic`, `quorum` or `stream`.
    pub queue_type: &'static str,
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// The connection that alone may use it, and with which it goes.
    pub exclusive_owner: Option<ConnectionId>,
    /// The arguments as declared.
    pub arguments: FieldTable,
    /// The name of the policy that counts for it.
    pub policy: Option<String>,
    /// The name of the operator policy that counts for it.
    pub operator_policy: Option<String>,
    /// What the two policies ask for together.
    pub effective_definition: FieldTable,
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Messages delivered and not acknowledged.
    pub unacked: usize,
    /// Messages that have come back and wait for their next try.
    pub delayed: DelayedStatus,
    /// How long those wait, if any do.
    pub delayed_retry: Option<DelayedRetry>,
    /// Consumers, blocked ones included.
    pub consumers: usize,
    /// A thread waits for the disk, as it seems, and has the queue to itself meanwhile. The messages that wait, those that are not
    /// acknowledged and the consumers are as many as before; what else changes is not known, and as of a queue without
    /// messages and policies.
    pub is_held: bool,
    /// The part of the time, from 0 to 1, in which no message had to wait for a consumer to be free: mostly of the last
    /// seconds. 0 without consumers, none for a stream.
    pub consumer_capacity: Option<f64>,
    /// How often a message may come back from consumers; the largest number where that is counted without a limit, none
    /// where it is not counted.
    pub delivery_limit: Option<u64>,
    /// Clients get nothing from it for now.
    pub paused: bool,
    /// How often, since the broker was started, a client could not be given a message whose content
    /// header is longer than the frames that the client has agreed to.
    pub unfit: u64,
    /// There while it can't read what comes next, though that is not lost: it tries again every second.
    pub unread: Option<Unread>,
    /// What is there of a stream.
    pub stream: Option<StreamView>,
    /// How many messages have come and gone.
    pub counts: QueueCounts,
    /// What its messages amount to; none for a stream.
    pub contents: Option<QueueContents>,
    /// Bytes of memory that it uses, without what its messages in memory need besides their bodies.
    pub memory_bytes: u64,
    /// The `timestamp` of the message whose turn it is, if it has one and is in memory.
    pub head_timestamp: Option<u64>,
    /// When a message last came, was asked for or given to a client, or was settled by one; or else when the
    /// queue was made or the broker began to serve: milliseconds since 1970.
    pub used_ms: u64,
}

/// What a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// The offset of its oldest message.
    pub first_offset: u64,
    /// The offset that its next message gets.
    pub next_offset: u64,
}

/// What is quickly known of a queue, to sort many of them by.
pub struct QueueGlance<'a> {
    vhost: &'a Vhost,
    queue: &'a Queue,
}

impl QueueGlance<'_> {
    /// The vhost it is in.
    pub fn vhost(&self) -> &str {
        &self.vhost.name
    }

    /// Its name.
    pub fn name(&self) -> &ShortString {
        &self.queue.name
    }

    /// `classic`, `quorum` or `stream`.
    pub fn queue_type(&self) -> &'static str {
        QueueType::of(&self.queue.settings.arguments).name()
    }

    /// Unique among all queues of the broker as long as it runs.
    pub fn id(&self) -> u64 {
        self.queue.id
    }

    /// Survives a restart of the broker.
    pub fn is_durable(&self) -> bool {
        self.queue.settings.durable
    }

    /// Is deleted with its last consumer.
    pub fn is_auto_delete(&self) -> bool {
        self.queue.settings.auto_delete
    }

    /// Belongs to one connection.
    pub fn is_exclusive(&self) -> bool {
        self.queue.settings.exclusive_owner.is_some()
    }

    /// Whether a thread has it to itself for long, as in [`QueueView`].
    pub fn is_held(&self) -> bool {
        self.queue.look().is_none()
    }

    /// The policy that applies to it.
    pub fn policy(&self) -> Option<String> {
        self.policies()?.name(PolicyKind::User)
    }

    /// The operator policy that applies to it.
    pub fn operator_policy(&self) -> Option<String> {
        self.policies()?.name(PolicyKind::Operator)
    }

    /// What the two policies ask for together.
    pub fn effective_definition(&self) -> FieldTable {
        self.policies().map(|policies| policies.definition()).unwrap_or_default()
    }

    fn policies(&self) -> Option<QueuePolicies> {
        self.queue.look().map(|look| look.policies().clone())
    }

    /// The arguments as declared.
    pub fn arguments(&self) -> &FieldTable {
        &self.queue.settings.arguments
    }

    /// What it holds.
    pub fn status(&self) -> QueueStatus {
        self.queue.shown_status()
    }

    /// What its messages amount to; none for a stream.
    pub fn contents(&self) -> Option<QueueContents> {
        self.queue.look()?.contents()
    }

    /// Bytes of memory that it uses, if it is not held.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.queue.look().map(|look| look.memory_bytes())
    }

    /// The part of the time in which no message had to wait for a consumer to be free, as in [`QueueView`].
    pub fn consumer_capacity(&self) -> Option<f64> {
        self.queue.look()?.consumer_capacity()
    }

    /// How often a message may come back from consumers, as in [`QueueView`].
    pub fn delivery_limit(&self) -> Option<u64> {
        self.queue.look()?.delivery_limit()
    }

    /// Whether clients get nothing from it for now.
    pub fn is_paused(&self) -> bool {
        self.queue.is_paused()
    }

    /// How often a client could not be given a message for its long content header.
    pub fn unfit(&self) -> u64 {
        self.queue.unfit()
    }

    /// Whether it can't read what comes next.
    pub fn is_unread(&self) -> bool {
        self.queue.look().is_some_and(|look| look.unread().is_some())
    }

    /// How many messages have come and gone, if it is not held.
    pub fn counts(&self) -> Option<QueueCounts> {
        self.queue.look().map(|look| look.counts())
    }
}

impl Listing<QueueView> {
    /// A part of the list in another order than its own, that of a key. It is made of every queue that
    /// the filter lets through; those without one are left out. Queues with the same key stay as they
    /// are.
    pub fn page_by<K: Ord>(
        &self,
        request: &PageRequest<'_>,
        is_reversed: bool,
        mut key: impl FnMut(&QueueGlance<'_>) -> Option<K>,
    ) -> Page<QueueView> {
        self.page_by_key(request, is_reversed, |vhost, queue| key(&QueueGlance { vhost, queue }))
    }

    /// As [`Listing::page_by`], the first `most` queues, as the key and the rank in the list's own order of each
    /// ([`Listing::nth`]), and how many have a key at all.
    pub fn ranks_by<K: Ord>(
        &self,
        filter: Option<&dyn Fn(&str) -> bool>,
        most: usize,
        is_reversed: bool,
        mut key: impl FnMut(&QueueGlance<'_>) -> Option<K>,
    ) -> (usize, Vec<(K, usize)>) {
        let key = |vhost: &Arc<Vhost>, queue: &Queue| key(&QueueGlance { vhost, queue });
        self.ranks_by_key(filter, most, is_reversed, key)
    }
}

impl std::fmt::Debug for QueueGlance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueGlance").field("name", self.name()).finish_non_exhaustive()
    }
}

impl Named for Queue {
    fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl View for QueueView {
    type Item = Queue;
    type Group = Arc<Vhost>;

    fn view(vhost: &Arc<Vhost>, queue: &Arc<Queue>) -> Self {
        let settings = &queue.settings;
        let (vhost, arguments) = (vhost.name.clone(), settings.arguments.clone());
        let look = queue.look();
        let policies = look.as_ref().map(|look| look.policies().clone());
        let shown = QueueView::shown(vhost, arguments, queue, look.as_ref());
        drop(look);
        // They take longer.
        let Some(policies) = policies else { return shown };
        QueueView {
            policy: policies.name(PolicyKind::User),
            operator_policy: policies.name(PolicyKind::Operator),
            effective_definition: policies.definition(),
            ..shown
        }
    }
}

impl QueueView {
    /// A queue without its policies.
    fn shown(
        vhost: String,
        arguments: FieldTable,
        queue: &Arc<Queue>,
        look: Option<&Look<'_>>,
    ) -> Self {
        let settings = &queue.settings;
        let status = look.map_or_else(|| queue.last_status(), Look::status);
        let QueueStatus { ready, unacked, delayed, consumers } = status;
        QueueView {
            vhost,
            name: queue.name.clone(),
            queue_type: QueueType::of(&settings.arguments).name(),
            durable: settings.durable,
            auto_delete: settings.auto_delete,
            exclusive_owner: settings.exclusive_owner,
            arguments,
            policy: None,
            operator_policy: None,
            effective_definition: FieldTable::default(),
            ready,
            unacked,
            delayed,
            delayed_retry: look.and_then(Look::delayed_retry),
            consumers,
            is_held: look.is_none(),
            consumer_capacity: look.and_then(Look::consumer_capacity),
            delivery_limit: look.and_then(Look::delivery_limit),
            counts: look.map(Look::counts).unwrap_or_default(),
            contents: look.and_then(Look::contents),
            memory_bytes: look.map(Look::memory_bytes).unwrap_or_default(),
            head_timestamp: look.and_then(Look::head_timestamp),
            used_ms: look.map(Look::used_ms).unwrap_or_default(),
            paused: queue.is_paused(),
            unfit: queue.unfit(),
            unread: look.and_then(Look::unread),
            stream: queue.stream().map(|stream| StreamView {
                first_offset: stream.first_offset(),
                next_offset: stream.next_offset(),
            }),
        }
    }
}
