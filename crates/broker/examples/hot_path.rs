//! What the broker itself costs per message, from publish to delivery, without sockets and frames to parse.
//!
//! `cargo run --release -p courser-broker --example hot_path` prints nanoseconds; with the name of one measurement and
//! a number of rounds behind it, only that one runs. `bench/broker/instructions` counts instructions with it.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Broker, Fault, Identity, Inbound, Limits, Session};
use courser_codec::{Method, Properties, ShortStr, basic, exchange, queue};
use courser_store::{MemoryGauge, MemoryStore};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Publishes that come with one read.
const BATCH: usize = 50;
const FRAME_MAX: usize = 131_072;
const PREFETCH: u16 = 100;

/// One measurement, named after the workload that it is the core of.
struct Case {
    name: &'static str,
    body_bytes: usize,
    /// Queues, each with a consumer; more than one are bound to a fanout exchange.
    queues: usize,
    acknowledges: bool,
    /// Persistent messages, confirmed.
    persistent: bool,
}

const CASES: [Case; 4] = [
    Case { name: "W1", body_bytes: 16, queues: 1, acknowledges: false, persistent: false },
    Case { name: "W2", body_bytes: 1024, queues: 1, acknowledges: true, persistent: false },
    Case { name: "W3", body_bytes: 1024, queues: 1, acknowledges: true, persistent: true },
    Case { name: "W6", body_bytes: 256, queues: 10, acknowledges: false, persistent: false },
];

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next();
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000_u32);
    for case in CASES.iter().filter(|case| only.as_deref().is_none_or(|only| only == case.name)) {
        let message = Message::new(case);
        let mut world = World::new(case)?;
        let mut batch = Batch::default();
        // Buffers grow to their size, routes are found.
        for _ in 0..20 {
            world.round(&message, &mut batch)?;
        }
        let start = Instant::now();
        for _ in 0..rounds {
            world.measured_round(&message, &mut batch)?;
        }
        let deliveries = f64::from(rounds) * (BATCH * case.queues) as f64;
        let each_ns = start.elapsed().as_nanos() as f64 / deliveries;
        println!("{} {} deliveries a round, {each_ns:.1} ns each", case.name, BATCH * case.queues);
    }
    Ok(())
}

/// A broker in memory with a producer and consumers.
struct World {
    producer: Session,
    consumers: Vec<Session>,
    /// Both ends' bytes on their way to their sockets.
    wire: WireBuffer,
    published: u64,
    acknowledged: u64,
    acknowledges: bool,
    confirms: bool,
    body_bytes: usize,
}

impl World {
    fn new(case: &Case) -> Result<Self, Fault> {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        let broker = Broker::new(store, gauge, Limits::default(), 7);
        let mut consumers = Vec::new();
        for index in 0..case.queues {
            consumers.push(consumer(&broker, case, &format!("queue-{index}"))?);
        }
        Ok(World {
            producer: connect(&broker),
            consumers,
            wire: WireBuffer::default(),
            published: 0,
            acknowledged: 0,
            acknowledges: case.acknowledges,
            confirms: case.persistent,
            body_bytes: case.body_bytes,
        })
    }

    /// The part of which instructions are counted, by its name.
    #[inline(never)]
    fn measured_round<'m>(
        &mut self,
        message: &'m Message,
        batch: &mut Batch<'m>,
    ) -> Result<(), Fault> {
        self.round(message, batch)
    }

    /// A read full of publishes, what the consumers get of it, and their acknowledgements.
    #[inline]
    fn round<'m>(&mut self, message: &'m Message, batch: &mut Batch<'m>) -> Result<(), Fault> {
        for _ in 0..BATCH {
            self.published += 1;
            let confirm_seq = if self.confirms { self.published } else { 0 };
            self.producer.publish(batch, black_box(message.inbound(confirm_seq)))?;
        }
        self.producer.flush(batch)?;
        if self.confirms {
            self.producer.confirm_durable();
            drop(self.producer.outbox().take(&mut self.wire));
            assert!(!self.wire.is_empty(), "a confirm");
            self.wire.clear();
        }
        for consumer in &mut self.consumers {
            drop(consumer.outbox().take(&mut self.wire));
            assert!(self.wire.len() > BATCH * self.body_bytes, "every message is delivered");
            self.wire.clear();
        }
        if self.acknowledges {
            self.acknowledge()?;
        }
        Ok(())
    }

    fn acknowledge(&mut self) -> Result<(), Fault> {
        let mut batch = Batch::default();
        for consumer in &mut self.consumers {
            for _ in 0..BATCH {
                self.acknowledged += 1;
                let ack = basic::Ack { delivery_tag: self.acknowledged, multiple: false };
                consumer.request(&mut batch, 1, &Method::BasicAck(ack))?;
            }
            consumer.flush(&mut batch)?;
        }
        Ok(())
    }
}

/// A connection with channel 1 open.
fn connect(broker: &Arc<Broker>) -> Session {
    let identity = Identity { user: Default::default(), cancel_notify: true, impersonator: false };
    let mut session =
        broker.open_session(broker.vhost("/").expect("the default vhost"), identity, FRAME_MAX);
    session.open_channel(1);
    session
}

/// A connection that consumes from a queue of its own.
fn consumer(broker: &Arc<Broker>, case: &Case, name: &str) -> Result<Session, Fault> {
    let mut session = connect(broker);
    let queue = short(name);
    let declare = queue::Declare { queue, durable: case.persistent, ..Default::default() };
    ask(&mut session, Method::QueueDeclare(declare))?;
    if case.queues > 1 {
        let exchange = short("events");
        let declare = exchange::Declare { exchange, kind: short("fanout"), ..Default::default() };
        ask(&mut session, Method::ExchangeDeclare(declare))?;
        let bind = queue::Bind { queue, exchange, ..Default::default() };
        ask(&mut session, Method::QueueBind(bind))?;
    }
    if case.acknowledges {
        let qos = basic::Qos { prefetch_count: PREFETCH, ..Default::default() };
        ask(&mut session, Method::BasicQos(qos))?;
    }
    let consume = basic::Consume {
        queue,
        consumer_tag: short("consumer-1"),
        no_ack: !case.acknowledges,
        ..Default::default()
    };
    ask(&mut session, Method::BasicConsume(consume))?;
    Ok(session)
}

/// Has a request answered.
fn ask(session: &mut Session, method: Method<'_>) -> Result<(), Fault> {
    session.request(&mut Batch::default(), 1, &method)?;
    drop(session.outbox().take(&mut WireBuffer::default()));
    Ok(())
}

/// What is published, as the connection hands it in.
struct Message {
    exchange: &'static str,
    routing_key: &'static str,
    address: Vec<u8>,
    header: Vec<u8>,
    body: Vec<u8>,
}

impl Message {
    fn new(case: &Case) -> Self {
        let (exchange, routing_key) =
            if case.queues > 1 { ("events", "") } else { ("", "queue-0") };
        let mut address = Vec::new();
        short(exchange).encode(&mut address);
        short(routing_key).encode(&mut address);
        let mut header = vec![0, basic::CLASS_ID as u8, 0, 0];
        header.extend_from_slice(&(case.body_bytes as u64).to_be_bytes());
        let delivery_mode = if case.persistent { 2 } else { 1 };
        Properties { delivery_mode: Some(delivery_mode), ..Default::default() }.encode(&mut header);
        Message { exchange, routing_key, address, header, body: vec![0x61; case.body_bytes] }
    }

    #[inline]
    fn inbound(&self, confirm_seq: u64) -> Inbound<'_> {
        Inbound {
            channel: 1,
            publish: basic::Publish {
                exchange: short(self.exchange),
                routing_key: short(self.routing_key),
                ..Default::default()
            },
            address: &self.address,
            header: &self.header,
            body: &self.body,
            shared_body: None,
            confirm_seq,
        }
    }
}

fn short(text: &str) -> ShortStr<'_> {
    ShortStr::cut(text)
}
