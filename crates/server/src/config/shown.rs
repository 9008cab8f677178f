//! The settings as they may be shown: without secrets.

use super::Config;
use serde_json::{Map, Value};

/// What stands in the place of a secret.
const REMOVED: &str = "(removed)";
/// What names of secrets have in them. Names of files are shown: `key` is one.
const SECRET: [&str; 4] = ["password", "secret", "token", "passphrase"];
/// Names that only look like one.
const HARMLESS: [&str; 2] = ["password_hashing", "token_endpoint"];

impl Config {
    /// All settings as JSON, passwords and keys removed.
    pub fn without_secrets(&self) -> Value {
        // What can't be written as JSON can't be shown.
        serde_json::to_value(self).map(shown).unwrap_or_default()
    }
}

/// Whether a setting of this name is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    SECRET.iter().any(|part| lower.contains(part)) && !HARMLESS.contains(&name)
}

fn shown(value: Value) -> Value {
    match value {
        Value::Object(members) => members.into_iter().map(member).collect::<Map<_, _>>().into(),
        Value::Array(list) => list.into_iter().map(shown).collect(),
        Value::String(text) => without_login(text).into(),
        other => other,
    }
}

fn member((name, value): (String, Value)) -> (String, Value) {
    let value = match value {
        Value::String(text) if text.is_empty() => Value::String(text),
        // Of an endpoint's peers even the names are secret, and their secrets have no names.
        Value::Object(members) if name == "security" => {
            let mechanism = members.into_iter().filter(|(name, _)| name == "mechanism");
            mechanism.collect::<Map<_, _>>().into()
        }
        _ if is_secret(&name) => REMOVED.into(),
        value => shown(value),
    };
    (name, value)
}

/// A URL without the name and password in it.
fn without_login(text: String) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{REMOVED}{}", &rest[at..]),
        None => text,
    }
}
