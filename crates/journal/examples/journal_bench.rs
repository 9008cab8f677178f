//! Measures the journal on the disk of a folder:
//!
//! ```text
//! cargo run --release -p courser-journal --example journal_bench -- FOLDER
//! ```
//!
//! Prints the floor that the disk sets (4 KiB and fdatasync, on a pre-written file and appending
//! to one), then what the journal makes of it.

use courser_journal::{AppendMode, Batch, Journal, Options, ReadCache, RealDisk};
use std::{
    env,
    fs::{self, File},
    hint::black_box,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

const RECORD: usize = 1024;
const SYNC: AppendMode = AppendMode { sync: true, reserve: false };
const LAZY: AppendMode = AppendMode { sync: false, reserve: false };

fn main() {
    let folder = env::args().nth(1).map_or_else(env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("journal-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the folder can be made");
    floor(&folder);
    append_cost(&folder.join("append"));
    for batch in [1, 10, 100, 1000] {
        synced(&folder.join(format!("sync-{batch}")), batch);
    }
    amplification(&folder.join("amplification"));
    drain(&folder.join("drain"));
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

fn percentiles(mut took: Vec<Duration>) -> String {
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!("p50 {:.3} ms, p99 {:.3} ms", at(0.5), at(0.99))
}

fn floor(folder: &Path) {
    let block = [7; 4096];
    for (name, prewritten) in [("pre-written", true), ("appending", false)] {
        let path = folder.join("floor");
        let file = File::create(&path).expect("a file can be made");
        if prewritten {
            file.write_all_at(&vec![0; 64 << 20], 0).expect("zeros can be written");
            file.sync_all().expect("zeros can be synced");
        }
        let mut took = Vec::new();
        for index in 0..2000 {
            let started = Instant::now();
            file.write_all_at(&block, index * 4096).expect("a block can be written");
            file.sync_data().expect("a block can be synced");
            took.push(started.elapsed());
        }
        println!("fdatasync of 4 KiB, {name}: {}", percentiles(took));
        fs::remove_file(path).expect("a file can be removed");
    }
}

fn open(dir: &Path) -> Journal {
    let recovery = Journal::open(dir, Options::default(), Arc::new(RealDisk));
    recovery.and_then(|recovery| recovery.start()).expect("the journal opens")
}

fn checkpoint(journal: &Journal) {
    let start = journal.end();
    journal.checkpoint(start, &mut |_| {}, &mut |_| Ok(())).expect("a checkpoint can be made");
}

/// What an append costs its caller, while the log thread keeps up.
fn append_cost(dir: &Path) {
    let journal = open(dir);
    let body = [1; RECORD - 24];
    let mut batch = Batch::new();
    for per_batch in [1, 16, 64] {
        let mut took = Duration::ZERO;
        let rounds = 64_000 / per_batch;
        for round in 0..rounds {
            let started = Instant::now();
            for _ in 0..per_batch {
                batch.push(&[black_box(&[2; 24]), black_box(&body)]);
            }
            journal.append(&mut batch, LAZY).expect("a batch can be appended");
            took += started.elapsed();
            // Not the back-pressure of the disk is measured here.
            if round % (4096 / per_batch) == 0 {
                journal.wait_durable(journal.end()).expect("a batch can be synced");
            }
        }
        let each = took.as_nanos() / (rounds * per_batch) as u128;
        println!("push and append, {per_batch} records of 1 KiB a batch: {each} ns a record");
        checkpoint(&journal);
    }
}

/// One appender that waits for each of its batches.
fn synced(dir: &Path, per_batch: usize) {
    let journal = open(dir);
    let body = [1; RECORD];
    let mut batch = Batch::new();
    let mut took = Vec::new();
    let started = Instant::now();
    let mut records = 0;
    while started.elapsed() < Duration::from_secs(2) {
        let before = Instant::now();
        for _ in 0..per_batch {
            batch.push(&[&body]);
        }
        let end = journal.append(&mut batch, SYNC).expect("a batch can be appended").end();
        journal.wait_durable(end).expect("a batch can be synced");
        took.push(before.elapsed());
        records += per_batch;
        if journal.wants_checkpoint() {
            checkpoint(&journal);
        }
    }
    let rate = records as f64 / started.elapsed().as_secs_f64();
    println!("{per_batch} records of 1 KiB a sync: {rate:.0} records/s, {}", percentiles(took));
}

/// Octets that this process had written to the disk.
fn written_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").expect("/proc is there");
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|number| number.parse().ok()).expect("a number is there")
}

/// Octets written for each octet of a record, in a journal whose segments are in use again.
fn amplification(dir: &Path) {
    let journal = open(dir);
    let body = [1; RECORD];
    let mut batch = Batch::new();
    let mut run = |bytes: usize, in_flight: u64| {
        for _ in 0..bytes / RECORD / 16 {
            for _ in 0..16 {
                batch.push(&[&body]);
            }
            let end = journal.append(&mut batch, SYNC).expect("a batch can be appended").end();
            if end.0 > journal.durable().0 + in_flight {
                journal.wait_durable(end).expect("a batch can be synced");
            }
            if journal.wants_checkpoint() {
                checkpoint(&journal);
            }
        }
        journal.wait_durable(journal.end()).expect("a batch can be synced");
    };
    run(1 << 30, 1 << 20);
    for in_flight in [100 << 10, 1 << 20] {
        let before = written_bytes();
        run(512 << 20, in_flight);
        let ratio = (written_bytes() - before) as f64 / f64::from(512 << 20);
        println!(
            "written for each octet of 1 KiB records, {} KiB in flight: {ratio:.3}",
            in_flight >> 10
        );
    }
}

/// Reads a backlog in order.
fn drain(dir: &Path) {
    let journal = open(dir);
    let mut batch = Batch::new();
    let mut positions = Vec::new();
    for _ in 0..20_000 {
        for _ in 0..50 {
            batch.push(&[&[3; 100]]);
        }
        let appended = journal.append(&mut batch, LAZY).expect("a batch can be appended");
        positions.extend((0..50).map(|index| appended.position(index)));
    }
    journal.wait_durable(journal.end()).expect("a batch can be synced");
    let mut cache = ReadCache::default();
    let started = Instant::now();
    for position in &positions {
        black_box(journal.read(*position, &mut cache).expect("a record can be read"));
    }
    let each = started.elapsed().as_nanos() / positions.len() as u128;
    println!("reading {} records of 100 octets in order: {each} ns a record", positions.len());
}
