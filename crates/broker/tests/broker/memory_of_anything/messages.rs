//! Very many messages, wherever they may be.

use super::definitions::arguments;
use super::scene::{Scene, ask, send};
use super::{Many, Named};
use crate::support::{Client, Message};
use courser_codec::{FieldTable, basic};
use std::ops::Range;

/// Messages that wait in a queue, or in several in turn.
pub struct Waiting(Named);

impl Waiting {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let arguments = arguments(named.choice);
        named.queues().for_each(|name| scene.declare(&name, &arguments));
        Waiting(named)
    }
}

impl Many for Waiting {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        scene.send("", range.map(|nth| self.0.queue(nth)));
    }

    fn remove(&mut self, scene: &mut Scene, range: Range<usize>) {
        range.for_each(|nth| drop(scene.user.pop(&self.0.queue(nth))));
    }
}

/// Messages that are unacknowledged, polled or consumed.
pub struct Unacknowledged {
    named: Named,
    client: Client,
    delivered: u64,
}

impl Unacknowledged {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let mut new = Unacknowledged { named, client: scene.world.connect(), delivered: 0 };
        // What each queue and each consumer needs for the first counts with these.
        for name in named.queues() {
            scene.declare(&name, &arguments(named.choice));
            if new.is_consumer() {
                new.client.consume(&name);
            }
            scene.owner.publish("", &name, "");
            if !new.is_consumer() {
                new.client.get(&name);
            }
            new.delivered += 1;
        }
        new.client.rest();
        new.client.ack_through(new.delivered);
        new
    }

    fn is_consumer(&self) -> bool {
        (self.named.choice / 8).is_multiple_of(2)
    }
}

impl Many for Unacknowledged {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        let is_consumer = self.is_consumer();
        let client = &mut self.client;
        self.delivered += range.len() as u64;
        scene.send("", range.clone().map(|nth| self.named.queue(nth)));
        for nth in range.filter(|_| !is_consumer) {
            client.get(&self.named.queue(nth));
        }
    }

    fn remove(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.client;
        client.rest();
        let (last, count) = (self.delivered, range.len() as u64);
        let ack = |delivery_tag| basic::Ack { delivery_tag, multiple: false }.into();
        match self.named.choice / 16 % 3 {
            0 => ask(client, (last + 1 - count..=last).map(ack)),
            1 => ask(client, (last + 1 - count..=last).rev().map(ack)),
            _ => client.ack_through(last),
        }
    }

    fn rest(&mut self) {
        self.client.rest();
    }
}

/// Messages that are due this far from each other.
pub struct Delayed(Named);

/// Less than ten years.
const DELAY_MAX_MS: u64 = 300_000_000_000;

impl Delayed {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let kind = FieldTable::new().with("x-delayed-type", "fanout");
        scene.declare_exchange(&named.name(), "x-delayed-message", &kind);
        Delayed(named)
    }
}

impl Many for Delayed {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        let message = |nth: usize| {
            let delay_ms = (((nth as u64) << (self.0.choice % 28)) % DELAY_MAX_MS + 1) as i64;
            let headers = FieldTable::new().with("x-delay", delay_ms);
            Message::new(&self.0.name(), "", "0123456789").headers(headers)
        };
        send(&mut scene.user, range.map(message));
    }

    fn remove(&mut self, scene: &mut Scene, _: Range<usize>) {
        scene.pass(DELAY_MAX_MS + 1);
    }
}

/// Messages of an open transaction.
pub struct InTransaction(Named, Client);

impl InTransaction {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        scene.declare(&named.name(), &FieldTable::new());
        let mut client = scene.world.connect();
        client.tx_select();
        InTransaction(named, client)
    }
}

impl Many for InTransaction {
    fn add(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        send(client, range.map(|_| Message::new("", &self.0.name(), "0123456789")));
    }

    fn remove(&mut self, _: &mut Scene, _: Range<usize>) {
        self.1.rollback();
    }

    fn rest(&mut self) {
        self.1.rest();
    }
}

/// Messages with different keys through a topic exchange.
pub struct Routed(Named);

impl Routed {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let (queue, exchange) = (named.queue(0), named.name());
        scene.declare(&queue, &FieldTable::new());
        scene.declare_exchange(&exchange, "topic", &FieldTable::new());
        scene.owner.bind(&queue, &exchange, "#");
        Routed(named)
    }
}

impl Many for Routed {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        scene.send(&self.0.name(), range.map(|nth| format!("k.{nth}")));
    }

    fn remove(&mut self, scene: &mut Scene, _: Range<usize>) {
        scene.owner.purge(&self.0.queue(0));
    }
}

/// Messages that are remembered, by an exchange, by a queue's cache or by what is present in it.
pub struct Remembered(Named);

impl Remembered {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let (by, queue, exchange) = (named.choice % 3, named.queue(0), named.name());
        let size = FieldTable::new().with("x-cache-size", 100_000);
        let is_on = |table: FieldTable| table.with("x-message-deduplication", true);
        let (of_queue, kind, of_exchange) = match by {
            0 => (FieldTable::new(), "x-message-deduplication", size),
            1 => (is_on(size), "fanout", FieldTable::new()),
            _ => (is_on(FieldTable::new()), "fanout", FieldTable::new()),
        };
        scene.declare(&queue, &of_queue);
        scene.declare_exchange(&exchange, kind, &of_exchange);
        scene.owner.bind(&queue, &exchange, "");
        Remembered(named)
    }
}

impl Many for Remembered {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        scene.send(&self.0.name(), range.map(|_| String::new()));
    }

    fn remove(&mut self, scene: &mut Scene, _: Range<usize>) {
        scene.owner.purge(&self.0.queue(0));
    }
}

/// Messages that were rejected.
pub struct DeadLetters(Named);

impl DeadLetters {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let letters = FieldTable::new()
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", named.queue(0).as_str());
        scene.declare(&named.name(), &letters);
        scene.declare(&named.queue(0), &FieldTable::new());
        DeadLetters(named)
    }
}

impl Many for DeadLetters {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        let name = self.0.name();
        scene.send("", range.clone().map(|_| name.clone()));
        for _ in range {
            let Some(delivery) = scene.user.get(&name) else { return };
            scene.user.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
        }
    }

    fn remove(&mut self, scene: &mut Scene, _: Range<usize>) {
        scene.owner.purge(&self.0.queue(0));
    }
}
