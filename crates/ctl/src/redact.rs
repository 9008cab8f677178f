//! Takes secrets out of what is going to be shown to others.

use serde_json::{Map, Value};

/// What stands in the place of a secret.
const REMOVED: &str = "(removed)";
/// What the names of secrets have in them.
const SECRET: [&str; 7] =
    ["password", "passwd", "secret", "token", "hash", "passphrase", "credential"];
/// Names that only look like one.
const HARMLESS: [&str; 2] = ["hashing_algorithm", "password_hashing"];

fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    SECRET.iter().any(|part| lower.contains(part)) && !HARMLESS.contains(&&*lower)
}

/// A document without secrets: neither under names of secrets, nor in URLs.
pub(crate) fn redacted(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| match value {
                Value::Null => (name, Value::Null),
                _ if is_secret(&name) => (name, REMOVED.into()),
                value => (name, redacted(value)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) => list.into_iter().map(redacted).collect(),
        Value::String(text) => redacted_text(&text).into(),
        other => other,
    }
}

/// A text without credentials in URLs, and without what follows the name of a secret.
pub(crate) fn redacted_text(text: &str) -> String {
    text.split_inclusive('\n').map(|line| without_pairs(&without_logins(line))).collect()
}

/// `scheme://user:password@host` without what stands before the `@`.
fn without_logins(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = behind.find(|c: char| c.is_whitespace() || "/\"'<>,".contains(c));
        let authority = &behind[..end.unwrap_or(behind.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                out.push_str(REMOVED);
                &behind[at..]
            }
            None => behind,
        };
    }
    out + rest
}

/// `password=x` and `password: x` without the value.
fn without_pairs(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, behind) = rest.split_at(at);
        let start = before
            .rfind(|c: char| !c.is_alphanumeric() && !"_-.\"'".contains(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        out.push_str(before);
        let separator = &behind[..1];
        out.push_str(separator);
        rest = &behind[1..];
        if is_secret(before[start..].trim_matches(['"', '\''])) {
            let value = rest.trim_start_matches(' ');
            out.push_str(&rest[..rest.len() - value.len()]);
            let length = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => value[1..].find(quote).map(|at| at + 2),
                _ => value.find(|c: char| c.is_whitespace() || ",;}&".contains(c)),
            };
            out.push_str(REMOVED);
            rest = &value[length.unwrap_or(value.len())..];
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_go_from_documents_by_their_names() {
        let value = redacted(json!({
            "user": "me", "password": "PLANTED", "nested": [{ "secretKey": "PLANTED", "uri": "amqp://u:PLANTED@h:1/v" }],
            "password_hash": "PLANTED", "hashing_algorithm": "rabbit_password_hashing_sha256",
            "src-uri": ["amqps://a:PLANTED@b", "amqp://"], "tokens": { "a": "PLANTED" },
        }));
        assert!(!value.to_string().contains("PLANTED"), "{value}");
        assert_eq!(value["user"], "me");
        assert_eq!(value["nested"][0]["uri"], "amqp://(removed)@h:1/v");
        assert_eq!(value["hashing_algorithm"], "rabbit_password_hashing_sha256");
    }

    #[test]
    fn secrets_go_from_lines_of_a_log() {
        for line in [
            "INFO connected uri=amqp://me:PLANTED@host/ peer=1.2.3.4:5\n",
            "WARN password=PLANTED user=me",
            "DEBUG {\"password\": \"PLANTED and more\", \"user\": \"me\"}",
            "x secret: 'PLANTED'",
            "Authorization token=PLANTED,next=1",
        ] {
            let clean = redacted_text(line);
            assert!(!clean.contains("PLANTED") && !clean.contains("and more"), "{clean}");
        }
        let harmless = "12:30:01 INFO a=b: c://d e=f::g\n";
        assert_eq!(redacted_text(harmless), harmless);
    }
}
