//! What can be asked for: a line of JSON each, told apart by `op`.

use courser_client::{Error, FieldTable, FieldValue, ShortString};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Arguments or headers, as JSON has them.
pub type Json = Map<String, Value>;

/// A line from the program that measures.
#[derive(Debug, Deserialize)]
pub struct Line {
    /// The answer carries the same number.
    pub id: u64,
    /// What to do.
    #[serde(flatten)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Command {
    /// Exchanges, queues, bindings.
    Declare(Declare),
    /// Messages to an exchange.
    Publish(Publish),
    /// Messages from queues.
    Consume(Consume),
    /// Waits until a queue has no more than so many messages ready.
    Depth(Depth),
    /// Queues and exchanges to delete.
    Delete(Delete),
}

/// Exchanges, queues and bindings, made in this order.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Declare {
    /// Exchanges first.
    pub exchanges: Vec<ExchangeSpec>,
    /// Then queues.
    pub queues: Vec<QueueSpec>,
    /// Then bindings: queue, exchange, key, arguments.
    pub bindings: Vec<(String, String, String, Json)>,
    /// Requests on their way at once; 0 is one after the other.
    pub in_flight: usize,
}

/// An exchange to declare.
#[derive(Debug, Deserialize)]
pub struct ExchangeSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Whether it survives a restart.
    #[serde(default)]
    pub durable: bool,
    /// Further arguments.
    #[serde(default)]
    pub arguments: Json,
}

/// A queue to declare.
#[derive(Debug, Deserialize)]
pub struct QueueSpec {
    /// Its name.
    pub name: String,
    /// Whether it survives a restart.
    #[serde(default)]
    pub durable: bool,
    /// Further arguments.
    #[serde(default)]
    pub arguments: Json,
}

/// Messages to publish, as fast as they are taken.
#[derive(Debug, Deserialize)]
pub struct Publish {
    /// Where to.
    #[serde(default)]
    pub exchange: String,
    /// Keys and properties, by turns.
    pub targets: Vec<Target>,
    /// Number of messages.
    pub count: u64,
    /// Size of each body, at least 16 bytes.
    pub size_bytes: usize,
    /// Messages that survive a restart in durable queues.
    #[serde(default)]
    pub persistent: bool,
    /// Confirms that may be outstanding; 0 is without confirms.
    #[serde(default)]
    pub confirm: u32,
    /// Messages a second; 0 is without limit.
    #[serde(default)]
    pub rate: u64,
    /// All messages expire so long after the command begins, by an `expiration` of what is left of it.
    #[serde(default)]
    pub expire_in_ms: u64,
}

/// Where a message goes, and what properties it has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Target {
    /// Routing key.
    pub key: String,
    /// Headers.
    pub headers: Json,
    /// Priority.
    pub priority: Option<u8>,
    /// Time to live.
    pub expiration: Option<String>,
    /// How much later than at once it should arrive; its latency is counted from there.
    pub due_ms: u64,
}

/// Messages to consume.
#[derive(Debug, Deserialize)]
pub struct Consume {
    /// A consumer each.
    pub consumers: Vec<ConsumerSpec>,
    /// How many of them share a connection; 0 is one.
    #[serde(default)]
    pub per_connection: usize,
    /// Unacknowledged messages of each; 0 is without acknowledgements.
    #[serde(default)]
    pub prefetch: u16,
    /// One acknowledgement for so many.
    #[serde(default)]
    pub ack_every: u64,
    /// Ends when so many have come to all of them together.
    pub count: u64,
    /// Ends when nothing has come for so long; 0 is never.
    #[serde(default)]
    pub idle_ms: u64,
    /// Whether to measure latencies.
    #[serde(default)]
    pub latency: bool,
    /// Whether to look at priorities: none may be above the one before.
    #[serde(default)]
    pub priorities: bool,
}

/// A consumer.
#[derive(Debug, Deserialize)]
pub struct ConsumerSpec {
    /// Its queue.
    pub queue: String,
    /// Further arguments.
    #[serde(default)]
    pub arguments: Json,
}

/// A queue to wait for.
#[derive(Debug, Deserialize)]
pub struct Depth {
    /// Its name.
    pub queue: String,
    /// As many messages or fewer are waited for.
    #[serde(default)]
    pub at_most: Option<u32>,
    /// As many messages or more are waited for.
    #[serde(default)]
    pub at_least: u32,
    /// Time between two looks.
    #[serde(default)]
    pub every_ms: u64,
    /// Gives up after this; 0 is never.
    #[serde(default)]
    pub limit_ms: u64,
}

/// What to delete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delete {
    /// Queues first.
    pub queues: Vec<String>,
    /// Then exchanges.
    pub exchanges: Vec<String>,
}

/// JSON as a table of AMQP: integers in as few bytes as take 32 or 64 bits, texts as long strings.
///
/// # Errors
/// When a name has more than 255 bytes.
pub fn table(json: &Json) -> Result<FieldTable, Error> {
    json.iter()
        .map(|(name, value)| {
            let key = ShortString::try_from(name.as_str());
            key.map(|key| (key, field(value)))
                .map_err(|_| Error::TooLong { what: "a field's name", len: name.len() })
        })
        .collect()
}

fn field(value: &Value) -> FieldValue {
    match value {
        Value::Bool(truth) => FieldValue::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(FieldValue::I64(whole), FieldValue::I32),
            None => FieldValue::F64(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => FieldValue::LongStr(text.clone().into_bytes()),
        Value::Array(elements) => FieldValue::Array(elements.iter().map(field).collect()),
        Value::Object(_) | Value::Null => FieldValue::Void,
    }
}
