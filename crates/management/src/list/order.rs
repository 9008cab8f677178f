//! The order that a list is asked for in (`sort`, `sort_reverse`).

use crate::call::Call;
use serde_json::Value;
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

/// What an item is sorted by: numbers come before flags, these before lists, and texts last. What is
/// missing counts as 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Number(f64),
    Flag(bool),
    List(usize),
    Text(String),
}

impl Key {
    /// The key of an item, from an object that has the column only.
    pub fn of(object: Value, order: &Order) -> Self {
        let mut found = &object;
        for name in order.column.split('.') {
            match found.get(name) {
                Some(inner) => found = inner,
                None => return Key::Number(0.0),
            }
        }
        match found {
            Value::Number(number) => Key::Number(number.as_f64().unwrap_or(0.0)),
            Value::Bool(flag) => Key::Flag(*flag),
            Value::String(text) => Key::Text(text.clone()),
            Value::Array(list) => Key::List(list.len()),
            Value::Object(members) => Key::List(members.len()),
            Value::Null => Key::Number(0.0),
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

    pub fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Number(one), Key::Number(other)) => one.total_cmp(other),
            (Key::Flag(one), Key::Flag(other)) => one.cmp(other),
            (Key::List(one), Key::List(other)) => one.cmp(other),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(object: Value, column: &str) -> Key {
        Key::of(object, &Order { column: column.to_owned(), is_reversed: false })
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
