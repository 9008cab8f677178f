//! Making, changing and deleting vhosts.

use crate::call::{Call, Members, Outcome};
use crate::groups;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_broker::admin::{Fault, VhostSettings};
use hyper::StatusCode;
use serde_json::{Map, Value};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/vhosts/{vhost}",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: put,
        doc: "Makes a vhost, which the caller may then enter, or changes what is said of one; `group` says which group of the cluster a new one goes to.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/vhosts/{vhost}",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: delete,
        doc: "Deletes a vhost with everything in it.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/vhosts/{vhost}/deletion/protection",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: protect,
        doc: "Keeps a vhost from being deleted.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/vhosts/{vhost}/deletion/protection",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: unprotect,
        doc: "Lets a vhost be deleted again.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/vhosts/{vhost}/start/{node}",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: start,
        doc: "Starts a vhost on a node: all vhosts run.",
    },
];

/// What a body says of a vhost. What it does not say stays as it is.
pub(crate) struct Said {
    description: Option<String>,
    tags: Option<Vec<String>>,
    /// `Some(None)` for the usual one.
    default_queue_type: Option<Option<String>>,
    tracing: Option<bool>,
    protected: Option<bool>,
}

impl Said {
    /// # Errors
    /// What can't be meant.
    pub fn read(body: &Map<String, Value>) -> Result<Self, Refusal> {
        let said = |name: &str| body.get(name).filter(|value| !value.is_null());
        let description = said("description").map(|_| body.required_text("description"));
        let flag = |name: &str| said(name).map(|_| body.flag(name, false)).transpose();
        let kind = said("default_queue_type").or_else(|| said("defaultqueuetype"));
        Ok(Said {
            description: description.transpose()?.map(str::to_owned),
            tags: said("tags").map(tags).transpose()?,
            default_queue_type: kind.map(queue_type).transpose()?,
            tracing: flag("tracing")?,
            protected: flag("protected_from_deletion")?,
        })
    }

    /// Changes what is said.
    pub fn apply(self, settings: &mut VhostSettings) {
        fn set<T>(member: &mut T, said: Option<T>) {
            if let Some(said) = said {
                *member = said;
            }
        }
        set(&mut settings.description, self.description);
        set(&mut settings.tags, self.tags);
        set(&mut settings.default_queue_type, self.default_queue_type);
        set(&mut settings.tracing, self.tracing);
        set(&mut settings.protected, self.protected);
    }
}

fn tags(value: &Value) -> Result<Vec<String>, Refusal> {
    let not_tags = || Refusal::bad_request("tags is neither a list of texts nor a text");
    match value {
        Value::String(text) => {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Ok(tags.map(str::to_owned).collect())
        }
        Value::Array(list) => {
            let texts = list.iter().map(|tag| tag.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(not_tags)
        }
        _ => Err(not_tags()),
    }
}

/// The type of queues declared without one, if it is not the usual.
fn queue_type(value: &Value) -> Result<Option<String>, Refusal> {
    match value.as_str() {
        Some("" | "undefined" | "classic") => Ok(None),
        Some(kind @ ("quorum" | "stream")) => Ok(Some(kind.to_owned())),
        Some(other) => Err(Refusal::bad_request(format!("{other} is not a valid queue type"))),
        None => Err(Refusal::bad_request(format!("{value} is not a valid queue type"))),
    }
}

fn put(call: &Call) -> Outcome {
    let name = call.text("vhost")?;
    let body = call.object()?;
    let said = Said::read(&body)?;
    let wanted = groups::wanted(&body)?;
    let user = &call.caller()?.user;
    let founder = user.is_kept().then_some(&*user.name);
    let is_new = change_placed(call, name, wanted, founder, |settings| said.apply(settings))?;
    Ok(Reply::put(is_new))
}

/// Changes a vhost, or makes it in a group, where `founder` may do everything in it. Returns whether it is new.
///
/// # Errors
/// When it can't be in the group that is wanted.
pub(crate) fn change_placed(
    call: &Call,
    name: &str,
    wanted: Option<u16>,
    founder: Option<&str>,
    change: impl FnOnce(&mut VhostSettings),
) -> Result<bool, Refusal> {
    if let Some(none) = wanted.filter(|wanted| *wanted >= groups::count(call)) {
        return Err(groups::no_group(none));
    }
    let changed = call.admin().place_vhost(name, &groups::led(call), founder, |settings| {
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
    call.admin().change_known_vhost(name, |settings| settings.protected = protected)?;
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
