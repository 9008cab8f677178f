//! What an import would refuse of a row by itself, whatever else there is.

use super::bindings::binding;
use super::compare::{LISTS, text_of};
use super::error::{ImportError, refused};
use super::import::{exchange_of, queue_of, reason, text, typed, value};
use crate::api::vhost_limits::{self, NamedLimits};
use courser_auth::{AccountError, NAME_BYTES_MAX, PasswordHash, PermissionRow, TopicPermissionRow};
use courser_broker::admin::{PolicyKind, check_binding, check_exchange, check_name, check_queue};
use serde_json::{Map, Value};

/// What stands in files besides the lists: what they are of, and of a vhost what is its own.
const BESIDES: [&str; 16] = [
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
    "warnings",
];

/// Keys of a file that mean nothing, and are ignored as RabbitMQ does: a list whose name is not spelt right, or one
/// of a newer release.
pub(super) fn unknown_keys(document: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let is_known = |key: &str| BESIDES.contains(&key) || LISTS.iter().any(|(list, _)| *list == key);
    document.keys().map(String::as_str).filter(move |key| !is_known(key))
}

/// Refuses a row of this list that no import could make. A queue without a type gets `default_type`, if that is one.
pub(super) fn check(
    list: &str,
    row: &Value,
    default_type: Option<&str>,
) -> Result<(), ImportError> {
    match list {
        "users" => user(row),
        "vhosts" => super::vhosts::check(row),
        "permissions" => {
            let row: PermissionRow = typed(list, row)?;
            let checked = row.permission().check();
            checked.map_err(|why| refused("permission of user", &row.user, why))
        }
        "topic_permissions" => topic_permission(typed(list, row)?),
        "global_parameters" => {
            let name = text(row, "name", "global parameter")?;
            value(row, "global parameter", name)?;
            named("global parameter", "parameter", name)
        }
        "policies" => policy(text(row, "name", "policy")?, row, PolicyKind::User),
        "parameters" => parameter(row),
        "exchanges" => {
            let name = text(row, "name", "exchange")?;
            let checked = check_exchange(vhost(row), name, &exchange_of(name, row)?);
            checked.map_err(|fault| refused("exchange", name, fault.explanation))
        }
        "queues" => queue(row, default_type),
        "bindings" => {
            let binding = binding(row)?;
            let name = binding.destination.to_string();
            let checked = check_binding(&binding);
            checked.map_err(|fault| refused("binding to", &name, fault.explanation))
        }
        _ => Ok(()),
    }
}

/// Whether a row is refused only for a pattern that an earlier version may have taken: an import leaves it out and goes on.
pub(super) fn is_outdated(list: &str, row: &Value) -> bool {
    match list {
        "permissions" => {
            typed::<PermissionRow>(list, row).is_ok_and(|row| row.permission().is_outdated())
        }
        "topic_permissions" => {
            typed::<TopicPermissionRow>(list, row).is_ok_and(|row| row.permission().is_outdated())
        }
        "policies" => is_outdated_policy(row, row, PolicyKind::User),
        "parameters" if text_of(row, "component") == Some("operator_policy") => {
            let value = row.get("value");
            value.is_some_and(|value| is_outdated_policy(row, value, PolicyKind::Operator))
        }
        _ => false,
    }
}

fn is_outdated_policy(row: &Value, value: &Value, kind: PolicyKind) -> bool {
    let (Some(name), Some(value)) = (text_of(row, "name"), value.as_object()) else { return false };
    crate::api::policy(name, value).is_ok_and(|policy| policy.is_outdated(kind))
}

/// The vhost that a row names, for what is said of it. A file of one vhost names none.
fn vhost(row: &Value) -> &str {
    text_of(row, "vhost").unwrap_or("/")
}

fn user(row: &Value) -> Result<(), ImportError> {
    let name = super::users::user(row, PasswordHash::quick)?.name;
    match name.len() {
        1..=NAME_BYTES_MAX => Ok(()),
        _ => Err(refused("user", &name, AccountError::Name("user"))),
    }
}

fn topic_permission(row: TopicPermissionRow) -> Result<(), ImportError> {
    let checked = match row.exchange.len() {
        0..=NAME_BYTES_MAX => row.permission().check(),
        _ => Err(AccountError::Name("exchange")),
    };
    checked.map_err(|why| refused("topic permission of user", &row.user, why))
}

/// Refuses a name that is empty or too long.
fn named(list: &str, what: &str, name: &str) -> Result<(), ImportError> {
    check_name(what, name).map_err(|fault| refused(list, name, fault.explanation))
}

fn parameter(row: &Value) -> Result<(), ImportError> {
    let (component, name) = (text(row, "component", "parameter")?, text(row, "name", "parameter")?);
    let value = value(row, "parameter", name)?;
    match component {
        "operator_policy" => policy(name, value, PolicyKind::Operator),
        vhost_limits::COMPONENT => {
            let limits = NamedLimits::read(value).map(drop);
            limits.map_err(|why| refused("vhost", vhost(row), why))
        }
        _ => {
            let checked = crate::api::check_parameter(component, name, value);
            checked.map_err(|refusal| refused("parameter", name, reason(&refusal)))?;
            named("parameter", "component", component)?;
            named("parameter", "parameter", name)
        }
    }
}

fn queue(row: &Value, default_type: Option<&str>) -> Result<(), ImportError> {
    let name = text(row, "name", "queue")?;
    let queue = queue_of(name, row, default_type)?;
    let checked = check_queue(vhost(row), name, queue);
    checked.map_err(|fault| refused("queue", name, fault.explanation))
}

fn policy(name: &str, value: &Value, kind: PolicyKind) -> Result<(), ImportError> {
    let empty = Map::new();
    let policy = crate::api::policy(name, value.as_object().unwrap_or(&empty));
    let policy = policy.map_err(|refusal| refused("policy", name, reason(&refusal)))?;
    policy.check(kind).map_err(|why| refused("policy", name, why))
}
