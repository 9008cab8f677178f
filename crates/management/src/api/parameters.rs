//! Parameters, global parameters, and the name of the cluster, which is one of them.

use super::vhost_limits::NamedLimits;
use super::{get, vhost_limits};
use crate::NodeFacts;
use crate::call::{Call, Members, Outcome};
use crate::definitions::OWN_PARAMETERS;
use crate::json::{Fields, can_be_kept, kept_value};
use crate::list::{Gathering, Items, Place, paged};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_broker::admin::{
    Admin, CLUSTER_NAME, Fault, GlobalParameter, Parameter, VhostLimits, VhostSettings, VhostView,
};
use serde_json::{Value, json};
use std::mem::replace;

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/parameters",
        Needs::Policymaker,
        parameters,
        "The parameters that the caller may see.",
    ),
    get("/api/parameters/{component}", Needs::Policymaker, parameters, "Those of a component."),
    get(
        "/api/parameters/{component}/{vhost}",
        Needs::Policymaker,
        parameters,
        "Those of a component in a vhost.",
    ),
    get(
        "/api/parameters/{component}/{vhost}/{name}",
        Needs::Policymaker,
        parameter,
        "A parameter.",
    ),
    Route {
        method: Verb::Put,
        pattern: "/api/parameters/{component}/{vhost}/{name}",
        needs: Needs::Policymaker,
        changes: Changes::Log,
        handler: put_parameter,
        doc: "Sets a parameter.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/parameters/{component}/{vhost}/{name}",
        needs: Needs::Policymaker,
        changes: Changes::Log,
        handler: delete_parameter,
        doc: "Removes a parameter.",
    },
    get("/api/global-parameters", Needs::Policymaker, global_parameters, "All global parameters."),
    get(
        "/api/global-parameters/{name}",
        Needs::Policymaker,
        global_parameter,
        "A global parameter.",
    ),
    Route {
        method: Verb::Put,
        pattern: "/api/global-parameters/{name}",
        needs: Needs::Policymaker,
        changes: Changes::Log,
        handler: put_global_parameter,
        doc: "Sets a global parameter; those of the broker itself need an administrator.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/global-parameters/{name}",
        needs: Needs::Policymaker,
        changes: Changes::Log,
        handler: delete_global_parameter,
        doc: "Removes a global parameter; those of the broker itself need an administrator.",
    },
    get("/api/cluster-name", Needs::Login, cluster_name, "The name of the cluster."),
    Route {
        method: Verb::Put,
        pattern: "/api/cluster-name",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: put_cluster_name,
        doc: "Names the cluster.",
    },
];

/// What becomes of the parameters of a component.
enum Fate {
    /// They say what the limits of a vhost are.
    Limits,
    /// They are set under this path, by those who may.
    Elsewhere(&'static str),
    /// They are kept, shown and exported, and nothing comes of them: definitions and tools of RabbitMQ set them. Their
    /// values have to have these members.
    Kept(&'static [&'static str]),
}

/// The components that RabbitMQ has with its plugins for shovels and federation.
const COMPONENTS: [(&str, Fate); 7] = [
    (vhost_limits::COMPONENT, Fate::Limits),
    ("policy", Fate::Elsewhere("/api/policies")),
    ("operator_policy", Fate::Elsewhere("/api/operator-policies")),
    ("user-limits", Fate::Elsewhere("/api/user-limits")),
    ("shovel", Fate::Kept(&["src-uri", "dest-uri"])),
    ("federation-upstream", Fate::Kept(&["uri"])),
    ("federation-upstream-set", Fate::Kept(&[])),
];

/// Whether there are parameters of a component.
pub(crate) fn is_component(component: &str) -> bool {
    COMPONENTS.iter().any(|(known, _)| *known == component)
}

/// Refuses a parameter whose component there is not, or whose value its component could make nothing of.
pub(crate) fn check_parameter(component: &str, name: &str, value: &Value) -> Result<(), Refusal> {
    let failed = |why| Refusal::bad_request(format!("Validation failed\n\n{why}\n"));
    match COMPONENTS.iter().find(|(known, _)| *known == component) {
        None => Err(failed(format!("component {component} not found"))),
        Some((_, Fate::Limits)) => Ok(()),
        Some((_, Fate::Elsewhere(path))) => {
            Err(failed(format!("parameters of component {component} are set under {path}")))
        }
        Some((_, Fate::Kept(wanted))) => {
            let missing = wanted.iter().find(|key| value.get(key).is_none_or(Value::is_null));
            missing.map_or(Ok(()), |key| Err(failed(format!("Key \"{key}\" not found in {name}"))))
        }
    }
}

fn refused(fault: Fault) -> Refusal {
    match fault.code {
        404 => Refusal::not_found(),
        406 => Refusal::bad_request(format!("Validation failed\n\n{}\n", fault.explanation)),
        _ => fault.into(),
    }
}

fn parameters(call: &Call) -> Outcome {
    let component = if call.has("component") { Some(call.text("component")?) } else { None };
    let (mut found, mut gathering) = (Vec::new(), Gathering::new(call)?);
    call.for_each_vhost(|vhost| {
        let kept = call.admin().parameters(Some(vhost), component)?;
        let has_limits = component.is_none_or(|component| component == vhost_limits::COMPONENT);
        let limited = has_limits.then(|| call.admin().vhost(vhost)).flatten();
        let limits = limited.as_ref().and_then(vhost_limits::parameter);
        let all = kept.into_iter().chain(limits);
        found.extend(all.take_while(|one| gathering.admits(one)));
        Ok(())
    })?;
    let names = |one: &Parameter| one.name.clone();
    let named = Items::new(found, names).placed(|one| Place::of(&one.vhost));
    let named = named.in_room(gathering.finish()?);
    paged(call, named, |(_, one), fields| render(one, fields))
}

fn render(parameter: &Parameter, fields: &mut Fields) {
    fields
        .put_with("value", || kept_value(&parameter.value))
        .put("vhost", parameter.vhost.as_str())
        .put("component", parameter.component.as_str())
        .put("name", parameter.name.as_str());
}

/// The parameter in the path, with this value.
fn named(call: &Call, value: String) -> Result<Parameter, Refusal> {
    Ok(Parameter {
        vhost: call.text("vhost")?.to_owned(),
        component: call.text("component")?.to_owned(),
        name: call.text("name")?.to_owned(),
        value,
    })
}

fn parameter(call: &Call) -> Outcome {
    let mut found = named(call, String::new())?;
    if found.component == vhost_limits::COMPONENT {
        found = vhost_limits::parameter(&limited(call, &found)?).ok_or_else(Refusal::not_found)?;
    } else {
        let Parameter { vhost, component, name, .. } = &found;
        found.value = call.admin().parameter(vhost, component, name).map_err(refused)?;
    }
    let mut fields = Fields::new(&call.columns());
    render(&found, &mut fields);
    Ok(Reply::object(fields))
}

/// The vhost of whose limits a parameter speaks.
fn limited(call: &Call, parameter: &Parameter) -> Result<VhostView, Refusal> {
    let vhost = call.admin().vhost(&parameter.vhost);
    vhost.filter(|_| parameter.name == vhost_limits::NAME).ok_or_else(Refusal::not_found)
}

/// The JSON text of the value that a body gives.
fn given(call: &Call) -> Result<String, Refusal> {
    let body = call.object()?;
    let value = body.get("value").ok_or_else(|| Refusal::key_missing(&["value"]))?;
    if !can_be_kept(value) {
        return Err(Refusal::bad_request("Validation failed\n\nthe value is nested too deep\n"));
    }
    Ok(value.to_string())
}

fn put_parameter(call: &Call) -> Outcome {
    let parameter = named(call, given(call)?)?;
    if parameter.component == vhost_limits::COMPONENT {
        return put_limits(call, &parameter);
    }
    let Parameter { component, name, value, .. } = &parameter;
    check_parameter(component, name, &kept_value(value))?;
    Ok(Reply::put(keep(call, &parameter).map_err(refused)?))
}

/// Keeps a parameter that nothing comes of, and says so in the log unless it is there with the same value. Returns whether
/// it is new.
fn keep(call: &Call, parameter: &Parameter) -> Result<bool, Fault> {
    let (api, admin) = (&call.api, call.admin());
    let Parameter { vhost, component, name, value } = parameter;
    let before = admin.parameter(vhost, component, name).ok();
    let is_new = admin.set_parameter(parameter)?;
    if before.as_ref() != Some(value)
        && let Some(suppressed) = api.parameters_log.allow(api.now_ms())
    {
        tracing::warn!(
            %component, %name, %vhost, suppressed,
            "a parameter is kept and nothing comes of it: there are no shovels and no federation"
        );
    }
    Ok(is_new)
}

/// Sets all limits of a vhost: those that the value does not name are lifted.
fn put_limits(call: &Call, parameter: &Parameter) -> Outcome {
    if parameter.name != vhost_limits::NAME {
        let reason = "Validation failed\n\nthe limits of a vhost have the name limits\n";
        return Err(Refusal::bad_request(reason));
    }
    let named = NamedLimits::read(&kept_value(&parameter.value));
    let named =
        named.map_err(|why| Refusal::bad_request(format!("Validation failed\n\n{why}\n")))?;
    let before = replace_limits(call, &parameter.vhost, named.only())?;
    Ok(Reply::put(before == VhostLimits::default()))
}

/// Gives a vhost other limits, and returns those that it had.
fn replace_limits(call: &Call, vhost: &str, limits: VhostLimits) -> Result<VhostLimits, Refusal> {
    let mut before = VhostLimits::default();
    let change = |settings: &mut VhostSettings| before = replace(&mut settings.limits, limits);
    call.admin().change_known_vhost(vhost, change)?;
    Ok(before)
}

fn delete_parameter(call: &Call) -> Outcome {
    let parameter = named(call, String::new())?;
    let was_there = if parameter.component == vhost_limits::COMPONENT {
        limited(call, &parameter)?;
        let before = replace_limits(call, &parameter.vhost, VhostLimits::default())?;
        before != VhostLimits::default()
    } else {
        let Parameter { vhost, component, name, .. } = &parameter;
        call.admin().clear_parameter(vhost, component, name).map_err(refused)?
    };
    match was_there {
        true => Ok(Reply::done()),
        false => Err(Refusal::not_found()),
    }
}

fn global_parameters(call: &Call) -> Outcome {
    let all = Items::new(call.admin().global_parameters(), |one| one.name.clone());
    paged(call, all, |(_, one), fields| render_global(one, fields))
}

fn render_global(parameter: &GlobalParameter, fields: &mut Fields) {
    fields.put("name", parameter.name.as_str()).put_with("value", || kept_value(&parameter.value));
}

fn global_parameter(call: &Call) -> Outcome {
    let name = call.text("name")?.to_owned();
    let value = call.admin().global_parameter(&name).ok_or_else(Refusal::not_found)?;
    let mut fields = Fields::new(&call.columns());
    render_global(&GlobalParameter { name, value }, &mut fields);
    Ok(Reply::object(fields))
}

/// The global parameter in the path, if the caller may change it.
fn changeable(call: &Call) -> Result<&str, Refusal> {
    let name = call.text("name")?;
    // By these the broker itself does something else.
    if name == CLUSTER_NAME || OWN_PARAMETERS.contains(&name) {
        call.caller()?.need_administrator()?;
    }
    Ok(name)
}

fn put_global_parameter(call: &Call) -> Outcome {
    let (name, value) = (changeable(call)?, given(call)?);
    let set = match OWN_PARAMETERS.contains(&name) {
        true => call.admin().set_own_parameter(name, &value),
        false => call.admin().set_global_parameter(name, &value),
    };
    Ok(Reply::put(set.map_err(refused)?))
}

fn delete_global_parameter(call: &Call) -> Outcome {
    match call.admin().clear_global_parameter(changeable(call)?).map_err(refused)? {
        true => Ok(Reply::done()),
        false => Err(Refusal::not_found()),
    }
}

/// The name that the cluster has been given, or the one that it has by itself.
pub(crate) fn name_of_cluster(admin: &Admin, node: &NodeFacts) -> String {
    let given = admin.global_parameter(CLUSTER_NAME);
    let given = given.and_then(|text| kept_value(&text).as_str().map(str::to_owned));
    given.unwrap_or_else(|| node.cluster_name.clone())
}

fn cluster_name(call: &Call) -> Outcome {
    let name = name_of_cluster(call.admin(), &call.api.settings.node);
    Ok(Reply::json(&json!({ "name": name })))
}

fn put_cluster_name(call: &Call) -> Outcome {
    let body = call.object()?;
    let name = body.required_text("name")?;
    let value = Value::from(name).to_string();
    call.admin().set_global_parameter(CLUSTER_NAME, &value).map_err(refused)?;
    Ok(Reply::done())
}
