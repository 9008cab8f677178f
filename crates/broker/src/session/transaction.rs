//! Transactions: publishes and settlements that take effect together (AMQP 0-9-1, 1.9).
//!
//! A publish is checked and routed when it comes, so that its publisher hears at once what is wrong with
//! it, and once more at the commit: what can't be published then, as its exchange has gone or a permission
//! has been taken away, ends the whole transaction without effect.

use super::acknowledge::Settlement;
use super::apart::{Addressed, PutThrough};
use super::properties::malformed;
use super::{Inbound, Session};
use crate::fault::Fault;
use crate::memory::{Charge, Use};
use crate::outbox::Unacked;
use crate::queue::Queue;
use crate::work::Budget;
use bytes::Bytes;
use courser_codec::{ContentHeader, Method, ShortStr, basic};
use courser_store::{KeptBody, Position, Record, Sync};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Steps that the routes of what a transaction publishes may take, with one for each queue that a message goes to: some hundred
/// milliseconds. Ordinary ones take some ten for each message. The routes of repetitions, which are looked up once more without what
/// has had them, may take as many.
pub(super) const COMMIT_STEPS_MAX: u64 = 1 << 24;

/// What a transactional channel has done since its last commit.
#[derive(Default)]
pub(super) struct Transaction {
    publishes: Vec<Pending>,
    publishes_bytes: usize,
    /// Bytes of the content headers among them.
    header_bytes: usize,
    /// How often a queue would have got one of them by the routes that they had when they came.
    copies: usize,
    charge: Charge,
    /// Bytes of the bodies that count for themselves.
    bodies: Charge,
    /// Deliveries settled; a rollback gives them back to the client, unacknowledged.
    settled: Vec<(u64, Unacked, Settlement)>,
}

/// A publish that waits for its commit.
struct Pending {
    address: Bytes,
    header: Bytes,
    body: KeptBody,
    mandatory: bool,
}

/// The fault of a commit whose publishes take more than [`COMMIT_STEPS_MAX`].
pub(super) fn takes_too_many_steps() -> Fault {
    let text = format_args!(
        "the publishes of a transaction take more than {COMMIT_STEPS_MAX} steps to route: commit fewer at once, have each go to fewer \
         queues, name fewer keys in CC and BCC, or use fewer patterns with '#'"
    );
    Fault::new(506, text)
}

/// What a pending publish costs besides its bytes.
const PENDING_OVERHEAD_BYTES: usize = 192;

impl Session {
    pub(super) fn is_transactional(&self, number: u16) -> bool {
        self.channels.get(number).is_some_and(|channel| channel.transaction.is_some())
    }

    pub(super) fn transaction(&mut self, number: u16) -> Option<&mut Transaction> {
        self.channels.get_mut(number)?.transaction.as_deref_mut()
    }

    fn new_transaction(&self) -> Transaction {
        let [charge, bodies] =
            [Use::Transactions, Use::TransactionBodies].map(|by| self.broker.memory.charge(by, 0));
        Transaction { charge, bodies, ..Transaction::default() }
    }

    pub(super) fn begin_transaction(&mut self, number: u16) -> Result<(), Fault> {
        let new = self.new_transaction();
        self.channel(number)?.transaction.get_or_insert_with(|| Box::new(new));
        if let Some(channel) = self.outbox.lock().channel(number) {
            channel.transactional = true;
        }
        Ok(())
    }

    /// Takes what a transactional channel has done, which begins anew.
    fn take_transaction(&mut self, number: u16) -> Option<Transaction> {
        let new = self.new_transaction();
        let transaction = self.transaction(number)?;
        let taken = std::mem::replace(transaction, new);
        self.pending_bytes = self.pending_bytes.saturating_sub(taken.publishes_bytes);
        Some(taken)
    }

    /// Keeps a publish, which has been found good and goes to so many queues, until the commit.
    pub(super) fn publish_later(
        &mut self,
        inbound: &Inbound<'_>,
        queues: usize,
    ) -> Result<(), Fault> {
        let most = self.broker.limits.transaction_publishes_max;
        let held = self.transaction(inbound.channel).map_or(0, |held| held.publishes.len());
        if held >= most {
            return Err(Fault::precondition_failed(format_args!(
                "transaction limit ({most} publishes) of channel {} reached",
                inbound.channel
            )));
        }
        let most = self.broker.limits.transaction_max_bytes;
        let pending = Pending {
            address: Bytes::copy_from_slice(inbound.address),
            header: Bytes::copy_from_slice(inbound.header),
            body: KeptBody::new(inbound.body, inbound.shared_body),
            mandatory: inbound.publish.mandatory,
        };
        let bytes = PENDING_OVERHEAD_BYTES
            + pending.address.len()
            + pending.header.len()
            + pending.body.len();
        if self.pending_bytes + bytes > most {
            return Err(Fault::precondition_failed(format_args!(
                "transaction limit ({most} bytes) of the connection reached"
            )));
        }
        self.broker.memory.admit_transaction(bytes)?;
        self.pending_bytes += bytes;
        let Some(transaction) = self.transaction(inbound.channel) else { return Ok(()) };
        transaction.publishes_bytes += bytes;
        transaction.header_bytes += pending.header.len();
        transaction.copies += queues;
        let shared_bytes = pending.body.shared().map_or(0, |body| body.len());
        transaction.bodies.set(transaction.bodies.bytes() + shared_bytes);
        transaction.count_memory();
        transaction.publishes.push(pending);
        Ok(())
    }

    /// `tx.commit`: everything since the last commit takes effect, and survives together or not at
    /// all. Answered when it is durable.
    pub(super) fn commit(&mut self, number: u16) -> Result<(), Fault> {
        if self.has_failed_commit(number) {
            return Ok(());
        }
        let Some(transaction) = self.take_transaction(number) else { return Ok(()) };
        let Transaction { publishes, settled, mut charge, .. } = transaction;
        let settled = self.without_dead_letters(number, settled);
        // Whom it may reach is asked outside the gate.
        let addressed = match self.address_all(number, &publishes, &mut charge) {
            Ok(addressed) => addressed,
            Err(fault) => {
                self.give_back(number, settled);
                return Err(fault);
            }
        };
        let settled_positions = self.settled_positions(number, &settled);
        let settled_records = settled_positions
            .iter()
            .map(|(queue, positions)| Record::Settled { queue: *queue, positions });
        let shard = Arc::clone(&self.shard);
        let gate = shard.gate.read();
        let done = self.put_through(number, &addressed, settled_records, Sync::Wanted);
        let PutThrough { mut lsn, refused, mut told } = match done {
            Ok(done) => done,
            Err(fault) => {
                // What it has settled returns to the queues with the rest of the channel.
                self.give_back(number, settled);
                return Err(fault);
            }
        };
        let with = |wanted| {
            let those = settled.iter().filter(move |(_, _, settlement)| *settlement == wanted);
            those.map(|(tag, unacked, _)| (*tag, *unacked))
        };
        let done: Vec<Unacked> = with(Settlement::Done).map(|(_, unacked)| unacked).collect();
        // The log has it: all of it takes effect, whatever fails meanwhile.
        told = told.and(self.apply_logged(number, &done));
        shard.post_dead_letters(&mut self.wakes);
        drop(gate);
        let both = [true, false];
        let rejects = both.map(|counts| Settlement::Reject { counts });
        let requeues = both.map(|counts| Settlement::Requeue { counts });
        for settlement in rejects.into_iter().chain(requeues) {
            let those: Vec<_> = with(settlement).collect();
            if !those.is_empty() {
                told = told.and(self.apply(number, those, settlement));
                // Behind the letters, and what has been noted of returns.
                lsn = shard.store.end();
            }
        }
        self.settle_acknowledged();
        told?;
        if refused.contains(&true) {
            // All else has taken effect; the publisher has to hear that not everything has, when what
            // was refused can't come back after a crash.
            let lsn = self.shard.store.end();
            if lsn > self.shard.store.durable() {
                self.fail_when_durable(number, lsn);
                return Ok(());
            }
            return Err(Fault::precondition_failed("partial tx completion"));
        }
        self.answer(number, lsn, &Method::TxCommitOk(Default::default()));
        Ok(())
    }

    /// The ways of publishes at their commit. What these use together counts as the transaction's, in
    /// `charge`.
    fn address_all<'p>(
        &mut self,
        number: u16,
        publishes: &'p [Pending],
        charge: &mut Charge,
    ) -> Result<Vec<Addressed<'p>>, Fault> {
        let budget = Budget::of_steps(COMMIT_STEPS_MAX);
        let address = |pending: &'p Pending| {
            if budget.is_spent() {
                return Err(takes_too_many_steps());
            }
            let inbound = pending.inbound(number);
            let properties = ContentHeader::parse(inbound.header).map_err(malformed)?.properties;
            let addressed = self.address(inbound, properties)?;
            let bytes = addressed.own_bytes();
            self.broker.memory.admit_transaction(bytes)?;
            charge.set(charge.bytes() + bytes);
            Ok(addressed)
        };
        publishes.iter().map(address).collect()
    }

    /// What is refused is done with where its queue has no use for dead letters.
    fn without_dead_letters(
        &self,
        number: u16,
        mut settled: Vec<(u64, Unacked, Settlement)>,
    ) -> Vec<(u64, Unacked, Settlement)> {
        for (_, unacked, settlement) in &mut settled {
            let Settlement::Reject { .. } = settlement else { continue };
            // Not with the outbox locked: a queue's lock comes before it.
            let queue =
                self.outbox.lock().channel(number).and_then(|channel| {
                    channel.slot(unacked.slot).map(|slot| Arc::clone(&slot.queue))
                });
            if queue.is_some_and(|queue| queue.dead_letter_to().is_none()) {
                *settlement = Settlement::Done;
            }
        }
        settled
    }

    /// For each durable queue, the ascending positions of the messages that a transaction has done
    /// with.
    fn settled_positions(
        &self,
        number: u16,
        settled: &[(u64, Unacked, Settlement)],
    ) -> BTreeMap<u64, Vec<Position>> {
        let done = settled.iter().filter(|(_, _, settlement)| *settlement == Settlement::Done);
        let sources: Vec<(Arc<Queue>, u64)> = match self.outbox.lock().channel(number) {
            Some(channel) => done
                .filter_map(|(_, one, _)| {
                    Some((Arc::clone(&channel.slot(one.slot)?.queue), one.sequence))
                })
                .collect(),
            None => Vec::new(),
        };
        let mut positions = BTreeMap::<u64, Vec<Position>>::new();
        for (queue, sequence) in sources {
            if queue.settings.survives()
                && let Some(position) = queue.unacked_position(sequence)
            {
                positions.entry(queue.id).or_default().push(position);
            }
        }
        positions.values_mut().for_each(|positions| positions.sort_unstable());
        positions
    }

    /// `tx.rollback`: publishes are forgotten, settlements undone; nothing is requeued.
    pub(super) fn rollback(&mut self, number: u16) -> Result<(), Fault> {
        if self.has_failed_commit(number) {
            return Ok(());
        }
        self.abandon_transaction(number);
        self.begin_transaction(number)?;
        self.reply(number, Method::TxRollbackOk(Default::default()));
        Ok(())
    }

    /// Gives settled deliveries back to the channel, and ends the transaction.
    pub(super) fn abandon_transaction(&mut self, number: u16) {
        let Some(transaction) = self.take_transaction(number) else { return };
        self.give_back(number, transaction.settled);
    }

    /// Has deliveries wait for their acknowledgement again.
    fn give_back(&self, number: u16, settled: Vec<(u64, Unacked, Settlement)>) {
        if let Some(channel) = self.outbox.lock().channel(number) {
            let settled = settled.into_iter().map(|(tag, unacked, _)| (tag, unacked));
            channel.unacked.put_back(settled.collect());
        }
    }
}

impl Transaction {
    /// How many publishes, bytes of their headers, copies of them for queues, and settlements wait for the commit.
    pub fn pending(&self) -> [usize; 4] {
        [self.publishes.len(), self.header_bytes, self.copies, self.settled.len()]
    }

    /// Notes settlements that wait for the commit.
    pub fn settle(&mut self, settled: impl Iterator<Item = (u64, Unacked, Settlement)>) {
        let capacity = self.settled.capacity();
        self.settled.extend(settled);
        if self.settled.capacity() != capacity {
            self.count_memory();
        }
    }

    fn count_memory(&mut self) {
        let settled = self.settled.capacity() * size_of::<(u64, Unacked, Settlement)>();
        self.charge.set(self.publishes_bytes - self.bodies.bytes() + settled);
    }
}

impl Pending {
    fn inbound(&self, channel: u16) -> Inbound<'_> {
        let (exchange, key) = courser_store::record::split_address(&self.address);
        let short = |bytes| ShortStr::new(bytes).unwrap_or_default();
        Inbound {
            channel,
            publish: basic::Publish {
                exchange: short(exchange),
                routing_key: short(key),
                mandatory: self.mandatory,
                immediate: false,
            },
            address: &self.address,
            header: &self.header,
            body: &self.body,
            shared_body: self.body.shared(),
            confirm_seq: 0,
        }
    }
}
