//! A page of metrics of 100,000 queues is written while it is read.

use courser::{Config, HttpListen, Server};
use courser_broker::admin::NewQueue;
use courser_codec::FieldTable;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const QUEUES: usize = 100_000;
/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Of a page of some hundred MB.
const GROWTH_BYTES_MAX: u64 = 48 << 20;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("a number") * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_many_queues_does_not_stand_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config {
        listen: vec![any_port],
        data_dir: folder.path().join("data"),
        ..Config::default()
    };
    config.management.listen = HttpListen::none();
    config.metrics.listen = HttpListen::At(vec![any_port]);
    config.limits.memory_high_bytes = 4 << 30;
    let server = Server::start(config).await.expect("a broker");
    let admin = server.admin();
    for number in 0..QUEUES {
        let queue = NewQueue { durable: false, auto_delete: false, arguments: FieldTable::new() };
        admin.declare_queue("/", &format!("queue number {number}"), queue).expect("a queue");
    }

    let mut stream = TcpStream::connect(server.metrics_addresses()[0]).await.expect("in");
    let request = "GET /metrics/per-object HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n";
    let before = resident_bytes();
    stream.write_all(request.as_bytes()).await.expect("asked");
    let (mut total, mut lines, mut most) = (0, 0, before);
    let mut piece = vec![0; 256 << 10];
    loop {
        let reading = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await;
        let bytes = reading.expect("in time").expect("a piece");
        if bytes == 0 {
            break;
        }
        total += bytes;
        lines += piece[..bytes].iter().filter(|byte| **byte == b'\n').count();
        most = most.max(resident_bytes());
    }
    assert!(lines > 12 * QUEUES, "{lines} lines: the page was cut off");
    let growth = most - before;
    assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes more in use for a page of {total}");
    let stopping = tokio::time::timeout(PATIENCE, server.stop()).await;
    stopping.expect("in time").expect("it stops");
}
