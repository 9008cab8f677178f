//! The node: what it has, what it uses, and what has come and gone.

use crate::metrics::figures::{LoginCounts, NodeFigures};
use crate::metrics::table::{Family, Metric, counter, flag, gauge, none};

type Row = NodeFigures;

pub(crate) const FAMILIES: &[Family<Row>] = &[
    Family { name: "connection_churn_metrics", metrics: CHURN },
    Family { name: "node_coarse_metrics", metrics: COARSE },
    Family { name: "node_metrics", metrics: LIMITS },
    Family { name: "node_persister_metrics", metrics: STORE },
    Family { name: "ra_metrics", metrics: RAFT },
];

/// How much there is.
pub(crate) const OBJECTS: &[Metric<Row>] = &[
    gauge("connections", "Connections that are open", |node| node.connections.into()),
    gauge("channels", "Channels that are open", |node| node.channels.into()),
    gauge("consumers", "Consumers", |node| node.consumers.into()),
    gauge("queues", "Queues", |node| node.queues.into()),
];

/// What publishers wait for.
pub(crate) const ALARMS: &[Metric<Row>] = &[
    flag("alarms_memory_used_watermark", "1 while memory is short", |node| {
        node.alarms.memory.into()
    }),
    flag("alarms_free_disk_space_watermark", "1 while the disk is nearly full", |node| {
        node.alarms.disk.into()
    }),
    flag("alarms_file_descriptor_limit", "Always 0: connections are refused before", none),
    gauge(
        "unreachable_cluster_peers_count",
        "Always 0: see courser_cluster_voters_connected",
        none,
    ),
];

const CHURN: &[Metric<Row>] = &[
    counter("connections_opened_total", "Connections opened", |node| {
        node.churn.connections_opened.into()
    }),
    counter("connections_closed_total", "Connections closed", |node| {
        node.churn.connections_closed.into()
    }),
    counter("channels_opened_total", "Channels opened", |node| node.churn.channels_opened.into()),
    counter("channels_closed_total", "Channels closed", |node| node.churn.channels_closed.into()),
    counter("queues_declared_total", "Queues declared, whether they were there or not", |node| {
        node.churn.queues_declared.into()
    }),
    counter("queues_created_total", "Queues made", |node| node.churn.queues_created.into()),
    counter("queues_deleted_total", "Queues deleted", |node| node.churn.queues_deleted.into()),
];

const COARSE: &[Metric<Row>] = &[
    gauge("process_open_fds", "Open file descriptors", |node| node.process.open_files.into()),
    gauge(
        "process_resident_memory_bytes",
        "Memory that counts towards the limit: what clients make the broker hold",
        |node| node.memory_used_bytes.into(),
    ),
    gauge("disk_space_available_bytes", "Bytes free on the disk of the data folder", |node| {
        node.disk_free_bytes.into()
    }),
];

const LIMITS: &[Metric<Row>] = &[
    gauge("process_max_fds", "File descriptors that there may be", |node| {
        node.process.open_files_max.into()
    }),
    gauge("resident_memory_limit_bytes", "Memory from which on publishers wait", |node| {
        node.memory_limit_bytes.into()
    }),
    gauge(
        "disk_space_available_limit_bytes",
        "Always 0: publishers wait when the log finds no room",
        none,
    ),
    gauge("erlang_uptime_seconds", "Seconds since the broker was started", |node| {
        node.uptime.into()
    }),
];

const STORE: &[Metric<Row>] = &[
    counter("io_read_ops_total", "Reads of the log", |node| node.log.reads.into()),
    counter("io_read_bytes_total", "Bytes read of the log", |node| node.log.read_bytes.into()),
    counter("io_read_time_seconds_total", "Time that reads took", |node| node.log.read_time.into()),
    counter("io_write_ops_total", "Writes to the log", |node| node.log.writes.into()),
    counter("io_write_bytes_total", "Bytes written to the log", |node| {
        node.log.written_bytes.into()
    }),
    counter("io_write_time_seconds_total", "Time that writes took", |node| {
        node.log.write_time.into()
    }),
    counter("io_sync_ops_total", "Syncs of the log", |node| node.log.syncs().into()),
    counter("io_sync_time_seconds_total", "Time that syncs took", |node| node.log.sync_time.into()),
    counter("io_seek_ops_total", "Always 0: nothing seeks", none),
    counter("io_seek_time_seconds_total", "Always 0: nothing seeks", none),
    counter("io_reopen_ops_total", "Always 0: nothing is opened again", none),
    counter("schema_db_ram_tx_total", "Always 0: there is no such database", none),
    counter("schema_db_disk_tx_total", "Always 0: there is no such database", none),
    counter("msg_store_read_total", "Reads of the log", |node| node.log.reads.into()),
    counter("msg_store_write_total", "Records appended to the log", |node| node.log.records.into()),
    counter("queue_index_read_ops_total", "Always 0: there is no index on the disk", none),
    counter("queue_index_write_ops_total", "Always 0: there is no index on the disk", none),
];

/// Numbers of quorum queues' own logs, which do not exist here.
const RAFT: &[Metric<Row>] = &[
    counter("raft_commit_index", "Always 0: see courser_cluster_entries_committed", none),
    counter("raft_last_written_index", "Always 0: see courser_cluster_entries_last", none),
    counter("raft_snapshot_index", "Always 0: queues have no log of their own", none),
    counter("raft_term", "Always 0: see courser_cluster_term", none),
    gauge("raft_commit_latency_seconds", "Always 0: queues have no log of their own", none),
];

pub(crate) const LOGINS: Family<LoginCounts> = Family {
    name: "auth_attempt_metrics",
    metrics: &[
        counter("auth_attempts_total", "Logins tried", |logins| {
            (logins.succeeded + logins.failed).into()
        }),
        counter("auth_attempts_succeeded_total", "Logins that succeeded", |logins| {
            logins.succeeded.into()
        }),
        counter("auth_attempts_failed_total", "Logins that failed", |logins| logins.failed.into()),
    ],
};
