//! Names with values on the command line: headers, arguments, properties.

use courser_client::{FieldTable, FieldValue, OwnedProperties, ShortString};

use crate::options::Options;

/// Where in a stream a message is, or a consumer begins.
pub const STREAM_OFFSET: &str = "x-stream-offset";
/// Longest name in a table.
const NAME_MAX: usize = 255;

/// Whether all of an option's values are `name=value`.
///
/// # Errors
/// What to write instead.
pub fn check(option: &str, pairs: &[String]) -> Result<(), String> {
    let is_pair = |pair: &&String| {
        pair.split_once('=').is_some_and(|(name, _)| (1..=NAME_MAX).contains(&name.len()))
    };
    match pairs.iter().find(|pair| !is_pair(pair)) {
        None => Ok(()),
        Some(pair) => Err(format!("{option} takes name=value, not {pair:?}")),
    }
}

/// The table of these pairs. Whole numbers become integers, true and false booleans, all else text.
#[must_use]
pub fn table(pairs: &[String]) -> FieldTable {
    let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
    pairs.fold(FieldTable::new(), |table, (name, value)| table.with(name, value_of(value)))
}

fn value_of(text: &str) -> FieldValue {
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => text.into(),
    }
}

/// The properties of these pairs, by the names that AMQP has for them.
///
/// # Errors
/// When there is no such property, or the value does not fit.
pub fn properties(pairs: &[String]) -> Result<OwnedProperties, String> {
    let mut properties = OwnedProperties::default();
    for pair in pairs {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("--properties takes name=value, not {pair:?}"))?;
        set(&mut properties, name, value)?;
    }
    Ok(properties)
}

fn set(properties: &mut OwnedProperties, name: &str, value: &str) -> Result<(), String> {
    let place = match name {
        "priority" => {
            properties.priority = Some(number(name, value)?);
            return Ok(());
        }
        "timestamp" => {
            properties.timestamp = Some(number(name, value)?);
            return Ok(());
        }
        "content_type" => &mut properties.content_type,
        "content_encoding" => &mut properties.content_encoding,
        "correlation_id" => &mut properties.correlation_id,
        "reply_to" => &mut properties.reply_to,
        "expiration" => &mut properties.expiration,
        "message_id" => &mut properties.message_id,
        "type" => &mut properties.kind,
        "user_id" => &mut properties.user_id,
        "app_id" => &mut properties.app_id,
        _ => return Err(format!("--properties: there is no property {name:?}")),
    };
    let text = ShortString::try_from(value)
        .map_err(|_| format!("--properties: {name} has more than {NAME_MAX} bytes"))?;
    *place = Some(text);
    Ok(())
}

fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("--properties: {name} can't be {value:?}"))
}

/// The arguments that queues are declared with, as `name=value`.
#[must_use]
pub fn of_queues(options: &Options) -> Vec<String> {
    let kind = &options.kind;
    let mut pairs = kind.queue_args.clone();
    if kind.quorum || kind.stream {
        let name = if kind.quorum { "quorum" } else { "stream" };
        pairs.push(format!("x-queue-type={name}"));
    }
    pairs.extend(kind.ttl.map(|ttl| format!("x-message-ttl={}", ttl.as_millis())));
    pairs.extend(kind.max_priority.map(|highest| format!("x-max-priority={highest}")));
    pairs
}

/// The arguments that consumers begin with.
#[must_use]
pub fn of_consumers(options: &Options) -> FieldTable {
    let kind = &options.kind;
    let table = table(&kind.consumer_args);
    match &kind.stream_offset {
        Some(offset) => table.with(STREAM_OFFSET, value_of(offset)),
        None => table,
    }
}

/// The arguments that consumers go on with over another connection, when they have read a stream up to this offset.
#[must_use]
pub fn of_consumers_again(options: &Options, last_offset: Option<i64>) -> FieldTable {
    let kind = &options.kind;
    let table = of_consumers(options);
    match (last_offset, kind.stream_offset.as_deref().unwrap_or("next")) {
        _ if !kind.stream => table,
        (Some(last), _) => table.with(STREAM_OFFSET, last + 1),
        // What came meanwhile is behind the first message. What is not of the run is told apart by its stamp.
        (None, "next" | "last") if options.producers > 0 => table.with(STREAM_OFFSET, "first"),
        (None, _) => table,
    }
}
