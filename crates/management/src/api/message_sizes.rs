//! How large the messages are that clients have published.

use super::get;
use crate::call::{Call, Outcome};
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::SIZE_LIMITS;
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[get(
    "/api/message-sizes",
    Needs::Monitoring,
    sizes,
    "How many messages clients have published since the start, by the bytes of their bodies: up to a number, or more.",
)];

fn sizes(call: &Call) -> Outcome {
    let sizes = call.admin().message_sizes();
    let limits = SIZE_LIMITS.iter().map(u64::to_string).chain(["more".to_owned()]);
    let counts = limits.zip(sizes.messages.iter().map(|count| Value::from(*count)));
    let messages: Map<String, Value> = counts.collect();
    Ok(Reply::json(&json!({ "messages": messages, "bytes": sizes.bytes })))
}
