//! Whether two answers say the same.

use crate::support::Answer;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::Read;

/// Where two values are first not the same, and how.
pub fn difference(at: &str, found: &Value, expected: &Value) -> Option<String> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
            names.into_iter().find_map(|name| {
                let of = |members: &Map<String, Value>| members.get(name).cloned();
                match (of(found), of(expected)) {
                    (Some(found), Some(expected)) => {
                        difference(&format!("{at}.{name}"), &found, &expected)
                    }
                    (found, expected) => Some(format!("{at}.{name}: {found:?}, {expected:?}")),
                }
            })
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            let mut both = found.iter().zip(expected).enumerate();
            both.find_map(|(nth, (found, expected))| {
                difference(&format!("{at}[{nth}]"), found, expected)
            })
        }
        (found, expected) if found == expected => None,
        (found, expected) => Some(format!("{at}: {found}, {expected}")),
    }
}

/// Without what can't be the same: which group, and when.
pub fn same(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for name in ["group", "connected_at", "since_ms"] {
                members.remove(name);
            }
            for inner in members.values_mut() {
                *inner = same(inner.take());
            }
        }
        Value::Array(list) => {
            for inner in list.iter_mut() {
                *inner = same(inner.take());
            }
        }
        _ => {}
    }
    value
}

/// The body of an answer.
pub fn unpacked(answer: &Answer) -> Vec<u8> {
    if answer.headers.get("content-encoding").map(String::as_str) != Some("gzip") {
        return answer.body.clone();
    }
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut text).expect("it is packed");
    text
}
