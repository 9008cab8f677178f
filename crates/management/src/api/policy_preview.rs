//! What a policy would change, before it is set.
//!
//! The names of all queues and exchanges are matched, with patterns that may take long for each: in portions, and not for
//! longer than a while. What a preview keeps meanwhile is bounded for each user: one that waits to begin has compiled nothing.

use super::settings::policy;
use crate::call::{Call, Members, Outcome};
use crate::json::{from_table, name};
use crate::refusal::Refusal;
use crate::reply::{Reply, Work};
use courser_broker::admin::{
    Held, Policy, PolicyKind, PolicyPreview, PolicyPreviewing, PreviewedExchange, PreviewedQueue,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long one request may match names. A million queues take a few seconds with usual patterns.
const MATCHING_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it does so before others have their turn, and it is asked again whether its sender still may.
const PORTION_TIME: Duration = Duration::from_millis(50);
/// The most that a preview keeps: the policy, and its pattern with what is kept to match it faster.
const PREVIEW_BYTES_MAX: usize = 2 << 20;

/// Answers what would change by a policy of this kind.
pub(super) fn answered(call: &Call, kind: PolicyKind) -> Outcome {
    let body = call.object()?;
    // Without a name it is a new one.
    let policy_name = body.text("name")?.unwrap_or("new policy");
    let wanted = (kind, policy(policy_name, &body)?);
    Ok(Reply::work(Matching { wanted, begun: None, spent: Duration::ZERO }))
}

/// A preview that is going on, once there is room for it, and the time that it has taken so far.
struct Matching {
    wanted: (PolicyKind, Policy),
    /// With what it keeps.
    begun: Option<(PolicyPreviewing, Held)>,
    spent: Duration,
}

impl Matching {
    /// The preview, which its first portion begins.
    fn previewing(&mut self, call: &Call) -> Result<&mut PolicyPreviewing, Refusal> {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => {
                let (kind, policy) = self.wanted.clone();
                let previewing = call.admin().preview_policy(call.text("vhost")?, kind, policy)?;
                let held = call.admin().hold(previewing.bytes());
                (previewing, held)
            }
        };
        Ok(&mut self.begun.insert(begun).0)
    }
}

impl Work for Matching {
    fn room(&self) -> usize {
        PREVIEW_BYTES_MAX
    }

    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        let (began, spent) = (Instant::now(), self.spent);
        let previewing = self.previewing(call)?;
        let mut has_more = previewing.go_on();
        while has_more && began.elapsed() < PORTION_TIME {
            has_more = previewing.go_on();
        }
        let spent = spent + began.elapsed();
        let done = match has_more {
            false => Ok(Some(Reply::json(&shown(previewing.found())))),
            true if spent >= MATCHING_TIME_MAX => Err(too_long(previewing)),
            true => Ok(None),
        };
        self.spent = spent;
        done
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
