//! Commands of RabbitMQ that have no meaning here, with what takes their place.

use crate::spec::{Action, Argument, Spec, any};

const ANYTHING: Argument = any("arguments", "Ignored");

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

const CLUSTER: &str = "not supported: use 'courser ctl cluster add' and 'courser ctl cluster remove'. A node's name is \
                       the setting cluster.node_name";
const PROCESS: &str = "not supported: the system starts and stops the broker. Use systemctl start courser and systemctl stop \
                       courser, or send it SIGTERM";

const REPLICAS: &str = "not supported: every node of a cluster has a replica of every durable queue, and gets it when it is added. \
                        Use 'courser ctl cluster add' and 'courser ctl cluster remove' for nodes";
const LEADERS: &str = "not supported: queues have no leaders of their own, groups of vhosts have. Use 'courser ctl cluster \
                       transfer-leader NODE --group NUMBER' to have a group led elsewhere, and 'courser ctl cluster move \
                       VHOST --group NUMBER' to move a vhost";

pub(super) const COMMANDS: &[Spec] = &[
    absent("stop", "Stop the broker: the system does that", PROCESS),
    absent("shutdown", "Stop the broker: the system does that", PROCESS),
    absent("stop_app", "Stop the broker: the system does that", PROCESS),
    absent("start_app", "Start the broker: the system does that", PROCESS),
    absent(
        "reset",
        "Delete everything: remove the data folder instead",
        "not supported: stop the broker and remove its data folder",
    ),
    absent(
        "force_reset",
        "Delete everything: remove the data folder instead",
        "not supported: stop the broker and remove its data folder",
    ),
    absent("join_cluster", "Join a cluster: use cluster add instead", CLUSTER),
    absent(
        "forget_cluster_node",
        "Remove a node from a cluster: use cluster remove instead",
        CLUSTER,
    ),
    absent("rename_cluster_node", "Rename a node of a cluster: a setting does that", CLUSTER),
    absent(
        "eval",
        "Evaluate Erlang: Courser does not run on Erlang",
        "not supported: the broker is not an Erlang program",
    ),
    absent(
        "set_disk_free_limit",
        "Limit disk use: the journal keeps a reserve",
        "not supported: the journal keeps a reserve of its own (journal.spare_segments), and the broker blocks publishers \
         before the disk is full",
    ),
    absent(
        "rotate_logs",
        "Start a new log file: the system stores the log",
        "not supported: the broker logs to standard error; rotate the log where it is stored",
    ),
    absent("grow", "Add replicas of queues: every node has them", REPLICAS),
    absent("shrink", "Remove replicas of queues: every node has them", REPLICAS),
    absent("add_member", "Add a replica of a queue: every node has one", REPLICAS),
    absent("delete_member", "Remove a replica of a queue: every node has one", REPLICAS),
    absent("rebalance", "Spread the leaders of queues: use cluster transfer-leader", LEADERS),
];
