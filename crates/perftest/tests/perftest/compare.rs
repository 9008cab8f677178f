//! Two reports side by side.

use std::path::PathBuf;

use courser_perftest::compare::{self, Comparison};
use courser_perftest::report::{Fate, Report, Throughput};

use crate::report::report;

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("perftest-{name}-{}.json", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn slower() -> Report {
    let mut report = report();
    report.published = Throughput::new(36_000, 0, 30.0);
    report.settings.prefetch = 50;
    report.fate = Fate { lost: 3, ..Fate::default() };
    if let Some(latency) = &mut report.consumer_latency {
        latency.median_ns = 82_600;
        latency.p99_ns = 2_060_000;
    }
    report
}

#[test]
fn what_a_run_has_written_is_read_again() {
    let path = file("read", &serde_json::to_string(&slower()).unwrap());
    assert_eq!(compare::read(&path).unwrap(), slower());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_is_no_report_of_this_version_is_refused() {
    for (name, text, expected) in [
        ("old", r#"{"format": 1}"#, "a report of format 1; this version reads 2"),
        ("other", "{}", "not a report of perftest"),
        ("broken", "{", "EOF"),
    ] {
        let path = file(name, text);
        let error = compare::read(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
        std::fs::remove_file(path).unwrap();
    }
    assert!(compare::read("/no/such/report".as_ref()).is_err());
}

#[test]
fn figures_stand_beside_each_other_with_their_change() {
    let table = Comparison::new(&report(), &slower()).render();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = table.lines().map(words).collect();
    for expected in [
        "published, msg/s 1523 1200 -21.2 %",
        "consumed, msg/s 1520 1520 +0.0 %",
        "consumer latency, median 41.3 µs 82.6 µs +100.0 %",
        "consumer latency, 99th 2.05 ms 2.06 ms +0.5 %",
        "lost 0 3",
        "prefetch: 0, then 50",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected:?} is missing in {table}");
    }
    assert!(!table.contains("confirm"), "nothing was confirmed: {table}");
}

#[test]
fn what_is_worse_by_more_than_allowed_is_named() {
    let (before, after) = (report(), slower());
    let comparison = Comparison::new(&before, &after);
    let all = ["published, msg/s: worse by 21.2 %", "consumer latency, median: worse by 100.0 %"];
    assert_eq!(comparison.worse_by(10.0), all);
    assert_eq!(comparison.worse_by(50.0), all[1..]);
    assert_eq!(comparison.worse_by(100.1), [""; 0]);
    assert_eq!(Comparison::new(&after, &before).worse_by(0.0), [""; 0], "better is not worse");
}
