//! Messages that wait for their time before they go to all queues that are bound.

use super::{FANOUT, World, survives};
use crate::client::{PLAIN, TOPOLOGY, short};
use crate::history::Op;
use crate::start::state;
use courser_codec::{FieldTable, Method, Properties, Table, exchange};
use courser_store::{Location, Log, Lsn, Messages, Recovered, ShardState};
use std::collections::BTreeMap;

/// A durable exchange that delays messages and sends them on to [`FANOUT`].
const LATER: &str = "later";

impl World {
    /// Makes the exchange, which is there from then on.
    pub(super) fn make_delayed_exchange(&mut self) {
        let entries = FieldTable::new().with("x-delayed-type", "fanout").to_entries();
        let declare = exchange::Declare {
            exchange: short(LATER),
            kind: short("x-delayed-message"),
            durable: true,
            arguments: Table::from_entries(&entries),
            ..Default::default()
        };
        let bind = exchange::Bind {
            destination: short(FANOUT),
            source: short(LATER),
            ..Default::default()
        };
        let changes = [
            (Method::ExchangeDeclare(declare), "exchange.declare-ok"),
            (Method::ExchangeBind(bind), "exchange.bind-ok"),
        ];
        for (method, answer) in changes {
            let running = self.running();
            running.client.request(TOPOLOGY, &method).expect("nothing fails yet");
            let end = running.store.end().0;
            running.unanswered.push_back((answer, end));
        }
    }

    /// A delay after which nothing else is due.
    pub(super) fn pick_delay_ms(&mut self) -> u64 {
        let most = if self.rng.one_in(5) { 200_000 } else { 4000 };
        loop {
            let delay_ms = 1 + self.rng.below(most);
            let due_ms = self.now_ms + delay_ms;
            let taken = self.history.now().delayed.values().any(|other| *other == due_ms);
            if !taken && !self.running().delayed.contains(&due_ms) {
                return delay_ms;
            }
        }
    }

    /// Publishes a message that is to wait. Returns its confirm number.
    pub(super) fn publish_delayed(
        &mut self,
        channel: u16,
        message: (u64, usize),
        delay_ms: u64,
    ) -> Option<u64> {
        let headers = FieldTable::new().with("x-delay", delay_ms as i64).to_entries();
        let properties = Properties {
            headers: Some(Table::from_entries(&headers)),
            delivery_mode: survives(message.0).then_some(2),
            ..Default::default()
        };
        let client = &mut self.running().client;
        client.publish_with(channel, LATER, "", &[message], &properties).ok()
    }

    pub(super) fn delay(&mut self) {
        let persistent = !self.rng.one_in(4);
        let id = self.next_id * 2 + u64::from(persistent);
        self.next_id += 1;
        let (padding, delay_ms) = (self.rng.below(200) as usize, self.pick_delay_ms());
        let due_ms = self.now_ms + delay_ms;
        let Some(confirm) = self.publish_delayed(PLAIN, (id, padding), delay_ms) else { return };
        let end = if persistent { self.running().store.end().0 } else { 0 };
        self.running().unconfirmed.push_back((confirm, end));
        if persistent {
            self.note(vec![Op::Delay(id, due_ms)]);
        } else {
            self.running().delayed.insert(due_ms);
        }
    }

    /// Lets time pass: what is due goes to its queues, in the order of its times, and nothing else.
    pub(super) fn pass_time(&mut self) {
        self.now_ms += 1 + self.rng.below(3000);
        let now_ms = self.now_ms;
        let running = self.running();
        running.delayed = running.delayed.split_off(&(now_ms + 1));
        self.do_what_is_due();
        let state = self.history.now();
        let waiting = state.delayed.iter();
        let mut due: Vec<(u64, u64)> =
            waiting.filter(|(_, due_ms)| **due_ms <= now_ms).map(|(id, at)| (*at, *id)).collect();
        due.sort_unstable();
        let bound = || state.queues.iter().filter(|(_, queue)| queue.bound);
        let mut ops = Vec::new();
        for (_, id) in due {
            ops.push(Op::Release(id));
            ops.extend(bound().map(|(name, _)| Op::Publish(name.clone(), id)));
        }
        if !ops.is_empty() {
            self.note(ops);
        }
        if self.running().store.failure().is_none() {
            let expected = self.history.now().delayed.len() + self.running().delayed.len();
            let vhost = self.running().broker.vhost("/").expect("always there");
            let later = vhost.exchange(LATER.as_bytes()).expect("it was made");
            assert_eq!(later.messages_delayed(), expected, "other messages are due");
        }
    }

    /// What waits and survives, without changing it: what a checkpoint would say of it.
    pub(super) fn observe_delayed(&mut self) -> BTreeMap<u64, u64> {
        let running = self.running();
        let mut bytes = Vec::new();
        let written = state(&running.broker).write(Lsn(u64::MAX), &mut bytes);
        written.expect("memory takes everything");
        let recovered = Recovered::from_checkpoint(&bytes).expect("it was just written");
        let mut reader = running.store.reader();
        let pairs = recovered.delayed.values().flat_map(|index| index.pairs());
        let with_ids = pairs.map(|(position, due_ms)| {
            let location = Location::logged(position);
            let message = reader.read(&location).expect("it is in the log");
            let id = message.body.first_chunk().expect("a number");
            (u64::from_le_bytes(*id), due_ms)
        });
        let with_ids: Vec<(u64, u64)> = with_ids.collect();
        let delayed = with_ids.iter().copied().collect::<BTreeMap<_, _>>();
        assert_eq!(delayed.len(), with_ids.len(), "a message waits twice");
        delayed
    }
}
