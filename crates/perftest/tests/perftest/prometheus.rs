//! The figures of a run under way.

use courser_perftest::{Options, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::broker::{Broker, Faults};
use crate::command::PATIENCE;

/// Status line and body.
async fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

fn value(metrics: &str, name: &str) -> f64 {
    let found = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    found.unwrap_or_else(|| panic!("{name} is missing in {metrics}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_are_served_while_the_run_goes_on() {
    let broker = Broker::start(Faults::default()).await;
    let line = format!(
        "perftest --uri {} --rate 500 --prefetch 10 --duration 3600s --metrics 127.0.0.1:0",
        broker.uri
    );
    let options = Options::parse_from_args(line.split_whitespace()).unwrap();
    let (interrupt, interrupts) = mpsc::channel(1);
    let (told, mut lines) = mpsc::unbounded_channel();
    let running =
        tokio::spawn(run(options, move |line| drop(told.send(line.to_owned())), interrupts));
    let mut next = async || timeout(PATIENCE, lines.recv()).await.unwrap().unwrap();
    let first = next().await;
    let address = first.strip_prefix("metrics: http://").unwrap().strip_suffix("/metrics").unwrap();
    // Latencies are those of the second before.
    next().await;
    let (status, metrics) = get(address, "/metrics").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    let published = value(&metrics, "perftest_published_total");
    assert!(published > 0.0 && value(&metrics, "perftest_consumed_total") > 0.0, "{metrics}");
    assert!(value(&metrics, "perftest_consumer_latency_seconds_count") > 0.0);
    let p99 = value(&metrics, "perftest_confirm_latency_seconds{quantile=\"0.99\"}");
    assert!(p99 > 0.0 && p99 < 3600.0, "{p99} seconds");
    assert!(metrics.contains("# TYPE perftest_confirmed_total counter\n"));
    assert_eq!(get(address, "/").await.0, "HTTP/1.1 404 Not Found");
    next().await;
    let (_, later) = get(address, "/metrics").await;
    assert!(value(&later, "perftest_published_total") > published, "it goes on");
    interrupt.send(()).await.unwrap();
    let report = timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    assert!(report.is_good(), "{:?}", report.fate);
    assert!(TcpStream::connect(address).await.is_err(), "it ends with the run");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_an_error_of_the_options() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let line = format!("perftest --metrics {}", taken.local_addr().unwrap());
    let options = Options::parse_from_args(line.split_whitespace()).unwrap();
    let (_sender, interrupts) = mpsc::channel(1);
    let error = run(options, |_| (), interrupts).await.unwrap_err();
    assert!(error.is_of_options() && error.to_string().starts_with("--metrics: "), "{error}");
}
