//! What the clients of a world do.

use super::bounded::{EXPIRED, EXPIRING, REFUSING, takes_letters_only};
use super::{DEAD, DYING, FANOUT, QUEUES, World, survives};
use crate::client::{PLAIN, Received, TOPOLOGY, TX, short};
use crate::history::Op;
use courser_codec::{Method, basic, queue};
use courser_store::Log;

impl World {
    fn pick_queue(&mut self) -> Option<String> {
        let names: Vec<String> = self.history.now().queues.keys().cloned().collect();
        let index = self.rng.below(names.len().max(1) as u64) as usize;
        names.get(index).cloned()
    }

    /// A queue that takes whatever a client publishes.
    fn pick_target(&mut self) -> Option<String> {
        self.pick_queue().filter(|name| name != REFUSING && !takes_letters_only(name))
    }

    pub(super) fn declare(&mut self) {
        match self.rng.below(6) {
            0 => return self.declare_refusing(),
            1 if self.expires => return self.declare_expiring(),
            _ => {}
        }
        let name = QUEUES[self.rng.below(QUEUES.len() as u64) as usize];
        let dead_letters = (name == DYING).then_some(DEAD);
        if self.running().client.declare(name, dead_letters).is_ok() {
            self.note_topology("queue.declare-ok", Op::Declare(name.to_owned()));
        }
    }

    /// Notes a change that was just asked for. What it has in the log, and what any before it has, is
    /// durable before its answer comes.
    pub(super) fn note_topology(&mut self, answer: &'static str, op: Op) {
        self.note(vec![op]);
        let end_before = self.end_before;
        let running = self.running();
        let end = running.store.end().0;
        if end != end_before {
            running.topology_end = end;
        }
        running.unanswered.push_back((answer, running.topology_end));
    }

    pub(super) fn delete(&mut self) {
        let Some(name) = self.pick_queue() else { return };
        if name == EXPIRING || name == EXPIRED {
            // Letters would go nowhere.
            return;
        }
        let delete = queue::Delete { queue: short(&name), ..Default::default() };
        if self.running().client.request(TOPOLOGY, &Method::QueueDelete(delete)).is_ok() {
            self.running().unacked.retain(|(_, queue, _)| *queue != name);
            self.note_topology("queue.delete-ok", Op::Delete(name));
        }
    }

    pub(super) fn bind(&mut self) {
        let Some(name) = self.pick_target().filter(|name| name != EXPIRING) else { return };
        let bind =
            queue::Bind { queue: short(&name), exchange: short(FANOUT), ..Default::default() };
        if self.running().client.request(TOPOLOGY, &Method::QueueBind(bind)).is_ok() {
            self.note_topology("queue.bind-ok", Op::Bind(name));
        }
    }

    pub(super) fn unbind(&mut self) {
        let Some(name) = self.pick_queue() else { return };
        let unbind =
            queue::Unbind { queue: short(&name), exchange: short(FANOUT), ..Default::default() };
        if self.running().client.request(TOPOLOGY, &Method::QueueUnbind(unbind)).is_ok() {
            self.note_topology("queue.unbind-ok", Op::Unbind(name));
        }
    }

    pub(super) fn purge(&mut self) {
        let Some(name) = self.pick_queue() else { return };
        let purge = queue::Purge { queue: short(&name), nowait: false };
        if self.running().client.request(TOPOLOGY, &Method::QueuePurge(purge)).is_ok() {
            let end = self.running().store.end().0;
            self.running().unanswered.push_back(("queue.purge-ok", end));
            let unacked = self.running().unacked.iter();
            let unacked = unacked.filter(|(_, queue, _)| *queue == name).map(|(_, _, id)| *id);
            let unacked: Vec<u64> = unacked.collect();
            let messages = self.history.now().queues[&name].messages.clone();
            let purged = messages.into_iter().filter(|id| !unacked.contains(id));
            let ops = purged.map(|id| Op::Settle(name.clone(), id)).collect();
            self.note(ops);
        }
    }

    pub(super) fn publish(&mut self) {
        let fanout = self.rng.one_in(4);
        let target = if fanout { None } else { self.pick_target() };
        let persistent = !self.rng.one_in(5) || target.as_deref() == Some(EXPIRING);
        let mut messages = Vec::new();
        // What is refused is refused as a whole.
        let most = if self.is_full { 1 } else { 6 };
        for _ in 0..1 + self.rng.below(most) {
            let padding = if self.rng.one_in(20) { 9000 } else { self.rng.below(200) };
            // The number says whether the message survives.
            messages.push((self.next_id * 2 + u64::from(persistent), padding as usize));
            self.next_id += 1;
        }
        let (exchange, key, queues) = if fanout {
            let queues = self.history.now().queues.iter();
            let bound = queues.filter(|(_, queue)| queue.bound).map(|(name, _)| name.clone());
            (FANOUT, String::new(), bound.collect::<Vec<_>>())
        } else {
            let Some(name) = target else { return };
            ("", name.clone(), vec![name])
        };
        let published = self.running().client.publish(PLAIN, exchange, &key, &messages, persistent);
        let Ok(confirm) = published else {
            // That ends the connection.
            return self.reconnect();
        };
        let end = self.running().store.end().0;
        // Only what went into the log has to be durable for its confirm.
        let due = if persistent && !queues.is_empty() { end } else { 0 };
        self.running().unconfirmed.push_back((confirm, due));
        if persistent {
            let both = |id: u64| queues.iter().map(move |name| Op::Publish(name.clone(), id));
            self.note(messages.iter().flat_map(|(id, _)| both(*id)).collect());
        }
    }

    pub(super) fn get(&mut self, no_ack: bool) {
        let Some(name) = self.pick_queue() else { return };
        let get = basic::Get { queue: short(&name), no_ack };
        if self.running().client.request(PLAIN, &Method::BasicGet(get)).is_err() {
            return;
        }
        for received in self.receive() {
            let Received::Message { tag, id, .. } = received else { continue };
            if !no_ack {
                self.running().unacked.push((tag, name.clone(), id));
            } else if survives(id) {
                self.note(vec![Op::Settle(name.clone(), id)]);
            }
        }
    }

    pub(super) fn ack(&mut self) {
        let count = self.running().unacked.len() as u64;
        if count == 0 {
            return;
        }
        let index = self.rng.below(count) as usize;
        let (tag, queue, id) = self.running().unacked.remove(index);
        let ack = basic::Ack { delivery_tag: tag, multiple: false };
        if self.running().client.request(PLAIN, &Method::BasicAck(ack)).is_ok() && survives(id) {
            self.note(vec![Op::Settle(queue, id)]);
        }
    }

    /// Refuses a message for good: it is in another queue, or nowhere, or still where it was.
    pub(super) fn reject(&mut self) {
        let count = self.running().unacked.len() as u64;
        if count == 0 {
            return;
        }
        let index = self.rng.below(count) as usize;
        let (_, queue, id) = &self.running().unacked[index];
        let (is_dying, id) = (queue == DYING, *id);
        let dead = self.history.now().queues.get(DEAD);
        if is_dying && dead.is_some_and(|dead| dead.messages.contains(&id)) {
            // The history could not tell two of the same there apart.
            return;
        }
        let (tag, queue, id) = self.running().unacked.remove(index);
        let reject = basic::Reject { delivery_tag: tag, requeue: false };
        if self.running().client.request(PLAIN, &Method::BasicReject(reject)).is_ok()
            && survives(id)
        {
            let mut ops = vec![Op::Settle(queue.clone(), id)];
            let letters = [(DYING, DEAD), (EXPIRING, EXPIRED)];
            if let Some((_, dead)) = letters.into_iter().find(|(dying, _)| *dying == queue) {
                ops.push(Op::Publish(dead.to_owned(), id));
            }
            self.note(ops);
        }
    }

    pub(super) fn requeue(&mut self) {
        let recover = Method::BasicRecover(basic::Recover { requeue: true });
        if self.running().client.request(PLAIN, &recover).is_ok() {
            self.running().unacked.clear();
            if self.expires {
                // They may be too old by now.
                self.do_what_is_due();
            }
        }
    }

    /// Publishes, and a message taken, that survive together or not at all.
    pub(super) fn transact(&mut self) {
        if !self.running().uncommitted.is_empty() {
            // What it would get now comes behind the answer to the commit before.
            self.running().store.journal().flush_once();
            return;
        }
        let Some(name) = self.pick_queue() else { return };
        let mut ops = Vec::new();
        let get = Method::BasicGet(basic::Get { queue: short(&name), no_ack: false });
        if self.running().client.request(TX, &get).is_err() {
            return;
        }
        for received in self.receive() {
            let Received::Message { channel: TX, tag, id, .. } = received else { continue };
            let ack = Method::BasicAck(basic::Ack { delivery_tag: tag, multiple: false });
            if self.running().client.request(TX, &ack).is_err() {
                return;
            }
            if survives(id) {
                ops.push(Op::Settle(name.clone(), id));
            }
        }
        for _ in 0..self.rng.below(4) {
            let Some(target) = self.pick_target() else { continue };
            let id = self.next_id * 2 + 1;
            self.next_id += 1;
            if !self.expires && self.rng.one_in(4) {
                let delay_ms = self.pick_delay_ms();
                if self.publish_delayed(TX, (id, 30), delay_ms).is_none() {
                    return;
                }
                ops.push(Op::Delay(id, self.now_ms + delay_ms));
                continue;
            }
            if self.running().client.publish(TX, "", &target, &[(id, 30)], true).is_err() {
                return;
            }
            ops.push(Op::Publish(target, id));
        }
        if self.rng.one_in(4) {
            let rolled_back =
                self.running().client.request(TX, &Method::TxRollback(Default::default()));
            let recover = Method::BasicRecover(basic::Recover { requeue: true });
            if rolled_back.is_ok() && self.running().client.request(TX, &recover).is_ok() {
                return;
            }
        }
        if self.running().client.request(TX, &Method::TxCommit(Default::default())).is_ok() {
            let end = self.running().store.end().0;
            let due = if ops.is_empty() { 0 } else { end };
            self.running().uncommitted.push_back(due);
            self.note(ops);
        }
    }
}
