//! What there is: one command for each kind of thing.

use super::columns::*;
use crate::client::segment;
use crate::failure::{self, Failure};
use crate::input::Input;
use crate::node_name;
use crate::session::Session;
use crate::spec::From::{Json, Member};
use crate::spec::{Action, Argument, From, List, Output, Spec, any, flag, required};
use serde_json::Value;

const COLUMNS: Argument = any("columns", "The columns to show");

/// A list of which every column may be asked for.
const fn list(
    path: &'static str,
    columns: &'static [(&'static str, From)],
    default: &'static [&'static str],
    is_long: bool,
) -> Action {
    Action::List(List { path, columns, default, is_long, narrowed: None, missing: None })
}

/// A list whose columns are always the same.
const fn fixed(
    path: &'static str,
    columns: &'static [(&'static str, From)],
    default: &'static [&'static str],
    missing: Option<(u8, &'static str)>,
) -> Action {
    Action::List(List { path, columns, default, is_long: false, narrowed: None, missing })
}

const NO_USER: Option<(u8, &str)> = Some((failure::NO_USER, "no such user: \"{user}\""));

macro_rules! spec {
    ($name:literal, $about:literal, [$($argument:expr),*], [$($example:literal),*], $intent:literal, $action:expr) => {
        Spec {
            name: $name,
            about: $about,
            arguments: &[$($argument),*],
            examples: &[$($example),*],
            intent: $intent,
            action: $action,
        }
    };
}

pub(super) const COMMANDS: &[Spec] = &[
    spec!(
        "list_queues",
        "Queues of a vhost",
        [
            COLUMNS,
            flag("online", "Only queues that are online: all that a broker has"),
            flag("offline", "Only queues that are not online: none; with --online, all"),
            flag("local", "Only queues whose leader is the node that is asked")
        ],
        [
            "list_queues",
            "list_queues -p orders name messages consumers",
            "list_queues --local",
            "list_queues --formatter json"
        ],
        "Listing queues for vhost {vhost} ...",
        Action::List(List {
            path: "/api/queues/{vhost}",
            columns: QUEUE,
            default: &["name", "messages"],
            is_long: true,
            narrowed: Some((&["node"], queues)),
            missing: None,
        })
    ),
    spec!(
        "list_exchanges",
        "Exchanges of a vhost",
        [COLUMNS],
        ["list_exchanges name type durable"],
        "Listing exchanges for vhost {vhost} ...",
        list("/api/exchanges/{vhost}", EXCHANGE, &["name", "type"], false)
    ),
    spec!(
        "list_bindings",
        "Bindings of a vhost",
        [COLUMNS],
        ["list_bindings source_name destination_name"],
        "Listing bindings for vhost {vhost}...",
        list(
            "/api/bindings/{vhost}",
            BINDING,
            &[
                "source_name",
                "source_kind",
                "destination_name",
                "destination_kind",
                "routing_key",
                "arguments"
            ],
            false
        )
    ),
    spec!(
        "list_connections",
        "Connections of all vhosts",
        [COLUMNS],
        ["list_connections", "list_connections name user channels state"],
        "Listing connections ...",
        list("/api/connections", CONNECTION, &["user", "peer_host", "peer_port", "state"], false)
    ),
    spec!(
        "list_channels",
        "Channels of all connections",
        [COLUMNS],
        ["list_channels name prefetch_count"],
        "Listing channels ...",
        list(
            "/api/channels",
            CHANNEL,
            &["pid", "user", "consumer_count", "messages_unacknowledged"],
            false
        )
    ),
    spec!(
        "list_consumers",
        "Consumers of a vhost",
        [COLUMNS],
        ["list_consumers -p orders"],
        "Listing consumers in vhost {vhost} ...",
        list(
            "/api/consumers/{vhost}",
            CONSUMER,
            &[
                "queue_name",
                "channel_pid",
                "consumer_tag",
                "ack_required",
                "prefetch_count",
                "active",
                "arguments"
            ],
            false
        )
    ),
    spec!(
        "list_vhosts",
        "Virtual hosts",
        [COLUMNS],
        ["list_vhosts name description"],
        "Listing vhosts ...",
        list("/api/vhosts", VHOST, &["name"], false)
    ),
    spec!(
        "list_users",
        "Users with their tags",
        [],
        ["list_users"],
        "Listing users ...",
        fixed(
            "/api/users",
            &[("user", Member("name")), ("tags", Member("tags"))],
            &["user", "tags"],
            None
        )
    ),
    spec!(
        "list_permissions",
        "Permissions in a vhost",
        [],
        ["list_permissions -p orders"],
        "Listing permissions for vhost \"{vhost}\" ...",
        fixed(
            "/api/vhosts/{vhost}/permissions",
            members!["user", "configure", "write", "read"],
            &["user", "configure", "write", "read"],
            None
        )
    ),
    spec!(
        "list_user_permissions",
        "Permissions of a user",
        [required("user", "The user's name")],
        ["list_user_permissions alice"],
        "Listing permissions for user \"{user}\" ...",
        fixed(
            "/api/users/{user}/permissions",
            members!["vhost", "configure", "write", "read"],
            &["vhost", "configure", "write", "read"],
            NO_USER
        )
    ),
    spec!(
        "list_topic_permissions",
        "Topic permissions in a vhost",
        [],
        ["list_topic_permissions"],
        "Listing topic permissions for vhost \"{vhost}\" ...",
        fixed(
            "/api/vhosts/{vhost}/topic-permissions",
            members!["user", "exchange", "write", "read"],
            &["user", "exchange", "write", "read"],
            None
        )
    ),
    spec!(
        "list_user_topic_permissions",
        "Topic permissions of a user",
        [required("user", "The user's name")],
        ["list_user_topic_permissions alice"],
        "Listing topic permissions for user \"{user}\" ...",
        fixed(
            "/api/users/{user}/topic-permissions",
            members!["vhost", "exchange", "write", "read"],
            &["vhost", "exchange", "write", "read"],
            NO_USER
        )
    ),
    spec!(
        "list_policies",
        "Policies of a vhost",
        [],
        ["list_policies -p orders"],
        "Listing policies for vhost \"{vhost}\" ...",
        fixed("/api/policies/{vhost}", POLICY, POLICY_COLUMNS, None)
    ),
    spec!(
        "list_operator_policies",
        "Operator policies of a vhost",
        [],
        ["list_operator_policies"],
        "Listing operator policy overrides for vhost \"{vhost}\" ...",
        fixed("/api/operator-policies/{vhost}", POLICY, POLICY_COLUMNS, None)
    ),
    spec!(
        "list_parameters",
        "Parameters of a vhost",
        [],
        ["list_parameters"],
        "Listing runtime parameters for vhost \"{vhost}\" ...",
        Action::Run(parameters)
    ),
    spec!(
        "list_global_parameters",
        "Global parameters",
        [],
        ["list_global_parameters"],
        "Listing global runtime parameters ...",
        fixed(
            "/api/global-parameters",
            &[("name", Member("name")), ("value", Json("value"))],
            &["name", "value"],
            None
        )
    ),
    spec!(
        "list_node_auth_attempt_stats",
        "Counts of successful and failed logins",
        [],
        ["list_node_auth_attempt_stats"],
        "Listing authentication attempts ...",
        Action::Run(attempts)
    ),
    spec!(
        "list_feature_flags",
        "Feature flags: there are none, all features are enabled",
        [],
        ["list_feature_flags"],
        "Listing feature flags ...",
        fixed("/api/feature-flags", members!["name", "state"], &["name", "state"], None)
    ),
    spec!(
        "list_deprecated_features",
        "Deprecated features: there is none",
        [],
        ["list_deprecated_features"],
        "Listing deprecated features ...",
        fixed(
            "/api/deprecated-features",
            members!["name", "deprecation_phase", "state"],
            &["name", "deprecation_phase", "state"],
            None
        )
    ),
];

/// Rows of a list that has more than is asked for.
pub(super) fn rows(found: &Value, columns: &[&str], wanted: impl Fn(&Value) -> bool) -> Output {
    let list = found.as_array().map_or(&[][..], Vec::as_slice);
    let cell = |one: &Value, name: &str| match name {
        "value" => one["value"].to_string().into(),
        name => one[name].clone(),
    };
    Output::Rows {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows: list
            .iter()
            .filter(|one| wanted(one))
            .map(|one| columns.iter().map(|name| cell(one, name)).collect())
            .collect(),
    }
}

/// Where a queue has to be. A broker has no queue that is not online: one that it can't serve, it does not start with.
fn queues(session: &mut Session, input: &Input, found: &mut Vec<Value>) -> Result<(), Failure> {
    if input.has("offline") && !input.has("online") {
        found.clear();
    }
    if input.has("local") {
        let own = node_name::own(&mut session.client)?.name;
        found.retain(|queue| queue["node"] == own.as_str());
    }
    Ok(())
}

fn parameters(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let found = session.client.get("/api/parameters")?;
    let rows = rows(&found, &["component", "name", "value"], |one| one["vhost"] == input.vhost());
    if matches!(&rows, Output::Rows { rows, .. } if rows.is_empty()) {
        super::vhosts::refuse_unknown(session, input.vhost())?;
    }
    Ok(rows)
}

fn attempts(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let node = super::node::name(session)?;
    let found = session.client.get(&format!("/api/auth/attempts/{}", segment(&node)))?;
    let columns = ["protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded"];
    Ok(rows(&found, &columns, |_| true))
}
