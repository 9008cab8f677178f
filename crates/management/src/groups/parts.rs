//! Answers that are put together from what all groups say.

use super::Groups;
use super::answer::{all, ask_each};
use super::gather::begin;
use super::link::{Question, lost};
use crate::api::exports;
use crate::call::{Call, Outcome};
use crate::http::answer::{Answer, interrupted, is_question, refusal, relayed_bytes};
use crate::http::body::Outgoing;
use crate::refusal::Refusal;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of what one group says.
const PART_BYTES_MAX: usize = 512 << 20;
/// How long it may take to say it.
const PART_TIMEOUT: Duration = Duration::from_secs(60);

/// What a group says.
pub(super) struct Part {
    pub group: u16,
    pub status: StatusCode,
    /// Null if that is nothing.
    pub value: Value,
}

/// Puts together what the groups say that know what is asked for.
pub(super) type Merge = fn(&Call, Vec<Part>) -> Outcome;

/// Answers with what all groups say together.
pub(super) async fn answered(
    mut call: Call,
    answer: Answer,
    groups: &dyn Groups,
    question: Question,
    merge: Merge,
) -> Response<Outgoing> {
    let _begun = match begin(&mut call, answer.route.needs, groups).await {
        Ok(begun) => begun,
        Err(refused) => return refusal(&refused),
    };
    let call = Arc::new(call);
    let mut asked = all(&call);
    if is_question(&answer.route) && !exports(&answer.route, &call) {
        let without_part = groups.without_part();
        asked.retain(|group| !without_part.contains(group));
    }
    let parts = match said(&call, asked, question).await {
        Ok(parts) => parts,
        Err(refused) => return refusal(&refused),
    };
    let missing = |part: &Said| part.head.status() == StatusCode::NOT_FOUND;
    let mut parts: Vec<Said> = match parts.iter().all(missing) {
        true => parts.into_iter().take(1).collect(),
        false => parts.into_iter().filter(|part| !missing(part)).collect(),
    };
    // A check that has failed is an answer.
    let is_refused = |part: &Said| {
        part.head.status().as_u16() >= 400 && part.head.status() != StatusCode::SERVICE_UNAVAILABLE
    };
    if let Some(at) = parts.iter().position(is_refused) {
        let Said { head, bytes, .. } = parts.swap_remove(at);
        return relayed_bytes(head, bytes);
    }
    let merging = tokio::task::spawn_blocking(move || {
        let parts: Result<Vec<Part>, Refusal> = parts.into_iter().map(Said::read).collect();
        answer.send(&call, parts.and_then(|parts| merge(&call, parts)))
    });
    merging.await.unwrap_or_else(|_| interrupted())
}

/// What a group has said, as it came.
pub(super) struct Said {
    group: u16,
    head: Response<()>,
    bytes: Bytes,
}

impl Said {
    /// Reads it.
    pub fn read(self) -> Result<Part, Refusal> {
        let Said { group, head, bytes } = self;
        let value = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes)
                .map_err(|_| lost(group, &"what it says can't be read"))?,
        };
        Ok(Part { group, status: head.status(), value })
    }
}

/// What these groups say.
///
/// # Errors
/// When one of them can't be reached.
pub(super) async fn said(
    call: &Arc<Call>,
    groups: Vec<u16>,
    question: Question,
) -> Result<Vec<Said>, Refusal> {
    let mut parts = Vec::new();
    for (group, answered) in ask_each(call, groups, question).await {
        parts.push(whole(group, answered?).await?);
    }
    Ok(parts)
}

/// All of an answer.
pub(super) async fn whole(group: u16, answered: Response<Incoming>) -> Result<Said, Refusal> {
    let (head, body) = answered.into_parts();
    let reading = Limited::new(body, PART_BYTES_MAX).collect();
    let read = tokio::time::timeout(PART_TIMEOUT, reading).await;
    let read = read.map_err(|_| lost(group, &"it does not come to an end"))?;
    let bytes = read.map_err(|error| lost(group, &error))?.to_bytes();
    Ok(Said { group, head: Response::from_parts(head, ()), bytes })
}

/// What the groups say, where each has to know an answer.
pub(super) fn values(parts: Vec<Part>) -> Result<Vec<Value>, Refusal> {
    parts.into_iter().map(|part| part.known()).collect()
}

impl Part {
    /// What it says, if it is no refusal.
    pub fn known(self) -> Result<Value, Refusal> {
        if self.status.is_success() {
            return Ok(self.value);
        }
        let error = self.value["error"].as_str().unwrap_or("internal_server_error").to_owned();
        Err(Refusal::new(self.status, &error, self.value["reason"].clone()))
    }
}
