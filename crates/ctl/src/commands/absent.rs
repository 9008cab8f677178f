//! Commands of RabbitMQ that have no meaning here, with what takes their place.

use crate::spec::{Action, Argument, Spec, any};

const ANYTHING: Argument = any("arguments", "Whatever it takes there");

const fn absent(name: &'static str, about: &'static str, why: &'static str) -> Spec {
    Spec {
        name,
        about,
        arguments: &[ANYTHING],
        examples: &[],
        intent: "",
        action: Action::NotHere(why),
    }
}

const CLUSTER: &str = "not here: a broker is a node by itself, and there is no cluster to change";
const PROCESS: &str = "not here: the broker is started and stopped by the system. Use systemctl stop courser, or send it \
                       SIGTERM";

pub(super) const COMMANDS: &[Spec] = &[
    absent("stop", "Stop the broker: the system does that", PROCESS),
    absent("shutdown", "Stop the broker: the system does that", PROCESS),
    absent("stop_app", "Stop the broker: the system does that", PROCESS),
    absent("start_app", "Start the broker: the system does that", PROCESS),
    absent(
        "reset",
        "Forget everything",
        "not here: stop the broker, and take its data folder away",
    ),
    absent(
        "force_reset",
        "Forget everything",
        "not here: stop the broker, and take its data folder away",
    ),
    absent("join_cluster", "Join a cluster: there is none", CLUSTER),
    absent("forget_cluster_node", "Remove a node from a cluster: there is none", CLUSTER),
    absent("rename_cluster_node", "Rename a node of a cluster: there is none", CLUSTER),
    absent(
        "eval",
        "Run Erlang: there is none",
        "not here: the broker is no Erlang program and evaluates nothing",
    ),
    absent(
        "set_vm_memory_high_watermark",
        "Limit memory: a setting does that",
        "not here: set limits.memory_high_bytes in the broker's settings; it counts from the next start",
    ),
    absent(
        "set_disk_free_limit",
        "Limit disk use: the journal does that",
        "not here: the journal keeps a reserve of its own (journal.spare_segments), and publishers are held back before \
         the disk is full",
    ),
    absent(
        "set_log_level",
        "Change the log level: a setting does that",
        "not here: set log.level in the broker's settings; it counts from the next start",
    ),
    absent(
        "rotate_logs",
        "Start a new log file: whatever stores the log does that",
        "not here: the broker writes its log to standard error, and whoever reads that keeps the files",
    ),
    absent(
        "enable_feature_flag",
        "Enable a feature: all are",
        "not here: there are no feature flags, every feature is on",
    ),
];
