//! JSON objects of which only some members may be wanted, and field tables as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_codec::{Decimal, FieldTable, FieldValue, ShortString};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Tables in tables that a client may send as JSON, and entries of one: each new one is compared with all before it.
const NESTING_MAX: usize = 32;
const ENTRIES_MAX: usize = 1024;
/// Bytes of a table as AMQP has it, as much as a frame of a client holds.
const TABLE_BYTES_MAX: usize = 128 << 10;

/// Arrays and objects in one another that a value may have which the broker keeps as it is. An export has it in three more, and
/// an import reads no more than 127.
const KEPT_NESTING_MAX: usize = 100;

/// Whether a value is nested no deeper than what is kept may be.
pub(crate) fn can_be_kept(value: &Value) -> bool {
    is_within(value, KEPT_NESTING_MAX)
}

fn is_within(value: &Value, depth: usize) -> bool {
    let inner = depth.checked_sub(1);
    match value {
        Value::Array(values) => {
            inner.is_some_and(|depth| values.iter().all(|one| is_within(one, depth)))
        }
        Value::Object(members) => {
            inner.is_some_and(|depth| members.values().all(|one| is_within(one, depth)))
        }
        _ => true,
    }
}

/// A JSON text that the broker keeps, as a value. A program that embeds the broker may have it keep
/// something else, which is shown as the text that it is.
pub(crate) fn kept_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Which members of objects are wanted (`columns`): paths of names, which all objects of a list share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Columns(Option<Arc<[Vec<String>]>>);

impl Columns {
    /// All members.
    pub fn all() -> Self {
        Columns(None)
    }

    /// Those of a text, `name,message_stats.publish`.
    pub fn parse(text: &str) -> Self {
        let paths = text.split(',').filter(|path| !path.is_empty());
        let split = |path: &str| path.split('.').map(str::to_owned).collect();
        Columns(Some(paths.map(split).collect()))
    }

    /// Whether this member or something in it is wanted.
    pub fn want(&self, name: &str) -> bool {
        let is_first = |path: &Vec<String>| path.first().is_some_and(|first| first == name);
        self.0.as_ref().is_none_or(|paths| paths.iter().any(is_first))
    }

    /// What is left of an object. One without any wanted member is printed as an empty list.
    fn keep(&self, object: Map<String, Value>) -> Value {
        match &self.0 {
            None => Value::Object(object),
            Some(paths) => {
                let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
                keep(Value::Object(object), &paths)
            }
        }
    }
}

fn keep(value: Value, paths: &[&[String]]) -> Value {
    if paths.iter().any(|path| path.is_empty()) {
        return value;
    }
    match value {
        Value::Object(object) => {
            let mut kept = Map::new();
            for (name, value) in object {
                let inner: Vec<&[String]> = paths
                    .iter()
                    .filter_map(|path| path.split_first())
                    .filter(|(first, _)| **first == name)
                    .map(|(_, rest)| rest)
                    .collect();
                if !inner.is_empty() {
                    kept.insert(name, keep(value, &inner));
                }
            }
            if kept.is_empty() { Value::Array(Vec::new()) } else { Value::Object(kept) }
        }
        // What has no members has none to choose.
        other => other,
    }
}

/// An object that is being made. A member that is not asked for is not even looked up.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    columns: Columns,
    object: Map<String, Value>,
}

impl Fields {
    /// An object with those members that are wanted.
    pub fn new(columns: &Columns) -> Self {
        Fields { columns: columns.clone(), object: Map::new() }
    }

    /// Adds a member.
    pub fn put(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.put_with(name, || value.into())
    }

    /// Adds a member that takes time to make.
    pub fn put_with(&mut self, name: &str, value: impl FnOnce() -> Value) -> &mut Self {
        if self.columns.want(name) {
            self.object.insert(name.to_owned(), value());
        }
        self
    }

    /// Adds members, each of the same value.
    pub fn put_all(&mut self, names: &[&str], value: impl Into<Value> + Clone) -> &mut Self {
        for name in names {
            self.put(name, value.clone());
        }
        self
    }

    /// Adds a member if there is a value.
    pub fn put_some(&mut self, name: &str, value: Option<impl Into<Value>>) -> &mut Self {
        if let Some(value) = value {
            self.put(name, value);
        }
        self
    }

    /// Whether a member is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.columns.want(name)
    }

    /// The object.
    pub fn finish(self) -> Value {
        self.columns.keep(self.object)
    }
}

/// A name as JSON; bytes that are no text are replaced.
pub(crate) fn name(name: &ShortString) -> String {
    String::from_utf8_lossy(name.as_bytes()).into_owned()
}

/// A table as an object.
pub(crate) fn from_table(table: &FieldTable) -> Value {
    let members = table.iter().map(|(key, value)| (name(key), from_value(value)));
    Value::Object(members.collect())
}

/// A value of a table.
pub(crate) fn from_value(value: &FieldValue) -> Value {
    let float = |number: f64| Number::from_f64(number).map_or(Value::Null, Value::Number);
    match value {
        FieldValue::Bool(flag) => (*flag).into(),
        FieldValue::I8(number) => (*number).into(),
        FieldValue::U8(number) => (*number).into(),
        FieldValue::I16(number) => (*number).into(),
        FieldValue::U16(number) => (*number).into(),
        FieldValue::I32(number) => (*number).into(),
        FieldValue::U32(number) => (*number).into(),
        FieldValue::I64(number) => (*number).into(),
        FieldValue::Timestamp(seconds) => (*seconds).into(),
        FieldValue::F32(number) => float(f64::from(*number)),
        FieldValue::F64(number) => float(*number),
        FieldValue::Decimal(Decimal { scale, digits }) => {
            float(f64::from(*digits) / 10_f64.powi(i32::from(*scale)))
        }
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => text_or_base64(bytes).0.into(),
        FieldValue::Array(values) => values.iter().map(from_value).collect(),
        FieldValue::Table(table) => from_table(table),
        FieldValue::Void => Value::Null,
    }
}

/// Whether a table says the same behind the way through JSON, but for types of values that JSON does not have: its keys and
/// texts are UTF-8, no key is there twice, and its numbers are finite and no larger than what is read again. Whether it is
/// read again at all, [`to_table`] says.
pub(crate) fn survives_json(table: &FieldTable) -> bool {
    let mut keys = HashSet::with_capacity(table.len());
    table.iter().all(|(key, value)| {
        is_text(key) && keys.insert(key.as_bytes()) && value_survives_json(value)
    })
}

fn value_survives_json(value: &FieldValue) -> bool {
    match value {
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => std::str::from_utf8(bytes).is_ok(),
        FieldValue::F32(number) => number.is_finite(),
        FieldValue::F64(number) => number.is_finite(),
        FieldValue::Timestamp(seconds) => i64::try_from(*seconds).is_ok(),
        FieldValue::Array(values) => values.iter().all(value_survives_json),
        FieldValue::Table(table) => survives_json(table),
        _ => true,
    }
}

/// Whether a name is text.
pub(crate) fn is_text(name: &ShortString) -> bool {
    std::str::from_utf8(name.as_bytes()).is_ok()
}

/// Bytes as text, or in base64 if they are none; and whether they are text.
pub(crate) fn text_or_base64(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), true),
        Err(_) => (STANDARD.encode(bytes), false),
    }
}

/// An object as a table. What is empty may also be an empty list. `None` if a name in it is too
/// long, it has too many entries, is nested too deep, or is longer than what fits into a frame.
pub(crate) fn to_table(value: &Value) -> Option<FieldTable> {
    let table = to_table_within(value, NESTING_MAX)?;
    (table.to_entries().len() <= TABLE_BYTES_MAX).then_some(table)
}

fn to_table_within(value: &Value, depth: usize) -> Option<FieldTable> {
    match value {
        Value::Object(members) if members.len() > ENTRIES_MAX => None,
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                Some((ShortString::try_from(name.as_str()).ok()?, to_value(value, depth)?))
            })
            .collect(),
        Value::Array(list) if list.is_empty() => Some(FieldTable::new()),
        _ => None,
    }
}

fn to_value(value: &Value, depth: usize) -> Option<FieldValue> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::Null => FieldValue::Void,
        Value::Bool(flag) => FieldValue::Bool(*flag),
        Value::String(text) => FieldValue::LongStr(text.clone().into_bytes()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => FieldValue::I64(integer),
            (None, Some(float)) => FieldValue::F64(float),
            (None, None) => return None,
        },
        Value::Array(values) => {
            FieldValue::Array(values.iter().map(|one| to_value(one, depth)).collect::<Option<_>>()?)
        }
        Value::Object(_) => FieldValue::Table(to_table_within(value, depth)?),
    })
}

/// A time in milliseconds since 1970 as RFC 3339 has it: `2026-11-28T03:13:11.042+00:00`.
pub(crate) fn time(at_ms: u64) -> String {
    let (days, ms) = (at_ms / DAY_MS, at_ms % DAY_MS);
    // Years that begin in March, so that a leap day is the last of one; 400 of them have the same days as any 400.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let milli = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}+00:00")
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_all_kinds_of_years_are_named() {
        let named = [
            (0, "1970-01-01T00:00:00.000+00:00"),
            (951_782_400_000, "2000-02-29T00:00:00.000+00:00"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789+00:00"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999+00:00"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000+00:00"),
        ];
        for (at_ms, name) in named {
            assert_eq!(time(at_ms), name);
        }
    }
    use serde_json::json;

    fn kept(columns: &str) -> Value {
        let mut fields = Fields::new(&Columns::parse(columns));
        fields.put("name", "q").put("stats", json!({ "in": { "rate": 1 }, "out": 2 }));
        fields.finish()
    }

    #[test]
    fn only_wanted_members_are_kept() {
        assert_eq!(kept("name"), json!({ "name": "q" }));
        assert_eq!(kept("stats.in.rate"), json!({ "stats": { "in": { "rate": 1 } } }));
        assert_eq!(
            kept("stats.out,stats.in"),
            json!({ "stats": { "in": { "rate": 1 }, "out": 2 } })
        );
    }

    #[test]
    fn an_object_without_a_wanted_member_is_an_empty_list() {
        assert_eq!(kept("stats.none,name"), json!({ "name": "q", "stats": [] }));
        assert_eq!(kept(""), json!([]));
        assert_eq!(kept("none"), json!([]));
    }

    #[test]
    fn tables_survive_the_way_through_json() {
        let object = json!({ "a": 1, "b": "x", "c": [true, null], "d": { "e": 1.5 } });
        let table = to_table(&object).expect("a table");
        assert_eq!(from_table(&table), object);
        assert_eq!(to_table(&json!([])), Some(FieldTable::new()));
        assert_eq!(to_table(&json!([1])), None);
    }

    #[test]
    fn a_table_survives_json_if_it_has_texts_and_numbers_that_json_knows() {
        let survives = |value: FieldValue| {
            let inner = FieldTable::new().with("inner", FieldValue::Array(vec![value]));
            survives_json(&FieldTable::new().with("outer", inner))
        };
        assert!(survives(FieldValue::LongStr("größe".into())) && survives(FieldValue::F64(1.5)));
        assert!(survives(FieldValue::Void) && survives(FieldValue::Timestamp(1)));
        assert!(!survives(FieldValue::LongStr(b"gr\xf6\xdfe".to_vec())));
        assert!(!survives(FieldValue::Bytes(b"\xff".to_vec())));
        assert!(!survives(FieldValue::F64(f64::NAN)) && !survives(FieldValue::F32(f32::INFINITY)));
        let key = ShortString::new(b"\xff").expect("short");
        assert!(!survives_json(&[(key, FieldValue::Void)].into_iter().collect()));
    }

    #[test]
    fn what_has_too_many_entries_is_no_table() {
        let object = |count: usize| -> Value {
            (0..count).map(|nth| (nth.to_string(), Value::from(nth))).collect()
        };
        assert!(to_table(&object(ENTRIES_MAX)).is_some());
        let more = object(ENTRIES_MAX + 1);
        assert_eq!(to_table(&more), None);
        assert_eq!(to_table(&json!({ "inner": more })), None);
    }

    #[test]
    fn what_fits_into_no_frame_is_no_table() {
        let object = |len: usize| json!({ "a": "x".repeat(len) });
        assert!(to_table(&object(TABLE_BYTES_MAX - 16)).is_some());
        assert_eq!(to_table(&object(TABLE_BYTES_MAX)), None);
        assert_eq!(to_table(&json!({ "b": [object(TABLE_BYTES_MAX)] })), None);
    }

    #[test]
    fn what_is_nested_too_deep_is_no_table() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({ "x": deep });
        }
        assert_eq!(to_table(&deep), None);
    }
}
