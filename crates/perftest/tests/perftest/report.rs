//! The report as text, JSON and a web page.

use courser_perftest::counters::Totals;
use courser_perftest::latency::{PercentilePoint, Summary};
use courser_perftest::report::{Fate, Report, Settings, Throughput};
use courser_perftest::series::{Point, PointLatency};
use courser_perftest::text::human_time;
use courser_perftest::{html, text};

fn summary() -> Summary {
    Summary {
        count: 9,
        min_ns: 812,
        median_ns: 41_300,
        p75_ns: 50_000,
        p95_ns: 200_000,
        p99_ns: 2_050_000,
        p999_ns: 30_000_000,
        max_ns: 3_200_000_000,
    }
}

pub fn report() -> Report {
    let delta = Totals { published: 1500, consumed: 1498, confirmed: 1499, ..Totals::default() };
    let mut point = Point::new(1.0, 1.0, delta, 1499);
    point.consumer_latency = Some(PointLatency { median_ns: 1000, p99_ns: 2000, max_ns: 3000 });
    Report {
        format: 2,
        settings: Settings {
            uri: "amqp://localhost:5672/%2F".into(),
            broker: "<Broker> & Co </script>".into(),
            producers: 1,
            consumers: 1,
            size_bytes: 1024,
            ..Settings::default()
        },
        duration_s: 30.0,
        warmup_s: 0.0,
        drain_s: 0.0,
        consumed_from_warmup: 0,
        interrupted: false,
        published: Throughput::new(45_678, 0, 30.0),
        consumed: Throughput::new(45_600, 78, 30.0),
        confirmed: Throughput::default(),
        fate: Fate::default(),
        consumer_latency: Some(summary()),
        confirm_latency: None,
        series: vec![point],
        consumer_percentiles: vec![PercentilePoint { percentile: 50.0, latency_ns: 5 }],
        confirm_percentiles: Vec::new(),
    }
}

#[test]
fn the_line_of_a_second_has_rates_and_the_confirms_so_far() {
    assert_eq!(
        report().series[0].line(),
        "published: 1500 msg/s, consumed: 1498 msg/s, confirmed: 1499"
    );
    let half = Totals { published: 10, ..Totals::default() };
    assert_eq!(
        Point::new(1.5, 0.5, half, 7).line(),
        "published: 20 msg/s, consumed: 0 msg/s, confirmed: 7"
    );
}

#[test]
fn a_good_run_reports_throughput_and_latency() {
    assert_eq!(
        text::render(&report()),
        "
=== Performance Test Results ===

Duration: 30.00 s

Throughput:
  Published: 45678 messages (1523 msg/s)
  Consumed:  45678 messages (1520 msg/s, 78 of them behind the measured time)
  Confirmed: 0 messages (0 msg/s)

Consumer Latency:
  min:     812 ns
  median:  41.3 µs
  75th:    50.0 µs
  95th:    200.0 µs
  99th:    2.05 ms
  99.9th:  30.00 ms
  max:     3.20 s
"
    );
    assert!(report().is_good());
}

#[test]
fn a_bad_run_says_what_is_wrong() {
    let mut report = report();
    report.warmup_s = 5.0;
    report.drain_s = 1.25;
    report.consumed_from_warmup = 12;
    report.settings.drain_timeout_ms = 60_000;
    report.interrupted = true;
    report.confirmed = Throughput::new(37_500, 2500, 30.0);
    report.settings.confirm = 10;
    report.confirm_latency = None;
    report.fate = Fate {
        lost: 1,
        undrained: 9,
        left: 4,
        open: 8,
        duplicates: 2,
        nacked: 3,
        unconfirmed: 5,
        returned: 6,
        foreign: 7,
        refused: 10,
        reconnects: 2,
        uncertain: 11,
        failures: vec!["a producer failed: the connection is lost".into()],
    };
    let text = text::render(&report);
    for expected in [
        "Duration: 30.00 s, interrupted\n",
        "after a warm-up of 5.00 s that is not counted\n",
        "then 1.25 s until the last message had arrived\n",
        "  Confirmed: 40000 messages (1250 msg/s, 2500 of them behind the measured time)\n",
        "  12 of those consumed were published in the warm-up\n",
        "Confirm Latency:\n  nothing was measured\n",
        "Note: 6 messages came back: no queue took them (mandatory)\n",
        "Note: 2 messages arrived more than once\n",
        "Note: 4 messages are left in the queues\n",
        "Note: 8 messages had not arrived when the run was broken off\n",
        "Note: 7 messages were from another run\n",
        "Note: 10 messages were refused by consumers (--nack-every)\n",
        "Note: 11 messages had no answer when their connection broke, and need not have arrived\n",
        "Note: producers and consumers connected again 2 times\n",
        "FAILED: 1 message was lost\n",
        "FAILED: 9 messages were left after 60s (--drain-timeout)\n",
        "FAILED: 3 messages were refused by the broker (nack)\n",
        "FAILED: 5 messages were never confirmed\n",
        "FAILED: a producer failed: the connection is lost\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing in {text}");
    }
    assert!(!report.is_good());
}

#[test]
fn each_kind_of_failure_is_one_by_itself() {
    let bad = [
        Fate { lost: 1, ..Fate::default() },
        Fate { undrained: 1, ..Fate::default() },
        Fate { nacked: 1, ..Fate::default() },
        Fate { unconfirmed: 1, ..Fate::default() },
        Fate { failures: vec!["x".into()], ..Fate::default() },
    ];
    for fate in bad {
        assert!(!Report { fate, ..report() }.is_good());
    }
    let fate = Fate { left: 1, duplicates: 1, returned: 1, foreign: 1, ..Fate::default() };
    assert!(Report { fate, ..report() }.is_good());
}

#[test]
fn small_bodies_have_no_latency_and_say_so() {
    let mut report = report();
    report.settings.size_bytes = 15;
    report.consumer_latency = None;
    let text = text::render(&report);
    assert!(
        text.contains("off: bodies of less than 16 bytes have no room for a time stamp"),
        "{text}"
    );
}

#[test]
fn times_have_a_unit_that_suits_them() {
    let cases = [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.0 µs"),
        (41_349, "41.3 µs"),
        (1_000_000, "1.00 ms"),
        (999_000_000, "999.00 ms"),
        (61_000_000_000, "61.00 s"),
    ];
    for (time_ns, expected) in cases {
        assert_eq!(human_time(time_ns), expected);
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = html::render(&report()).unwrap();
    for outside in ["http://", "https://", "src=", "href=", "@import", "url(", "import(", "fetch("]
    {
        assert!(!page.contains(outside), "the page has {outside}");
    }
    for left in ["{{", "}}*/"] {
        assert!(!page.contains(left), "a place was not filled in: {left}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn the_page_fails_a_run_for_each_reason_that_the_text_has() {
    let page = html::render(&report()).unwrap();
    let counts = serde_json::to_value(Fate::default()).unwrap();
    for (name, _) in counts.as_object().unwrap() {
        let mut fate = counts.clone();
        fate[name] = if name == "failures" { vec!["x"].into() } else { 1.into() };
        let fate = serde_json::from_value(fate).unwrap();
        let fails = !Report { fate, ..report() }.is_good();
        let told = [format!("if ({name})"), format!("...{name})")];
        assert_eq!(told.iter().any(|told| page.contains(told)), fails, "{name}");
    }
}

#[test]
fn what_the_broker_calls_itself_cannot_break_the_page() {
    let page = html::render(&report()).unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains(r"\u003cBroker> & Co \u003c/script>"));
}

#[test]
fn the_figures_are_in_the_json() {
    let json = serde_json::to_value(report()).unwrap();
    assert_eq!(json["published"]["total"], 45_678);
    assert_eq!(json["consumer_latency"]["p99_ns"], 2_050_000);
    assert_eq!(json["series"][0]["consumer_latency"]["max_ns"], 3000);
    assert_eq!(json["settings"]["size_bytes"], 1024);
    assert_eq!(json["confirmed"]["total"], 0);
    assert_eq!(json["fate"]["lost"], 0);
}
