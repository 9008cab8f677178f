//! Very many connections, channels and consumers.

use super::definitions::arguments;
use super::scene::Scene;
use super::{Many, Named};
use crate::support::{Client, short};
use courser_codec::{FieldTable, basic};
use std::ops::Range;

fn consume_as<'a>(queue: &'a str, tag: &'a str) -> basic::Consume<'a> {
    let (queue, consumer_tag) = (short(queue), short(tag));
    basic::Consume { queue, consumer_tag, ..Default::default() }
}

/// Channels of one connection, every other time with a consumer each.
pub struct Channels(Named, Client);

impl Channels {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        scene.declare(&named.name(), &FieldTable::new());
        Channels(named, scene.world.connect())
    }
}

impl Many for Channels {
    fn add(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        for nth in range {
            let number = nth as u16 + 2;
            client.open_channel(number);
            if self.0.choice % 2 == 1 {
                client.consume_on(number, consume_as(&self.0.name(), ""));
            }
        }
    }

    fn remove(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        range.for_each(|nth| client.close_channel(nth as u16 + 2));
    }

    fn rest(&mut self) {
        self.1.rest();
    }
}

/// Connections, a tenth of all numbers. Every other time, each has a queue at one fanout exchange, through which some of them
/// publish.
pub struct Connections(Named, Vec<Client>);

/// How many of them publish.
const PUBLISH: usize = 50;
/// What a connection takes here before it has done anything, at most: the number of connections is bounded.
const CONNECTION_BYTES: i64 = 512;

impl Connections {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        scene.declare_exchange(&named.name(), "fanout", &FieldTable::new());
        Connections(named, Vec::with_capacity(1000))
    }
}

impl Many for Connections {
    fn add(&mut self, scene: &mut Scene, range: Range<usize>) {
        let has_queues = self.0.choice % 2 == 1;
        for nth in range.step_by(10) {
            let (mut client, queue) = (scene.world.connect(), self.0.nth(nth));
            if has_queues {
                client.declare(&queue);
                client.bind(&queue, &self.0.name(), "");
                client.consume_no_ack(&queue);
            }
            self.1.push(client);
        }
        for publisher in (0..self.1.len().min(PUBLISH)).filter(|_| has_queues) {
            // Each is woken once, when it has nothing to send.
            self.rest();
            self.1[publisher].publish(&self.0.name(), "", "x");
        }
    }

    fn remove(&mut self, scene: &mut Scene, range: Range<usize>) {
        self.1.drain(1..).for_each(|mut client| client.disconnect());
        for nth in range.step_by(10).filter(|_| self.0.choice % 2 == 1) {
            scene.owner.delete(&self.0.nth(nth));
        }
    }

    fn bounded_bytes(&self) -> i64 {
        CONNECTION_BYTES * self.1.len() as i64
    }

    fn rest(&mut self) {
        self.1.iter_mut().for_each(Client::rest);
    }
}

/// Consumers of one connection, on three channels, of a queue or of several in turn.
pub struct Consumers(Named, Client);

impl Consumers {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        let arguments = arguments(named.choice);
        named.queues().for_each(|name| scene.declare(&name, &arguments));
        let mut client = scene.world.connect();
        (2..=3).for_each(|number| client.open_channel(number));
        Consumers(named, client)
    }
}

impl Many for Consumers {
    fn add(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        for nth in range {
            let (queue, tag) = (self.0.queue(nth), nth.to_string());
            client.consume_on(nth as u16 % 3 + 1, consume_as(&queue, &tag));
        }
    }

    fn remove(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        for nth in range {
            let tag = nth.to_string();
            let cancel = basic::Cancel { consumer_tag: short(&tag), nowait: false };
            client.call_on(nth as u16 % 3 + 1, cancel);
        }
    }

    fn rest(&mut self) {
        self.1.rest();
    }
}

/// Consumers of one stream.
pub struct StreamReaders(Named, Client);

impl StreamReaders {
    pub fn new(named: Named, scene: &mut Scene) -> Self {
        scene.declare(&named.name(), &FieldTable::new().with("x-queue-type", "stream"));
        let mut client = scene.world.connect();
        client.qos(10);
        StreamReaders(named, client)
    }
}

impl Many for StreamReaders {
    fn add(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        let queue = self.0.name();
        range.for_each(|nth| drop(client.consume_with(consume_as(&queue, &nth.to_string()))));
    }

    fn remove(&mut self, _: &mut Scene, range: Range<usize>) {
        let client = &mut self.1;
        range.for_each(|nth| client.cancel(&nth.to_string()));
    }

    fn rest(&mut self) {
        self.1.rest();
    }
}
