//! What finding the way of a message costs, with few bindings and with many: topic, headers and consistent-hash
//! exchanges. Every message has another routing key than those before it, so that no way is remembered.
//!
//! `cargo run --profile quick -p courser-broker --example routing` prints nanoseconds of processor time from publish to
//! delivery (Linux; elsewhere of the clock on the wall).
#![allow(clippy::disallowed_methods, reason = "it measures")]

use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Broker, Fault, Identity, Inbound, Limits, Session};
use courser_codec::{FieldTable, Method, Properties, ShortStr, Table, basic, exchange, queue};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::time::Instant;

/// Publishes that come with one read.
const BATCH: usize = 50;
const QUEUES: usize = 10;
/// More than a connection remembers ways.
const MESSAGES: usize = 5000;
/// A case takes at least about so long.
const MEASURE_MS: u128 = 500;

/// An exchange with many bindings, each of which matches some of the messages.
#[derive(Clone, Copy)]
enum Kind {
    /// `site.N.*.#`: a message matches one.
    Topic,
    /// `*.N.#`, and words behind it that differ: a message matches one.
    TopicWithWildcardFirst,
    /// `x-match: all` of two headers: a message matches one.
    Headers,
    /// One binding for each queue.
    ConsistentHash,
    /// One binding for each queue, and every message is new to it.
    Direct,
}

fn main() -> Result<(), Fault> {
    println!("from publish to delivery, {BATCH} messages a read, each with another key");
    for (kind, counts) in [
        (Kind::Direct, &[10, 100_000][..]),
        (Kind::Topic, &[10, 100_000]),
        (Kind::TopicWithWildcardFirst, &[10, 100_000]),
        (Kind::Headers, &[10, 100, 1000, 10_000]),
        (Kind::ConsistentHash, &[10]),
    ] {
        for bindings in counts {
            measure(kind, *bindings)?;
        }
    }
    Ok(())
}

fn measure(kind: Kind, bindings: usize) -> Result<(), Fault> {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let broker = Broker::new(store, gauge, Limits::default(), 7);
    let mut consumer = connect(&broker);
    let declare =
        exchange::Declare { exchange: short("x"), kind: short(kind.name()), ..Default::default() };
    ask(&mut consumer, Method::ExchangeDeclare(declare))?;
    for nth in 0..QUEUES {
        let name = format!("queue-{nth}");
        let queue = short(&name);
        ask(&mut consumer, Method::QueueDeclare(queue::Declare { queue, ..Default::default() }))?;
        let consume =
            basic::Consume { queue, consumer_tag: queue, no_ack: true, ..Default::default() };
        ask(&mut consumer, Method::BasicConsume(consume))?;
    }
    let began_ns = cpu_ns();
    for nth in 0..bindings {
        bind(&mut consumer, kind, nth)?;
    }
    let bound_us = (cpu_ns() - began_ns) as f64 / 1000.0 / bindings as f64;
    let messages: Vec<Message> =
        (0..MESSAGES).map(|nth| Message::new(kind, nth, bindings)).collect();
    let mut producer = connect(&broker);
    let (mut batch, mut wire) = (Batch::default(), WireBuffer::default());
    let (mut published, mut delivered_bytes) = (0, 0);
    let (began, began_ns) = (Instant::now(), cpu_ns());
    while began.elapsed().as_millis() < MEASURE_MS {
        for read in messages.chunks(BATCH) {
            for message in read {
                producer.publish(&mut batch, message.inbound())?;
            }
            producer.flush(&mut batch)?;
            drop(consumer.outbox().take(&mut wire));
            delivered_bytes += wire.len();
            wire.clear();
            published += read.len();
            if began.elapsed().as_millis() > 4 * MEASURE_MS {
                break;
            }
        }
    }
    let each_ns = (cpu_ns() - began_ns) as f64 / published as f64;
    assert!(delivered_bytes > published * 40, "every message is delivered");
    println!(
        "{:<24} {bindings:>7} bindings: {each_ns:>9.0} ns a message, {bound_us:>6.2} us a binding",
        kind.label()
    );
    Ok(())
}

/// Processor time of this thread, which other programs on the machine do not change much.
fn cpu_ns() -> u64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_cpu = schedule.split_whitespace().next().and_then(|first| first.parse().ok());
    on_cpu.unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.unwrap_or_default().as_nanos() as u64
    })
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Topic | Kind::TopicWithWildcardFirst => "topic",
            Kind::Headers => "headers",
            Kind::ConsistentHash => "x-consistent-hash",
            Kind::Direct => "direct",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Kind::Topic => "topic, words first",
            Kind::TopicWithWildcardFirst => "topic, wildcard first",
            other => other.name(),
        }
    }
}

fn bind(session: &mut Session, kind: Kind, nth: usize) -> Result<(), Fault> {
    let name = format!("queue-{}", nth % QUEUES);
    let (key, arguments) = match kind {
        Kind::Topic => (format!("site.{nth}.*.#"), FieldTable::new()),
        Kind::TopicWithWildcardFirst => (format!("*.{nth}.#"), FieldTable::new()),
        Kind::Headers => {
            let wanted = FieldTable::new().with("x-match", "all").with("site", nth as i64);
            (String::new(), wanted.with("kind", "reading"))
        }
        Kind::ConsistentHash => ("1".to_owned(), FieldTable::new()),
        Kind::Direct => (nth.to_string(), FieldTable::new()),
    };
    let entries = arguments.to_entries();
    let bind = queue::Bind {
        queue: short(&name),
        exchange: short("x"),
        routing_key: short(&key),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    ask(session, Method::QueueBind(bind))
}

/// A connection with channel 1 open.
fn connect(broker: &Arc<Broker>) -> Session {
    let identity = Identity { user: Default::default(), cancel_notify: true, impersonator: false };
    let mut session =
        broker.open_session(broker.vhost("/").expect("the default vhost"), identity, 131_072);
    session.open_channel(1);
    session
}

/// Has a request answered.
fn ask(session: &mut Session, method: Method<'_>) -> Result<(), Fault> {
    session.request(&mut Batch::default(), 1, &method)?;
    drop(session.outbox().take(&mut WireBuffer::default()));
    Ok(())
}

/// What is published, as the connection hands it in.
struct Message {
    routing_key: String,
    address: Vec<u8>,
    header: Vec<u8>,
}

impl Message {
    fn new(kind: Kind, nth: usize, bindings: usize) -> Self {
        // Spread over all bindings.
        let site = (nth * 7919) % bindings;
        let routing_key = match kind {
            Kind::Topic => format!("site.{site}.sensor.{nth}"),
            Kind::TopicWithWildcardFirst => format!("site.{site}.sensor.{nth}"),
            Kind::Direct => site.to_string(),
            Kind::Headers | Kind::ConsistentHash => nth.to_string(),
        };
        let mut address = Vec::new();
        short("x").encode(&mut address);
        short(&routing_key).encode(&mut address);
        let headers = FieldTable::new().with("site", site as i64).with("kind", "reading");
        let entries = headers.to_entries();
        let headers = matches!(kind, Kind::Headers).then(|| Table::from_entries(&entries));
        let mut header = vec![0, basic::CLASS_ID as u8, 0, 0];
        header.extend_from_slice(&(BODY.len() as u64).to_be_bytes());
        Properties { headers, ..Default::default() }.encode(&mut header);
        Message { routing_key, address, header }
    }

    fn inbound(&self) -> Inbound<'_> {
        let publish = basic::Publish {
            exchange: short("x"),
            routing_key: short(&self.routing_key),
            ..Default::default()
        };
        let (address, header) = (&*self.address, &*self.header);
        Inbound {
            channel: 1,
            publish,
            address,
            header,
            body: BODY,
            shared_body: None,
            confirm_seq: 0,
        }
    }
}

const BODY: &[u8] = &[b'x'; 16];

fn short(text: &str) -> ShortStr<'_> {
    ShortStr::cut(text)
}
