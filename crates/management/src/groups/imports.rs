//! Definitions that are imported into several groups: users, permissions, vhosts and global parameters at home, and when the others know
//! of these, what is in vhosts into the group of each.

use super::answer::{all, relayed};
use super::documents::{IN_VHOSTS, merged};
use super::gather::place;
use super::link::Question;
use super::parts::{self, whole};
use super::{Groups, HOME};
use crate::api::vhost_limits::COMPONENT;
use crate::api::{definitions_file, import_of, imported_with, tell_plan};
use crate::call::Call;
use crate::definitions::ImportError;
use crate::http::answer::{Answer, durable, interrupted, look_again, refusal, set_partial};
use crate::http::body::Outgoing;
use crate::refusal::Refusal;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Lists of what home has, and the others a copy of.
const SHARED: [&str; 5] =
    ["users", "vhosts", "permissions", "topic_permissions", "global_parameters"];

/// How long an import waits for groups to have what is at home by then: where that is much, they get it one after the other.
const HELD_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Where a group takes its part of definitions.
const PART: &str = "/api/definitions";

/// Imports definitions, or says what that would change.
pub(super) async fn answered(
    mut call: Call,
    answer: Answer,
    groups: Arc<dyn Groups>,
) -> Response<Outgoing> {
    let _place = match place(&call).await {
        Ok(place) => place,
        Err(refused) => return refusal(&refused),
    };
    // The place may have been long in coming.
    if let Err(refused) = look_again(&mut call, answer.route.needs) {
        return refusal(&refused);
    }
    let call = Arc::new(call);
    let done = match call.is_set("dry_run") {
        true => tried(&call, answer).await,
        false => imported(&call, answer, &*groups).await,
    };
    done.unwrap_or_else(|refused| refusal(&refused))
}

/// Says what an import would change in what all groups have.
async fn tried(call: &Arc<Call>, answer: Answer) -> Result<Response<Outgoing>, Refusal> {
    // What is wrong with the file is said without asking the groups.
    aside(call, |call| definitions_file(call).map(drop)).await?;
    let mut question = Question::of_part(call);
    (question.method, question.body) = (Method::GET, Bytes::new());
    PART.clone_into(&mut question.target);
    let mut documents = Vec::new();
    for said in parts::said(call, all(call), question).await? {
        documents.push(said.read()?.known()?);
    }
    let call = Arc::clone(call);
    let comparing = tokio::task::spawn_blocking(move || {
        let planned = merged(documents).and_then(|now| tell_plan(&call, &now));
        answer.send(&call, planned)
    });
    Ok(comparing.await.unwrap_or_else(|_| interrupted()))
}

/// Imports what a file describes. What came before an error stays.
async fn imported(
    call: &Arc<Call>,
    answer: Answer,
    groups: &dyn Groups,
) -> Result<Response<Outgoing>, Refusal> {
    let reading = aside(call, |call| {
        let mut document = read(definitions_file(call)?)?;
        let shared = shared(&mut document);
        Ok((document, Value::Object(shared).to_string()))
    });
    let (document, shared) = reading.await?;
    let warnings = at_home(call, shared).await?;
    match in_vhosts(call, groups, document, warnings).await.map_err(Refusal::partial)? {
        Sent::Done(warnings) => Ok(answer.send(call, Ok(imported_with(call, &warnings)))),
        Sent::Refused(mut refused) => {
            set_partial(&mut refused);
            Ok(refused)
        }
    }
}

/// Imports what is in vhosts, behind what gave these warnings, once all groups that get a part know of the vhosts.
async fn in_vhosts(
    call: &Arc<Call>,
    groups: &dyn Groups,
    document: Map<String, Value>,
    mut warnings: Vec<String>,
) -> Result<Sent, Refusal> {
    let known = all(call);
    let (document, vhosts) = aside(call, |_| {
        let vhosts = vhosts(&document);
        Ok((document, vhosts))
    })
    .await?;
    until_held(groups, |group| vhosts.iter().any(|vhost| group_of(call, vhost) == group)).await?;
    // Not before: a vhost may have been moved meanwhile.
    let dividing = aside(call, |call| {
        let by_group = by_group(document, call).into_iter();
        let texts = by_group.map(|(group, rows)| (group, Value::Object(rows).to_string()));
        Ok(texts.collect::<Vec<(u16, String)>>())
    });
    let parts = dividing.await?;
    for (group, rows) in parts {
        if group == HOME {
            warnings.extend(at_home(call, rows).await?);
        } else if known.contains(&group) {
            aside(call, Call::check_asker).await?;
            match sent(call, group, rows).await? {
                Sent::Done(more) => warnings.extend(more),
                refused @ Sent::Refused(_) => return Ok(refused),
            }
        }
    }
    Ok(Sent::Done(warnings))
}

/// Waits until the groups that get a part have what home has.
async fn until_held(groups: &dyn Groups, gets_part: impl Fn(u16) -> bool) -> Result<(), Refusal> {
    let until = Instant::now() + HELD_TIMEOUT;
    loop {
        let Some(group) = groups.changed().await.into_iter().find(|group| gets_part(*group)) else {
            return Ok(());
        };
        if Instant::now() >= until {
            let reason = format!(
                "group {group} does not know the users and vhosts of the file yet: import it again later"
            );
            return Err(Refusal::unavailable(&reason));
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Imports definitions at home, as long as who asks may. Returns the warnings once they are durable.
async fn at_home(call: &Arc<Call>, document: String) -> Result<Vec<String>, Refusal> {
    // An import goes on when its client has gone, and keeps this place until it is done.
    let place = call.api.answers.take(call.user(), 1).await;
    let place = place.ok_or_else(|| Refusal::internal("the API ends"))?;
    let importing = aside(call, move |call| {
        // No client may have told the broker the time lately.
        call.admin().set_time(call.api.now_ms());
        let imported = import_of(call, document.as_bytes(), None);
        drop(place);
        imported
    });
    let done = importing.await?;
    durable(call).await?;
    Ok(done.warnings)
}

/// Works on a file, which may be long, away from the threads that serve connections.
async fn aside<T: Send + 'static>(
    call: &Arc<Call>,
    work: impl FnOnce(&Call) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let call = Arc::clone(call);
    let working = tokio::task::spawn_blocking(move || work(&call));
    working.await.unwrap_or_else(|_| Err(Refusal::internal("the request could not be finished")))
}

fn read(text: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(document)) => Ok(document),
        _ => Err(Refusal::bad_request(ImportError::no_json().to_string())),
    }
}

/// Takes out of a document what home has: lists of its own, and the limits of vhosts among parameters.
fn shared(document: &mut Map<String, Value>) -> Map<String, Value> {
    let own = SHARED.iter().filter_map(|list| document.remove_entry(*list));
    let mut shared: Map<String, Value> = own.collect();
    if let Some(Value::Array(parameters)) = document.get_mut("parameters") {
        let (limits, others) = std::mem::take(parameters)
            .into_iter()
            .partition(|row: &Value| row["component"].as_str() == Some(COMPONENT));
        *parameters = others;
        shared.insert("parameters".to_owned(), Value::Array(limits));
    }
    shared
}

/// The vhosts that rows are for.
fn vhosts(document: &Map<String, Value>) -> BTreeSet<String> {
    let lists = IN_VHOSTS.iter().filter_map(|list| document.get(*list)?.as_array());
    lists.flatten().filter_map(|row| row["vhost"].as_str()).map(str::to_owned).collect()
}

/// The group of a vhost. What is in none that there is goes to home, which says so.
fn group_of(call: &Call, vhost: &str) -> u16 {
    call.admin().group_of(vhost).unwrap_or(HOME)
}

/// What is in vhosts, by the group of each.
fn by_group(document: Map<String, Value>, call: &Call) -> BTreeMap<u16, Map<String, Value>> {
    let mut by_group: BTreeMap<u16, Map<String, Value>> = BTreeMap::new();
    for (list, value) in document {
        match value {
            Value::Array(rows) if IN_VHOSTS.contains(&list.as_str()) => {
                for row in rows {
                    let group = row["vhost"].as_str().map(|vhost| group_of(call, vhost));
                    push(&mut by_group, group.unwrap_or(HOME), &list, row);
                }
            }
            // One that is no list is refused there as well.
            other => drop(by_group.entry(HOME).or_default().insert(list, other)),
        }
    }
    by_group
}

fn push(rows: &mut BTreeMap<u16, Map<String, Value>>, group: u16, list: &str, row: Value) {
    let document = rows.entry(group).or_default();
    let rows = document.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(rows) = rows {
        rows.push(row);
    }
}

/// What a group has made of definitions.
enum Sent {
    /// They are imported, with these warnings.
    Done(Vec<String>),
    /// It refuses them, with this answer.
    Refused(Response<Outgoing>),
}

/// Has a group import definitions.
async fn sent(call: &Call, group: u16, document: String) -> Result<Sent, Refusal> {
    // Passwords of many users take long to be hashed.
    let mut question = Question { patience: None, ..Question::of_part(call) };
    question.target = format!("{PART}?warnings=true");
    question.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    question.body = document.into();
    let answered = call.api.links.ask(call, group, &question).await?;
    if !answered.status().is_success() {
        return Ok(Sent::Refused(relayed(answered)));
    }
    // A node of an earlier version gives none.
    let said = whole(group, answered).await?.read()?.value;
    let warnings = said["warnings"].as_array().into_iter().flatten();
    Ok(Sent::Done(warnings.filter_map(|one| one.as_str().map(str::to_owned)).collect()))
}
