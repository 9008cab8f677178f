//! A broker with two clients, who have one of everything that there is very many of.

use crate::delayed::START_MS;
use crate::support::{Client, Message, Step, World, declare_with, short};
use courser_broker::Limits;
use courser_codec::{FieldTable, Method, Table, exchange};

pub struct Scene {
    pub world: World,
    /// Makes what there is.
    pub owner: Client,
    /// Publishes and polls.
    pub user: Client,
    /// What has not been published before.
    unique: i64,
    now_ms: u64,
}

impl Scene {
    pub fn new() -> Self {
        let limits = Limits {
            memory_high_bytes: 1 << 40,
            outbox_high_bytes: usize::MAX,
            pace_backlog: usize::MAX,
            ..Limits::default()
        };
        let world = World::with(limits);
        world.broker.set_time(START_MS);
        let (owner, user) = (world.connect(), world.connect());
        let mut scene = Scene { world, owner, user, unique: 0, now_ms: START_MS };
        // What all of a thread share is there from the beginning.
        scene.owner.declare("warm");
        scene.owner.read(&vec![Step::Publish(1, Message::new("", "warm", "x")); 3000]);
        scene.owner.delete("warm");
        scene
    }

    pub fn counted_bytes(&self) -> i64 {
        self.world.broker.memory_used_bytes() as i64
    }

    /// What is under way has its turn, and both clients rest.
    pub fn rest(&mut self) {
        self.world.tick_all(self.now_ms);
        self.owner.rest();
        self.user.rest();
    }

    /// Time passes.
    pub fn pass(&mut self, by_ms: u64) {
        self.now_ms += by_ms;
        self.world.broker.set_time(self.now_ms);
        self.world.tick_all(self.now_ms);
    }

    /// Declares a queue; a durable one where its arguments ask for that.
    pub fn declare(&mut self, name: &str, arguments: &FieldTable) {
        let durable = arguments.get("x-queue-type").is_some();
        declare_with(&mut self.owner, name, durable, arguments);
    }

    pub fn declare_exchange(&mut self, name: &str, kind: &str, arguments: &FieldTable) {
        let entries = arguments.to_entries();
        let arguments = Table::from_entries(&entries);
        let (exchange, kind) = (short(name), short(kind));
        self.owner.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
    }

    /// Messages like no other, with each priority in turn.
    pub fn send(&mut self, exchange: &str, keys: impl Iterator<Item = String>) {
        let first = self.unique;
        let all = keys.zip(first..).map(|(key, unique)| {
            self.unique = unique + 1;
            let headers = FieldTable::new().with("x-deduplication-header", unique);
            Message::new(exchange, &key, "0123456789").with_properties(|properties| {
                properties.headers = Some(headers);
                properties.priority = Some(unique as u8);
            })
        });
        send(&mut self.user, all);
    }
}

/// Publishes on channel 1, a hundred a read.
pub fn send(client: &mut Client, all: impl Iterator<Item = Message>) {
    read_all(client, all.map(|message| Step::Publish(1, message)));
}

/// Sends methods on channel 1, a hundred a read.
pub fn ask<'m>(client: &mut Client, all: impl Iterator<Item = Method<'m>>) {
    read_all(client, all.map(|method| Step::Call(1, method)));
}

fn read_all<'m>(client: &mut Client, mut all: impl Iterator<Item = Step<'m>>) {
    loop {
        let steps: Vec<_> = all.by_ref().take(100).collect();
        if steps.is_empty() {
            return;
        }
        client.read(&steps);
        client.rest();
    }
}
