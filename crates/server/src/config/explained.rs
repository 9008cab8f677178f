//! What is wrong with a value, in words: what it is, and what is expected there.

use super::shown::is_secret;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// What is said of the settings in `tree`, of which one has another form than it should.
pub(super) fn problem(
    tree: &Value,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> String {
    let key = error.path().to_string();
    let why =
        at(tree, error.path()).and_then(|value| explained(&key, value, &error.inner().to_string()));
    why.map_or_else(|| error.to_string(), |why| format!("{key}: {why}"))
}

/// That something is no number as this key wants it.
pub(super) fn no_number(key: &str, shown: &str, range: &str) -> String {
    let unit = [
        ("_bytes", " of bytes"),
        ("_minutes", " of minutes"),
        ("_seconds", " of seconds"),
        ("_ms", " of milliseconds"),
        ("_us", " of microseconds"),
        ("_s", " of seconds"),
    ];
    let unit = unit.iter().find(|(suffix, _)| key.ends_with(suffix)).map_or("", |(_, unit)| unit);
    let example = if unit == " of bytes" { ", such as 2147483648 for 2 GiB" } else { "" };
    format!("{shown} is not a whole number{unit}{range}{example}")
}

/// The value that a path leads to.
fn at<'a>(tree: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter().try_fold(tree, |value, segment| match segment {
        Segment::Seq { index } => value.get(index),
        Segment::Map { key } => value.get(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// What serde says, in words; nothing where it has a text of our own.
fn explained(key: &str, value: &Value, said: &str) -> Option<String> {
    let shown = shown(key, value);
    if said.starts_with("unknown variant `") {
        let known = said.rsplit_once("expected ")?.1.trim_start_matches("one of ");
        return Some(format!("{shown} is none of these: {}", known.replace('`', "")));
    }
    if !said.starts_with("invalid type: ") && !said.starts_with("invalid value: ") {
        return None;
    }
    let expected = said.rsplit_once("expected ")?.1;
    let mapping = |example: &str| format!("{shown} is no mapping such as {example}");
    Some(match expected {
        "u8" => no_number(key, &shown, " from 0 to 255"),
        "u16" => no_number(key, &shown, " from 0 to 65535"),
        "u32" => no_number(key, &shown, " from 0 to 4294967295"),
        "u64" | "usize" => no_number(key, &shown, " from 0 on"),
        "i64" => no_number(key, &shown, ""),
        "a boolean" => format!("{shown} is neither true nor false"),
        "a string" | "path string" => match value {
            Value::Number(_) | Value::Bool(_) => format!("{shown} is no text: put it in quotes"),
            _ => format!("{shown} is no text"),
        },
        "a sequence" => match value {
            Value::String(text) if !names_secret(key) => {
                format!("{shown} is no list: write [{text}]")
            }
            _ => format!("{shown} is no list, such as [a, b]"),
        },
        "a map" => mapping("{max-length: 1000}"),
        "struct VhostSettings" => match value {
            Value::String(text) => mapping(&format!("{{name: {text}}}")),
            _ => mapping("{name: orders}"),
        },
        "struct PolicySettings" => {
            mapping("{name: short, pattern: '^q', definition: {max-length: 1000}}")
        }
        "struct TlsHost" => mapping("{names: [mq.example], certificate: mq.pem, key: mq.key}"),
        "struct SigningKey" => mapping("{id: one, file: one.pem}"),
        "struct ScopeAlias" => mapping("{alias: staff, scopes: ['mq.read:*/*']}"),
        _ => return None,
    })
}

/// Whether the value of a key is a secret, or may have one in it.
fn names_secret(key: &str) -> bool {
    is_secret(key.rsplit('.').next().unwrap_or(key))
}

/// A value as it is named. A secret is not.
fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::Number(_) if names_secret(key) => "a number".to_owned(),
        Value::String(_) if names_secret(key) => "what is there".to_owned(),
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}
