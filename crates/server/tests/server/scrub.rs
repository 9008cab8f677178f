//! Reading the journal for damage while the broker runs.

use crate::support::operated::Operated;
use crate::support::{Client, Heard, short, wait_until};
use courser_client::{Connection, Outgoing, QueueOptions};
use courser_codec::{confirm, queue};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BODY: &[u8] = b"a message that waits for a consumer that comes much later";

/// The log in a folder that has a message, and where in it that is.
fn place(folder: &Path) -> (PathBuf, u64) {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    let logs = entries.filter(|path| path.extension() == Some("log".as_ref()));
    let found = logs.into_iter().find_map(|path| {
        let content = fs::read(&path).expect("a log");
        let at = content.windows(BODY.len()).position(|window| window == BODY)?;
        Some((path, at as u64))
    });
    found.expect("it is there")
}

/// What Prometheus is told of the journal's scrubbing, without the time.
async fn metrics(broker: &Operated) -> Vec<String> {
    let address =
        broker.broker.banner.split_whitespace().find_map(|word| {
            word.strip_prefix("http://")?.strip_suffix("/metrics").map(str::to_owned)
        });
    let mut stream = TcpStream::connect(address.expect("metrics")).await.expect("a connection");
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("a page");
    let of_scrub = page.lines().filter(|line| line.starts_with("courser_journal_scrub"));
    of_scrub.map(str::to_owned).collect()
}

fn value(metrics: &[String], name: &str) -> f64 {
    let line = metrics.iter().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {metrics:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_disk_has_changed_is_found_and_told_before_it_is_needed() {
    let broker = Operated::start_with(|command| {
        command.env("COURSER_METRICS_LISTEN", "127.0.0.1:0").stderr(Stdio::null());
    });
    let attention = || broker.json(&["attention"]).to_string();
    assert_eq!(
        broker.quiet(&["journal", "status"]),
        "The journal was not read for damage since the broker was started.\n"
    );
    let mut client = Client::connect(broker.broker.address).await;
    let declare = queue::Declare { queue: short("q"), durable: true, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    client.call(confirm::Select { nowait: false }).await;
    client.publish_persistent("q", BODY).await;
    client.next().await;
    let before = metrics(&broker).await;
    let done = broker.quiet(&["journal", "scrub"]);
    assert!(done.starts_with("All of the journal was read ("), "{done}");
    assert!(done.ends_with(": nothing is damaged.\n"), "{done}");
    assert_eq!(broker.quiet(&["journal", "status"]), done);
    let after = metrics(&broker).await;
    let bytes = "courser_journal_scrubbed_bytes_total";
    assert!(value(&after, bytes) > value(&before, bytes));
    let completed = "courser_journal_scrub_completed_timestamp_seconds";
    assert_eq!(value(&before, completed), 0.0);
    assert!(value(&after, completed) > 0.0);
    assert!(!attention().contains("journal_damaged"));

    let (log, at) = place(&broker.folder.path().join("data/journal"));
    let file = fs::File::options().write(true).open(&log).expect("a log");
    file.write_all_at(b"#", at + 5).expect("written");
    for _ in 0..2 {
        let said = broker.refused(69, &["journal", "scrub"]);
        assert!(said.contains("1 part is damaged, which the broker's log names"), "{said}");
        assert!(attention().contains("journal_damaged"));
    }
    assert_eq!(value(&metrics(&broker).await, "courser_journal_scrub_damaged_total"), 2.0);
    let lines = broker.quiet(&["log_tail", "--number", "100"]);
    let name = log.file_name().and_then(|name| name.to_str()).expect("a name");
    let told = lines.lines().filter(|line| line.contains("has damaged the journal"));
    let told: Vec<&str> = told.collect();
    assert!(matches!(told[..], [line] if line.contains(name)), "once: {told:?}");

    file.write_all_at(&BODY[5..6], at + 5).expect("written");
    broker.quiet(&["journal", "scrub"]);
    assert!(!attention().contains("journal_damaged"));
    client.consume("q", true).await;
    assert_eq!(client.bodies(1).await, [BODY]);
}

/// Replaces what a broker reads next of its journal, which never comes to an end.
fn make_unreadable(journal: &Path) {
    let entries = fs::read_dir(journal).expect("a folder").map(|entry| entry.expect("one").path());
    let log = entries.filter(|path| path.extension() == Some("log".as_ref())).min();
    let log = log.expect("a log");
    fs::rename(&log, log.with_extension("kept")).expect("renamed");
    assert!(Command::new("mkfifo").arg(&log).status().expect("it runs").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_whose_disk_has_failed_ends_though_it_waits_for_what_it_reads_of_it() {
    let mut broker = Operated::start_with(|command| {
        command.env("COURSER_JOURNAL_SEGMENT_BYTES", "1048576").stderr(Stdio::null());
    });
    let journal = broker.folder.path().join("data/journal");
    make_unreadable(&journal);
    let mut scrub = broker.command();
    let scrub = scrub.args(["--data-dir", "data", "journal", "scrub"]);
    let mut scrub = scrub.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let status = || broker.quiet(&["journal", "status"]);
    wait_until("it is read", async || status().contains("so far")).await;

    let uri = format!("amqp://guest:guest@{}", broker.broker.address);
    let connection = Connection::open(&uri).await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    fs::rename(&journal, journal.with_extension("gone")).expect("renamed");
    // By the next segment the disk has failed, and the broker may have ended.
    for _ in 0..16 {
        let message = Outgoing::new(&[0; 256 << 10]).persistent();
        let _ = channel.publish("", "q", message).await;
    }
    let ended = tokio::task::spawn_blocking(move || broker.broker.wait());
    assert_eq!(ended.await.expect("it ends").code(), Some(1));
    scrub.wait().expect("it has ended with the broker");
}
