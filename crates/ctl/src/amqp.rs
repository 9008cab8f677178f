//! What AMQP and the command line have of each other: tables as JSON, messages as rows, errors as failures.

use crate::failure::{DATA, Failure, NO_PERMISSION, UNAVAILABLE};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_client::{Delivery, Error, FieldTable, FieldValue, OwnedProperties, ShortString};
use serde_json::{Map, Number, Value};

/// The columns of [`row`].
pub(crate) const COLUMNS: [&str; 7] = [
    "exchange",
    "routing_key",
    "redelivered",
    "payload_bytes",
    "payload_encoding",
    "payload",
    "properties",
];

/// A message as the HTTP API shows one: its payload as base64 if it is no text.
pub(crate) fn row(delivery: &Delivery) -> Vec<Value> {
    let (payload, is_text) = text(delivery.body());
    let properties = delivery.owned_properties().map(shown).unwrap_or_default();
    vec![
        text(delivery.exchange().as_bytes()).0.into(),
        text(delivery.routing_key().as_bytes()).0.into(),
        delivery.redelivered().into(),
        delivery.body().len().into(),
        if is_text { "string" } else { "base64" }.into(),
        payload.into(),
        properties,
    ]
}

/// Bytes as text, or in base64 if they are none; and whether they are text.
fn text(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), true),
        Err(_) => (STANDARD.encode(bytes), false),
    }
}

/// The properties that a message has.
fn shown(properties: OwnedProperties) -> Value {
    let texts = [
        ("content_type", properties.content_type),
        ("content_encoding", properties.content_encoding),
        ("correlation_id", properties.correlation_id),
        ("reply_to", properties.reply_to),
        ("expiration", properties.expiration),
        ("message_id", properties.message_id),
        ("type", properties.kind),
        ("user_id", properties.user_id),
        ("app_id", properties.app_id),
        ("cluster_id", properties.cluster_id),
    ];
    let texts = texts
        .into_iter()
        .map(|(name, value)| (name, value.map(|value| Value::String(text(value.as_bytes()).0))));
    let others = [
        ("headers", properties.headers.as_ref().map(from_table)),
        ("delivery_mode", properties.delivery_mode.map(Value::from)),
        ("priority", properties.priority.map(Value::from)),
        ("timestamp", properties.timestamp.map(Value::from)),
    ];
    let all = texts.chain(others);
    Value::Object(all.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn from_table(table: &FieldTable) -> Value {
    let members = table.iter().map(|(key, value)| (text(key.as_bytes()).0, from_value(value)));
    Value::Object(members.collect())
}

fn from_value(value: &FieldValue) -> Value {
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
        FieldValue::Decimal(decimal) => {
            float(f64::from(decimal.digits) / 10_f64.powi(i32::from(decimal.scale)))
        }
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => text(bytes).0.into(),
        FieldValue::Array(values) => values.iter().map(from_value).collect(),
        FieldValue::Table(table) => from_table(table),
        FieldValue::Void => Value::Null,
    }
}

/// The arguments of a consumer: truth values, whole numbers, texts and lists of these.
///
/// # Errors
/// If one is something else, or its name is too long.
pub(crate) fn to_table(arguments: Map<String, Value>) -> Result<FieldTable, Failure> {
    arguments
        .into_iter()
        .map(|(name, value)| {
            let wrong = || Failure::usage(format!("the argument {name} can't be sent"));
            let key = ShortString::new(name.as_bytes()).map_err(|_| wrong())?;
            Ok((key, to_value(value).ok_or_else(wrong)?))
        })
        .collect()
}

fn to_value(value: Value) -> Option<FieldValue> {
    Some(match value {
        Value::Bool(flag) => FieldValue::Bool(flag),
        Value::Number(number) => FieldValue::I64(number.as_i64()?),
        Value::String(text) => FieldValue::LongStr(text.into_bytes()),
        Value::Array(list) => {
            FieldValue::Array(list.into_iter().map(to_value).collect::<Option<_>>()?)
        }
        Value::Null | Value::Object(_) => return None,
    })
}

/// What a client hears of a broker that refuses, or of a connection that ends.
pub(crate) fn failure(error: &Error) -> Failure {
    let code = match error.reply_code() {
        Some(403) => NO_PERMISSION,
        // A vhost that the user can't access is one that does not exist.
        Some(404..=406 | 530) => DATA,
        _ => UNAVAILABLE,
    };
    let text = match (error, error.close_reason()) {
        (_, Some(reason)) if reason.text.contains("Login was refused") => {
            "the user or the password is wrong".to_owned()
        }
        (_, Some(reason)) => reason.text.clone(),
        (Error::ConsumerCancelled { .. }, _) => {
            "the broker has ended the consumer: the queue was deleted, or serves no consumers any more"
                .to_owned()
        }
        _ => error.to_string(),
    };
    Failure::error(code, text)
}
