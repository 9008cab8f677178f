//! What it costs to compile a regular expression that comes with a request: of the lowest rank, and of one without a login.

use crate::counting::{Cost, measured};
use crate::direct::{Asked, Direct, HERE, head};
use crate::{LOW, asked, asked_over};
use courser_management::{Exporter, ServerFigures};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::DuplexStream;
use tokio::sync::watch;

/// As much as either takes.
const EXPRESSION_BYTES: usize = 1020;
const METRICS_BYTES: usize = 2000;

/// The expressions that cost most to compile, each in another way, in at most so many bytes.
fn expressions(bytes: usize) -> Vec<String> {
    let filled = |begin: &str, unit: &str, end: &str| {
        let number = (bytes - begin.len() - end.len()) / unit.len();
        percent_encoded(&format!("{begin}{}{end}", unit.repeat(number)))
    };
    let classes = |class: &str| percent_encoded(&class.repeat(16));
    vec![
        filled("(?<=", "a*", ")x"),
        filled("(?=é)", "a", ""),
        filled("(", "a", r")\1\1\1\1\1\1"),
        filled("", "(q|r)", ""),
        filled("", r"\W", ""),
        classes(r"\pL"),
        classes("[!-\u{1fff}]"),
        // What was without a bound before anything is compiled.
        percent_encoded(&format!("(a?){}", r"(\1\1\1\1)".repeat(20))),
        percent_encoded(&format!("(a){}", "((?(1)a|))".repeat(20))),
        percent_encoded(&format!(r"(?<a>c{}\g<a>?b{})", "(?:x".repeat(15), ")b".repeat(15))),
        filled("(?i)", "[!-\u{10ffff}]", ""),
    ]
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// What the dearest costs in a search, and in a query for metrics, by what the bill calls them.
pub async fn costs(direct: &Direct) -> [(&'static str, Cost); 2] {
    let (mut search, mut metrics) = (Cost::default(), Cost::default());
    for expression in expressions(EXPRESSION_BYTES) {
        let path = format!("/api/queues?page=1&use_regex=true&name={expression}");
        let request = head(&Asked::new("GET", &path).by(LOW), 0);
        let (status, cost) = measured(asked(direct, request.as_bytes())).await;
        assert_eq!(status, 200, "what is no expression is found nowhere");
        search = search.max(cost);
    }
    let exporter =
        Exporter::new(Arc::clone(&direct.api), Arc::default(), ServerFigures::default, false);
    let stop = watch::Sender::new(false);
    for expression in expressions(METRICS_BYTES) {
        let path = format!("/metrics/detailed?family=queue_coarse_metrics&queue={expression}");
        let request = head(&Asked::new("GET", &path), 0);
        let stream = scraping(&exporter, &stop);
        let (status, cost) = measured(asked_over(stream, request.as_bytes())).await;
        assert!(status == 200 || status == 400, "{status}: {path}");
        metrics = metrics.max(cost);
    }
    [
        ("/api/queues?use_regex=true&name={expression}", search),
        ("/metrics/detailed?queue={expression}", metrics),
    ]
}

fn scraping(exporter: &Arc<Exporter>, stop: &watch::Sender<bool>) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let peer = SocketAddr::from((HERE, 1));
    tokio::spawn(Arc::clone(exporter).serve(theirs, peer, stop.subscribe()));
    ours
}
