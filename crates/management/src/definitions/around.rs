//! What there is around a row, and what there will be, as far as an import of the row depends on it.

use super::compare::{identity, text_of};
use courser_broker::admin::is_predefined;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// The exchanges and queues that there are, and those that there will be.
pub(super) struct Ends {
    exchanges: HashSet<String>,
    queues: HashSet<String>,
}

impl Ends {
    pub fn new(now: &Value, wanted: &Value) -> Self {
        let of = |list: &str| {
            let both =
                [now, wanted].into_iter().filter_map(|document| document.get(list)?.as_array());
            both.flatten().map(|row| identity(row, &["vhost", "name"])).collect()
        };
        Ends { exchanges: of("exchanges"), queues: of("queues") }
    }

    /// The end of a binding that is not there. Every queue is bound to the default exchange, so nothing is made of that.
    pub fn missing<'r>(&self, row: &'r Value) -> Option<(&'static str, &'r str)> {
        let is_there = |all: &HashSet<String>, name: &str| {
            let whole = json!({ "vhost": row.get("vhost"), "name": name });
            all.contains(&identity(&whole, &["vhost", "name"]))
        };
        let is_exchange = |name: &str| match name.starts_with("amq.") {
            // No file makes one of those.
            true => is_predefined(name),
            false => is_there(&self.exchanges, name),
        };
        let source = text_of(row, "source").filter(|source| !source.is_empty())?;
        let destination = text_of(row, "destination")?;
        if !is_exchange(source) {
            return Some(("exchange", source));
        }
        match text_of(row, "destination_type")? {
            // Nor one of these: they are made by the broker for clients, and go with them.
            "queue" if destination.starts_with("amq.") => Some(("queue", destination)),
            "queue" => (!is_there(&self.queues, destination)).then_some(("queue", destination)),
            _ => (!is_exchange(destination)).then_some(("exchange", destination)),
        }
    }
}

/// The type of queues without one, if that is another than a classic one.
pub(super) fn default_type(named: Option<&str>) -> Option<&str> {
    named.filter(|named| !matches!(*named, "" | "undefined" | "classic"))
}

/// What queues are that are declared without a type, by vhost.
pub(super) struct DefaultTypes<'d> {
    by_vhost: HashMap<&'d str, &'d str>,
    /// In the vhost of a document of one.
    alone: Option<&'d str>,
}

impl<'d> DefaultTypes<'d> {
    pub fn new(now: &'d Value, wanted: &'d Value) -> Self {
        let of = |vhost: &'d Value| {
            let named = vhost.get("metadata").and_then(|said| text_of(said, "default_queue_type"));
            named.or_else(|| text_of(vhost, "default_queue_type"))
        };
        let rows = |document: &'d Value| document.get("vhosts").and_then(Value::as_array);
        // What the file says of a vhost holds before its queues are made.
        let both = [now, wanted].into_iter().filter_map(rows).flatten();
        let by_vhost = both.filter_map(|vhost| Some((text_of(vhost, "name")?, of(vhost)?)));
        DefaultTypes { by_vhost: by_vhost.collect(), alone: of(now) }
    }

    pub fn of(&self, row: &Value) -> Option<&'d str> {
        let named = match text_of(row, "vhost") {
            Some(vhost) => self.by_vhost.get(vhost).copied(),
            None => self.alone,
        };
        default_type(named)
    }
}
