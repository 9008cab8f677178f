//! Taking messages from a queue, or looking at those that a consumer would get next.

use super::super::topology::found;
use crate::client::{body, segment};
use crate::failure::{DATA, Failure};
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, flag, option, required};
use hyper::Method;
use serde_json::json;

/// Messages in one answer of the API.
const COUNT_MAX: u64 = 1000;

pub(super) const SPEC: Spec = Spec {
    name: "get",
    about: "Get messages of a queue, which go back to it unless --ack or --reject says otherwise",
    arguments: &[
        required("queue", "The queue's name"),
        option("count", "At most this many, up to 1000 [default: 1]"),
        flag("ack", "Acknowledge them: the queue has them no more"),
        flag("reject", "Reject them: they are dropped, or dead-lettered"),
        flag("requeue", "Put them back where they were, marked as redelivered; the default"),
    ],
    examples: &[
        "get greetings",
        "get greetings --ack",
        "get -p orders failed --count 10 --formatter json",
    ],
    intent: "Getting messages of queue '{queue}' in vhost '{vhost}' ...",
    action: Action::Run(get),
};

fn get(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let count = input.count("count")?.unwrap_or(1);
    if count > COUNT_MAX {
        let why = "'consume --count' takes more";
        return Err(Failure::usage(format!("--count: at most {COUNT_MAX}; {why}")));
    }
    let ends = ["ack", "reject", "requeue"];
    let mode = match ends.map(|end| input.has(end)) {
        [true, false, false] => "ack_requeue_false",
        [false, true, false] => "reject_requeue_false",
        [false, false, _] => "ack_requeue_true",
        _ => return Err(Failure::usage("give one of --ack, --reject and --requeue")),
    };
    let [vhost, queue] = [input.vhost(), input.text("queue")].map(segment);
    let asked = json!({ "count": count, "ackmode": mode, "encoding": "auto" });
    let path = format!("/api/queues/{vhost}/{queue}/get");
    let answer = session.client.call(Method::POST, &path, body(&asked))?;
    if !answer.is_good() && answer.reason().contains("not supported by stream queues") {
        let text =
            "Messages of a stream are not taken: use consume --offset first, or peek_messages";
        return Err(Failure::error(DATA, text));
    }
    let taken = found(session, input, answer)?.json()?;
    let columns = [
        "exchange",
        "routing_key",
        "redelivered",
        "message_count",
        "payload_bytes",
        "payload_encoding",
        "payload",
        "properties",
    ];
    Ok(super::super::lists::rows(&taken, &columns, |_| true))
}
