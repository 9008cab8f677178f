//! How fast readers get through a stream: fills one, then reads it by some readers at once, from the first message.
//!
//! `cargo run --release -p courser-client --example stream_readers -- [--uri URI] [--messages N] [--size BYTES]
//! [--readers N] [--pid PID]`
//!
//! With the broker's process id it also says how much processor time the broker spent, and its memory (Linux).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use courser_client::batch::Deliveries;
use courser_client::{Connection, ConsumeOptions, Error, Outgoing, QueueOptions};
use tokio::sync::Notify;

const STREAM: &str = "stream-readers";
const CONFIRMS_EVERY: u64 = 1000;
const PREFETCH: u16 = 1000;
const ACK_EVERY: u64 = 200;

struct Options {
    uri: String,
    messages: u64,
    size_bytes: usize,
    readers: u64,
    pid: Option<u32>,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let options = parse();
    let connection = Connection::open(&options.uri).await?;
    let channel = connection.open_channel().await?;
    let stream = QueueOptions::durable().with("x-queue-type", "stream");
    channel.queue_declare(STREAM, stream).await?;

    let before = Usage::of(options.pid);
    let begun = Instant::now();
    channel.confirm_select().await?;
    let body = vec![b'x'; options.size_bytes];
    for number in 1..=options.messages {
        channel.publish("", STREAM, Outgoing::new(&body[..]).persistent()).await?;
        if number % CONFIRMS_EVERY == 0 {
            channel.wait_for_confirms().await?;
        }
    }
    channel.wait_for_confirms().await?;
    report("published", options.messages, begun.elapsed(), before, Usage::of(options.pid));

    for readers in [1, options.readers] {
        let before = Usage::of(options.pid);
        let begun = Instant::now();
        read_all(&options, readers).await?;
        let name = format!("read by {readers}");
        let deliveries = options.messages * readers;
        report(&name, deliveries, begun.elapsed(), before, Usage::of(options.pid));
    }
    channel.queue_delete(STREAM, Default::default()).await?;
    connection.close().await
}

/// Reads everything by some readers at once, each with a connection of its own.
async fn read_all(options: &Options, readers: u64) -> Result<(), Error> {
    let left = Arc::new(AtomicU64::new(options.messages * readers));
    let done = Arc::new(Notify::new());
    let mut connections = Vec::new();
    for _ in 0..readers {
        let connection = Connection::open(&options.uri).await?;
        let channel = connection.open_channel().await?;
        channel.qos(PREFETCH).await?;
        let mut consume = ConsumeOptions::default();
        consume.arguments = consume.arguments.with("x-stream-offset", "first");
        let (left, done) = (Arc::clone(&left), Arc::clone(&done));
        let mut unacknowledged = 0;
        let handler = move |deliveries: &mut Deliveries<'_>| {
            let count = deliveries.len() as u64;
            unacknowledged += count;
            if unacknowledged >= ACK_EVERY {
                unacknowledged = 0;
                deliveries.ack_all();
            }
            if left.fetch_sub(count, Ordering::Relaxed) == count {
                done.notify_one();
            }
        };
        let consumer = channel.consume_batches(STREAM, consume, handler).await?;
        connections.push((connection, channel, consumer));
    }
    done.notified().await;
    for (connection, ..) in connections {
        connection.close().await?;
    }
    Ok(())
}

fn parse() -> Options {
    let mut options = Options {
        uri: "amqp://localhost".to_owned(),
        messages: 1_000_000,
        size_bytes: 1024,
        readers: 10,
        pid: None,
    };
    let mut args = std::env::args().skip(1);
    while let (Some(name), Some(value)) = (args.next(), args.next()) {
        let number = || value.parse().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--uri" => options.uri = value,
            "--messages" => options.messages = number(),
            "--size" => options.size_bytes = number() as usize,
            "--readers" => options.readers = number(),
            "--pid" => options.pid = Some(number() as u32),
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// What a process has used.
#[derive(Clone, Copy)]
struct Usage {
    processor: Duration,
    resident_bytes: u64,
}

impl Usage {
    /// Of the process with this id, from `/proc`.
    fn of(pid: Option<u32>) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid?)).ok()?;
        // Behind the name in parentheses: state is the first field, user and system time the 12th and 13th, in
        // hundredths of a second; pages of memory the 22nd.
        let fields: Vec<u64> = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .map(|one| one.parse().unwrap_or(0))
            .collect();
        let processor = Duration::from_millis((fields.get(11)? + fields.get(12)?) * 10);
        Some(Usage { processor, resident_bytes: fields.get(21)? * 4096 })
    }
}

fn report(name: &str, messages: u64, took: Duration, before: Option<Usage>, after: Option<Usage>) {
    let per_s = messages as f64 / took.as_secs_f64();
    print!("{name}: {messages} messages in {:.2} s, {per_s:.0} a second", took.as_secs_f64());
    if let (Some(before), Some(after)) = (before, after) {
        let used = after.processor.saturating_sub(before.processor);
        let each = used.as_secs_f64() * 1e6 / messages as f64;
        print!("; broker: {each:.2} us a message, {} MiB resident", after.resident_bytes >> 20);
    }
    println!();
}
