//! How long a backlog takes to expire, and whom it keeps waiting.
//!
//! `cargo run --profile quick -p courser-broker --example expiring_backlog [MESSAGES]` fills a durable queue on a real
//! journal, lets its time to live be over, and calls the broker's timers as its server does. Between the calls a
//! message goes through another queue, as that of any other client would.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Broker, Fault, Identity, Inbound, Limits, Session};
use courser_codec::{FieldTable, Method, Properties, ShortStr, Table, basic, queue};
use courser_journal::{JournalStore, Options, RealDisk};
use courser_store::{MemoryGauge, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Publishes that come with one read.
const BATCH: usize = 100;
const BODY: [u8; 100] = [0x61; 100];
const TTL_MS: i64 = 60_000;
const START_MS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let messages = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    measure("no dead letters", messages, FieldTable::new())?;
    let to_dead = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    measure("to a durable queue of dead letters", messages, to_dead)
}

fn measure(
    what: &str,
    messages: usize,
    arguments: FieldTable,
) -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("expiring-backlog-{}", std::process::id()));
    let gauge = Arc::new(MemoryGauge::default());
    let disk = Arc::new(RealDisk);
    let opened = JournalStore::open(
        &dir,
        Options::default(),
        disk,
        Arc::clone(&gauge),
        1 << 29,
        &mut |_| {},
    );
    let store = opened?.0;
    let broker = Broker::new(Arc::clone(&store) as Arc<dyn Store>, gauge, Limits::default(), 7);
    broker.set_time(START_MS);
    let mut session = connect(&broker);
    declare(&mut session, "dead", &FieldTable::new())?;
    declare(&mut session, "backlog", &arguments.with("x-message-ttl", TTL_MS))?;
    declare(&mut session, "other", &FieldTable::new())?;
    for _ in 0..messages / BATCH {
        publish(&mut session, "backlog", BATCH)?;
    }
    let now_ms = START_MS + TTL_MS as u64;
    let (mut ticks, mut ticking, mut longest_tick) = (0, Duration::ZERO, Duration::ZERO);
    let mut longest_message = Duration::ZERO;
    let start = Instant::now();
    loop {
        let before = Instant::now();
        let next = broker.tick(now_ms);
        let took = before.elapsed();
        ticks += 1;
        ticking += took;
        longest_tick = longest_tick.max(took);
        let before = Instant::now();
        publish(&mut session, "other", 1)?;
        get(&mut session, "other")?;
        longest_message = longest_message.max(before.elapsed());
        if next != Some(now_ms) {
            break;
        }
    }
    let left = broker.vhost("/").and_then(|vhost| vhost.queue(b"backlog"));
    assert_eq!(left.map(|queue| queue.status().ready), Some(0));
    println!(
        "{what}: {messages} messages in {:.2} s, {:.2} us each; {ticks} ticks, the longest {:.1} ms; a message \
         through another queue between them took {:.1} ms at most",
        start.elapsed().as_secs_f64(),
        ticking.as_secs_f64() * 1e6 / messages as f64,
        longest_tick.as_secs_f64() * 1e3,
        longest_message.as_secs_f64() * 1e3,
    );
    drop((session, broker));
    store.journal().close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// A connection with channel 1 open.
fn connect(broker: &Arc<Broker>) -> Session {
    let identity = Identity { user: Default::default(), cancel_notify: true, impersonator: false };
    let mut session =
        broker.open_session(broker.vhost("/").expect("the default vhost"), identity, 131_072);
    session.open_channel(1);
    session
}

fn declare(session: &mut Session, name: &str, arguments: &FieldTable) -> Result<(), Fault> {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    let queue = ShortStr::cut(name);
    let declare = queue::Declare { queue, durable: true, arguments, ..Default::default() };
    session.request(&mut Batch::default(), 1, &Method::QueueDeclare(declare))
}

fn publish(session: &mut Session, queue: &str, count: usize) -> Result<(), Fault> {
    let mut address = vec![0];
    ShortStr::cut(queue).encode(&mut address);
    let mut header = vec![0, basic::CLASS_ID as u8, 0, 0];
    header.extend_from_slice(&(BODY.len() as u64).to_be_bytes());
    Properties { delivery_mode: Some(2), ..Default::default() }.encode(&mut header);
    let mut batch = Batch::default();
    for _ in 0..count {
        let inbound = Inbound {
            channel: 1,
            publish: basic::Publish { routing_key: ShortStr::cut(queue), ..Default::default() },
            address: &address,
            header: &header,
            body: &BODY,
            shared_body: None,
            confirm_seq: 0,
        };
        session.publish(&mut batch, inbound)?;
    }
    session.flush(&mut batch).map(drop)
}

fn get(session: &mut Session, queue: &str) -> Result<(), Fault> {
    let get = basic::Get { queue: ShortStr::cut(queue), no_ack: true };
    let mut batch = Batch::default();
    session.request(&mut batch, 1, &Method::BasicGet(get))?;
    session.flush(&mut batch)?;
    let mut wire = WireBuffer::default();
    drop(session.outbox().take(&mut wire));
    Ok(())
}
