//! The broker under test, on a fake disk and a fake clock, with its clients.

use crate::contents::{Extra, content, exchange_of, key_of};
use crate::features::{Feature, Features};
use crate::model::{ChannelId, Publish};
use crate::topology::{
    ALTERNATE, BRIEF, CHAIN, DEAD, DIRECT, Declared, HASH, KEY, LATER, LETTERS, LOG, LONG_KEY,
    MARKS, OTHER, SPILL, WORK,
};
use crate::wire::{Connection, Heard, USER};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::{Broker, Fault};
use courser_codec::{FieldTable, Method, Table, basic, exchange, queue};
use courser_journal::JournalStore;
use courser_journal::testing::{FakeDisk, WatchedStore};
use courser_sim::{Start, checkpoint, short};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The connection that publishes and gets.
pub const PUBLISHER: usize = 0;
/// Connections; all but the first only consume.
pub const CONNECTIONS: usize = 3;
/// The channels of the publisher: without and with confirms, with transactions, for `basic.get`, and
/// for changes of the topology.
pub const PLAIN: u16 = 1;
pub const CONFIRMS: u16 = 2;
pub const TX: u16 = 3;
pub const GETS: u16 = 4;
pub const TOPOLOGY: u16 = 5;
/// The first number of those that are idle.
pub const IDLE: u16 = 20;
/// The channels of consumers; each has one consumer at most.
pub const CONSUMERS: [ChannelId; 6] = [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)];

/// How the broker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Clean,
    Kill,
    Power,
}

/// A broker that runs, and its clients.
pub struct Running {
    store: Arc<JournalStore>,
    watched: Arc<WatchedStore>,
    pub broker: Arc<Broker>,
    connections: Vec<Connection>,
    /// Connections and channels that do nothing but be there, by their numbers.
    idle_connections: BTreeMap<usize, Connection>,
    idle_channels: BTreeSet<u16>,
    /// The log stays in memory.
    pub holds_back: bool,
}

impl Running {
    /// Starts the broker with what is on the disk.
    pub fn start(disk: &FakeDisk, has_copies: bool, seed: u64, now_ms: u64) -> Self {
        let mut start = Start { has_copies, seed, now_ms, ..Start::default() };
        // Everything is on the disk before it is heard of.
        start.options.unsynced_bytes = 0;
        let (store, watched, broker, client) = start.watched_on(disk);
        drop(client);
        let mut running = Running {
            store,
            watched,
            broker,
            connections: Vec::new(),
            idle_connections: BTreeMap::new(),
            idle_channels: BTreeSet::new(),
            holds_back: false,
        };
        running.define_user();
        (0..CONNECTIONS).for_each(|number| running.connect(number));
        (0..CONNECTIONS).for_each(|number| running.open_channels(number));
        running
    }

    /// Has the user of all clients, with limits that only matter to those that are idle.
    fn define_user(&self) {
        let admin = self.broker.admin();
        if admin.create_user(User::new(USER, PasswordHash::none())).is_err() {
            // It is there since before a restart.
            return;
        }
        admin.set_permission(USER, "/", Permission::all()).expect("a permission");
    }

    /// Limits the user of all clients to one idle connection, and to one idle channel.
    pub fn limit_user(&self) {
        let admin = self.broker.admin();
        let (connections_max, channels_max) = (CONNECTIONS + 1, CONSUMERS.len() + 5 + 1);
        for (name, most) in [("max-connections", connections_max), ("max-channels", channels_max)] {
            admin.set_user_limit(USER, name, most as i64).expect("a limit");
        }
    }

    /// An idle connection comes or goes.
    pub fn toggle_idle_connection(&mut self, number: usize) -> Result<(), Fault> {
        if self.idle_connections.remove(&number).is_none() {
            self.idle_connections.insert(number, Connection::open(&self.broker)?);
        }
        Ok(())
    }

    /// An idle channel comes or goes.
    pub fn toggle_idle_channel(&mut self, number: u16) -> Result<(), Fault> {
        if self.idle_channels.remove(&number) {
            self.connections[PUBLISHER].close_channel(number);
            return Ok(());
        }
        self.connections[PUBLISHER].open_channel(number)?;
        self.idle_channels.insert(number);
        Ok(())
    }

    /// Which idle connections and channels there are.
    pub fn idle(&self) -> (Vec<usize>, Vec<u16>) {
        (
            self.idle_connections.keys().copied().collect(),
            self.idle_channels.iter().copied().collect(),
        )
    }

    fn connect(&mut self, number: usize) {
        let connection = Connection::open(&self.broker).expect("the user may connect");
        self.connections.insert(number, connection);
    }

    /// Opens the channels of a new connection.
    fn open_channels(&mut self, connection: usize) {
        if connection == PUBLISHER {
            let numbers = [PLAIN, CONFIRMS, TX, GETS, TOPOLOGY];
            numbers.into_iter().for_each(|number| self.open_channel((PUBLISHER, number)));
        }
        let of_consumers = CONSUMERS.iter().filter(|(at, _)| *at == connection);
        of_consumers.for_each(|channel| self.open_channel(*channel));
    }

    fn open_channel(&mut self, (connection, number): ChannelId) {
        let one = &mut self.connections[connection];
        one.open_channel(number).expect("the user may open a channel");
        let select = match (connection, number) {
            (PUBLISHER, CONFIRMS) => Method::ConfirmSelect(Default::default()),
            (PUBLISHER, TX) => Method::TxSelect(Default::default()),
            _ => return,
        };
        one.restart_confirms();
        one.send(number, &select).expect("it is supported");
    }

    /// Closes a channel and opens it again.
    pub fn reopen_channel(&mut self, channel: ChannelId) {
        self.connections[channel.0].close_channel(channel.1);
        self.open_channel(channel);
    }

    /// Ends a connection.
    pub fn disconnect(&mut self, connection: usize) {
        drop(self.connections.remove(connection));
        self.connect(connection);
        if connection == PUBLISHER {
            self.idle_channels.clear();
        }
    }

    /// Opens the channels of a connection that was ended.
    pub fn reconnect(&mut self, connection: usize) {
        self.open_channels(connection);
    }

    /// Sends a method on a channel.
    pub fn send(&mut self, channel: ChannelId, method: &Method<'_>) -> Result<(), Fault> {
        self.connections[channel.0].send(channel.1, method)
    }

    /// Has the log written once, when it has been appended to so often and is about to be again.
    pub fn write_after(&self, appends: u64) {
        write_before_next(&self.watched, Arc::clone(&self.store), appends);
    }

    /// Has the log written, and hears what each client is sent by that.
    pub fn hear(&mut self) -> Vec<(usize, Vec<Heard>)> {
        if !self.holds_back {
            self.store.journal().flush_once();
            self.store.journal().maintain_once();
        }
        let mut all = Vec::new();
        loop {
            let before = all.len();
            for (number, connection) in self.connections.iter_mut().enumerate() {
                let heard = connection.hear();
                if !heard.is_empty() {
                    all.push((number, heard));
                }
            }
            if all.len() == before {
                return all;
            }
        }
    }

    /// Stops the broker. All that was heard of it is on the disk.
    pub fn stop(self, how: Stop, with_checkpoint: bool, disk: &FakeDisk) {
        match how {
            Stop::Kill => disk.kill(),
            Stop::Power => disk.lose_power(),
            Stop::Clean => {
                assert!(!with_checkpoint || checkpoint(&self.store, &self.broker));
                self.store.journal().close().expect("nothing fails");
            }
        }
    }

    /// Publishes messages that take the same way as one batch. Returns the confirm number of the first.
    pub fn publish(
        &mut self,
        number: u16,
        publishes: &[Publish],
        extra: &Extra,
    ) -> Result<u64, Fault> {
        let Some(first) = publishes.first() else { return Ok(0) };
        let key = key_of(first.path, extra.has_long_key);
        let method = basic::Publish {
            exchange: short(exchange_of(first.path)),
            routing_key: short(&key),
            mandatory: first.mandatory,
            immediate: false,
        };
        let contents: Vec<_> = publishes.iter().map(|one| content(one, extra)).collect();
        self.connections[PUBLISHER].publish(number, method, &contents, number == CONFIRMS)
    }

    /// Declares a queue.
    pub fn declare(&mut self, name: &str, arguments: &FieldTable) -> Result<(), Fault> {
        let arguments = arguments.to_entries();
        let declare = queue::Declare {
            queue: short(name),
            durable: true,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        self.send((PUBLISHER, TOPOLOGY), &Method::QueueDeclare(declare))
    }

    fn declare_exchange(&mut self, name: &str, kind: &str, arguments: FieldTable) {
        let arguments = arguments.to_entries();
        let declare = exchange::Declare {
            exchange: short(name),
            kind: short(kind),
            durable: true,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        let declared = self.send((PUBLISHER, TOPOLOGY), &Method::ExchangeDeclare(declare));
        declared.expect("an exchange that is good");
    }

    fn bind(&mut self, queue: &str, exchange: &str, key: &str) {
        let (queue, exchange, routing_key) = (short(queue), short(exchange), short(key));
        let bind = queue::Bind { queue, exchange, routing_key, ..Default::default() };
        let bound = self.send((PUBLISHER, TOPOLOGY), &Method::QueueBind(bind));
        bound.expect("both are there");
    }

    fn bind_exchange(&mut self, destination: &str, source: &str, key: &str) {
        let (destination, source) = (short(destination), short(source));
        let routing_key = short(key);
        let bind = exchange::Bind { destination, source, routing_key, ..Default::default() };
        let bound = self.send((PUBLISHER, TOPOLOGY), &Method::ExchangeBind(bind));
        bound.expect("both are there");
    }

    /// Declares the exchanges of a row.
    pub fn declare_exchanges(&mut self, features: &Features) {
        let mut arguments = FieldTable::new();
        if features.has(Feature::Alternate) {
            arguments = arguments.with("alternate-exchange", ALTERNATE);
            self.declare_exchange(ALTERNATE, "fanout", FieldTable::new());
        }
        if features.value(Feature::Deduplication) == "exchange" {
            arguments =
                arguments.with("x-message-deduplication", true).with("x-cache-size", MARKS as i64);
        }
        self.declare_exchange(DIRECT, "direct", arguments);
        if features.has(Feature::Chain) {
            self.declare_exchange(CHAIN, "fanout", FieldTable::new());
            self.bind_exchange(DIRECT, CHAIN, "");
        }
        if features.has(Feature::Hash) {
            self.declare_exchange(HASH, "x-consistent-hash", FieldTable::new());
        }
        if features.has(Feature::Delayed) {
            let arguments = FieldTable::new().with("x-delayed-type", "direct");
            self.declare_exchange(LATER, "x-delayed-message", arguments);
            if features.has(Feature::Chain) {
                self.bind_exchange(DIRECT, LATER, KEY);
                self.bind_exchange(DIRECT, LATER, LONG_KEY);
            }
        }
        self.declare_exchange(LETTERS, "fanout", FieldTable::new());
    }

    /// Declares a queue of a row and binds it.
    pub fn declare_bound(&mut self, declared: &Declared, features: &Features) -> Result<(), Fault> {
        self.declare(declared.name, &declared.arguments)?;
        match declared.name {
            WORK => {
                self.bind(WORK, DIRECT, KEY);
                self.bind(WORK, DIRECT, LONG_KEY);
                if features.has(Feature::Hash) {
                    // The first weight counts.
                    self.bind(WORK, HASH, "20");
                    self.bind(WORK, HASH, "1");
                }
                if features.has(Feature::Delayed) && !features.has(Feature::Chain) {
                    self.bind(WORK, LATER, KEY);
                    self.bind(WORK, LATER, LONG_KEY);
                }
            }
            OTHER => {
                self.bind(OTHER, DIRECT, OTHER);
                if features.has(Feature::Hash) {
                    self.bind(OTHER, HASH, "9");
                }
            }
            DEAD => self.bind(DEAD, LETTERS, ""),
            SPILL => self.bind(SPILL, ALTERNATE, ""),
            LOG => {
                self.bind(LOG, DIRECT, KEY);
                self.bind(LOG, DIRECT, LONG_KEY);
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes or deletes the exchange that comes and goes.
    pub fn toggle_brief(&mut self, on: bool) {
        if on {
            self.declare_exchange(BRIEF, "direct", FieldTable::new());
            return self.bind(OTHER, BRIEF, KEY);
        }
        let delete = exchange::Delete { exchange: short(BRIEF), ..Default::default() };
        let deleted = self.send((PUBLISHER, TOPOLOGY), &Method::ExchangeDelete(delete));
        deleted.expect("it is there");
    }
}

fn write_before_next(watched: &Arc<WatchedStore>, store: Arc<JournalStore>, appends: u64) {
    let next = Arc::clone(watched);
    watched.before_next_append(move || match appends.checked_sub(1) {
        Some(rest) => write_before_next(&next, store, rest),
        None => drop(store.journal().flush_once()),
    });
}
