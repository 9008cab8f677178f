//! How long it takes to carry a vhost with a backlog to another broker, and how much memory.
//!
//! `cargo run --profile quick -p courser-broker --example move_vhost [MESSAGES [FOLDER]]` fills two durable queues on a real
//! journal with messages of 1 KB, reads the vhost out, and has a second broker on a journal of its own take it in. The folder,
//! which is removed in the end, is where both journals are.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use courser_broker::admin::VhostSettings;
use courser_broker::{Batch, Broker, Identity, Inbound, Limits, Session};
use courser_codec::{Method, Properties, ShortStr, basic, exchange, queue};
use courser_journal::{JournalStore, Options, RealDisk};
use courser_store::{Log, MemoryGauge, ShardId, Store};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Publishes that come with one read.
const BATCH: usize = 100;
const BODY: [u8; 1000] = [0x61; 1000];
const VHOST: &str = "v";
const QUEUES: [&str; 2] = ["one", "two"];

/// A broker with its journal.
struct OnDisk {
    broker: Arc<Broker>,
    store: Arc<JournalStore>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let messages = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let within = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = within.join(format!("move-vhost-{}", std::process::id()));
    let measured = measure(messages, &dir);
    std::fs::remove_dir_all(&dir)?;
    measured
}

fn measure(messages: usize, dir: &Path) -> Result<(), Box<dyn Error>> {
    let (source, target) = (open(&dir.join("source"))?, open(&dir.join("target"))?);
    source.broker.admin().change_vhost(VHOST, |_| {})?;
    fill(&source.broker, messages)?;
    source.store.journal().wait_durable(source.store.end())?;
    println!("{messages} messages, {} kB of memory", peak_kb());

    let (from, to) = (source.broker.admin(), target.broker.admin());
    while from.stop_vhost(VHOST, 0)? > 0 {}
    let start = Instant::now();
    let mut export = from.export_vhost(VHOST)?;
    let mut import = to.import_vhost(VHOST, 0, &VhostSettings::default())?;
    let (mut reading, mut bytes, mut pieces) = (Duration::ZERO, 0, 0);
    loop {
        let before = Instant::now();
        let piece = export.next_piece()?;
        reading += before.elapsed();
        let Some(piece) = piece else { break };
        bytes += piece.len();
        pieces += 1;
        import.take(&piece)?;
    }
    let moved = import.messages();
    import.finish()?;
    target.store.journal().wait_durable(target.store.end())?;
    let took = start.elapsed();
    to.accept_vhost(VHOST, None)?;
    let per_100_000 = took.as_secs_f64() / moved as f64 * 100_000.0;
    println!(
        "{moved} messages, {} MB in {pieces} pieces, in {:.2} s until all is durable: {per_100_000:.2} s for each 100,000, of \
         which {:.2} s to read them out; {} kB of memory at most",
        bytes / 1_000_000,
        took.as_secs_f64(),
        reading.as_secs_f64() / moved as f64 * 100_000.0,
        peak_kb(),
    );
    for name in QUEUES {
        let queue = target.broker.vhost(VHOST).and_then(|vhost| vhost.queue(name.as_bytes()));
        assert_eq!(queue.map(|queue| queue.status().ready), Some(messages));
    }
    let start = Instant::now();
    let state = target.broker.state_of(ShardId::HOME).ok_or("it is always open")?;
    target.store.checkpoint(&state)?;
    println!("a checkpoint after that takes {:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn open(dir: &Path) -> Result<OnDisk, Box<dyn Error>> {
    std::fs::create_dir_all(dir)?;
    let gauge = Arc::new(MemoryGauge::default());
    let (disk, of_store) = (Arc::new(RealDisk), Arc::clone(&gauge));
    let opened = JournalStore::open(dir, Options::default(), disk, of_store, 1 << 29, &mut |_| {})?;
    let store = opened.0;
    let broker = Broker::new(Arc::clone(&store) as Arc<dyn Store>, gauge, Limits::default(), 7);
    broker.set_time(1_000_000);
    Ok(OnDisk { broker, store })
}

/// The most memory that the process ever had.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Publishes messages that go to both queues.
fn fill(broker: &Arc<Broker>, messages: usize) -> Result<(), Box<dyn Error>> {
    let short = |name: &'static str| ShortStr::try_from(name);
    let identity =
        Identity { user: short("guest")?.into(), cancel_notify: false, impersonator: false };
    let vhost = broker.vhost(VHOST).ok_or("it is there")?;
    let mut session = broker.open_session(vhost, identity, 131_072);
    session.open_channel(1);
    let (all, fanout) = (short("all")?, short("fanout")?);
    let declare =
        exchange::Declare { exchange: all, kind: fanout, durable: true, ..Default::default() };
    request(&mut session, declare)?;
    for name in QUEUES {
        let queue = short(name)?;
        request(&mut session, queue::Declare { queue, durable: true, ..Default::default() })?;
        request(&mut session, queue::Bind { queue, exchange: all, ..Default::default() })?;
    }
    let mut header = Vec::new();
    let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
    properties.encode_header(BODY.len() as u64, &mut header);
    let inbound = Inbound {
        channel: 1,
        publish: basic::Publish { exchange: all, ..Default::default() },
        address: b"\x03all\x00",
        header: &header,
        body: &BODY,
        shared_body: None,
        confirm_seq: 0,
    };
    for _ in 0..messages / BATCH {
        let mut batch = Batch::default();
        for _ in 0..BATCH {
            session.publish(&mut batch, inbound)?;
        }
        session.flush(&mut batch)?;
    }
    session.close();
    Ok(())
}

fn request<'m>(session: &mut Session, method: impl Into<Method<'m>>) -> Result<(), Box<dyn Error>> {
    Ok(session.request(&mut Batch::default(), 1, &method.into())?)
}
