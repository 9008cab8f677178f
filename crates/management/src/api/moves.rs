//! Moving messages to another place, and back to where they died.

use super::messages::short;
use super::peek::Search;
use crate::call::{Call, Members, Outcome};
use crate::json::name;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route, Verb};
use courser_auth::{Resource, Right};
use courser_broker::admin::{Fault, MoveTarget, MoveTo, Selection};
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Verb::Post,
    pattern: "/api/queues/{vhost}/{queue}/move",
    needs: Needs::Vhost,
    handler: move_messages,
    doc: "Moves messages: `to` is queue, exchange or origin; numbers, count, contains, header, dry_run.",
}];

/// Messages that one request may name.
const NUMBERS_MAX: usize = 10_000;

fn move_messages(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let caller = call.caller()?;
    let read = caller.check(vhost, Right::Read, Resource::Queue(queue));
    read.map_err(|reason| Refusal::not_authorised(format!("ACCESS_REFUSED - {reason}")))?;
    let body = call.object()?;
    body.only(&["to", "numbers", "count", "contains", "header", "dry_run"])?;
    let to = place(&body)?;
    let may_write = |target: MoveTarget<'_>| match target {
        MoveTarget::Queue(name) => caller.check(vhost, Right::Write, Resource::Queue(name)).is_ok(),
        MoveTarget::Exchange(exchange, key) => {
            let write = caller.check(vhost, Right::Write, Resource::Exchange(exchange));
            write.is_ok() && caller.check_topic(vhost, Right::Write, exchange, key).is_ok()
        }
    };
    // Said at once where it does not depend on the message.
    match &to {
        MoveTo::Queue(name) => {
            let write = caller.check(vhost, Right::Write, Resource::Queue(name.as_bytes()));
            write
                .map_err(|reason| Refusal::not_authorised(format!("ACCESS_REFUSED - {reason}")))?;
        }
        MoveTo::Exchange(name, _) => {
            let write = caller.check(vhost, Right::Write, Resource::Exchange(name.as_bytes()));
            write
                .map_err(|reason| Refusal::not_authorised(format!("ACCESS_REFUSED - {reason}")))?;
        }
        MoveTo::Origin => {}
    }
    let numbers = numbers(&body)?;
    let count = body.integer("count")?.map(usize::try_from).transpose();
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let search = Search::new(text("contains"), text("header"));
    let finds = |message: &_| search.finds(message);
    let selection = Selection {
        numbers: numbers.as_deref(),
        count: count.map_err(|_| Refusal::bad_request(json!(["not_int", "count"])))?,
        filter: (!search.is_empty()).then_some(&finds),
    };
    let is_trial = body.flag("dry_run", false)?;
    let done = call
        .admin()
        .relocate(vhost, queue, &selection, &to, &may_write, is_trial)
        .map_err(refused)?;
    if !is_trial {
        tracing::info!(
            user = caller.name(),
            vhost,
            queue = %String::from_utf8_lossy(queue),
            to = shown(&to),
            moved = done.moved,
            "messages moved"
        );
    }
    Ok(Reply::json(&json!({
        "moved": done.moved,
        "without_place": done.without_place,
        "forbidden": done.forbidden,
        "looked_at": done.looked_at,
        "partial": done.is_partial,
        "dry_run": is_trial,
    })))
}

/// What is not there is named: it may be either of two queues.
fn refused(fault: Fault) -> Refusal {
    match fault.code {
        404 => Refusal::missing(fault.explanation),
        _ => fault.into(),
    }
}

fn shown(to: &MoveTo) -> String {
    match to {
        MoveTo::Queue(queue) => format!("queue '{}'", name(queue)),
        MoveTo::Exchange(exchange, _) => format!("exchange '{}'", name(exchange)),
        MoveTo::Origin => "origin".to_owned(),
    }
}

/// Where messages go, as a body says it: `{"to": {"queue": ...}}`, `{"to": {"exchange": ...,
/// "routing_key": ...}}` or `{"to": "origin"}`.
fn place(body: &Map<String, Value>) -> Result<MoveTo, Refusal> {
    let wrong = || {
        Refusal::bad_request(
            "to is neither {\"queue\": NAME}, {\"exchange\": NAME, \"routing_key\": KEY} nor \"origin\"",
        )
    };
    let to = match body.get("to") {
        None => return Err(Refusal::key_missing(&["to"])),
        Some(Value::String(text)) if text == "origin" => return Ok(MoveTo::Origin),
        Some(Value::Object(to)) => to,
        Some(_) => return Err(wrong()),
    };
    let text = |name: &str| match to.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => short(text.as_bytes()).map(Some),
        Some(_) => Err(Refusal::bad_request(json!(["not_string", name]))),
    };
    match (text("queue")?, text("exchange")?, text("routing_key")?) {
        (Some(queue), None, None) => Ok(MoveTo::Queue(queue)),
        (None, Some(exchange), key) => {
            let is_default = exchange.as_bytes() == b"amq.default";
            let exchange = if is_default { Default::default() } else { exchange };
            Ok(MoveTo::Exchange(exchange, key))
        }
        _ => Err(wrong()),
    }
}

/// The numbers of the messages that are meant, if they are named.
fn numbers(body: &Map<String, Value>) -> Result<Option<Vec<u64>>, Refusal> {
    let wrong = || Refusal::bad_request("numbers is no list of numbers of messages");
    let list = match body.get("numbers") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong()),
    };
    if list.len() > NUMBERS_MAX {
        let reason = format!("numbers names {} messages, {NUMBERS_MAX} at most", list.len());
        return Err(Refusal::bad_request(reason));
    }
    let read = |one: &Value| match one {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    list.iter().map(read).collect::<Option<Vec<u64>>>().map(Some).ok_or_else(wrong)
}
