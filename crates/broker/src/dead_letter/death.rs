//! What a dead-lettered message says of its deaths: `x-death` and the headers around it.

use crate::keyed::KeyedSet;
use crate::work;
use courser_codec::{FieldTable, FieldValue, ShortString, Table, Value};

pub(super) const X_DEATH: &str = "x-death";
const CC: &str = "CC";

/// Why a message left its queue without having been consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A consumer has refused it for good.
    Rejected,
    /// Its time to live was over.
    Expired,
    /// It has come back from consumers too often.
    DeliveryLimit,
    /// There was no room for it.
    MaxLen,
}

impl Reason {
    /// As `x-death` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Rejected => "rejected",
            Reason::Expired => "expired",
            Reason::DeliveryLimit => "delivery_limit",
            Reason::MaxLen => "maxlen",
        }
    }
}

/// One death of a message.
pub(super) struct Death<'a> {
    pub queue: &'a ShortString,
    pub reason: Reason,
    /// Seconds since 1970.
    pub time_s: u64,
    /// What it was published with, or what the last dead-lettering made of that.
    pub exchange: &'a [u8],
    pub routing_key: &'a [u8],
    /// That has come in place of all its keys.
    pub one_key: bool,
    /// `expiration`, if it had one.
    pub expiration: Option<&'a [u8]>,
}

/// Adds a death to the headers of a message, in which only the broker has written of deaths. One more death in the same queue for the same reason
/// only counts; the latest comes first.
pub(super) fn record(headers: &mut FieldTable, death: &Death<'_>) {
    let reason = death.reason.name().as_bytes();
    let queue = death.queue.as_bytes();
    let mut deaths = match headers.remove(X_DEATH) {
        Some(FieldValue::Array(deaths)) => deaths,
        _ => Vec::new(),
    };
    if deaths.is_empty() {
        put_summary(headers, "first", death);
    }
    put_summary(headers, "last", death);
    let is_same = |known: &FieldValue| {
        text_of(known, "queue") == Some(queue) && text_of(known, "reason") == Some(reason)
    };
    let latest = match deaths.iter().position(is_same) {
        Some(index) => {
            let mut known = deaths.remove(index);
            count(&mut known);
            known
        }
        None => FieldValue::Table(first_of_its_kind(death, headers)),
    };
    deaths.insert(0, latest);
    put(headers, X_DEATH, FieldValue::Array(deaths));
}

/// Takes out what is least missed of a message's deaths: the keys that its publisher named besides, then
/// the older half of the deaths, but none that shows a circle. Returns whether there was anything.
pub(super) fn shorten(headers: &mut FieldTable) -> bool {
    let Some(FieldValue::Array(mut deaths)) = headers.remove(X_DEATH) else { return false };
    let mut is_shorter = false;
    for death in &mut deaths {
        if let FieldValue::Table(death) = death
            && let Some(FieldValue::Array(mut keys)) = death.remove("routing-keys")
        {
            is_shorter |= keys.len() > 1;
            keys.truncate(1);
            put(death, "routing-keys", FieldValue::Array(keys));
        }
    }
    let kept = (deaths.len() / 2).max(since_refused(&deaths).len()).max(1);
    if !is_shorter && kept < deaths.len() {
        deaths.truncate(kept);
        is_shorter = true;
    }
    put(headers, X_DEATH, FieldValue::Array(deaths));
    is_shorter
}

/// The queue that a message with these headers has died in last.
pub(crate) fn died_in(headers: &Table<'_>) -> Option<ShortString> {
    let Ok(Some(Value::Array(deaths))) = headers.get(X_DEATH.as_bytes()) else { return None };
    let Ok(Value::Table(latest)) = deaths.iter().next()? else { return None };
    match latest.get(b"queue") {
        Ok(Some(Value::LongStr(queue))) => ShortString::new(queue).ok(),
        _ => None,
    }
}

/// Whether a message with these headers was published to an exchange before it died for the first time.
pub(crate) fn began_at(headers: &Table<'_>, exchange: &str) -> bool {
    let first = headers.get(b"x-first-death-exchange");
    matches!(first, Ok(Some(Value::LongStr(first))) if first == exchange.as_bytes())
}

/// The queues to which a message with these headers must not come back: those in which it has died since a consumer last
/// refused it. Such a cycle would never end.
pub(super) fn circle(headers: &FieldTable) -> KeyedSet<&[u8]> {
    since_refused(deaths(headers)).iter().filter_map(|death| text_of(death, "queue")).collect()
}

/// Those of these deaths that have come after a consumer last refused the message.
fn since_refused(deaths: &[FieldValue]) -> &[FieldValue] {
    let was_refused = |death: &FieldValue| text_of(death, "reason") == Some(b"rejected");
    &deaths[..deaths.iter().position(was_refused).unwrap_or(deaths.len())]
}

/// The queues in which a message with these headers has died.
pub(super) fn queues(headers: &FieldTable) -> KeyedSet<&[u8]> {
    deaths(headers).iter().filter_map(|death| text_of(death, "queue")).collect()
}

/// The exchanges to which a message with these headers was published before it died.
pub(super) fn exchanges(headers: &FieldTable) -> KeyedSet<&[u8]> {
    deaths(headers).iter().filter_map(|death| text_of(death, "exchange")).collect()
}

/// The deaths, latest first. They stand behind all other headers.
fn deaths(headers: &FieldTable) -> &[FieldValue] {
    let deaths = headers.get(X_DEATH).and_then(FieldValue::as_array).unwrap_or_default();
    work::count(headers.len() + deaths.len());
    deaths
}

fn put_summary(headers: &mut FieldTable, which: &str, death: &Death<'_>) {
    let values = [
        ("reason", death.reason.name().as_bytes()),
        ("queue", death.queue.as_bytes()),
        ("exchange", death.exchange),
    ];
    for (what, value) in values {
        put(headers, &format!("x-{which}-death-{what}"), FieldValue::LongStr(value.to_vec()));
    }
}

fn first_of_its_kind(death: &Death<'_>, headers: &FieldTable) -> FieldTable {
    let text = |bytes: &[u8]| FieldValue::LongStr(bytes.to_vec());
    let mut keys = vec![text(death.routing_key)];
    if !death.one_key
        && let Some(FieldValue::Array(others)) = headers.get(CC)
    {
        keys.extend(others.iter().cloned());
    }
    let mut entry = FieldTable::with_capacity(7)
        .with("count", 1_i64)
        .with("reason", death.reason.name())
        .with("queue", text(death.queue.as_bytes()))
        .with("time", FieldValue::Timestamp(death.time_s))
        .with("exchange", text(death.exchange))
        .with("routing-keys", keys);
    if let Some(expiration) = death.expiration {
        put(&mut entry, "original-expiration", text(expiration));
    }
    entry
}

/// Counts one more death.
fn count(known: &mut FieldValue) {
    let FieldValue::Table(entry) = known else { return };
    let count = entry.get("count").and_then(FieldValue::as_integer).unwrap_or(0);
    put(entry, "count", FieldValue::I64(count.saturating_add(1)));
}

fn text_of<'a>(death: &'a FieldValue, key: &str) -> Option<&'a [u8]> {
    death.as_table()?.get(key)?.as_long_str()
}

fn put(table: &mut FieldTable, key: &str, value: FieldValue) {
    if let Ok(key) = ShortString::try_from(key) {
        table.insert(key, value);
    }
}
