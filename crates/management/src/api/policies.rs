//! Policies and operator policies.

use super::get;
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table};
use crate::list::{Gathering, Items, Place, paged};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::{Policy, PolicyKind};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/policies", Needs::Login, policies, "The policies that the caller may see."),
    get("/api/policies/{vhost}", Needs::Vhost, policies, "The policies of a vhost."),
    get("/api/policies/{vhost}/{name}", Needs::Policymaker, policy, "A policy."),
    get(
        "/api/operator-policies",
        Needs::Login,
        operator_policies,
        "The operator policies that the caller may see.",
    ),
    get(
        "/api/operator-policies/{vhost}",
        Needs::Vhost,
        operator_policies,
        "The operator policies of a vhost.",
    ),
    get(
        "/api/operator-policies/{vhost}/{name}",
        Needs::Policymaker,
        operator_policy,
        "An operator policy.",
    ),
];

fn policies(call: &Call) -> Outcome {
    list(call, PolicyKind::User)
}

fn operator_policies(call: &Call) -> Outcome {
    list(call, PolicyKind::Operator)
}

fn list(call: &Call, kind: PolicyKind) -> Outcome {
    let mut found: Vec<(String, Policy)> = Vec::new();
    let mut gathering = Gathering::new(call)?;
    call.for_each_vhost(|vhost| {
        let policies = call.admin().policies(vhost, kind)?;
        let named = policies.into_iter().map(|policy| (vhost.to_owned(), policy));
        found.extend(named.take_while(|one| gathering.admits(one)));
        Ok(())
    })?;
    found.sort_by_key(|(_, policy)| policy.priority);
    let named = Items::new(found, |(_, policy)| policy.name.clone())
        .placed(|(vhost, policy)| Place(policy.priority, vhost.clone()));
    let named = named.in_room(gathering.finish()?);
    paged(call, named, |(_, (vhost, policy)), fields| render(vhost, policy, fields))
}

fn policy(call: &Call) -> Outcome {
    one(call, PolicyKind::User)
}

fn operator_policy(call: &Call) -> Outcome {
    one(call, PolicyKind::Operator)
}

fn one(call: &Call, kind: PolicyKind) -> Outcome {
    let (vhost, name) = (call.text("vhost")?, call.text("name")?);
    let policies = call.admin().policies(vhost, kind)?;
    let policy = policies.iter().find(|policy| policy.name == name);
    let mut fields = Fields::new(&call.columns());
    render(vhost, policy.ok_or_else(Refusal::not_found)?, &mut fields);
    Ok(Reply::object(fields))
}

fn render(vhost: &str, policy: &Policy, fields: &mut Fields) {
    fields
        .put("vhost", vhost)
        .put("name", policy.name.as_str())
        .put("pattern", policy.pattern.as_str())
        .put("apply-to", policy.apply_to.name())
        .put_with("definition", || from_table(&policy.definition))
        .put("priority", policy.priority);
}
