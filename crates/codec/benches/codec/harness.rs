//! Timing: how long one call takes at best, and how often it allocates.

use std::hint::black_box;
use std::time::Instant;

use crate::counting;
use crate::inputs;
use crate::rows::{Row, parse_stream};

/// Some megabytes, which no cache of the first levels holds.
const STREAM_PUBLISHES: usize = 4096;
const SAMPLES: usize = 15;
const SAMPLE_NS: f64 = 8e6;

/// The best time of one call in nanoseconds.
fn best_ns(work: &mut dyn FnMut(u64)) -> f64 {
    let mut calls = 16;
    loop {
        let start = Instant::now();
        work(calls);
        let elapsed_ns = start.elapsed().as_nanos() as f64;
        if elapsed_ns > SAMPLE_NS / 4.0 {
            calls = ((calls as f64) * SAMPLE_NS / elapsed_ns).max(1.0) as u64;
            break;
        }
        calls *= 4;
    }
    let sample = |work: &mut dyn FnMut(u64)| {
        let start = Instant::now();
        work(calls);
        start.elapsed().as_nanos() as f64 / calls as f64
    };
    (0..SAMPLES).map(|_| sample(work)).fold(f64::INFINITY, f64::min)
}

/// Allocations and bytes of one call, once buffers have grown.
fn allocations(work: &mut dyn FnMut(u64)) -> (u64, u64) {
    work(4);
    let before = counting::allocations();
    work(100);
    let after = counting::allocations();
    ((after.0 - before.0) / 100, (after.1 - before.1) / 100)
}

/// Times a row and prints it.
pub fn report(mut row: Row) {
    let (allocs, bytes) = allocations(&mut row.work);
    let ns = best_ns(&mut row.work);
    let (name, variant) = (row.name, row.variant);
    println!(
        r#"{{"row":"{name}","variant":"{variant}","ns":{ns:.2},"bytes":{bytes},"allocs":{allocs}}}"#
    );
}

/// Parses a stream of publishes with bodies of 1 KiB, and copies the same bytes for comparison.
pub fn report_stream() {
    let stream = inputs::publish_stream(STREAM_PUBLISHES);
    let mut copy = vec![0u8; stream.len()];
    let mut copying = |calls: u64| {
        for _ in 0..calls {
            copy.copy_from_slice(black_box(&stream));
            black_box(&mut copy);
        }
    };
    let copy_ns = best_ns(&mut copying);
    let mut parsing = |calls: u64| {
        for _ in 0..calls {
            black_box(parse_stream(black_box(&stream)));
        }
    };
    let parse_ns = best_ns(&mut parsing);
    let (allocs, bytes) = allocations(&mut parsing);
    let size = stream.len();
    for (row, ns, allocs, bytes) in
        [("memcpy", copy_ns, 0, 0), ("stream/parse", parse_ns, allocs, bytes)]
    {
        println!(
            r#"{{"row":"{row}","variant":"reused","ns":{ns:.2},"bytes":{bytes},"allocs":{allocs},"gb_per_s":{:.2},"size_bytes":{size}}}"#,
            size as f64 / ns
        );
    }
}
