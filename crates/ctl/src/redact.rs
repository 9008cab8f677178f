//! Takes secrets out of what is going to be shown to others.

use serde_json::{Map, Value};
use std::ops::Range;

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
    text.split('\n').map(redacted_line).collect::<Vec<_>>().join("\n")
}

/// Both kinds are looked for in the line as it was: what one of them removes can be where the other begins.
fn redacted_line(line: &str) -> String {
    let mut secrets = logins(line);
    secrets.extend(values(line));
    secrets.sort_by_key(|secret| secret.start);
    let mut out = String::new();
    let mut done = 0;
    for Range { start, end } in secrets {
        if start >= done {
            out.push_str(&line[done..start]);
            out.push_str(REMOVED);
        }
        done = done.max(end);
    }
    out + &line[done..]
}

/// What stands before the last `@` of a word with `scheme://user:password@host` in it: people put into passwords what
/// a URL can't have there, a `/` too. What can't be told from that goes along.
fn logins(line: &str) -> Vec<Range<usize>> {
    let mut end = 0;
    let words = line.split_inclusive(|c: char| c.is_whitespace() || "\"<>".contains(c));
    let login = |word: &str| {
        end += word.len();
        let (_, behind) = word.split_once("://")?;
        let start = end - behind.len();
        let with_password = behind.rfind('@').filter(|&at| behind[..at].contains(':'));
        let authority = behind.split('/').next().unwrap_or_default();
        Some(start..start + with_password.or_else(|| authority.rfind('@'))?)
    };
    words.filter_map(login).collect()
}

/// The values of secrets: `password=x`, `password: x` and the like.
fn values(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(length) = line[from..].find(['=', ':']) {
        let before = line[from..from + length].trim_end_matches(|c: char| !c.is_alphanumeric());
        let name = before.rsplit(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).next();
        from += length + 1;
        if name.is_some_and(is_secret) {
            let is_separator = |c: char| c.is_whitespace() || "=:>".contains(c);
            let value = line[from..].trim_start_matches(is_separator);
            let start = line.len() - value.len();
            from = start + length_of(value);
            found.extend((from > start).then_some(start..from));
        }
    }
    found
}

/// Bytes of the value that a text begins with: to the end of its quotes, or to the first space outside of quotes and
/// brackets. Where those never close, it can't be told what still belongs to it: then all does.
fn length_of(value: &str) -> usize {
    let is_quoted = value.trim_start_matches('\\').starts_with(['"', '\'']);
    let (mut depth, mut backslashes, mut last) = (0_usize, 0_usize, ' ');
    // The quote, and the bits of the count of backslashes before one that is of the content. In a string within a string
    // a quote that ends it has a backslash already, and one within it three.
    let mut open = None;
    let mut chars = value.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match open {
            Some((quote, escaped)) if c == quote && backslashes & escaped != escaped => {
                // Others than JSON double a quote within, or leave it as it is.
                let is_double = chars.next_if(|&(_, next)| next == quote).is_some();
                if !is_double && !chars.peek().is_some_and(|(_, next)| next.is_alphanumeric()) {
                    open = None;
                    if is_quoted {
                        return at + 1;
                    }
                }
            }
            Some(_) => {}
            // Behind a letter it is an apostrophe.
            None if c == '"' || c == '\'' && !last.is_alphanumeric() => {
                open = Some((c, 2 * backslashes + 1));
            }
            None if "([{".contains(c) => depth += 1,
            None if ")]}".contains(c) => depth = depth.saturating_sub(1),
            None if depth == 0 && c.is_whitespace() => return at,
            None => {}
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        last = c;
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::string::string_regex;
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
            "uris=amqp://a:PLANTED@h1,amqp://b:PLANTED@h2/v",
            "uri=amqp://me:PLANTED/token=PLANTED@host",
            "https://PLANTED@host/path@v1",
            "'http://h:1','password':'a@b PLANTED'",
            "WARN password=PLANTED user=me",
            "password = PLANTED",
            "password:\tPLANTED",
            "password => 'PLANTED'",
            "settings[\"password\"] = \"PLANTED\"",
            "DEBUG {\"password\": \"PLANTED and more\", \"user\": \"me\"}",
            "{\"tokens\": {\"a\": [\"b\", \"PLANTED\"]}}",
            "Login { password: Some(Secret(\"and) more PLANTED\")) }",
            "x secret: 'PLANTED'",
            "password='was cut off, PLANTED",
            "Authorization token=PLANTED,next=1",
        ] {
            let clean = redacted_text(line);
            assert!(!clean.contains("PLANTED") && !clean.contains("and more"), "{clean}");
        }
        for harmless in [
            "12:30:01 INFO a=b: c://d e=f::g\n",
            "to http://host:1/a,b by me@host\r\n\n",
            "see http://host/users/me@host",
            "auth::token: can't be read: \"me\"",
        ] {
            let clean = redacted_text(harmless);
            assert_eq!(clean.replace(REMOVED, "can't"), harmless);
        }
    }

    /// A secret: its letters are found nowhere around it, its marks everywhere.
    fn secret(marks: &str) -> BoxedStrategy<String> {
        string_regex(&format!("[QXZ][QXZ{marks}]{{0,12}}")).expect("an expression").boxed()
    }

    fn assert_clean(dirty: &str, expected: &str) -> Result<(), TestCaseError> {
        prop_assert_eq!(redacted_text(dirty), expected, "{}", dirty);
        Ok(())
    }

    /// All marks of ASCII.
    const MARKS: &str = r##"!-/:-@\[-`{-~"##;

    proptest! {
        #[test]
        fn logins_go_from_urls_with_any_mark_and_nothing_else_does(
            user in secret(r"!#-.;=\[-`{-~"),
            password in secret(r"!#-;=?@\[-`{-~"),
        ) {
            for (before, behind) in [("uri=", " peer=1.2.3.4:5"), ("a='b' '", "', c"), ("{\"uri\":\"", "\",\"a\":1}")] {
                for behind in [behind.to_owned(), format!("/v?a=b{behind}"), format!(":1{behind}")] {
                    let dirty = format!("{before}amqp://{user}:{password}@host{behind}");
                    assert_clean(&dirty, &format!("{before}amqp://{REMOVED}@host{behind}"))?;
                }
            }
        }

        #[test]
        fn values_in_quotes_go_whole_and_alone(secret in secret(&format!(" \t\n{MARKS}"))) {
            let json = json!({ "a": "b", "password": secret, "user": "me" }).to_string();
            let clean = format!("{{\"a\":\"b\",\"password\":{REMOVED},\"user\":\"me\"}}");
            assert_clean(&json, &clean)?;
            // Documents within strings: in one, then in one within another.
            let (mut dirty, mut within) = (json, clean);
            for _ in 0..2 {
                dirty = format!("INFO body={dirty:?} peer=b");
                within = format!("INFO body={within:?} peer=b");
                assert_clean(&dirty, &within)?;
            }
            assert_clean(&format!("a=b password={secret:?} user=me"), &format!("a=b password={REMOVED} user=me"))?;
            let shown = format!("{{ token: {:?}, user: \"me\" }}", Some(&secret));
            assert_clean(&shown, &format!("{{ token: {REMOVED} user: \"me\" }}"))?;
            let doubled = secret.replace(['\\', '\n'], "").replace('\'', "''");
            assert_clean(&format!("password: '{doubled}', a: 'b'"), &format!("password: {REMOVED}, a: 'b'"))?;
        }

        #[test]
        fn bare_values_go_whole(secret in secret(MARKS)) {
            let clean = redacted_text(&format!("a=b password={secret} user=me\nc=d"));
            prop_assert!(!clean.contains(['Q', 'X', 'Z']), "{}", clean);
            let (before, behind) = (format!("a=b password={REMOVED}"), "\nc=d");
            prop_assert!(clean.starts_with(&before) && clean.ends_with(behind), "{}", clean);
            // What opens need not close before the next space.
            if !secret.contains(['"', '\'', '(', '[', '{']) {
                prop_assert_eq!(clean, format!("{before} user=me{behind}"));
            }
        }

        #[test]
        fn what_has_neither_a_login_nor_the_name_of_a_secret_stays(
            text in r"([ -?\[-`{-~a-d\n]|a://b)*|[ -.0-@\[-`{-~a-d\n]*",
        ) {
            prop_assert_eq!(redacted_text(&text), text);
        }
    }
}
