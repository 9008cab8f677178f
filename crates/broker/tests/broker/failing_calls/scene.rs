//! A broker with a queue of every kind, a client, and what can be found in it.

use super::{Ending, On, Told, accounts, moves};
use crate::support::{Client, Heard, Message, Step, WorldOnDisk, declare_with, short};
use courser_broker::PolicyKind;
use courser_codec::{FieldTable, Method, Table, basic, confirm, exchange};
use std::collections::{BTreeMap, BTreeSet};

pub const START_MS: u64 = 1_800_000_000_000;
/// After this, everything has been tried again.
const PATIENCE_MS: u64 = 10_000;

/// Queues that are there or may be.
const QUEUES: [&str; 9] =
    ["a", "b", "dying", "letters", "short-lived", "once", "limited", "new", "s"];
const EXCHANGES: [&str; 5] = ["both", "later", "recent", "new", "amq.topic"];

/// What is there: by what it is, its names, messages, and so on.
pub type Census = BTreeMap<String, Vec<String>>;

pub struct Scene {
    pub world: WorldOnDisk,
    /// Channel 2 has confirms on.
    pub client: Client,
    now_ms: u64,
}

impl Scene {
    /// A broker on such a log, of which `prepare` has made something.
    pub fn new(log: On, prepare: fn(&mut Scene)) -> Self {
        let world = match log {
            On::Journal => WorldOnDisk::new(),
            On::Copy => WorldOnDisk::on_copy(),
        };
        world.broker.set_time(START_MS);
        let client = world.connect();
        let mut scene = Scene { world, client, now_ms: START_MS };
        declare(&mut scene.client);
        scene.confirm();
        prepare(&mut scene);
        scene.world.flush();
        scene.client.heard();
        scene
    }

    /// One more queue, that survives.
    pub fn declare_new(&mut self, arguments: FieldTable) {
        declare_with(&mut self.client, "new", true, &arguments);
    }

    /// Another client, when the first one has gone.
    pub fn connect(&mut self) {
        self.client = self.world.connect();
        self.confirm();
    }

    fn confirm(&mut self) {
        self.client.open_channel(2);
        self.client.call_on(2, confirm::Select::default());
    }

    pub fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    /// Publishes with confirms, all in one read.
    pub fn publish(&mut self, messages: &[Message]) -> Told {
        let steps: Vec<_> = messages.iter().map(|one| Step::Publish(2, one.clone())).collect();
        self.client.read(&steps);
        self.world.flush();
        let mut confirmed = BTreeSet::new();
        for heard in self.heard() {
            match heard {
                Heard::Confirm { through, multiple: false, .. } => drop(confirmed.insert(through)),
                Heard::Confirm { through, .. } => confirmed.extend(1..=through),
                Heard::ChannelClosed(_) | Heard::ConnectionClosed(_) | Heard::Refused { .. } => {
                    return Told::Refused;
                }
                _ => {}
            }
        }
        assert!(confirmed.len() >= messages.len(), "neither confirmed nor refused");
        Told::Done
    }

    /// Publishes in [`Scene::new`].
    pub fn fill(&mut self, messages: &[Message]) {
        assert_eq!(self.publish(messages), Told::Done);
    }

    /// Asks for something that has an answer.
    pub fn call<'m>(&mut self, method: impl Into<Method<'m>>) -> Told {
        if !self.is_connected() {
            return Told::Refused;
        }
        match self.client.call(method) {
            Heard::ChannelClosed(_) | Heard::ConnectionClosed(_) => Told::Refused,
            _ => Told::Done,
        }
    }

    /// Says something that has no answer.
    pub fn tell<'m>(&mut self, method: impl Into<Method<'m>>) -> Told {
        self.client.read(&[Step::Call(1, method.into())]);
        let is_end =
            |heard: &Heard| matches!(heard, Heard::ChannelClosed(_) | Heard::ConnectionClosed(_));
        if self.heard().iter().any(is_end) { Told::Refused } else { Told::Nothing }
    }

    /// What an operator wants, and was answered.
    pub fn asked<T, E>(answer: Result<T, E>) -> Told {
        if answer.is_ok() { Told::Done } else { Told::Refused }
    }

    fn heard(&mut self) -> Vec<Heard> {
        self.client.heard()
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        for _ in 0..10_000 {
            match self.world.broker.tick(self.now_ms) {
                Some(next_ms) if next_ms <= self.now_ms => {}
                _ => return,
            }
        }
        panic!("the broker never comes to an end");
    }

    fn pass_some(&mut self) {
        for _ in 0..10 {
            self.pass(PATIENCE_MS / 10);
        }
    }

    /// Nothing fails any more: what is there once the client has gone and everything has been tried again.
    pub fn end(mut self, ending: Ending) -> Census {
        self.world.store().heal();
        let mut stuck = Vec::new();
        if ending == Ending::Memory {
            self.pass_some();
            stuck = self.stuck();
        }
        self.client.disconnect();
        match ending {
            Ending::Memory => {}
            Ending::Restart => self.world.restart(),
            Ending::Checkpoint => self.world.restart_from_checkpoint(),
        }
        self.world.broker.set_time(self.now_ms);
        self.pass_some();
        let mut census = self.census();
        census.insert("stuck".to_owned(), stuck);
        census
    }

    /// The queues that have something for a consumer that waits.
    fn stuck(&self) -> Vec<String> {
        let is_stuck = |queue: &&str| {
            let (ready, unacked, consumers) = self.world.counts(queue);
            consumers > 0 && ready > 0 && unacked == 0
        };
        self.queues().filter(is_stuck).map(str::to_owned).collect()
    }

    fn queues(&self) -> impl Iterator<Item = &'static str> {
        QUEUES.into_iter().filter(|name| self.world.has_queue(name))
    }

    fn census(&mut self) -> Census {
        let mut census = Census::new();
        let mut client = self.world.connect();
        for queue in self.queues() {
            let (ready, unacked, consumers) = self.world.counts(queue);
            let bodies = match queue {
                "s" => read_stream(&mut self.world.connect()),
                _ => client.pop_all(queue),
            };
            let wrong = (ready.abs_diff(bodies.len()), unacked, consumers);
            if wrong != (0, 0, 0) {
                census.insert(format!("wrong counts of {queue}"), vec![format!("{wrong:?}")]);
            }
            census.insert(messages_of(queue), bodies);
        }
        for exchange in EXCHANGES.into_iter().filter(|name| self.world.has_exchange(name)) {
            client.publish(exchange, "probe", "probe");
            let queues: Vec<&str> = self.queues().filter(|queue| *queue != "s").collect();
            let reached = queues.into_iter().filter(|queue| !client.pop_all(queue).is_empty());
            let reached = reached.map(str::to_owned).collect();
            census.insert(format!("queues of {exchange}"), reached);
        }
        let policies = self.world.vhost().policies(PolicyKind::User);
        census.insert("policies".into(), policies.into_iter().map(|one| one.name).collect());
        census.extend(moves::census(&self.world));
        census.extend(accounts::census(&self.world));
        census
    }
}

/// Leaves the order of the messages of a queue out of a census.
pub fn in_any_order(census: &mut Census, queue: &str) {
    census.entry(messages_of(queue)).or_default().sort_unstable();
}

/// Leaves out of a census in which of these queues a message is.
pub fn together(census: &mut Census, queues: &[&str]) {
    let mut all: Vec<String> =
        queues.iter().filter_map(|queue| census.remove(&messages_of(queue))).flatten().collect();
    all.sort_unstable();
    census.insert(messages_of(&queues.join(", ")), all);
}

/// What the messages of a queue are in a census.
pub fn messages_of(queue: &str) -> String {
    format!("messages of {queue}")
}

fn read_stream(client: &mut Client) -> Vec<String> {
    client.qos(1000);
    let start = FieldTable::new().with("x-stream-offset", "first").to_entries();
    let arguments = Table::from_entries(&start);
    client.call(basic::Consume { queue: short("s"), arguments, ..Default::default() });
    client.read(&[]);
    client.bodies()
}

fn declare(client: &mut Client) {
    let plain = FieldTable::new();
    let dead = plain.clone().with("x-dead-letter-exchange", "");
    let dead = dead.with("x-dead-letter-routing-key", "letters");
    let once = plain.clone().with("x-message-deduplication", true).with("x-cache-size", 10);
    let queues = [
        ("a", plain.clone()),
        ("b", plain.clone()),
        ("dying", dead.clone()),
        ("letters", plain.clone()),
        ("short-lived", dead.clone().with("x-message-ttl", 1000)),
        ("once", once),
        ("limited", dead.with("x-max-length", 2)),
        ("s", plain.with("x-queue-type", "stream")),
    ];
    for (name, arguments) in queues {
        declare_with(client, name, true, &arguments);
    }
    let delayed = FieldTable::new().with("x-delayed-type", "fanout").to_entries();
    let exchanges =
        [("both", "fanout"), ("later", "x-delayed-message"), ("recent", "x-recent-history")];
    for (name, kind) in exchanges {
        let (exchange, kind) = (short(name), short(kind));
        let arguments = if name == "later" { Table::from_entries(&delayed) } else { Table::EMPTY };
        client.call(exchange::Declare {
            exchange,
            kind,
            arguments,
            durable: true,
            ..Default::default()
        });
    }
    client.bind("a", "both", "");
    client.bind("b", "both", "");
    client.bind("a", "later", "");
}

/// A persistent message.
pub fn durable(exchange: &str, routing_key: &str, body: &str) -> Message {
    let message = Message::new(exchange, routing_key, body);
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// One that need not survive.
pub fn transient(exchange: &str, routing_key: &str, body: &str) -> Message {
    Message::new(exchange, routing_key, body)
}
