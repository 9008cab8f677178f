//! Bindings, and the keys that name them in a path.

use super::get;
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name};
use crate::list::{Gathering, Items, Place, paged};
use crate::path::{decode_form, encode_form};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_auth::Resource;
use courser_broker::admin::BindingView;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/bindings", Needs::Login, bindings, "The bindings that the caller may see."),
    get("/api/bindings/{vhost}", Needs::Vhost, bindings, "The bindings of a vhost."),
    get(
        "/api/bindings/{vhost}/e/{exchange}/q/{queue}",
        Needs::Vhost,
        between,
        "The bindings from an exchange to a queue.",
    ),
    get(
        "/api/bindings/{vhost}/e/{exchange}/e/{destination}",
        Needs::Vhost,
        between,
        "The bindings from an exchange to another one.",
    ),
    get(
        "/api/bindings/{vhost}/e/{exchange}/q/{queue}/{props}",
        Needs::Vhost,
        binding,
        "A binding to a queue.",
    ),
    get(
        "/api/bindings/{vhost}/e/{exchange}/e/{destination}/{props}",
        Needs::Vhost,
        binding,
        "A binding to an exchange.",
    ),
    get(
        "/api/queues/{vhost}/{queue}/bindings",
        Needs::Vhost,
        to_queue,
        "The bindings to a queue, the one by its name included.",
    ),
    get(
        "/api/exchanges/{vhost}/{exchange}/bindings/source",
        Needs::Vhost,
        from_exchange,
        "The bindings from an exchange.",
    ),
    get(
        "/api/exchanges/{vhost}/{exchange}/bindings/destination",
        Needs::Vhost,
        to_exchange,
        "The bindings to an exchange.",
    ),
];

/// Characters of the sum over arguments.
const SUM_CHARS: usize = 6;

fn bindings(call: &Call) -> Outcome {
    listed(call, |admits| {
        let mut found = Vec::new();
        call.for_each_vhost(|vhost| {
            call.admin().for_each_binding(vhost, admits, &mut |binding| found.push(binding))
        })?;
        Ok(found)
    })
}

/// Answers with the bindings that `found` finds, as far as they are admitted.
fn listed(
    call: &Call,
    found: impl FnOnce(&mut dyn FnMut(&BindingView) -> bool) -> Result<Vec<BindingView>, Refusal>,
) -> Outcome {
    let mut gathering = Gathering::new(call)?;
    let bindings = found(&mut |binding| gathering.admits(binding))?;
    let named = Items::new(bindings, names).placed(|one| Place::of(&one.vhost));
    let named = named.in_room(gathering.finish()?);
    paged(call, named, |(_, binding), fields| render(binding, fields))
}

/// What a filter looks at: both ends and the routing key.
fn names(binding: &BindingView) -> String {
    let all = [&binding.source, &binding.destination, &binding.routing_key];
    all.map(name).join(" ")
}

fn to_queue(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    listed(call, |admits| Ok(call.admin().bindings_to_queue(vhost, queue, admits)?))
}

fn from_exchange(call: &Call) -> Outcome {
    let (vhost, exchange) = (call.text("vhost")?, call.exchange("exchange"));
    listed(call, |admits| Ok(call.admin().bindings_from(vhost, exchange, admits)?))
}

fn to_exchange(call: &Call) -> Outcome {
    let (vhost, exchange) = (call.text("vhost")?, call.exchange("exchange"));
    listed(call, |admits| Ok(call.admin().bindings_to_exchange(vhost, exchange, admits)?))
}

/// The bindings between the two ends in the path, as far as they are admitted.
fn of_path(
    call: &Call,
    admits: &mut dyn FnMut(&BindingView) -> bool,
) -> Result<Vec<BindingView>, Refusal> {
    let (vhost, source) = (call.text("vhost")?, call.exchange("exchange"));
    Ok(call.admin().bindings_between(vhost, source, destination(call), admits)?)
}

/// The end that bindings in the path lead to.
fn destination(call: &Call) -> Resource<'_> {
    match call.has("queue") {
        true => Resource::Queue(call.bytes("queue")),
        false => Resource::Exchange(call.exchange("destination")),
    }
}

fn between(call: &Call) -> Outcome {
    listed(call, |admits| of_path(call, admits))
}

/// The binding that the path names with its key.
pub(super) fn known(call: &Call) -> Result<BindingView, Refusal> {
    let key = call.text("props")?;
    // Some tools name the routing key as it is, where another one would be escaped.
    let is_plain =
        |binding: &BindingView| binding.arguments.is_empty() && name(&binding.routing_key) == key;
    // All that may be meant, and no more.
    let is_meant = |binding: &BindingView| properties_key(binding) == key;
    let mut all = call.admin().bindings_by_key(
        call.text("vhost")?,
        call.exchange("exchange"),
        destination(call),
        &routing_keys(key),
        &mut |binding| is_meant(binding) || is_plain(binding),
    )?;
    let at = all.iter().position(is_meant).unwrap_or(0);
    let found = (at < all.len()).then(|| all.swap_remove(at));
    found.ok_or_else(Refusal::not_found)
}

/// The routing keys that a binding may have which is named so.
fn routing_keys(properties_key: &str) -> Vec<String> {
    let with_sum = properties_key.rsplit_once('~').map(|(key, _)| key);
    let escaped = [Some(properties_key), with_sum].into_iter().flatten().filter_map(decode_form);
    [properties_key.to_owned()].into_iter().chain(escaped).collect()
}

fn binding(call: &Call) -> Outcome {
    let mut fields = Fields::new(&call.columns());
    render(&known(call)?, &mut fields);
    Ok(Reply::object(fields))
}

/// A binding with all of its members.
pub(super) fn object(binding: &BindingView) -> Value {
    let mut fields = Fields::default();
    render(binding, &mut fields);
    fields.finish()
}

fn render(binding: &BindingView, fields: &mut Fields) {
    fields
        .put("source", name(&binding.source))
        .put("vhost", binding.vhost.as_str())
        .put("destination", name(&binding.destination))
        .put("destination_type", if binding.to_queue { "queue" } else { "exchange" })
        .put("routing_key", name(&binding.routing_key))
        .put_with("arguments", || from_table(&binding.arguments))
        .put_with("properties_key", || properties_key(binding).into());
}

/// What tells a binding from others between the same two ends: its routing key, and a sum over its
/// arguments if it has any.
pub(super) fn properties_key(binding: &BindingView) -> String {
    let key = encode_form(&name(&binding.routing_key));
    if binding.arguments.is_empty() {
        return if key.is_empty() { "~".to_owned() } else { key };
    }
    let sum = Sha256::digest(binding.arguments.to_entries());
    let mut sum = URL_SAFE_NO_PAD.encode(sum);
    sum.truncate(SUM_CHARS);
    format!("{key}~{sum}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_codec::FieldTable;

    fn key(routing_key: &str, arguments: FieldTable) -> String {
        properties_key(&BindingView {
            vhost: "/".into(),
            source: "x".try_into().expect("short"),
            destination: "q".try_into().expect("short"),
            to_queue: true,
            routing_key: routing_key.try_into().expect("short"),
            arguments,
        })
    }

    #[test]
    fn a_binding_is_named_by_its_key_and_a_sum_over_its_arguments() {
        assert_eq!(key("", FieldTable::new()), "~");
        assert_eq!(key("x.*", FieldTable::new()), "x.%2A");
        assert_eq!(key("a b~", FieldTable::new()), "a+b%7E");
        let one = key("k", FieldTable::new().with("a", 1_i64));
        let other = key("k", FieldTable::new().with("a", 2_i64));
        assert!(one.starts_with("k~") && one.len() == 2 + SUM_CHARS, "{one}");
        assert_ne!(one, other);
    }
}
