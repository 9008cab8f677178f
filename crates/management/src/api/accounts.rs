//! Making and changing users and permissions.

use super::get;
use crate::call::{Call, Members, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Handler, Needs, Route, Verb};
use courser_auth::{
    AccountError, PasswordHash, Permission, TAGS_MAX, Tags, TopicPermission, UserLimits,
};
use courser_broker::admin::AccountsError;
use hyper::StatusCode;
use hyper::header::IF_NONE_MATCH;
use serde_json::{Map, Value, json};

/// All of them are for administrators.
const fn route(method: Verb, pattern: &'static str, handler: Handler, doc: &'static str) -> Route {
    let (needs, changes) = (Needs::Administrator, Changes::Log);
    Route { method, pattern, needs, changes, handler, doc }
}

pub(crate) const ROUTES: &[Route] = &[
    route(Verb::Put, "/api/users/{user}", put_user, "Makes or replaces a user."),
    route(Verb::Put, "/api/users/{user}/tags", put_tags, "Gives a user other tags, and no more."),
    route(
        Verb::Put,
        "/api/users/{user}/password",
        put_password,
        "Gives a user another password, and no more.",
    ),
    route(Verb::Delete, "/api/users/{user}", delete_user, "Deletes a user."),
    route(Verb::Post, "/api/users/bulk-delete", delete_users, "Deletes several users."),
    route(
        Verb::Put,
        "/api/permissions/{vhost}/{user}",
        put_permission,
        "Sets what a user may do in a vhost.",
    ),
    route(
        Verb::Delete,
        "/api/permissions/{vhost}/{user}",
        delete_permission,
        "Keeps a user out of a vhost.",
    ),
    route(
        Verb::Put,
        "/api/topic-permissions/{vhost}/{user}",
        put_topic_permission,
        "Sets which routing keys a user may use with an exchange.",
    ),
    route(
        Verb::Delete,
        "/api/topic-permissions/{vhost}/{user}",
        delete_topic_permissions,
        "Lets a user use all routing keys in a vhost.",
    ),
    route(
        Verb::Put,
        "/api/topic-permissions/{vhost}/{user}/{exchange}",
        put_topic_permission,
        "The same, for the exchange in the path.",
    ),
    route(
        Verb::Delete,
        "/api/topic-permissions/{vhost}/{user}/{exchange}",
        delete_topic_permissions,
        "Lets a user use all routing keys with an exchange.",
    ),
    route(Verb::Put, "/api/user-limits/{user}/{name}", put_limit, "Sets a limit of a user."),
    route(Verb::Delete, "/api/user-limits/{user}/{name}", delete_limit, "Lifts a limit of a user."),
    get(
        "/api/auth/hash_password/{password}",
        Needs::Administrator,
        hash_password,
        "The hash of a password, as RabbitMQ keeps it.",
    ),
];

/// What a name says in definitions and bodies that give no algorithm.
const DEFAULT_ALGORITHM: &str = "rabbit_password_hashing_sha256";

fn put_user(call: &Call) -> Outcome {
    let name = call.text("user")?;
    let body = call.object()?;
    let (password, tags) = (password(call, &body)?, tags(&body)?);
    let limits = body.get("limits").map(user_limits).transpose()?;
    // They are for a new user only.
    let permissions = match permissions(&body) {
        Err(refused) if call.admin().accounts().user(name).is_none() => return Err(refused),
        read => read.unwrap_or_default(),
    };
    let only_new = call.headers.get(IF_NONE_MATCH).is_some_and(|tag| tag == "*");
    let put = call.admin().put_user(name, &permissions, |user| {
        // Nothing else is changed meanwhile.
        if only_new && call.admin().accounts().user(name).is_some() {
            return Err(AccountError::UserExists(name.to_owned()));
        }
        (user.password, user.tags) = (password, tags);
        // What is not said stays as it is.
        user.limits = limits.unwrap_or(user.limits);
        Ok(())
    });
    Ok(Reply::put(put.map_err(known_pair)?))
}

/// What a new user may do, by vhost.
fn permissions(body: &Map<String, Value>) -> Result<Vec<(String, Permission)>, Refusal> {
    let rows = match body.get("permissions") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(rows)) if rows.is_empty() => return Ok(Vec::new()),
        Some(Value::Object(rows)) => rows,
        Some(_) => return Err(Refusal::bad_request("permissions is no object")),
    };
    let read = |(vhost, row): (&String, &Value)| {
        let row = row.as_object();
        let row = row.ok_or_else(|| Refusal::bad_request("a permission is no object"))?;
        Ok((vhost.clone(), permission(row)?))
    };
    rows.iter().map(read).collect()
}

/// Everything else of the user stays, its password among it.
fn put_tags(call: &Call) -> Outcome {
    let tags = tags(&call.object()?)?;
    call.admin().change_user(call.text("user")?, |user| {
        user.tags = tags;
        Ok(())
    })?;
    Ok(Reply::done())
}

/// Everything else of the user stays, its tags among it.
fn put_password(call: &Call) -> Outcome {
    let body = call.object()?;
    if !body.contains_key("password") && !body.contains_key("password_hash") {
        return Err(Refusal::key_missing(&["password"]));
    }
    let password = password(call, &body)?;
    call.admin().change_user(call.text("user")?, |user| {
        user.password = password;
        Ok(())
    })?;
    Ok(Reply::done())
}

fn password(call: &Call, body: &Map<String, Value>) -> Result<PasswordHash, Refusal> {
    let algorithm = match body.get("hashing_algorithm") {
        None | Some(Value::Null) => DEFAULT_ALGORITHM,
        Some(_) => body.required_text("hashing_algorithm")?,
    };
    match (body.get("password"), body.get("password_hash")) {
        (Some(_), Some(_)) => {
            Err(Refusal::bad_request("both_password_and_password_hash_are_provided"))
        }
        (Some(_), None) => {
            let password = body.required_text("password")?;
            Ok(PasswordHash::new(password.as_bytes(), call.api.settings.accounts.hashing())?)
        }
        (None, Some(_)) => {
            let hash = body.required_text("password_hash")?;
            PasswordHash::decode(hash, Some(algorithm)).map_err(|error| match error {
                AccountError::Hash(why) if why.contains("base64") => {
                    Refusal::bad_request(json!(["not_base64", hash]))
                }
                other => other.into(),
            })
        }
        (None, None) => Ok(PasswordHash::none()),
    }
}

fn tags(body: &Map<String, Value>) -> Result<Tags, Refusal> {
    let not_tags = || Refusal::bad_request("tags is neither a list of texts nor a text");
    let list: Vec<&str> = match body.get("tags") {
        None => return Err(Refusal::bad_request("tags_not_present")),
        Some(Value::String(text)) => text.split(',').collect(),
        Some(Value::Array(list)) => {
            list.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(not_tags)?
        }
        Some(_) => return Err(not_tags()),
    };
    if list.len() > TAGS_MAX {
        let reason = format!("A user can have at most {TAGS_MAX} tags (received {})", list.len());
        return Err(Refusal::bad_request(reason));
    }
    Ok(Tags::new(list)?)
}

fn user_limits(value: &Value) -> Result<UserLimits, Refusal> {
    let mut limits = UserLimits::default();
    let empty = Map::new();
    let members = match value {
        Value::Object(members) => members,
        Value::Array(list) if list.is_empty() => &empty,
        _ => return Err(Refusal::bad_request("limits is no object")),
    };
    for (name, value) in members {
        let value = value.as_i64().ok_or_else(|| unrecognised(name, value))?;
        limits.set(name, value)?;
    }
    Ok(limits)
}

fn delete_user(call: &Call) -> Outcome {
    call.admin().delete_user(call.text("user")?)?;
    Ok(Reply::done())
}

/// Those that are protected stay, and those that there are not are gone.
fn delete_users(call: &Call) -> Outcome {
    let body = call.object()?;
    let Some(Value::Array(names)) = body.get("users") else {
        return Err(Refusal::key_missing(&["users"]));
    };
    let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
    let mut has_changed = false;
    for name in names.ok_or_else(|| Refusal::bad_request("users is no list of names"))? {
        match call.admin().delete_user(name) {
            Err(AccountsError::Refused(AccountError::Protected(_) | AccountError::NoUser(_))) => {}
            Ok(()) => has_changed = true,
            Err(error) if has_changed => return Err(Refusal::from(error).partial()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Reply::done())
}

/// Who or what is missing is said the same way of both.
fn known_pair(error: AccountsError) -> Refusal {
    match error {
        AccountsError::NoVhost(_) | AccountsError::Refused(AccountError::NoUser(_)) => {
            Refusal::bad_request("vhost_or_user_not_found")
        }
        AccountsError::Refused(error @ AccountError::UserExists(_)) => {
            let (status, reason) = (StatusCode::PRECONDITION_FAILED, error.to_string());
            Refusal::new(status, "precondition_failed", reason)
        }
        other => other.into(),
    }
}

fn permission(body: &Map<String, Value>) -> Result<Permission, Refusal> {
    need(body, &["configure", "write", "read"])?;
    Ok(Permission {
        configure: body.required_text("configure")?.to_owned(),
        write: body.required_text("write")?.to_owned(),
        read: body.required_text("read")?.to_owned(),
    })
}

/// That all of these members are there.
pub(super) fn need(body: &Map<String, Value>, names: &[&str]) -> Result<(), Refusal> {
    let missing: Vec<&str> =
        names.iter().filter(|name| !body.contains_key(**name)).copied().collect();
    if missing.is_empty() { Ok(()) } else { Err(Refusal::key_missing(&missing)) }
}

fn put_permission(call: &Call) -> Outcome {
    let (vhost, user) = (call.text("vhost")?, call.text("user")?);
    let permission = permission(&call.object()?)?;
    let set = call.admin().set_permission(user, vhost, permission);
    Ok(Reply::put(set.map_err(known_pair)?))
}

fn delete_permission(call: &Call) -> Outcome {
    let (vhost, user) = (call.text("vhost")?, call.text("user")?);
    match call.admin().clear_permission(user, vhost)? {
        true => Ok(Reply::done()),
        false => Err(Refusal::not_found()),
    }
}

fn put_topic_permission(call: &Call) -> Outcome {
    let (vhost, user) = (call.text("vhost")?, call.text("user")?);
    let mut body = call.object()?;
    if call.has("exchange") {
        let named = call.text("exchange")?;
        let said = body.entry("exchange").or_insert_with(|| named.into());
        if said != named {
            return Err(Refusal::bad_request("The body names another exchange than the path"));
        }
    }
    need(&body, &["exchange", "write", "read"])?;
    let exchange = body.required_text("exchange")?;
    let permission = TopicPermission {
        write: body.required_text("write")?.to_owned(),
        read: body.required_text("read")?.to_owned(),
    };
    let set = call.admin().set_topic_permission(user, vhost, exchange, permission);
    Ok(Reply::put(set.map_err(known_pair)?))
}

fn delete_topic_permissions(call: &Call) -> Outcome {
    let (vhost, user) = (call.text("vhost")?, call.text("user")?);
    let exchange = if call.has("exchange") { Some(call.text("exchange")?) } else { None };
    match call.admin().clear_topic_permissions(user, vhost, exchange)? {
        true => Ok(Reply::done()),
        false => Err(Refusal::not_found()),
    }
}

/// The whole number that a body gives a limit.
pub(super) fn limit_value(call: &Call, name: &str) -> Result<i64, Refusal> {
    let body = call.object()?;
    let value = body.get("value").ok_or_else(|| Refusal::key_missing(&["value"]))?;
    let integer = body.integer("value").ok().flatten();
    integer.ok_or_else(|| {
        let shown = erlang(value);
        let reason = format!("{name} should be a number, actually was {shown}");
        Refusal::bad_request(format!("Validation failed\n\n{reason}\n"))
    })
}

/// A value as RabbitMQ prints it in its reasons.
pub(super) fn erlang(value: &Value) -> String {
    match value {
        Value::String(text) => format!("<<\"{text}\">>"),
        other => other.to_string(),
    }
}

fn unrecognised(name: &str, value: &Value) -> Refusal {
    let value = erlang(value);
    Refusal::bad_request(format!("Unrecognised terms [{{<<\"{name}\">>,{value}}}] in user-limits"))
}

/// An unknown user or limit is a mistake in the request, not a missing object.
fn limit_refused(name: &str, value: i64) -> impl Fn(AccountsError) -> Refusal {
    move |error| match error {
        AccountsError::Refused(AccountError::NoUser(user)) => {
            Refusal::bad_request(json!(["no_such_user", user]))
        }
        AccountsError::Refused(AccountError::Limit(_)) => unrecognised(name, &value.into()),
        other => other.into(),
    }
}

fn put_limit(call: &Call) -> Outcome {
    let (user, name) = (call.text("user")?, call.text("name")?);
    let value = limit_value(call, name)?;
    let set = call.admin().set_user_limit(user, name, value);
    set.map_err(limit_refused(name, value))?;
    Ok(Reply::done())
}

fn delete_limit(call: &Call) -> Outcome {
    let (user, name) = (call.text("user")?, call.text("name")?);
    let cleared = call.admin().change_user(user, |user| match name {
        "all" => {
            user.limits = UserLimits::default();
            Ok(())
        }
        name => user.limits.clear(name),
    });
    cleared.map_err(limit_refused(name, -1))?;
    Ok(Reply::done())
}

fn hash_password(call: &Call) -> Outcome {
    let hash = PasswordHash::new(call.bytes("password"), courser_auth::Hashing::RabbitSha256)?;
    Ok(Reply::json(&json!({ "ok": hash.encode() })))
}
