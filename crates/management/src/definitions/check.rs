//! What an import would refuse of a row by itself, whatever else there is.

use super::ImportError;
use super::compare::LISTS;
use super::import::{arguments, reason, refused, text, typed};
use courser_auth::{PasswordHash, PermissionRow, TopicPermissionRow};
use courser_broker::admin::{ExchangeKind, PolicyKind};
use serde_json::{Map, Value};

/// What stands in files besides the lists: what they are of, and of a vhost what is its own.
const BESIDES: [&str; 15] = [
    "rabbit_version",
    "rabbitmq_version",
    "product_name",
    "product_version",
    "rabbitmq_definition_format",
    "original_cluster_name",
    "original_vhost_name",
    "explanation",
    "name",
    "description",
    "metadata",
    "tags",
    "limits",
    "default_queue_type",
    "tracing",
];
/// Keys of a file that are named at once.
const NAMED_MAX: usize = 20;

/// Keys of a file that mean nothing, and are ignored as RabbitMQ does: a list whose name is not spelt right, or one
/// of a newer release.
pub(super) fn unknown_keys(document: &Map<String, Value>) -> Vec<&str> {
    let is_known = |key: &str| BESIDES.contains(&key) || LISTS.iter().any(|(list, _)| *list == key);
    let keys = document.keys().map(String::as_str).filter(|key| !is_known(key));
    keys.take(NAMED_MAX).collect()
}

/// Says in the log which keys of a file are ignored.
pub(super) fn warn_of_unknown(document: &Map<String, Value>) {
    let keys = unknown_keys(document);
    if !keys.is_empty() {
        let keys = keys.join(", ");
        tracing::warn!(keys, "definitions with unknown keys: what is below them is not imported");
    }
}

/// Refuses a row of this list that no import could make.
pub(super) fn check(list: &str, row: &Value) -> Result<(), ImportError> {
    match list {
        "users" => super::users::user(row, PasswordHash::quick).map(drop),
        "permissions" => {
            let row: PermissionRow = typed(list, row)?;
            let checked = row.permission().check();
            checked.map_err(|why| refused("permission of user", &row.user, why))
        }
        "topic_permissions" => typed::<TopicPermissionRow>(list, row).map(drop),
        "policies" => policy(text(row, "name", "policy")?, row, PolicyKind::User),
        "parameters" if row["component"] == "operator_policy" => {
            policy(text(row, "name", "parameter")?, &row["value"], PolicyKind::Operator)
        }
        "exchanges" => exchange(row),
        "queues" => {
            let name = text(row, "name", "queue")?;
            arguments(row).map(drop).map_err(|why| refused("queue", name, why))
        }
        "bindings" => binding(row),
        _ => Ok(()),
    }
}

fn policy(name: &str, value: &Value, kind: PolicyKind) -> Result<(), ImportError> {
    let empty = Map::new();
    let policy = crate::api::policy(name, value.as_object().unwrap_or(&empty));
    let policy = policy.map_err(|refusal| refused("policy", name, reason(&refusal)))?;
    policy.check(kind).map_err(|why| refused("policy", name, why))
}

fn exchange(row: &Value) -> Result<(), ImportError> {
    let (name, kind) = (text(row, "name", "exchange")?, text(row, "type", "exchange")?);
    if ExchangeKind::parse(kind.as_bytes()).is_none() {
        let why = format_args!("unknown exchange type '{kind}'");
        return Err(refused("exchange", name, why));
    }
    arguments(row).map(drop).map_err(|why| refused("exchange", name, why))
}

fn binding(row: &Value) -> Result<(), ImportError> {
    let destination = text(row, "destination", "binding")?;
    let kind = text(row, "destination_type", "binding")?;
    if !matches!(kind, "queue" | "exchange") {
        let why = format_args!("'{kind}' is no type of destination");
        return Err(refused("binding to", destination, why));
    }
    text(row, "source", "binding")?;
    text(row, "routing_key", "binding")?;
    arguments(row).map(drop).map_err(|why| refused("binding to", destination, why))
}
