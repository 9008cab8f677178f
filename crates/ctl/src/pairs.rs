//! Tables of AMQP on the command line: arguments of queues and headers of messages.

use crate::failure::Failure;
use crate::input::Input;
use serde_json::{Map, Value};

/// Adds to a table what an option gives that may be repeated, each time as `NAME=VALUE`.
///
/// # Errors
/// If one is none, or if a name is there twice.
pub(crate) fn add_all(
    table: &mut Map<String, Value>,
    input: &Input,
    option: &str,
) -> Result<(), Failure> {
    for pair in input.texts(option) {
        let (name, value) =
            parsed(pair).map_err(|why| Failure::usage(format!("--{option}: {why}")))?;
        add(table, name, value)?;
    }
    Ok(())
}

/// The JSON object that an option gives; an empty one if it is not given.
///
/// # Errors
/// If it is something else.
pub(crate) fn object(input: &Input, name: &str) -> Result<Map<String, Value>, Failure> {
    let Some(text) = input.find(name) else { return Ok(Map::new()) };
    let why = match serde_json::from_str(text) {
        Ok(Value::Object(members)) => return Ok(members),
        Ok(_) => "it is JSON, but no object".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::usage(format!(
        "--{name}: expected JSON such as '{{\"a\": 1}}', not '{text}': {why}"
    )))
}

/// Adds a member that must not be there yet.
///
/// # Errors
/// If it is.
pub(crate) fn add(table: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Failure> {
    match table.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!("{name} is given twice"))),
    }
}

/// A pair. What reads as JSON is that; anything else is a text.
fn parsed(pair: &str) -> Result<(&str, Value), String> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name, serde_json::from_str(value).unwrap_or_else(|_| value.into())))
        }
        _ => Err(format!("expected NAME=VALUE, not '{pair}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_json_where_they_read_as_that_and_texts_otherwise() {
        for (pair, expected) in [
            ("a=1", json!(1)),
            ("a=-2.5", json!(-2.5)),
            ("a=true", json!(true)),
            ("a=\"1\"", json!("1")),
            ("a=[1,\"b\"]", json!([1, "b"])),
            ("a=dead.letters", json!("dead.letters")),
            ("a=007", json!("007")),
            ("a=", json!("")),
            ("a=b=c", json!("b=c")),
        ] {
            assert_eq!(parsed(pair), Ok(("a", expected)), "{pair}");
        }
        for pair in ["a", "=1", ""] {
            assert!(parsed(pair).is_err(), "{pair}");
        }
    }
}
