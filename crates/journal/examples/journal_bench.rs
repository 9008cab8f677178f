//! Measures the journal on the disk of a folder:
//!
//! ```text
//! cargo run --release -p courser-journal --example journal_bench -- FOLDER
//! ```
//!
//! Prints the floor that the disk sets (4 KiB and fdatasync, on a pre-written file and appending
//! to one), then what the journal makes of it. What an append or a read costs its thread is CPU
//! time, which other work on the machine changes little. Bytes written are those of the whole
//! device, so nothing else should write to it meanwhile. (`write_bytes` of `/proc/self/io` will
//! not do: where the page cache has large folios it counts all of a folio for each byte written.)

use courser_journal::{AppendMode, Batch, Journal, Options, ReadCache, RealDisk};
use rustix::time::{ClockId, clock_gettime};
use std::{
    env,
    fs::{self, File},
    hint::black_box,
    os::unix::fs::{FileExt, MetadataExt},
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
        let journal = open(&folder.join(format!("sync-{batch}")));
        settle(&journal);
        synced(&journal, batch, "");
    }
    let journal = open(&folder.join("filling"));
    synced(&journal, 1, ", while spare segments are made");
    drop(journal);
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

/// Waits until the spare segments are made, which a journal does once in its life.
fn settle(journal: &Journal) {
    while journal.usage().spare_bytes < 3 * Options::default().segment_bytes {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn checkpoint(journal: &Journal) {
    let start = journal.end();
    journal
        .checkpoint(&mut || start, &mut |_| {}, &mut |_| Ok(()))
        .expect("a checkpoint can be made");
}

/// How long this thread had a CPU.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What an append costs its caller, while the log thread keeps up.
fn append_cost(dir: &Path) {
    let journal = open(dir);
    let body = [1; RECORD - 24];
    let mut batch = Batch::new();
    for per_batch in [1, 16, 64] {
        let mut took = Duration::ZERO;
        let rounds = 64_000 / per_batch;
        for _ in 0..rounds * per_batch / 4000 {
            let started = cpu_time();
            for _ in 0..4000 / per_batch {
                for _ in 0..per_batch {
                    batch.push(&[black_box(&[2; 24]), black_box(&body)]);
                }
                journal.append(&mut batch, LAZY).expect("a batch can be appended");
            }
            took += cpu_time() - started;
            // Not the back-pressure of the disk is measured here.
            journal.wait_durable(journal.end()).expect("a batch can be synced");
        }
        let each = took.as_nanos() / (rounds * per_batch) as u128;
        println!(
            "push and append, {per_batch} records of 1 KiB a batch: {each} ns of CPU a record"
        );
        checkpoint(&journal);
    }
}

/// One appender that waits for each of its batches.
fn synced(journal: &Journal, per_batch: usize, when: &str) {
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
            checkpoint(journal);
        }
    }
    let rate = records as f64 / started.elapsed().as_secs_f64();
    let took = percentiles(took);
    println!("{per_batch} records of 1 KiB a sync{when}: {rate:.0} records/s, {took}");
}

/// Bytes that were ever written to the device that `dir` is on.
fn written_bytes(dir: &Path) -> u64 {
    let device = fs::metadata(dir).expect("the folder is there").dev();
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xf_ff00);
    let stat = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
    let stat = stat.expect("the folder is on a device");
    let sectors = stat.split_whitespace().nth(6).and_then(|number| number.parse::<u64>().ok());
    sectors.expect("a number is there") * 512
}

/// Bytes written for each byte of a record, in a journal whose segments are in use again.
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
        let before = written_bytes(dir);
        run(512 << 20, in_flight);
        let ratio = (written_bytes(dir) - before) as f64 / f64::from(512 << 20);
        println!(
            "written for each byte of 1 KiB records, {} KiB in flight: {ratio:.3}",
            in_flight >> 10
        );
    }
}

/// Reads a backlog in order, and replays it.
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
    let started = cpu_time();
    for position in &positions {
        black_box(journal.read(*position, &mut cache).expect("a record can be read"));
    }
    let each = (cpu_time() - started).as_nanos() / positions.len() as u128;
    println!(
        "reading {} records of 100 bytes in order: {each} ns of CPU a record",
        positions.len()
    );
    journal.close().expect("the journal can be closed");
    drop(journal);

    let (started, cpu_before) = (Instant::now(), cpu_time());
    let recovery = Journal::open(dir, Options::default(), Arc::new(RealDisk));
    let recovery = recovery.expect("the journal opens");
    let mut bytes = 0;
    let replayed = recovery.replay(
        &mut |record| {
            bytes += record.bytes.len();
            Ok::<(), String>(())
        },
        &mut |_| {},
    );
    let records = replayed.expect("the journal is sound").records;
    let (took, cpu) = (started.elapsed(), cpu_time() - cpu_before);
    println!("replaying {records} of them: {} ms, {} ms of CPU", took.as_millis(), cpu.as_millis());
    assert_eq!(bytes, records as usize * 100);
}
