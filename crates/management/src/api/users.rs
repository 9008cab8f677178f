//! Users, and what they may do.

use super::general::tags;
use super::get;
use crate::call::{Call, Outcome};
use crate::json::Fields;
use crate::list::{Items, paged, whole};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_auth::{Directory, PermissionRow, TopicPermissionRow, User};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/users", Needs::Administrator, users, "All users."),
    get(
        "/api/users/without-permissions",
        Needs::Administrator,
        without_permissions,
        "The users who may enter no vhost.",
    ),
    get("/api/users/{user}", Needs::Administrator, user, "A user."),
    get(
        "/api/users/{user}/permissions",
        Needs::Administrator,
        permissions_of_user,
        "What a user may do, by vhost.",
    ),
    get(
        "/api/users/{user}/topic-permissions",
        Needs::Administrator,
        topic_permissions_of_user,
        "Which routing keys a user may use.",
    ),
    get("/api/permissions", Needs::Administrator, permissions, "All permissions."),
    get(
        "/api/permissions/{vhost}/{user}",
        Needs::Administrator,
        permission,
        "What a user may do in a vhost.",
    ),
    get(
        "/api/topic-permissions",
        Needs::Administrator,
        topic_permissions,
        "All topic permissions.",
    ),
    get(
        "/api/topic-permissions/{vhost}/{user}",
        Needs::Administrator,
        topic_permission,
        "Which routing keys a user may use in a vhost, by exchange.",
    ),
    get(
        "/api/topic-permissions/{vhost}/{user}/{exchange}",
        Needs::Administrator,
        topic_permission,
        "The same, of one exchange.",
    ),
    get("/api/user-limits", Needs::Administrator, all_limits, "The limits of all users."),
    get("/api/user-limits/{user}", Needs::Login, limits, "The limits of a user."),
];

type Users = Items<Arc<User>>;

fn listed(users: Vec<Arc<User>>) -> Users {
    Items::new(users, |user| user.name.clone())
}

fn users(call: &Call) -> Outcome {
    let all = call.admin().accounts().users(None).cloned().collect();
    paged(call, listed(all), |(_, user), fields| render(user, fields))
}

fn without_permissions(call: &Call) -> Outcome {
    let accounts = call.admin().accounts();
    let mut names: Vec<String> = accounts.permission_rows().map(|row| row.user).collect();
    names.dedup();
    let is_without = |user: &&Arc<User>| user.is_kept() && names.binary_search(&user.name).is_err();
    let users = accounts.users(None).filter(is_without).cloned().collect();
    whole(call, listed(users), |(_, user), fields| render(user, fields))
}

fn user(call: &Call) -> Outcome {
    let accounts = call.admin().accounts();
    let user = known(call, &accounts)?;
    let mut fields = Fields::new(&call.columns());
    render(user, &mut fields);
    Ok(Reply::object(fields))
}

fn known<'d>(call: &Call, accounts: &'d Directory) -> Result<&'d Arc<User>, Refusal> {
    accounts.user(call.text("user")?).ok_or_else(Refusal::not_found)
}

/// A user. A hash that only this broker can check is not for others.
fn render(user: &User, fields: &mut Fields) {
    let is_known = user.password.is_known_to_rabbitmq();
    let hash = if is_known { user.password.encode() } else { String::new() };
    let algorithm = user.password.algorithm().unwrap_or("rabbit_password_hashing_sha256");
    fields
        .put("name", user.name.as_str())
        .put("password_hash", hash)
        .put("hashing_algorithm", algorithm)
        .put("tags", tags(&user.tags))
        .put("limits", limits_of(user));
}

fn limits_of(user: &User) -> Value {
    let limits = user.limits.iter().map(|(name, limit)| (name.to_owned(), limit.into()));
    Value::Object(limits.collect::<Map<_, _>>())
}

fn permissions(call: &Call) -> Outcome {
    list_permissions(call, |_| true)
}

fn permissions_of_user(call: &Call) -> Outcome {
    known(call, &call.admin().accounts())?;
    let user = call.text("user")?.to_owned();
    list_permissions(call, |row| row.user == user)
}

/// Who may do what in the vhost of the path.
pub(super) fn permissions_in_vhost(call: &Call) -> Outcome {
    let vhost = known_vhost(call)?;
    list_permissions(call, |row| row.vhost == vhost)
}

fn known_vhost(call: &Call) -> Result<String, Refusal> {
    let vhost = call.text("vhost")?;
    call.admin().vhost(vhost).map(|vhost| vhost.name).ok_or_else(Refusal::not_found)
}

fn list_permissions(call: &Call, is_wanted: impl Fn(&PermissionRow) -> bool) -> Outcome {
    let accounts = call.admin().accounts();
    let rows = accounts.permission_rows().filter(is_wanted);
    let named = Items::gathered(call, rows, |row: &PermissionRow| row.user.clone())?;
    paged(call, named, |(_, row), fields| render_permission(row, fields))
}

fn render_permission(row: &PermissionRow, fields: &mut Fields) {
    fields
        .put("user", row.user.as_str())
        .put("vhost", row.vhost.as_str())
        .put("configure", row.configure.as_str())
        .put("write", row.write.as_str())
        .put("read", row.read.as_str());
}

fn permission(call: &Call) -> Outcome {
    let accounts = call.admin().accounts();
    let vhost = known_vhost(call)?;
    let user = known(call, &accounts)?;
    let permission = accounts.permission(&user.name, &vhost).ok_or_else(Refusal::not_found)?;
    let mut fields = Fields::new(&call.columns());
    fields
        .put("user", user.name.as_str())
        .put("vhost", vhost)
        .put("configure", permission.configure)
        .put("write", permission.write)
        .put("read", permission.read);
    Ok(Reply::object(fields))
}

fn topic_permissions(call: &Call) -> Outcome {
    list_topic_permissions(call, |_| true)
}

fn topic_permissions_of_user(call: &Call) -> Outcome {
    known(call, &call.admin().accounts())?;
    let user = call.text("user")?.to_owned();
    list_topic_permissions(call, |row| row.user == user)
}

/// Who may use which routing keys in the vhost of the path.
pub(super) fn topic_permissions_in_vhost(call: &Call) -> Outcome {
    let vhost = known_vhost(call)?;
    list_topic_permissions(call, |row| row.vhost == vhost)
}

fn topic_permission(call: &Call) -> Outcome {
    known(call, &call.admin().accounts())?;
    let (vhost, user) = (known_vhost(call)?, call.text("user")?.to_owned());
    let exchange = if call.has("exchange") { Some(call.text("exchange")?) } else { None };
    let is_wanted = |row: &TopicPermissionRow| {
        let is_of_exchange = exchange.is_none_or(|exchange| row.exchange == exchange);
        row.vhost == vhost && row.user == user && is_of_exchange
    };
    if !call.admin().accounts().topic_permission_rows().any(|row| is_wanted(&row)) {
        return Err(Refusal::not_found());
    }
    list_topic_permissions(call, is_wanted)
}

fn list_topic_permissions(call: &Call, is_wanted: impl Fn(&TopicPermissionRow) -> bool) -> Outcome {
    let accounts = call.admin().accounts();
    let rows = accounts.topic_permission_rows().filter(is_wanted);
    let named = Items::gathered(call, rows, |row: &TopicPermissionRow| row.user.clone())?;
    paged(call, named, |(_, row), fields| {
        fields
            .put("user", row.user.as_str())
            .put("vhost", row.vhost.as_str())
            .put("exchange", row.exchange.as_str())
            .put("write", row.write.as_str())
            .put("read", row.read.as_str());
    })
}

fn all_limits(call: &Call) -> Outcome {
    list_limits(call, call.admin().accounts().users(None).cloned().collect())
}

fn limits(call: &Call) -> Outcome {
    call.caller()?.need_ownership(call.text("user")?, false)?;
    let accounts = call.admin().accounts();
    list_limits(call, vec![Arc::clone(known(call, &accounts)?)])
}

fn list_limits(call: &Call, users: Vec<Arc<User>>) -> Outcome {
    let users = users.into_iter().filter(|user| user.limits.iter().next().is_some()).collect();
    paged(call, listed(users), |(_, user), fields| {
        fields.put("user", user.name.as_str()).put("value", limits_of(user));
    })
}
