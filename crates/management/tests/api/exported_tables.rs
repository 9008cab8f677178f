//! Whatever arguments clients give what they declare: an export holds only what an import takes back as it is, and names the rest.

use crate::direct::{Asked, Direct};
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewBinding, NewQueue};
use courser_codec::{Decimal, FieldTable, FieldValue, ShortString, Table};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// Tables of one case, each for an exchange, a queue and a binding: no more than a warning names.
const TABLES_MAX: usize = 6;

fn text() -> impl Strategy<Value = Vec<u8>> {
    let text = "[a-zß]{0,8}".prop_map(String::into_bytes);
    prop_oneof![40 => text, 1 => vec(any::<u8>(), 0..12)]
}

fn key() -> impl Strategy<Value = ShortString> {
    let known = prop::sample::select(vec!["x-max-length", "x-match", "a", "b", "c"]);
    let bytes = prop_oneof![1 => known.prop_map(|key| key.as_bytes().to_vec()), 4 => text()];
    bytes.prop_map(|bytes| ShortString::new(&bytes).expect("short"))
}

fn scalar() -> impl Strategy<Value = FieldValue> {
    prop_oneof![
        any::<bool>().prop_map(FieldValue::Bool),
        any::<i8>().prop_map(FieldValue::I8),
        any::<u8>().prop_map(FieldValue::U8),
        any::<i16>().prop_map(FieldValue::I16),
        any::<u16>().prop_map(FieldValue::U16),
        any::<i32>().prop_map(FieldValue::I32),
        any::<u32>().prop_map(FieldValue::U32),
        any::<i64>().prop_map(FieldValue::I64),
        any::<f32>().prop_map(FieldValue::F32),
        any::<f64>().prop_map(FieldValue::F64),
        any::<(u8, u32)>()
            .prop_map(|(scale, digits)| FieldValue::Decimal(Decimal { scale, digits })),
        text().prop_map(FieldValue::LongStr),
        any::<u64>().prop_map(FieldValue::Timestamp),
        (0..1_u64 << 33).prop_map(FieldValue::Timestamp),
        Just(FieldValue::Void),
        text().prop_map(FieldValue::Bytes),
    ]
}

/// A table with these entries, as a client may send it: a key may be there twice.
fn table(entries: &[(ShortString, FieldValue)]) -> FieldTable {
    let mut bytes = Vec::new();
    for (key, value) in entries {
        bytes.push(u8::try_from(key.len()).expect("short"));
        bytes.extend(key.as_bytes());
        value.encode(&mut bytes);
    }
    Table::from_entries(&bytes).to_owned().expect("a table")
}

/// In so many others.
fn nested(value: FieldValue, depth: usize, in_arrays: bool) -> FieldValue {
    (0..depth).fold(value, |value, _| match in_arrays {
        true => FieldValue::Array(vec![value]),
        false => FieldValue::Table(FieldTable::new().with("n", value)),
    })
}

fn value() -> impl Strategy<Value = FieldValue> {
    let small = scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(FieldValue::Array),
            vec((key(), inner), 0..4).prop_map(|entries| FieldValue::Table(table(&entries))),
        ]
    });
    let bytes = (0_i8.., 3500..3800_usize).prop_map(|(byte, count)| vec![byte.into(); count]);
    prop_oneof![
        20 => small,
        1 => (scalar(), 29..36_usize, any::<bool>())
            .prop_map(|(value, depth, in_arrays)| nested(value, depth, in_arrays)),
        1 => bytes.prop_map(FieldValue::Array),
        1 => (1020..1028_usize).prop_map(|count| FieldValue::Table(crowd(count))),
    ]
}

fn crowd(count: usize) -> FieldTable {
    (0..count).fold(FieldTable::new(), |table, nth| table.with(&nth.to_string(), true))
}

fn arguments() -> impl Strategy<Value = FieldTable> {
    prop_oneof![
        20 => vec((key(), value()), 0..4).prop_map(|entries| table(&entries)),
        1 => (1020..1028_usize).prop_map(crowd),
    ]
}

fn broker() -> Direct {
    let direct = Direct::new();
    direct.add_user("boss", "administrator");
    let everything = courser_auth::Permission::all();
    direct.broker.admin().set_permission("boss", "/", everything).expect("a permission");
    direct
}

fn key_of(nth: usize) -> ShortString {
    ShortString::try_from(format!("k{nth}").as_str()).expect("short")
}

/// Declares something with these arguments, as far as the broker takes them, and gives the names of what is there.
fn declare(direct: &Direct, tables: &[FieldTable]) -> BTreeMap<String, FieldTable> {
    let admin = direct.broker.admin();
    let bare = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("/", "bare", bare).expect("a queue");
    let mut there = BTreeMap::new();
    for (nth, arguments) in tables.iter().enumerate() {
        let exchange = ExchangeSettings {
            kind: ExchangeKind::Topic,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: arguments.clone(),
        };
        if admin.declare_exchange("/", &format!("e{nth}"), &exchange).is_ok() {
            there.insert(format!("e{nth}"), arguments.clone());
        }
        let queue = NewQueue { arguments: arguments.clone(), durable: true, auto_delete: false };
        if admin.declare_queue("/", &format!("q{nth}"), queue).is_ok() {
            there.insert(format!("q{nth}"), arguments.clone());
        }
        let binding = NewBinding {
            source: "amq.headers".try_into().expect("short"),
            destination: "bare".try_into().expect("short"),
            to_queue: true,
            routing_key: key_of(nth),
            arguments: arguments.clone(),
        };
        if admin.bind("/", binding).is_ok() {
            there.insert(format!("k{nth}"), arguments.clone());
        }
    }
    there
}

/// What is there of a name.
fn found(direct: &Direct, name: &str) -> Option<FieldTable> {
    let admin = direct.broker.admin();
    match &name[..1] {
        "e" => Some(admin.exchange("/", name.as_bytes()).ok()?.arguments.clone()),
        "q" => Some(admin.queue("/", name.as_bytes()).ok()?.arguments.clone()),
        _ => {
            let bare = admin.bindings_to_queue("/", b"bare", &mut |_| true).expect("bindings");
            let bound = bare.into_iter().find(|one| one.routing_key.as_bytes() == name.as_bytes());
            bound.map(|binding| binding.arguments)
        }
    }
}

async fn ask(direct: &Direct, method: &str, body: &str) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let asked = Asked { headers: &headers, body, ..Asked::new(method, "/api/definitions") };
    let answer = direct.ask(asked.by("boss")).await;
    let body = if answer.body.is_empty() { Value::Null } else { answer.json() };
    (answer.status, body)
}

fn same_table(a: &FieldTable, b: &FieldTable) -> bool {
    a.len() == b.len() && a.iter().all(|(key, a)| b.get(key.as_bytes()).is_some_and(|b| same(a, b)))
}

/// Whether two values say the same, but for types that JSON does not have.
fn same(a: &FieldValue, b: &FieldValue) -> bool {
    match (a, b) {
        (FieldValue::Array(a), FieldValue::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (FieldValue::Table(a), FieldValue::Table(b)) => same_table(a, b),
        (FieldValue::Timestamp(a), FieldValue::I64(b)) => i64::try_from(*a) == Ok(*b),
        (FieldValue::Bytes(a), FieldValue::LongStr(b)) => a == b,
        (FieldValue::F32(a), FieldValue::F64(b)) => f64::from(*a) == *b,
        (FieldValue::Decimal(a), FieldValue::F64(b)) => {
            f64::from(a.digits) / 10_f64.powi(i32::from(a.scale)) == *b
        }
        _ => a == b || a.as_integer().is_some() && a.as_integer() == b.as_integer(),
    }
}

async fn check(tables: Vec<FieldTable>) -> Result<(), TestCaseError> {
    let (first, second) = (broker(), broker());
    let there = declare(&first, &tables);
    let (_, exported) = ask(&first, "GET", "").await;
    let (status, refused) = ask(&second, "POST", &exported.to_string()).await;
    prop_assert_eq!(status, 204, "{}", refused);
    let warnings = exported["warnings"].to_string();
    for (name, arguments) in &there {
        let back = found(&second, name);
        let is_named = warnings.contains(&format!("'{name}'"));
        prop_assert_eq!(back.is_none(), is_named, "{}: {:?}", name, arguments);
        if let Some(back) = back {
            prop_assert!(same_table(arguments, &back), "{}: {:?}, {:?}", name, arguments, back);
        }
    }
    // Nor is any of it other than it was.
    let (_, again) = ask(&second, "GET", "").await;
    for list in ["exchanges", "queues", "bindings"] {
        prop_assert_eq!(&exported[list], &again[list]);
    }
    Ok(())
}

fn run(tables: Vec<FieldTable>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(check(tables))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_exported_is_imported_as_it_was_and_the_rest_is_named(
        tables in vec(arguments(), 1..=TABLES_MAX),
    ) {
        run(tables)?;
    }
}

#[test]
fn what_lies_at_the_bounds_of_an_import_is_imported_or_named() {
    let twice = |value: i64| ("x-max-length".try_into().expect("short"), FieldValue::I64(value));
    let of = |value: FieldValue| FieldTable::new().with("a", value);
    let mut tables = Vec::new();
    for depth in [30, 31, 32, 62] {
        tables.push(of(nested(FieldValue::Void, depth, false)));
        tables.push(of(nested(FieldValue::Void, depth, true)));
    }
    tables.extend([1024, 1025].map(crowd));
    tables.extend([3600, 3700].map(|count| of(FieldValue::Array(vec![FieldValue::I8(1); count]))));
    tables.push(table(&[twice(10), twice(1000)]));
    tables.extend([1 << 62, 1 << 63, u64::MAX].map(|at| of(FieldValue::Timestamp(at))));
    tables.push(of(FieldValue::F64(0.156_341_870_149_738_42e-200)));
    for tables in tables.chunks(TABLES_MAX) {
        run(tables.to_vec()).expect("imported or named");
    }
}

#[tokio::test]
async fn an_import_leaves_alone_what_is_there_whatever_the_file_says_of_its_arguments() {
    let direct = broker();
    let bare = NewQueue { durable: true, ..NewQueue::default() };
    direct.broker.admin().declare_queue("/", "q", bare).expect("a queue");
    let deep = (0..40).fold(Value::Null, |inner, _| serde_json::json!({ "n": inner }));
    let row = |name: &str, deep: &Value| serde_json::json!({ "queues": [{ "name": name, "vhost": "/", "durable": true, "arguments": deep }] });
    assert_eq!(ask(&direct, "POST", &row("q", &deep).to_string()).await.0, 204);
    assert_eq!(ask(&direct, "POST", &row("new", &deep).to_string()).await.0, 400);
}

/// JSON is read to a depth of 127, and an export has a value three deeper than it lies in.
#[tokio::test]
async fn no_parameter_keeps_an_export_from_being_imported() {
    let direct = broker();
    for depth in [0, 64, 99, 100, 110, 120, 122, 123, 124, 125, 126, 130] {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!(r#"{{"value":{{"uri":"amqp://there","n":[{value}]}}}}"#);
        for path in ["parameters/federation-upstream/%2F", "global-parameters"] {
            let path = format!("/api/{path}/p{depth}");
            let asked = Asked { body: &body, ..Asked::new("PUT", &path) };
            let status = direct.ask(asked.by("boss")).await.status;
            assert!(status == 201 || depth > 64 && status == 400, "{depth}: {status}");
        }
    }
    let (_, exported) = ask(&direct, "GET", "").await;
    assert_eq!(ask(&broker(), "POST", &exported.to_string()).await.0, 204);
}
