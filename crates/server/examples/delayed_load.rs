//! What delayed messages cost: memory and processor time while they wait, how late they come, and whether all of them
//! survive a kill of the broker.
//!
//! ```text
//! cargo build --profile quick -p courser && cargo run --profile quick -p courser --example delayed_load -- --kill
//! ```

#[path = "support/process.rs"]
mod process;

use anyhow::ensure;
use clap::Parser;
use courser_client::{Channel, Connection, ConsumeOptions, ExchangeKind, ExchangeOptions};
use courser_client::{Outgoing, QueueOptions};
use courser_codec::FieldTable;
use process::Broker;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Measures what delayed messages cost a broker in a process of its own.
#[derive(Debug, Parser)]
struct Arguments {
    /// Messages to delay
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,

    /// Bytes of each
    #[arg(long, default_value_t = 100)]
    size_bytes: usize,

    /// Seconds from the first publish until the first message is due
    #[arg(long, default_value_t = 60)]
    after_s: u64,

    /// Seconds over which the messages are due
    #[arg(long, default_value_t = 30)]
    over_s: u64,

    /// Kill the broker while all messages wait, and start it again
    #[arg(long)]
    kill: bool,

    /// The broker's program [default: the one built together with this]
    #[arg(long)]
    broker: Option<PathBuf>,
}

const EXCHANGE: &str = "delayed-load";
/// Messages on their way to the broker at once.
const CONFIRMS_EVERY: u64 = 200;
const QUEUE: &str = "delayed-load";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let program = arguments.broker.as_deref();
    let folder = tempfile::tempdir()?;
    let mut broker = Broker::start(program, folder.path())?;
    let first_due_ms = publish_all(&broker, &arguments).await?;
    if arguments.kill {
        let begun = Instant::now();
        drop(broker);
        broker = Broker::start(program, folder.path())?;
        let mib = broker.resident_bytes()? as f64 / f64::from(1 << 20);
        println!(
            "killed, and ready again in {:.2} s, memory {mib:.1} MiB",
            begun.elapsed().as_secs_f64()
        );
    }
    let now_ms = now_ms();
    ensure!(
        now_ms < first_due_ms,
        "messages were due before they could be waited for: give it more --after-s"
    );
    let cpu_before = broker.cpu_time()?;
    tokio::time::sleep(Duration::from_millis(first_due_ms - now_ms)).await;
    let waiting = broker.cpu_time()?.saturating_sub(cpu_before);
    println!(
        "waiting: {} ms of processor time in {} ms",
        waiting.as_millis(),
        first_due_ms - now_ms
    );
    consume_all(&broker, &arguments).await
}

async fn connect(broker: &Broker) -> anyhow::Result<(Connection, Channel)> {
    let connection = Connection::open(&format!("amqp://{}", broker.address)).await?;
    let channel = connection.open_channel().await?;
    Ok((connection, channel))
}

/// Publishes, and reports what it takes. Returns when the first message is due.
async fn publish_all(broker: &Broker, arguments: &Arguments) -> anyhow::Result<u64> {
    let (connection, channel) = connect(broker).await?;
    let mut options = ExchangeOptions { durable: true, ..Default::default() };
    options.arguments = FieldTable::new().with("x-delayed-type", "direct");
    let kind = ExchangeKind::Other("x-delayed-message".into());
    channel.exchange_declare(EXCHANGE, kind, options).await?;
    channel.queue_declare(QUEUE, QueueOptions::durable()).await?;
    channel.queue_bind(QUEUE, EXCHANGE, "", FieldTable::new()).await?;
    channel.confirm_select().await?;
    let (memory_before, cpu_before) = (broker.resident_bytes()?, broker.cpu_time()?);
    let begun = Instant::now();
    let first_due_ms = now_ms() + arguments.after_s * 1000;
    let mut body = vec![b'x'; arguments.size_bytes.max(8)];
    for nth in 0..arguments.messages {
        // Neighbours are not due one after the other.
        let spread = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (arguments.over_s * 1000).max(1);
        let due_ms = first_due_ms + spread;
        body[..8].copy_from_slice(&due_ms.to_be_bytes());
        let delay_ms = due_ms.saturating_sub(now_ms()) as i64;
        let message = Outgoing::new(&body).persistent().header("x-delay", delay_ms)?;
        channel.publish(EXCHANGE, "", message).await?;
        if nth % CONFIRMS_EVERY == 0 {
            // The broker counts from the arrival: what lies between shall not look like lateness.
            channel.wait_for_confirms().await?;
        }
    }
    let refused = channel.wait_for_confirms().await?;
    ensure!(refused == 0, "{refused} were refused");
    let (took, cpu) = (begun.elapsed(), broker.cpu_time()?.saturating_sub(cpu_before));
    connection.close().await?;
    // Buffers are given back after a while.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let count = arguments.messages as f64;
    let memory = broker.resident_bytes()?.saturating_sub(memory_before);
    println!(
        "published: {:.0} msg/s, {:.2} us of processor time each",
        count / took.as_secs_f64(),
        cpu.as_micros() as f64 / count
    );
    println!(
        "memory: {:.1} bytes each, {:.1} MiB in all",
        memory as f64 / count,
        memory as f64 / f64::from(1 << 20)
    );
    Ok(first_due_ms)
}

/// Takes all messages, and reports how late they are.
async fn consume_all(broker: &Broker, arguments: &Arguments) -> anyhow::Result<()> {
    let (connection, channel) = connect(broker).await?;
    let cpu_before = broker.cpu_time()?;
    let begun = Instant::now();
    let mut deliveries = channel.consume(QUEUE, ConsumeOptions::auto_ack()).await?;
    let mut late_ms = Vec::with_capacity(arguments.messages as usize);
    while late_ms.len() < arguments.messages as usize {
        let Ok(next) = tokio::time::timeout(Duration::from_secs(30), deliveries.next()).await
        else {
            break;
        };
        let Some(delivery) = next? else { break };
        let due_ms = delivery.body().first_chunk().copied().map_or(0, u64::from_be_bytes);
        let now_ms = now_ms();
        ensure!(now_ms >= due_ms, "a message came {} ms early", due_ms - now_ms);
        late_ms.push(now_ms - due_ms);
    }
    let (took, cpu) = (begun.elapsed(), broker.cpu_time()?.saturating_sub(cpu_before));
    let count = late_ms.len();
    println!("arrived: {count} of {} in {:.1} s", arguments.messages, took.as_secs_f64());
    late_ms.sort_unstable();
    let at = |share: f64| {
        late_ms.get((count as f64 * share) as usize).or(late_ms.last()).copied().unwrap_or_default()
    };
    println!(
        "late by: p50 {} ms, p99 {} ms, p99.9 {} ms, at most {} ms",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    println!(
        "{:.2} us of the broker's processor time each",
        cpu.as_micros() as f64 / count.max(1) as f64
    );
    connection.close().await?;
    Ok(())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}
