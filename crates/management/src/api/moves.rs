//! Moving messages to another place, and back to where they died.

use super::messages::short;
use super::peek::may_read;
use super::search::Search;
use crate::call::{Call, Members, Outcome};
use crate::caller::Caller;
use crate::json::name;
use crate::refusal::Refusal;
use crate::reply::{Reply, Work};
use crate::routes::{Changes, Needs, Route, Verb};
use courser_auth::{Resource, Right};
use courser_broker::admin::{Fault, MoveTo, Relocation, Selection, WriteTarget};
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Verb::Post,
    pattern: "/api/queues/{vhost}/{queue}/move",
    needs: Needs::Vhost,
    changes: Changes::Log,
    handler: move_messages,
    doc: "Moves messages: `to` is queue, exchange or origin; numbers, count, contains, header, offset, dry_run.",
}];

/// Messages that one request may name.
const NUMBERS_MAX: usize = 10_000;

fn move_messages(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    may_read(call)?;
    let body = call.object()?;
    let to = place(&body)?;
    may_write_to(call, vhost, &to)?;
    let number = |name: &str| {
        let number = body.integer(name)?.map(usize::try_from).transpose();
        number.map_err(|_| Refusal::bad_request(json!(["not_int", name])))
    };
    let is_trial = body.flag("dry_run", false)?;
    let relocation = call.admin().relocation(vhost, queue, to.clone(), is_trial);
    Ok(Reply::work(Moving {
        caller: call.caller()?.clone(),
        numbers: numbers(&body)?,
        count: number("count")?,
        skip: number("offset")?.unwrap_or(0),
        search: Search::asked(body.text("contains")?, body.text("header")?)?,
        relocation: relocation.map_err(refused)?,
        to,
        is_trial,
    }))
}

/// Refuses at once what does not depend on the message.
fn may_write_to(call: &Call, vhost: &str, to: &MoveTo) -> Result<(), Refusal> {
    let target = match to {
        MoveTo::Queue(name) => Resource::Queue(name.as_bytes()),
        MoveTo::Exchange(name, _) => Resource::Exchange(name.as_bytes()),
        MoveTo::Origin => return Ok(()),
    };
    let write = call.caller()?.check(vhost, Right::Write, target);
    write.map_err(|reason| Refusal::not_authorised(format!("ACCESS_REFUSED - {reason}")))
}

/// A move that is going on.
struct Moving {
    /// With what may be asked for this request, unlike that of the call: messages are asked about until the end.
    caller: Caller,
    relocation: Relocation,
    to: MoveTo,
    is_trial: bool,
    numbers: Option<Vec<u64>>,
    count: Option<usize>,
    skip: usize,
    search: Search,
}

impl Work for Moving {
    fn room(&self) -> usize {
        0
    }

    fn has_changed(&self) -> bool {
        !self.is_trial && self.relocation.done().moved > 0
    }

    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        may_read(call)?;
        let (vhost, caller) = (call.text("vhost")?, &self.caller);
        let may_write = |target: WriteTarget<'_>| {
            let checked = match target {
                WriteTarget::Queue(name) => {
                    caller.check(vhost, Right::Write, Resource::Queue(name))
                }
                WriteTarget::Exchange(name) => {
                    caller.check(vhost, Right::Write, Resource::Exchange(name))
                }
                WriteTarget::Topic { exchange, key } => {
                    caller.check_topic(vhost, Right::Write, exchange, key)
                }
            };
            // What could not be asked was not answered with no.
            (checked.is_ok() || !caller.has_given_up()).then_some(checked.is_ok())
        };
        let finds = |message: &_| self.search.finds(message);
        let selection = Selection {
            numbers: self.numbers.as_deref(),
            count: self.count,
            filter: (!self.search.is_empty()).then_some(&finds),
            skip: self.skip,
        };
        if self.relocation.go_on(&selection, &may_write).map_err(refused)? {
            return Ok(None);
        }
        let done = self.relocation.done();
        if !self.is_trial
            && let Some(suppressed) = call.api.moves_log.allow(call.api.now_ms())
        {
            let queue = String::from_utf8_lossy(call.bytes("queue"));
            let (user, to, moved) = (caller.name(), shown(&self.to), done.moved);
            tracing::info!(user, vhost, %queue, to, moved, suppressed, "messages moved");
        }
        let reply = Reply::json(&json!({
            "moved": done.moved,
            "without_place": done.without_place,
            "forbidden": done.forbidden,
            "looked_at": done.looked_at,
            "partial": done.is_partial,
            "next": done.is_partial.then_some(done.next),
            "dry_run": self.is_trial,
        }));
        Ok(Some(if self.is_trial { reply.settled() } else { reply }))
    }
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
