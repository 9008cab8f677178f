//! What a policy would change, before it is set.
//!
//! The names of all queues and exchanges are matched, with patterns that may take long for each: in portions, and not for
//! longer than a while.

use super::settings::policy;
use crate::call::{Call, Members, Outcome};
use crate::json::{from_table, name};
use crate::refusal::Refusal;
use crate::reply::{Reply, Work};
use courser_broker::admin::{
    PolicyKind, PolicyPreview, PolicyPreviewing, PreviewedExchange, PreviewedQueue,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long one request may match names. A million queues take a few seconds with usual patterns.
const MATCHING_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it does so before others have their turn, and it is asked again whether its sender still may.
const PORTION_TIME: Duration = Duration::from_millis(50);

/// Answers what would change by a policy of this kind.
pub(super) fn answered(call: &Call, kind: PolicyKind) -> Outcome {
    let body = call.object()?;
    // Without a name it is a new one.
    let policy_name = body.text("name")?.unwrap_or("new policy");
    let policy = policy(policy_name, &body)?;
    let previewing = call.admin().preview_policy(call.text("vhost")?, kind, policy)?;
    Ok(Reply::work(Matching { previewing, spent: Duration::ZERO }))
}

/// A preview that is going on, and the time that it has taken so far.
struct Matching {
    previewing: PolicyPreviewing,
    spent: Duration,
}

impl Work for Matching {
    fn room(&self) -> usize {
        0
    }

    fn go_on(&mut self, _: &Call) -> Result<Option<Reply>, Refusal> {
        let began = Instant::now();
        let mut has_more = self.previewing.go_on();
        while has_more && began.elapsed() < PORTION_TIME {
            has_more = self.previewing.go_on();
        }
        self.spent += began.elapsed();
        match has_more {
            false => Ok(Some(Reply::json(&shown(self.previewing.found())))),
            true if self.spent >= MATCHING_TIME_MAX => Err(too_long(&self.previewing)),
            true => Ok(None),
        }
    }
}

fn too_long(previewing: &PolicyPreviewing) -> Refusal {
    let (looked_at, all) = previewing.progress();
    Refusal::bad_request(format!(
        "the patterns of the policies take too long to be matched with all names: after {} s, {looked_at} of {all} queues and exchanges",
        MATCHING_TIME_MAX.as_secs()
    ))
}

fn shown(found: PolicyPreview) -> Value {
    let PolicyPreview { matching_queues, changed_queues, queues, changed_exchanges, exchanges } =
        found;
    json!({
        "matching_queues": matching_queues,
        "changed_queues": changed_queues,
        "queues": queues.iter().map(queue).collect::<Vec<_>>(),
        "changed_exchanges": changed_exchanges,
        "exchanges": exchanges.iter().map(exchange).collect::<Vec<_>>(),
    })
}

fn queue(queue: &PreviewedQueue) -> Value {
    json!({
        "name": name(&queue.name),
        "policy_before": queue.policy_before,
        "policy_after": queue.policy_after,
        "before": from_table(&queue.before),
        "after": from_table(&queue.after),
    })
}

fn exchange(exchange: &PreviewedExchange) -> Value {
    json!({
        "name": name(&exchange.name),
        "policy_before": exchange.policy_before,
        "policy_after": exchange.policy_after,
    })
}
