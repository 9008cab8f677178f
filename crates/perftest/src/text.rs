//! The report as text.

use std::fmt::Write;

use crate::latency::Summary;
use crate::report::{Report, Throughput};
use crate::stamp::STAMP_LEN;

/// The report, as it is printed at the end.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_report(report, &mut out);
    out
}

fn write_report(report: &Report, out: &mut String) -> std::fmt::Result {
    let interrupted = if report.interrupted { ", interrupted" } else { "" };
    writeln!(out, "\n=== Performance Test Results ===")?;
    writeln!(out, "\nDuration: {:.2} s{interrupted}", report.duration_s)?;
    if report.warmup_s > 0.0 {
        writeln!(out, "  after a warm-up of {:.2} s that is not counted", report.warmup_s)?;
    }
    if report.drain_s >= 0.1 {
        writeln!(out, "  then {:.2} s until the last message had arrived", report.drain_s)?;
    }
    writeln!(out, "\nThroughput:")?;
    write_throughput(out, "Published", report.published)?;
    write_throughput(out, "Consumed", report.consumed)?;
    write_throughput(out, "Confirmed", report.confirmed)?;
    if report.consumed_from_warmup > 0 {
        let count = report.consumed_from_warmup;
        writeln!(out, "  {count} of those consumed were published in the warm-up")?;
    }
    if report.settings.consumers > 0 {
        write_consumer_latency(report, out)?;
    }
    if report.settings.confirm > 0 || report.settings.tx > 0 {
        writeln!(out, "\nConfirm Latency:")?;
        write_latency(report.confirm_latency, out)?;
    }
    write_verdict(report, out)
}

fn write_throughput(out: &mut String, name: &str, throughput: Throughput) -> std::fmt::Result {
    let Throughput { total, per_s, drained } = throughput;
    write!(out, "  {:<10} {total} messages ({per_s:.0} msg/s", format!("{name}:"))?;
    match drained {
        0 => writeln!(out, ")"),
        _ => writeln!(out, ", {drained} of them behind the measured time)"),
    }
}

fn write_consumer_latency(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\nConsumer Latency:")?;
    if report.settings.size_bytes < STAMP_LEN && report.settings.producers > 0 {
        return writeln!(
            out,
            "  off: bodies of less than {STAMP_LEN} bytes have no room for a time stamp"
        );
    }
    write_latency(report.consumer_latency, out)
}

pub(crate) fn write_latency(summary: Option<Summary>, out: &mut String) -> std::fmt::Result {
    let Some(summary) = summary else { return writeln!(out, "  nothing was measured") };
    let lines = [
        ("min", summary.min_ns),
        ("median", summary.median_ns),
        ("75th", summary.p75_ns),
        ("95th", summary.p95_ns),
        ("99th", summary.p99_ns),
        ("99.9th", summary.p999_ns),
        ("max", summary.max_ns),
    ];
    for (name, latency_ns) in lines {
        writeln!(out, "  {:<8} {}", format!("{name}:"), human_time(latency_ns))?;
    }
    Ok(())
}

fn write_verdict(report: &Report, out: &mut String) -> std::fmt::Result {
    let remarks = report.fate.remarks();
    let problems = report.problems();
    if !remarks.is_empty() || !problems.is_empty() {
        writeln!(out)?;
    }
    for remark in remarks {
        writeln!(out, "Note: {remark}")?;
    }
    for problem in problems {
        writeln!(out, "FAILED: {problem}")?;
    }
    Ok(())
}

/// A time with a unit that suits it: `812 ns`, `41.3 µs`, `2.05 ms`, `3.20 s`.
#[must_use]
pub fn human_time(time_ns: u64) -> String {
    let ns = time_ns as f64;
    match time_ns {
        0..1_000 => format!("{time_ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
