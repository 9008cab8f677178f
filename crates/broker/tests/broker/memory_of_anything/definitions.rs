//! Very many queues, exchanges and bindings.

use super::scene::Scene;
use super::{Many, Named};
use crate::support::short;
use courser_codec::{FieldTable, Table, exchange, queue};
use std::ops::Range;

/// Arguments of a queue.
pub fn arguments(choice: usize) -> FieldTable {
    let table = FieldTable::new();
    match choice % 8 {
        0 => table,
        1 => table.with("x-max-priority", 255),
        2 => table.with("x-single-active-consumer", true),
        3 => table.with("x-message-ttl", 1_000_000_000_i64),
        4 => table.with("x-message-deduplication", true),
        5 => table.with("x-max-length", 1_000_000),
        6 => table.with("x-consumer-timeout", 3_600_000_i64),
        _ => table.with("x-queue-type", "quorum"),
    }
}

/// Queues, with each of which another client has done something.
pub struct Queues(pub Named);

impl Many for Queues {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        for nth in range {
            let name = self.0.nth(nth);
            scene.declare(&name, &arguments(self.0.choice));
            match self.0.choice / 8 % 5 {
                0 => {}
                1 => scene.user.publish("", &name, "0123456789"),
                2 => {
                    scene.user.publish("", &name, "0123456789");
                    scene.user.pop(&name);
                }
                3 => {
                    let tag = scene.user.consume(&name);
                    scene.user.cancel(&tag);
                }
                _ => {
                    scene.owner.bind(&name, "amq.topic", &name);
                    scene.owner.unbind(&name, "amq.topic", &name);
                }
            }
        }
    }

    fn remove(&mut self, scene: &mut Scene, range: Range<usize>) {
        range.for_each(|nth| drop(scene.owner.delete(&self.0.nth(nth))));
    }
}

/// Exclusive queues, all of which expire.
pub struct Exclusive(pub Named);

impl Many for Exclusive {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        let expires = FieldTable::new().with("x-expires", 600_000).to_entries();
        for nth in range {
            let name = self.0.nth(nth);
            let (queue, arguments) = (short(&name), Table::from_entries(&expires));
            let declare =
                queue::Declare { queue, exclusive: true, arguments, ..Default::default() };
            scene.owner.call(declare);
        }
    }

    fn remove(&mut self, scene: &mut Scene, _: Range<usize>) {
        scene.pass(700_000);
    }
}

const KINDS: [&str; 8] = [
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-random",
    "x-modulus-hash",
    "x-consistent-hash",
    "x-recent-history",
];

pub struct Exchanges(pub Named);

impl Many for Exchanges {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        let kind = KINDS[self.0.choice % KINDS.len()];
        range.for_each(|nth| scene.declare_exchange(&self.0.nth(nth), kind, &FieldTable::new()));
    }

    fn remove(&mut self, scene: &mut Scene, range: Range<usize>) {
        for nth in range {
            let name = self.0.nth(nth);
            let delete = exchange::Delete { exchange: short(&name), ..Default::default() };
            scene.owner.call(delete);
        }
    }
}

/// Bindings of a queue, or of several in turn, to one exchange.
pub struct Bindings(Named);

impl Bindings {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        named.queues().for_each(|name| scene.declare(&name, &FieldTable::new()));
        let kind = KINDS[named.choice % KINDS.len()];
        scene.declare_exchange(&named.name(), kind, &FieldTable::new());
        Bindings(named)
    }

    fn change(&self, scene: &mut Scene, nth: usize, comes: bool) {
        let (queue, exchange) = (self.0.queue(nth), self.0.name());
        // For a consistent hash it is a weight.
        let key = match self.0.choice / 8 % 2 {
            0 => (nth % 10 + 1).to_string(),
            _ => (nth + 1).to_string(),
        };
        let arguments = FieldTable::new().with("x-match", "any").with("n", nth as i64).to_entries();
        let arguments = Table::from_entries(&arguments);
        let (queue, exchange, routing_key) = (short(&queue), short(&exchange), short(&key));
        if comes {
            let bind = queue::Bind { queue, exchange, routing_key, arguments, nowait: false };
            scene.owner.call(bind);
        } else {
            scene.owner.call(queue::Unbind { queue, exchange, routing_key, arguments });
        }
    }
}

impl Many for Bindings {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        range.for_each(|nth| self.change(scene, nth, true));
    }

    fn remove(&mut self, scene: &mut Scene, range: Range<usize>) {
        range.for_each(|nth| self.change(scene, nth, false));
    }
}
