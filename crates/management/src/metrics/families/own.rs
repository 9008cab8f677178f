//! What RabbitMQ has no names for: the journal, memory by its use, certificates, the gateway, the
//! runtime, and the process under its usual names.

use crate::metrics::figures::{EndpointFigures, NodeFigures, ServerFigures};
use crate::metrics::table::{Histogram, Metric, Page, counter, gauge};
use crate::metrics::text::{Labels, Value};
use crate::scrub::ScrubState;
use crate::settings::Certificate;
use courser_broker::admin::{LogFigures, SYNC_DURATIONS};
use std::time::Duration;

const PREFIX: &str = "courser_";

const PROCESS: &[Metric<NodeFigures>] = &[
    counter("process_cpu_seconds_total", "Processor time used", |node| {
        node.process.cpu_seconds.into()
    }),
    gauge("process_resident_memory_bytes", "Memory of the machine that is in use", |node| {
        node.process.resident_bytes.into()
    }),
    gauge("process_virtual_memory_bytes", "Addresses that are in use", |node| {
        node.process.virtual_bytes.into()
    }),
    gauge("process_open_fds", "Open file descriptors", |node| node.process.open_files.into()),
    gauge("process_max_fds", "File descriptors that there may be", |node| {
        node.process.open_files_max.into()
    }),
    gauge("process_threads", "Threads", |node| node.process.threads.into()),
    gauge("process_start_time_seconds", "When the process started, since 1970", |node| {
        node.process.started_seconds.into()
    }),
];

const NODE: &[Metric<NodeFigures>] = &[
    gauge("memory_limit_bytes", "Memory from which on publishers wait", |node| {
        node.memory_limit_bytes.into()
    }),
    gauge("connections_max", "Connections that are taken at the same time", |node| {
        node.connections_max.into()
    }),
    counter("messages_refused_total", "Messages refused (basic.nack to a publisher)", |node| {
        node.refused.into()
    }),
    gauge("runtime_workers", "Threads that serve connections", |node| node.runtime_workers.into()),
    gauge("runtime_tasks", "Tasks that are there: connections and others", |node| {
        node.runtime_tasks.into()
    }),
    gauge("runtime_queue_length", "Tasks that wait for any thread", |node| {
        node.runtime_queue.into()
    }),
];

const WORKER: &[Metric<u64>] =
    &[counter("runtime_worker_parks_total", "How often a thread began to wait", |parks| {
        (*parks).into()
    })];

const MEMORY: &[Metric<u64>] =
    &[gauge("memory_used_bytes", "Memory that counts towards the limit, by its use", |bytes| {
        (*bytes).into()
    })];

const JOURNAL: &[Metric<LogFigures>] = &[
    counter("journal_appends_total", "Batches appended", |log| log.appends.into()),
    counter("journal_records_total", "Records appended", |log| log.records.into()),
    counter("journal_writes_total", "Writes", |log| log.writes.into()),
    counter("journal_written_bytes_total", "Bytes written", |log| log.written_bytes.into()),
    counter("journal_write_seconds_total", "Time that writes took", |log| log.write_time.into()),
    counter("journal_reads_total", "Reads", |log| log.reads.into()),
    counter("journal_read_bytes_total", "Bytes read", |log| log.read_bytes.into()),
    counter("journal_read_seconds_total", "Time that reads took", |log| log.read_time.into()),
    counter("journal_checkpoints_total", "Checkpoints made", |log| log.checkpoints.into()),
    counter("journal_checkpoint_seconds_total", "Time that checkpoints took", |log| {
        log.checkpoint_time.into()
    }),
    gauge("journal_checkpoint_bytes", "Bytes of the last checkpoint", |log| {
        log.checkpoint_bytes.into()
    }),
    gauge("journal_segments", "Files that hold log", |log| log.segments.into()),
    gauge("journal_log_bytes", "Bytes of files that hold log", |log| log.log_bytes.into()),
    gauge("journal_live_bytes", "Estimate of the bytes that are still needed", |log| {
        log.live_bytes.into()
    }),
    gauge("journal_spare_bytes", "Bytes of files that are ready to be used", |log| {
        log.spare_bytes.into()
    }),
];

const SCRUB: &[Metric<ScrubState>] = &[
    counter("journal_scrubbed_bytes_total", "Bytes read to find damage", |scrub| {
        scrub.scrubbed_bytes.into()
    }),
    counter(
        "journal_scrub_damaged_total",
        "Damaged records and other parts of the journal found so",
        |scrub| scrub.damaged_total.into(),
    ),
    counter("journal_scrub_repaired_total", "Those that were written again", |scrub| {
        scrub.repaired_total.into()
    }),
    gauge(
        "journal_scrub_completed_timestamp_seconds",
        "When all of the journal was read for damage last, since 1970; 0 if not since the start",
        |scrub| Value::Real(scrub.completed_ms.unwrap_or_default() as f64 / 1000.0),
    ),
];

const CERTIFICATE: &[Metric<Certificate>] = &[gauge(
    "certificate_expiry_timestamp_seconds",
    "When a certificate expires, since 1970",
    |certificate| Value::Real(certificate.not_after_s as f64),
)];

const ENDPOINT: &[Metric<EndpointFigures>] = &[
    gauge("gateway_peers", "Peers that are connected", |one| one.peers.into()),
    counter("gateway_received_total", "Messages from peers", |one| one.received.into()),
    counter("gateway_received_bytes_total", "Bytes of these", |one| one.received_bytes.into()),
    counter("gateway_published_total", "Messages that the broker has taken", |one| {
        one.published.into()
    }),
    counter("gateway_refused_total", "Messages that the broker has refused", |one| {
        one.refused.into()
    }),
    counter("gateway_unroutable_total", "Messages that no queue got", |one| one.unroutable.into()),
    counter("gateway_sent_total", "Messages to peers", |one| one.sent.into()),
    counter("gateway_sent_bytes_total", "Bytes of these", |one| one.sent_bytes.into()),
    counter("gateway_dropped_total", "Messages that could not be carried", |one| {
        one.dropped.into()
    }),
    counter("gateway_expired_total", "Requests not answered in time", |one| one.expired.into()),
    counter("gateway_turned_away_total", "Peers that were not let in", |one| {
        one.turned_away.into()
    }),
    counter("gateway_logins_total", "Logins at the broker", |one| one.links.into()),
];

/// Adds everything of this module to a page.
pub(crate) fn add(
    page: &mut Page,
    node: NodeFigures,
    server: &ServerFigures,
    certificates: &[Certificate],
    scrub: Option<ScrubState>,
) {
    let uses = node.memory;
    let uses = [
        ("messages", uses.messages),
        ("definitions", uses.definitions),
        ("transactions", uses.transactions),
        ("sessions", uses.sessions),
        ("places", uses.places),
        ("deduplication", uses.deduplication),
        ("answers", uses.answers),
        ("incomplete", uses.incomplete),
        ("unread", uses.unread),
        ("readers", uses.readers),
        ("newcomers", uses.newcomers),
        ("outboxes", uses.outboxes),
    ];
    let used = uses.map(|(name, bytes)| (Labels::default().with("use", name), bytes));
    page.rows(PREFIX, MEMORY, &used);
    let log = node.log;
    let rows = [(Labels::default(), node)];
    page.rows(PREFIX, NODE, &rows);
    page.rows("", PROCESS, &rows);
    page.rows(PREFIX, WORKER, &workers());
    page.plain(PREFIX, JOURNAL, log);
    let syncs = Histogram {
        borders: SYNC_DURATIONS.iter().map(Duration::as_secs_f64).collect(),
        counts: log.syncs_by_duration.to_vec(),
        sum: log.sync_time.as_secs_f64(),
    };
    page.histogram(
        (PREFIX, "journal_sync_duration_seconds"),
        "How long syncs took",
        &[(Labels::default(), syncs)],
    );
    let scrub = scrub.map(|scrub| (Labels::default(), scrub));
    page.rows(PREFIX, SCRUB, &Vec::from_iter(scrub));
    page.rows(PREFIX, CERTIFICATE, &expiries(certificates));
    let endpoints = server.endpoints.iter();
    let endpoints =
        endpoints.map(|one| (Labels::default().with("endpoint", &one.name), one.clone()));
    page.rows(PREFIX, ENDPOINT, &endpoints.collect::<Vec<_>>());
}

/// Certificates by path and subject. One that is used twice, and an authority beside its successor, are a row: the first
/// to expire.
fn expiries(certificates: &[Certificate]) -> Vec<(Labels, Certificate)> {
    let mut rows: Vec<(Labels, Certificate)> = Vec::new();
    for one in certificates {
        let labels = Labels::default().with("path", &one.path).with("subject", &one.subject);
        match rows.iter_mut().find(|(known, _)| *known == labels) {
            None => rows.push((labels, one.clone())),
            Some((_, first)) if one.not_after_s < first.not_after_s => *first = one.clone(),
            Some(_) => {}
        }
    }
    rows
}

/// What the threads have done that serve connections.
fn workers() -> Vec<(Labels, u64)> {
    let runtime = tokio::runtime::Handle::current().metrics();
    let of = |worker: usize| {
        let labels = Labels::default().with("worker", worker.to_string());
        (labels, runtime.worker_park_count(worker))
    };
    (0..runtime.num_workers()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::CertificateUse;

    #[test]
    fn no_certificate_stands_on_a_page_twice() {
        let certificate = |subject: &str, not_after_s| Certificate {
            path: "ca.pem".to_owned(),
            purpose: CertificateUse::ClientAuthority,
            hosts: Vec::new(),
            subject: subject.to_owned(),
            alternative_names: Vec::new(),
            issuer: String::new(),
            serial: String::new(),
            not_before_s: 0,
            not_after_s,
        };
        let all = [certificate("CN=a", 30), certificate("CN=b", 10), certificate("CN=a", 20)];
        let rows = expiries(&all);
        let expiries: Vec<i64> = rows.iter().map(|(_, one)| one.not_after_s).collect();
        assert_eq!(expiries, [20, 10]);
    }
}
