//! What clients cost a broker that has nothing to do: memory of idle connections and of empty queues,
//! the time to declare them, and the CPU time that the idle broker uses.
//!
//! ```text
//! cargo build --profile quick -p courser && cargo run --profile quick -p courser --example idle_cost
//! ```

#[path = "support/process.rs"]
mod process;

use anyhow::{Context, bail};
use clap::Parser;
use courser_codec::{Method, queue};
use courser_connection::client::{Config, Connection, Event};
use process::Broker;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Measures what idle connections and empty queues cost a broker in a process of its own.
#[derive(Debug, Parser)]
struct Arguments {
    /// Idle connections to open, each with a channel
    #[arg(long, default_value_t = 10_000)]
    connections: usize,

    /// Queues to declare
    #[arg(long, default_value_t = 10_000)]
    queues: usize,

    /// Declare durable queues
    #[arg(long)]
    durable: bool,

    /// Seconds to watch the idle broker for
    #[arg(long, default_value_t = 10)]
    idle_s: u64,

    /// The broker's program [default: the one built together with this]
    #[arg(long)]
    broker: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let program = arguments.broker.as_deref();
    if arguments.connections > 0 {
        let folder = tempfile::tempdir()?;
        measure_connections(&Broker::start(program, folder.path())?, &arguments).await?;
    }
    // A broker of its own: one that had connections has memory to spare.
    let folder = tempfile::tempdir()?;
    measure_queues(&Broker::start(program, folder.path())?, &arguments).await
}

async fn measure_connections(broker: &Broker, arguments: &Arguments) -> anyhow::Result<()> {
    let count = arguments.connections;
    // What the first connection brings into being is not what each costs.
    let first = Client::connect(broker.address).await?;
    settle().await;
    let before = broker.resident_bytes()?;
    let started = Instant::now();
    let mut clients = Vec::with_capacity(count);
    for nth in 0..count {
        let client = Client::connect(broker.address).await;
        clients.push(client.with_context(|| format!("connection {nth}"))?);
    }
    let opened_s = started.elapsed().as_secs_f64();
    settle().await;
    let grown = broker.resident_bytes()?.saturating_sub(before);
    println!("{count} idle connections, opened in {opened_s:.2} s");
    println!("  memory      {:8.2} KiB each", kib_each(grown, count));
    let cpu_before = broker.cpu_time()?;
    tokio::time::sleep(Duration::from_secs(arguments.idle_s)).await;
    let cpu = broker.cpu_time()?.saturating_sub(cpu_before);
    let share = 100.0 * cpu.as_secs_f64() / arguments.idle_s as f64;
    println!("  CPU         {share:8.2} % of a core, over {} s", arguments.idle_s);
    drop((first, clients));
    settle().await;
    let left = broker.resident_bytes()?.saturating_sub(before);
    println!("  left after  {:8.2} KiB each, when all are gone", kib_each(left, count));
    Ok(())
}

async fn measure_queues(broker: &Broker, arguments: &Arguments) -> anyhow::Result<()> {
    let count = arguments.queues;
    let mut client = Client::connect(broker.address).await?;
    settle().await;
    let before = broker.resident_bytes()?;
    let started = Instant::now();
    for nth in 0..count {
        let name = format!("queue-{nth}");
        let durable = arguments.durable;
        let queue = name.as_str().try_into()?;
        client.call(&queue::Declare { queue, durable, ..Default::default() }.into()).await?;
    }
    let declared_s = started.elapsed().as_secs_f64();
    settle().await;
    let grown = broker.resident_bytes()?.saturating_sub(before);
    let kind = if arguments.durable { "durable queues" } else { "queues" };
    println!("{count} empty {kind}, declared one after the other in {declared_s:.2} s");
    println!("  memory      {:8.2} KiB each", kib_each(grown, count));
    Ok(())
}

/// Buffers are given back after a while.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

fn kib_each(bytes: u64, count: usize) -> f64 {
    bytes as f64 / 1024.0 / count.max(1) as f64
}

/// A client with one channel.
struct Client {
    stream: TcpStream,
    machine: Connection,
}

impl Client {
    async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let machine = Connection::new(Arc::new(Config::default()), Instant::now());
        let mut client = Client { stream, machine };
        client.wait_for(|event| matches!(event, Event::Opened)).await?;
        client.machine.open_channel()?;
        client.wait_for(|event| matches!(event, Event::ChannelOpened { .. })).await?;
        Ok(client)
    }

    /// Sends a method and waits for the answer.
    async fn call(&mut self, method: &Method<'_>) -> anyhow::Result<()> {
        self.machine.request(1, method)?;
        self.wait_for(|event| matches!(event, Event::Reply { .. })).await
    }

    async fn wait_for(&mut self, wanted: impl Fn(&Event<'_>) -> bool) -> anyhow::Result<()> {
        let mut input = Vec::new();
        let mut found = false;
        while !found {
            self.stream.write_all(self.machine.output()).await?;
            self.machine.output().clear();
            if self.stream.read_buf(&mut input).await? == 0 {
                bail!("the broker has closed the connection");
            }
            let mut rest = &input[..];
            while let Some(event) = self.machine.next(&mut rest, Instant::now()) {
                found |= wanted(&event);
            }
            let used = input.len() - rest.len();
            input.drain(..used);
        }
        self.stream.write_all(self.machine.output()).await?;
        self.machine.output().clear();
        Ok(())
    }
}
