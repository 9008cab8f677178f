//! Answers requests of a cluster with several groups.

use super::link::{PART_TIMEOUT, Question};
use super::scopes::{self, Scope};
use super::{Groups, HOME, events, imports, parts, rows};
use crate::api::live::EVENT_STREAM;
use crate::api::vhost_limits::COMPONENT;
use crate::api::{changes_policies, exports};
use crate::call::{Call, object};
use crate::http::answer::{Answer, WHOLE_BYTES_MAX, interrupted, is_question, refusal};
use crate::http::body::Outgoing;
use crate::listener::Listener;
use crate::refusal::Refusal;
use crate::routes::check_vhost;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING};
use hyper::{Response, StatusCode};
use std::sync::Arc;

/// Answers a request, wherever that is done.
pub(crate) async fn answered(call: Call, answer: Answer) -> Response<Outgoing> {
    // Groups that are asked for their parts do not wait again: home may be one of them. A dry run that all groups answer has one
    // of the places for that.
    let has_place = call.inside.is_some() || call.is_set("dry_run") && several(&call).is_some();
    let _exporting = match !has_place && exports(&answer.route, &call) {
        true => call.api.exports.take(call.user(), 1).await,
        false => None,
    };
    answered_anywhere(call, answer).await
}

async fn answered_anywhere(call: Call, answer: Answer) -> Response<Outgoing> {
    let scope = scopes::of(&answer.route);
    let Some(groups) = several(&call) else {
        return match awaited(&call, scope) {
            Some(refused) => refusal(&refused),
            None => answer.to(call).await,
        };
    };
    let (call, named) = match scope {
        Scope::VhostOfBody => match vhost_of_body(call).await {
            Some(read) => read,
            None => return interrupted(),
        },
        _ => (call, None),
    };
    let elsewhere = match scope {
        Scope::Vhost => vhost_of_path(&call),
        Scope::Parameter if !is_of_limits(&call) => vhost_of_path(&call),
        Scope::VhostOfBody => named.and_then(|vhost| elsewhere(&call, &vhost)),
        // A list of one vhost.
        Scope::Rows => {
            let vhost = call.vhost().ok().flatten();
            match vhost.map(|vhost| elsewhere(&call, vhost)) {
                // Home has it, or no group.
                Some(None) => return answer.to(call).await,
                Some(group) => group,
                None => None,
            }
        }
        _ => None,
    };
    if let Some(group) = elsewhere {
        return match pass_on(call, &answer, group).await {
            Ok(answered) => answered,
            Err(refused) => refusal(&refused),
        };
    }
    match scope {
        Scope::Home | Scope::Vhost | Scope::VhostOfBody => answer.to(call).await,
        Scope::Shared | Scope::Parameter => {
            let done = answer.to(call).await;
            if done.status().is_success() && !is_question(&answer.route) {
                groups.changed().await;
            }
            done
        }
        Scope::Rows | Scope::AllRows => rows::answered(call, answer, &*groups).await,
        Scope::Parts(merge) => {
            let question = Question::of_part(&call);
            parts::answered(call, answer, &*groups, question, merge).await
        }
        Scope::WholeParts(merge) => {
            let question = Question::of_part(&call).without_columns(&call);
            parts::answered(call, answer, &*groups, question, merge).await
        }
        Scope::Owner => ask_owner(call).await.unwrap_or_else(|refused| refusal(&refused)),
        Scope::Events => events::answered(call).await.unwrap_or_else(|refused| refusal(&refused)),
        Scope::Import => imports::answered(call, answer, groups).await,
    }
}

/// The groups, if there are several and home is asked.
fn several(call: &Call) -> Option<Arc<dyn Groups>> {
    let groups = call.api.settings.groups.as_ref().filter(|_| call.inside.is_none())?;
    (call.caller.is_some() && !groups.others().is_empty()).then(|| Arc::clone(groups))
}

/// The group of a vhost, if it is not home.
fn elsewhere(call: &Call, vhost: &str) -> Option<u16> {
    call.admin().group_of(vhost).filter(|group| *group != HOME)
}

/// What a group says where home has passed on a request for a vhost that the group has not adopted yet: that nothing is in it would
/// not be true.
fn awaited(call: &Call, scope: Scope) -> Option<Refusal> {
    call.inside.as_ref().filter(|inside| inside.group != HOME)?;
    let vhost = match scope {
        Scope::Vhost | Scope::Parameter | Scope::Rows => call.vhost().ok().flatten()?,
        _ => return None,
    };
    (!call.admin().has_vhost(vhost)).then(|| {
        let group = call.admin().group();
        Refusal::unavailable(&format!(
            "vhost '{vhost}' is on its way to group {group}: try again in a moment"
        ))
    })
}

fn vhost_of_path(call: &Call) -> Option<u16> {
    elsewhere(call, call.text("vhost").ok()?)
}

/// Whether the parameter in the path stands for the limits of a vhost.
fn is_of_limits(call: &Call) -> bool {
    call.bytes("component") == COMPONENT.as_bytes()
}

/// A request, and the vhost that its body names. The body may be long, so no thread that serves connections reads it.
async fn vhost_of_body(call: Call) -> Option<(Call, Option<String>)> {
    let reading = tokio::task::spawn_blocking(move || {
        let body = object(&call.body).ok();
        let vhost = body.and_then(|body| body.get("vhost")?.as_str().map(str::to_owned));
        (call, vhost)
    });
    reading.await.ok()
}

/// All groups, home first.
pub(super) fn all(call: &Call) -> Vec<u16> {
    let others = call.api.settings.groups.as_ref().map(|groups| groups.others());
    [HOME].into_iter().chain(others.into_iter().flatten()).collect()
}

/// Has a group answer in the place of home, which has a look at who asks before.
async fn pass_on(call: Call, answer: &Answer, group: u16) -> Result<Response<Outgoing>, Refusal> {
    let needs = answer.route.needs;
    if changes_policies(&answer.route) {
        return pass_on_in_turn(call, answer).await;
    }
    let checking = tokio::task::spawn_blocking(move || (check_vhost(&call, needs), call));
    let Ok((checked, call)) = checking.await else { return Ok(interrupted()) };
    checked?;
    let api = Arc::clone(&call.api);
    let answered = api.links.ask(&call, group, &Question::of(&call)).await?;
    let head = answered.headers();
    let listener = match head.get(CONTENT_TYPE).is_some_and(|what| what == EVENT_STREAM) {
        true => Some(Listener::of(&call, |caller| caller.need_login().is_ok())?),
        // Home would send in pieces what is longer, or of which it does not know how long it is.
        false
            if answered
                .body()
                .size_hint()
                .exact()
                .is_none_or(|bytes| bytes > WHOLE_BYTES_MAX as u64) =>
        {
            Listener::of_list(&call, needs)
        }
        false => None,
    };
    Ok(match listener {
        Some(listener) => events::passed_on(listener, answered),
        None => relayed(answered),
    })
}

/// The same with a change that has its turn, which is here: the group, where it might wait too, can't ask another program whether
/// its sender still may make it.
async fn pass_on_in_turn(call: Call, answer: &Answer) -> Result<Response<Outgoing>, Refusal> {
    let (call, turn) = answer.at_its_turn(call).await?;
    // It may have waited long, and its vhost may have been moved.
    let Some(group) = vhost_of_path(&call) else {
        // At home it waits for its turn itself.
        drop(turn);
        return Ok(answer.to(call).await);
    };
    let asking = tokio::spawn(async move {
        let answered = call.api.links.ask(&call, group, &Question::of(&call)).await;
        // Not before: the next one has its turn when this one is done, even if its client has gone.
        drop(turn);
        answered
    });
    match asking.await {
        Ok(answered) => answered.map(relayed),
        Err(_) => Ok(interrupted()),
    }
}

/// What a group answers, as it is.
pub(super) fn relayed(mut answered: Response<Incoming>) -> Response<Outgoing> {
    for name in [CONNECTION, TRANSFER_ENCODING] {
        answered.headers_mut().remove(name);
    }
    answered.map(Outgoing::relayed)
}

/// Asks all groups at the same time. Their answers are in the order of groups.
pub(super) async fn ask_all(
    call: &Arc<Call>,
    question: Question,
) -> Vec<(u16, Result<Response<Incoming>, Refusal>)> {
    ask_each(call, all(call), question).await
}

/// The same, of some groups.
pub(super) async fn ask_each(
    call: &Arc<Call>,
    groups: Vec<u16>,
    question: Question,
) -> Vec<(u16, Result<Response<Incoming>, Refusal>)> {
    let question = Arc::new(question);
    let asking: Vec<_> = groups
        .into_iter()
        .map(|group| {
            let (call, question) = (Arc::clone(call), Arc::clone(&question));
            let asking = tokio::spawn(async move {
                let api = Arc::clone(&call.api);
                api.links.ask(&call, group, &question).await
            });
            (group, Aborts(asking))
        })
        .collect();
    let mut answers = Vec::new();
    for (group, mut asking) in asking {
        let answered = (&mut asking.0).await;
        let answered =
            answered.unwrap_or_else(|_| Err(Refusal::internal("a group could not be asked")));
        answers.push((group, answered));
    }
    answers
}

/// A task that is aborted when this is dropped.
struct Aborts<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Aborts<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the group answers that knows what is asked for.
async fn ask_owner(call: Call) -> Result<Response<Outgoing>, Refusal> {
    let call = Arc::new(call);
    let (mut missing, mut unknown) = (None, None);
    let question = Question { patience: Some(PART_TIMEOUT), ..Question::of(&call) };
    for (_, answered) in ask_all(&call, question).await {
        match answered {
            Ok(answered) if answered.status() == StatusCode::NOT_FOUND => {
                missing.get_or_insert(answered);
            }
            Ok(answered) => return Ok(relayed(answered)),
            Err(refused) => {
                unknown.get_or_insert(refused);
            }
        }
    }
    match (unknown, missing) {
        // It may be there.
        (Some(refused), _) => Err(refused),
        (None, Some(missing)) => Ok(relayed(missing)),
        (None, None) => Err(Refusal::not_found()),
    }
}
