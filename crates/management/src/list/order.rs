//! The order that a list is asked for in (`sort`, `sort_reverse`).

use crate::call::Call;
use crate::json::from_value;
use courser_codec::{FieldTable, FieldValue};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// An order other than that of vhost and name.
pub(crate) struct Order {
    /// The path of a member.
    pub column: String,
    pub is_reversed: bool,
}

impl Order {
    /// The order that is asked for, unless it is the one that lists have by themselves.
    pub fn asked(call: &Call) -> Option<Self> {
        let column = call.query("sort").filter(|column| !column.is_empty())?;
        let is_reversed = call.is_set("sort_reverse");
        let is_natural = column == "vhost" || column == "name" && call.has("vhost");
        (is_reversed || !is_natural).then(|| Order { column: column.to_owned(), is_reversed })
    }
}

/// Bytes of a text that items are sorted by. Names have no more.
const TEXT_BYTES_MAX: usize = 256;

/// What an item is sorted by: numbers come before flags, these before lists, and texts last. What is
/// missing counts as 0.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Number(f64),
    Flag(bool),
    List(usize),
    Text(String),
}

impl Key {
    /// What is not there.
    pub const MISSING: Self = Key::Number(0.0);

    /// The key of an item, from an object that has the column only.
    pub fn of(object: &Value, column: &str) -> Self {
        let mut found = object;
        for name in column.split('.') {
            match found.get(name) {
                Some(inner) => found = inner,
                None => return Key::MISSING,
            }
        }
        match found {
            Value::Number(number) => Key::Number(number.as_f64().unwrap_or(0.0)),
            Value::Bool(flag) => Key::Flag(*flag),
            Value::String(text) => {
                let end = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
                Key::Text(text[..end].to_owned())
            }
            Value::Array(list) => Key::List(list.len()),
            Value::Object(members) => Key::List(members.len()),
            Value::Null => Key::MISSING,
        }
    }

    /// The key of an item with a table, by a path within it; by the table itself if the path is empty.
    pub fn within(table: &FieldTable, path: &str) -> Self {
        if path.is_empty() {
            return Key::List(table.len());
        }
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        match table.get(first) {
            None => Key::MISSING,
            Some(FieldValue::Table(inner)) => Key::within(inner, rest),
            Some(value) if rest.is_empty() => Key::of(&json!({ "it": from_value(value) }), "it"),
            Some(_) => Key::MISSING,
        }
    }

    /// Whether it is neither missing nor empty, 0 or false.
    pub fn says_something(&self) -> bool {
        match self {
            Key::Number(number) => *number != 0.0,
            Key::Flag(flag) => *flag,
            Key::List(len) => *len > 0,
            Key::Text(text) => !text.is_empty(),
        }
    }

    /// Bytes of its text.
    pub fn text_bytes(&self) -> usize {
        match self {
            Key::Text(text) => text.capacity(),
            Key::Number(_) | Key::Flag(_) | Key::List(_) => 0,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Key::Number(_) => 0,
            Key::Flag(_) => 1,
            Key::List(_) => 2,
            Key::Text(_) => 3,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Number(one), Key::Number(other)) => one.total_cmp(other),
            (Key::Flag(one), Key::Flag(other)) => one.cmp(other),
            (Key::List(one), Key::List(other)) => one.cmp(other),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(object: Value, column: &str) -> Key {
        Key::of(&object, column)
    }

    #[test]
    fn missing_values_come_first_and_texts_last() {
        let missing = key(json!([]), "a.b");
        let number = key(json!({ "a": { "b": 2 } }), "a.b");
        let text = key(json!({ "a": { "b": "1" } }), "a.b");
        assert_eq!(missing, Key::Number(0.0));
        assert_eq!(missing.cmp(&number), Ordering::Less);
        assert_eq!(number.cmp(&text), Ordering::Less);
    }
}
