//! Erlang terms, as RabbitMQ's tools print them: texts are binaries, rows are lists of pairs whose first parts are atoms.

use serde_json::{Map, Value};
use std::io::{self, Write};

/// A list with a row on each line.
pub(super) fn rows(columns: &[String], rows: &[Vec<Value>], to: &mut dyn Write) -> io::Result<()> {
    let row = |row: &Vec<Value>| {
        let pairs = columns.iter().zip(row);
        let pairs: Vec<String> =
            pairs.map(|(column, value)| format!("{{{},{}}}", atom(column), term(value))).collect();
        format!("[{}]", pairs.join(","))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    writeln!(to, "[{}]", rows.join(",\n "))
}

/// What a command says that shows no rows.
pub(super) fn document(text: &str, value: Option<&Value>) -> String {
    match value {
        None => binary(text),
        Some(Value::Object(members)) => pairs(members, atom),
        Some(other) => term(other),
    }
}

fn term(value: &Value) -> String {
    match value {
        Value::Null => "undefined".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => decimal(&number.to_string()),
        Value::String(text) => binary(text),
        Value::Array(list) => format!("[{}]", list.iter().map(term).collect::<Vec<_>>().join(",")),
        // What stands in tables of arguments may have any name, and atoms are never freed.
        Value::Object(members) => pairs(members, binary),
    }
}

fn pairs(members: &Map<String, Value>, name: fn(&str) -> String) -> String {
    let pairs = members.iter().map(|(key, value)| format!("{{{},{}}}", name(key), term(value)));
    format!("[{}]", pairs.collect::<Vec<_>>().join(","))
}

/// A number; Erlang wants a fraction before an exponent.
fn decimal(number: &str) -> String {
    match number.split_once(['e', 'E']) {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => number.to_owned(),
    }
}

fn atom(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    if is_plain { name.to_owned() } else { format!("'{}'", escaped(name, '\'')) }
}

fn binary(text: &str) -> String {
    let kind = if text.is_ascii() { "" } else { "/utf8" };
    format!("<<\"{}\"{kind}>>", escaped(text, '"'))
}

/// A text that can stand between quotes, and moves no cursor.
fn escaped(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '\n' => out.push_str("\\n"),
            one if one == quote || one == '\\' => out.extend(['\\', one]),
            one if one.is_control() => out.push_str(&format!("\\x{{{:x}}}", u32::from(one))),
            one => out.push(one),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_lists_of_pairs_with_atoms_for_columns() {
        let columns = ["name", "apply-to", "arguments"].map(str::to_owned);
        let first = vec![json!("q"), json!("all"), json!({ "x-max": 5, "y": [true, null] })];
        let other = vec![json!("\u{e4}\"\\\n\u{1b}"), Value::Null, json!({})];
        let mut written = Vec::new();
        rows(&columns, &[first, other], &mut written).expect("written");
        let text = String::from_utf8(written).expect("text");
        assert_eq!(
            text,
            "[[{name,<<\"q\">>},{'apply-to',<<\"all\">>},{arguments,[{<<\"x-max\">>,5},{<<\"y\">>,[true,undefined]}]}],\n \
             [{name,<<\"\u{e4}\\\"\\\\\\n\\x{1b}\"/utf8>>},{'apply-to',undefined},{arguments,[]}]]\n"
        );
        let mut none = Vec::new();
        rows(&columns, &[], &mut none).expect("written");
        assert_eq!(none, b"[]\n");
    }

    #[test]
    fn sentences_are_binaries_and_documents_lists_of_pairs() {
        assert_eq!(document("Ping succeeded", None), "<<\"Ping succeeded\">>");
        let value = json!({ "pid": 1, "totals": { "queues": 2 } });
        assert_eq!(document("", Some(&value)), "[{pid,1},{totals,[{<<\"queues\">>,2}]}]");
        assert_eq!(decimal("1e20"), "1.0e20");
        assert_eq!(decimal("1.5e-3"), "1.5e-3");
    }
}
