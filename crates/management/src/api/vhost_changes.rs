//! Making, changing and deleting vhosts.

use crate::call::{Call, Members, Outcome};
use crate::groups;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route, Verb};
use courser_auth::Permission;
use courser_broker::admin::{Fault, VhostSettings};
use hyper::StatusCode;
use serde_json::{Map, Value};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/vhosts/{vhost}",
        needs: Needs::Administrator,
        handler: put,
        doc: "Makes a vhost, which the caller may then enter, or changes what is said of one; `group` says which group of the cluster a new one goes to.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/vhosts/{vhost}",
        needs: Needs::Administrator,
        handler: delete,
        doc: "Deletes a vhost with everything in it.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/vhosts/{vhost}/deletion/protection",
        needs: Needs::Administrator,
        handler: protect,
        doc: "Keeps a vhost from being deleted.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/vhosts/{vhost}/deletion/protection",
        needs: Needs::Administrator,
        handler: unprotect,
        doc: "Lets a vhost be deleted again.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/vhosts/{vhost}/start/{node}",
        needs: Needs::Administrator,
        handler: start,
        doc: "Starts a vhost on a node: all vhosts run.",
    },
];

/// What a body says of a vhost.
pub(crate) struct Said {
    description: String,
    tags: Vec<String>,
    default_queue_type: Option<String>,
    /// Stays as it is without.
    tracing: Option<bool>,
    /// Stays as it is without.
    protected: Option<bool>,
}

impl Said {
    /// # Errors
    /// What can't be meant.
    pub fn read(body: &Map<String, Value>) -> Result<Self, Refusal> {
        let description = match body.get("description") {
            None | Some(Value::Null) => String::new(),
            Some(_) => body.required_text("description")?.to_owned(),
        };
        let not_tags = || Refusal::bad_request("tags is neither a list of texts nor a text");
        let tags: Vec<String> = match body.get("tags") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => text
                .split(',')
                .map(|tag| tag.trim().to_owned())
                .filter(|tag| !tag.is_empty())
                .collect(),
            Some(Value::Array(list)) => {
                let texts = list.iter().map(|tag| tag.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or_else(not_tags)?
            }
            Some(_) => return Err(not_tags()),
        };
        let flag = |name: &str| {
            let is_said = body.get(name).is_some_and(|value| !value.is_null());
            is_said.then(|| body.flag(name, false)).transpose()
        };
        Ok(Said {
            description,
            tags,
            default_queue_type: queue_type(body)?,
            tracing: flag("tracing")?,
            protected: flag("protected_from_deletion")?,
        })
    }

    /// Description, tags and type of queues that are not said are cleared.
    pub fn apply(self, settings: &mut VhostSettings) {
        settings.description = self.description;
        settings.tags = self.tags;
        settings.default_queue_type = self.default_queue_type;
        settings.tracing = self.tracing.unwrap_or(settings.tracing);
        settings.protected = self.protected.unwrap_or(settings.protected);
    }
}

/// The type of queues declared without one, if a body names one that is not the usual.
fn queue_type(body: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    match body.get("default_queue_type").or_else(|| body.get("defaultqueuetype")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(kind)) => match kind.as_str() {
            "" | "undefined" | "classic" => Ok(None),
            "quorum" | "stream" => Ok(Some(kind.clone())),
            other => Err(Refusal::bad_request(format!("{other} is not a valid queue type"))),
        },
        Some(other) => Err(Refusal::bad_request(format!("{other} is not a valid queue type"))),
    }
}

fn put(call: &Call) -> Outcome {
    let name = call.text("vhost")?;
    let body = call.object()?;
    let said = Said::read(&body)?;
    let wanted = groups::wanted(&body)?;
    let is_new = change_placed(call, name, wanted, |settings| said.apply(settings))?;
    let user = &call.caller()?.user;
    if is_new && user.is_kept() {
        call.admin().set_permission(&user.name, name, Permission::all())?;
    }
    Ok(Reply::put(is_new))
}

/// Changes a vhost, or makes it in a group. Returns whether it is new.
///
/// # Errors
/// When it can't be in the group that is wanted.
pub(crate) fn change_placed(
    call: &Call,
    name: &str,
    wanted: Option<u16>,
    change: impl FnOnce(&mut VhostSettings),
) -> Result<bool, Refusal> {
    if let Some(none) = wanted.filter(|wanted| *wanted >= groups::count(call)) {
        return Err(groups::no_group(none));
    }
    let changed = call.admin().place_vhost(name, &groups::led(call), |settings| {
        change(settings);
        settings.group = wanted.unwrap_or(settings.group);
    });
    Ok(changed?)
}

fn delete(call: &Call) -> Outcome {
    let deleted = call.admin().delete_vhost(call.text("vhost")?);
    deleted.map_err(|fault: Fault| match fault.code {
        406 => {
            Refusal::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", fault.explanation)
        }
        _ => fault.into(),
    })?;
    Ok(Reply::done())
}

fn protect(call: &Call) -> Outcome {
    set_protected(call, true)
}

fn unprotect(call: &Call) -> Outcome {
    set_protected(call, false)
}

fn set_protected(call: &Call, protected: bool) -> Outcome {
    let name = call.text("vhost")?;
    call.admin().vhost(name).ok_or_else(Refusal::not_found)?;
    call.admin().change_vhost(name, |settings| settings.protected = protected)?;
    Ok(Reply::done())
}

fn start(call: &Call) -> Outcome {
    let (vhost, node) = (call.text("vhost")?, call.text("node")?);
    call.admin().vhost(vhost).ok_or_else(Refusal::not_found)?;
    match node == call.api.settings.node.name {
        true => Ok(Reply::done()),
        false => Err(Refusal::bad_request(format!("Node {node} is not a cluster member"))),
    }
}
