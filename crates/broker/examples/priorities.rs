//! What priorities cost: a backlog filled and drained, in a queue without priorities and in queues with some.
//!
//! `cargo run --release -p courser-broker --example priorities` prints nanoseconds a message.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Broker, Fault, Identity, Inbound, Limits, Session};
use courser_codec::{FieldTable, Method, Properties, ShortStr, Table, basic, queue};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::time::Instant;

const MESSAGES: usize = 1_000_000;
/// Publishes that come with one read.
const BATCH: usize = 100;
const BODY: [u8; 100] = [0x61; 100];
const FRAME_MAX: usize = 131_072;

fn main() -> Result<(), Fault> {
    println!("{MESSAGES} messages of {} bytes, transient, in memory", BODY.len());
    // Priorities used, and the highest that the queue is declared with.
    for (used, highest) in [(1, None), (10, None), (1, Some(255)), (10, Some(10)), (256, Some(255))]
    {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        let broker = Broker::new(store, gauge, Limits::default(), 7);
        let (fill_ns, drain_ns) = measure(&broker, used, highest)?;
        let queue = highest
            .map_or("without priorities".to_owned(), |highest| format!("with 0 to {highest}"));
        println!(
            "queue {queue:18} messages of {used:3}: fill {fill_ns:4.0} ns, drain {drain_ns:4.0} ns each"
        );
    }
    Ok(())
}

/// Fills a queue and drains it; nanoseconds a message.
fn measure(broker: &Arc<Broker>, used: usize, highest: Option<u8>) -> Result<(f64, f64), Fault> {
    let mut producer = connect(broker);
    declare(&mut producer, highest)?;
    let headers: Vec<Vec<u8>> = (0..used).map(|priority| header(priority as u8)).collect();
    let mut address = vec![0];
    ShortStr::cut("q").encode(&mut address);
    let start = Instant::now();
    for first in (0..MESSAGES).step_by(BATCH) {
        let mut batch = Batch::default();
        for nth in first..first + BATCH {
            // Neighbours have priorities far apart.
            let header = &headers[nth * 7919 % used];
            producer.publish(&mut batch, inbound(&address, header))?;
        }
        producer.flush(&mut batch)?;
    }
    let fill = start.elapsed();
    let start = Instant::now();
    let mut consumer = connect(broker);
    let consume = basic::Consume {
        queue: ShortStr::cut("q"),
        no_ack: true,
        nowait: true,
        ..Default::default()
    };
    consumer.request(&mut Batch::default(), 1, &Method::BasicConsume(consume))?;
    let waiting = broker.vhost("/").and_then(|vhost| vhost.queue(b"q"));
    let mut wire = WireBuffer::default();
    while waiting.as_ref().is_some_and(|queue| queue.backlog() > 0) {
        let taken = consumer.outbox().take(&mut wire);
        wire.clear();
        consumer.resume(taken.stalled);
    }
    let drain = start.elapsed();
    let each = |elapsed: std::time::Duration| elapsed.as_nanos() as f64 / MESSAGES as f64;
    Ok((each(fill), each(drain)))
}

/// A connection with channel 1 open.
fn connect(broker: &Arc<Broker>) -> Session {
    let identity = Identity { user: Default::default(), cancel_notify: true, impersonator: false };
    let mut session =
        broker.open_session(broker.vhost("/").expect("the default vhost"), identity, FRAME_MAX);
    session.open_channel(1);
    session
}

fn declare(session: &mut Session, highest: Option<u8>) -> Result<(), Fault> {
    let arguments = highest
        .map(|highest| FieldTable::new().with("x-max-priority", highest))
        .unwrap_or_default()
        .to_entries();
    let declare = queue::Declare {
        queue: ShortStr::cut("q"),
        nowait: true,
        arguments: Table::from_entries(&arguments),
        ..Default::default()
    };
    session.request(&mut Batch::default(), 1, &Method::QueueDeclare(declare))
}

/// A content header with this priority.
fn header(priority: u8) -> Vec<u8> {
    let mut header = vec![0, basic::CLASS_ID as u8, 0, 0];
    header.extend_from_slice(&(BODY.len() as u64).to_be_bytes());
    Properties { priority: Some(priority), ..Default::default() }.encode(&mut header);
    header
}

fn inbound<'m>(address: &'m [u8], header: &'m [u8]) -> Inbound<'m> {
    let routing_key = ShortStr::cut("q");
    Inbound {
        channel: 1,
        publish: basic::Publish { routing_key, ..Default::default() },
        address,
        header,
        body: &BODY,
        shared_body: None,
        confirm_seq: 0,
    }
}
