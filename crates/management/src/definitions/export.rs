//! Writing definitions.
//!
//! Left out is what a start makes by itself, and what belongs to a connection: predefined exchanges,
//! the bindings by name, exclusive queues and those that the broker has named. What an import
//! would refuse or make something else of is left out, too, and a warning names it.

use super::around::default_type;
use super::check::check;
use super::skipped::Rows;
use crate::api::{name_of_cluster, vhost_limits};
use crate::json::{from_table, is_text, kept_value, name, survives_json};
use crate::path::encode_segment;
use crate::refusal::{Refusal, is_vhost_gone};
use crate::settings::NodeFacts;
use crate::{API_VERSION, Api};
use courser_auth::{PasswordHash, UserRow};
use courser_broker::admin::{
    Admin, BindingView, ExchangeView, Fault, Policy, PolicyKind, QueueView, VhostLimits, VhostView,
};
use courser_codec::{FieldTable, ShortString};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How the names of queues begin that the broker has named, and those of exchanges that it has made.
const RESERVED: &str = "amq.";

/// The warning of what no import takes back as it is.
const NOT_EXPORTED: &str = "definitions not exported, as no import would take them back as they are, and bindings of \
                            them: names, keys or arguments that are not UTF-8, keys that are there twice, numbers that \
                            are not finite, or arguments that are too many, too large or nested too deep";

/// What lies in vhosts.
#[derive(Default)]
struct Topology {
    exchanges: Vec<Value>,
    queues: Vec<Value>,
    bindings: Vec<Value>,
    policies: Vec<Value>,
    parameters: Vec<Value>,
    /// What an import would refuse or make something else of.
    not_exported: Rows,
}

/// The global parameter with the hash of the definitions that the last start has imported.
pub const IMPORTED_HASH: &str = "imported_definition_hash_value";
/// The one with the hash of those that each node of a cluster has had imported last.
pub const IMPORTED_BY_NODES: &str = "imported_definition_hashes_of_nodes";
/// The one that names what the last start that has imported definitions has left out of them, as what there was refused it.
pub const LEFT_OUT: &str = "imported_definitions_left_out";
/// The one with the hash of those that a command has imported last that asks for it.
pub(crate) const IMPORTED_BY_COMMAND: &str = "imported_by_command_hash_value";
/// The one that says that this broker has had its first users.
pub const FIRST_USERS_MADE: &str = "first_users_made";
/// Global parameters of this broker alone, which are in no definitions.
pub(crate) const OWN_PARAMETERS: [&str; 5] =
    [IMPORTED_HASH, IMPORTED_BY_NODES, LEFT_OUT, IMPORTED_BY_COMMAND, FIRST_USERS_MADE];

/// The definitions of the whole broker.
pub(crate) fn of_broker(api: &Api) -> Result<Value, Refusal> {
    let (admin, node) = (&api.admin, &api.settings.node);
    let accounts = admin.accounts();
    let users = accounts.users(None).filter(|user| user.is_kept());
    let users: Vec<UserRow> = users.map(|user| UserRow::from(&**user)).collect();
    let (vhosts, all) = Topology::of_vhosts(admin)?;
    let mut document = head(node, "cluster");
    let cluster = name_of_cluster(admin, node);
    document.insert("explanation".into(), format!("Definitions of cluster '{cluster}'").into());
    document.insert("original_cluster_name".into(), cluster.into());
    document.insert("users".into(), json!(users));
    let has_groups = api.settings.groups.as_ref().is_some_and(|groups| !groups.others().is_empty());
    let row = |vhost: &VhostView| {
        let mut row = vhost_row(vhost);
        if let Some(group) = admin.group_of(&vhost.name).filter(|_| has_groups) {
            row["group"] = group.into();
        }
        row
    };
    document.insert("vhosts".into(), vhosts.iter().map(row).collect());
    let there: BTreeSet<&str> = vhosts.iter().map(|vhost| vhost.name.as_str()).collect();
    let is_there = |vhost: &str| there.contains(vhost);
    let permissions = accounts.permission_rows().filter(|row| is_there(&row.vhost));
    document.insert("permissions".into(), json!(permissions.collect::<Vec<_>>()));
    let topic_permissions = accounts.topic_permission_rows().filter(|row| is_there(&row.vhost));
    let topic_permissions = topic_permissions.collect::<Vec<_>>();
    document.insert("topic_permissions".into(), json!(topic_permissions));
    document.insert("global_parameters".into(), global_parameters(admin));
    all.put(&mut document);
    Ok(Value::Object(document))
}

/// The definitions of a vhost, without its name in every row.
pub(crate) fn of_vhost(admin: &Admin, node: &NodeFacts, vhost: &str) -> Result<Value, Refusal> {
    let missing = || Refusal::bad_request("vhost_not_found");
    let view = admin.vhost(vhost).ok_or_else(missing)?;
    let mut all = Topology::default();
    all.add(admin, &view)?;
    all.forget_vhost();
    let mut document = head(node, "single_virtual_host");
    document.insert("explanation".into(), format!("Definitions of virtual host '{vhost}'").into());
    document.insert("original_vhost_name".into(), vhost.into());
    document.insert("limits".into(), vhost_limits::value_of(&view.limits));
    document.insert("metadata".into(), metadata(&view));
    document.insert("description".into(), view.description.as_str().into());
    all.put(&mut document);
    Ok(Value::Object(document))
}

/// Takes the password hashes out of definitions that RabbitMQ can't read, and says in them whose they were.
pub(crate) fn leave_out_foreign_hashes(document: &mut Value) {
    let mut without = Vec::new();
    for user in document.get_mut("users").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(user) = user.as_object_mut() else { continue };
        let algorithm = user.get("hashing_algorithm").and_then(Value::as_str);
        if algorithm.is_some_and(|algorithm| !PasswordHash::is_name_of_rabbitmq(algorithm)) {
            user.remove("password_hash");
            user.remove("hashing_algorithm");
            without.push(user.get("name").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
    }
    let warning = || {
        let names = without.join(", ");
        format!(
            "users without a password, as RabbitMQ can't read the hashes that they have: {names}"
        )
    };
    let warnings = (!without.is_empty()).then(warning).map(Value::from);
    match document["warnings"].as_array_mut() {
        Some(others) => others.extend(warnings),
        None => document["warnings"] = warnings.into_iter().collect(),
    }
}

fn head(node: &NodeFacts, format: &str) -> Map<String, Value> {
    let texts = [
        ("rabbit_version", API_VERSION),
        ("rabbitmq_version", API_VERSION),
        ("product_name", "Courser"),
        ("product_version", &node.version),
        ("rabbitmq_definition_format", format),
    ];
    texts.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// What is said of a vhost.
pub(crate) fn metadata(vhost: &VhostView) -> Value {
    let mut members = json!({
        "description": vhost.description,
        "tags": vhost.tags,
        "default_queue_type": vhost.default_queue_type.as_deref().unwrap_or("classic"),
    });
    if vhost.protected {
        members["protected_from_deletion"] = true.into();
    }
    members
}

fn global_parameters(admin: &Admin) -> Value {
    // What was done here says nothing about another broker.
    let all =
        admin.global_parameters().into_iter().filter(|one| !OWN_PARAMETERS.contains(&&*one.name));
    all.map(|one| json!({ "name": one.name, "value": kept_value(&one.value) })).collect()
}

fn vhost_row(vhost: &VhostView) -> Value {
    json!({ "name": vhost.name, "limits": vhost_limits::value_of(&vhost.limits), "metadata": metadata(vhost), "tracing": vhost.tracing })
}

impl Topology {
    /// The vhosts, and what lies in those that are here. One that is deleted meanwhile is left out; one that moves away is the
    /// other group's to tell of.
    fn of_vhosts(admin: &Admin) -> Result<(Vec<VhostView>, Self), Fault> {
        let (mut there, mut all) = (Vec::new(), Topology::default());
        for vhost in admin.vhosts() {
            let mut one = Topology::default();
            match one.add(admin, &vhost) {
                Ok(()) => all.append(one),
                Err(fault) if !is_vhost_gone(&fault) => return Err(fault),
                Err(_) if !admin.has_vhost(&vhost.name) => continue,
                Err(_) => {}
            }
            there.push(vhost);
        }
        Ok((there, all))
    }

    fn append(&mut self, more: Topology) {
        let Topology { exchanges, queues, bindings, policies, parameters, not_exported } = more;
        self.exchanges.extend(exchanges);
        self.queues.extend(queues);
        self.bindings.extend(bindings);
        self.policies.extend(policies);
        self.parameters.extend(parameters);
        self.not_exported.append(not_exported);
    }

    fn add_topology(&mut self, admin: &Admin, vhost: &VhostView) -> Result<(), Fault> {
        let default_type = default_type(vhost.default_queue_type.as_deref());
        let vhost = vhost.name.as_str();
        // Whose bindings are left out, too: whether it is a queue, and the name.
        let mut left_out = BTreeSet::new();
        let exchanges = admin.exchanges(Some(vhost))?;
        for exchange in exchanges.iter().filter(|exchange| !exchange.predefined) {
            let row = || exchange_row(&exchange);
            let row = importable("exchanges", &exchange.name, &exchange.arguments, None, row);
            match row {
                Some(row) => self.exchanges.push(row),
                None => {
                    self.leave_out("exchange", vhost, &exchange.name);
                    left_out.insert((false, exchange.name));
                }
            }
        }
        for queue in admin.queues(Some(vhost))?.iter() {
            let is_named = queue.name.as_bytes().starts_with(RESERVED.as_bytes());
            if queue.exclusive_owner.is_some() || is_named {
                left_out.insert((true, queue.name));
                continue;
            }
            let row = || queue_row(&queue);
            let row = importable("queues", &queue.name, &queue.arguments, default_type, row);
            match row {
                Some(row) => self.queues.push(row),
                None => {
                    self.leave_out("queue", vhost, &queue.name);
                    left_out.insert((true, queue.name));
                }
            }
        }
        admin.for_each_binding(vhost, &mut |_| true, &mut |binding| {
            let ends =
                [(false, binding.source.clone()), (binding.to_queue, binding.destination.clone())];
            if !binding.source.is_empty() && !ends.iter().any(|end| left_out.contains(end)) {
                self.add_binding(&binding);
            }
        })?;
        Ok(())
    }

    fn add_binding(&mut self, binding: &BindingView) {
        let row = || binding_row(binding);
        let row = importable("bindings", &binding.routing_key, &binding.arguments, None, row);
        if let Some(row) = row {
            self.bindings.push(row);
            return;
        }
        let BindingView { vhost, source, destination, to_queue, routing_key, .. } = binding;
        let kind = if *to_queue { "queue" } else { "exchange" };
        let [source, destination, key] = [source, destination, routing_key].map(encode_segment);
        let row = format!(
            "binding of {kind} '{destination}' to '{source}' with key '{key}' in vhost '{vhost}'"
        );
        self.not_exported.push(row);
    }

    /// Notes an exchange or a queue that is not exported, with its name as a path has it.
    fn leave_out(&mut self, kind: &str, vhost: &str, name: &ShortString) {
        self.not_exported.push(format!("{kind} '{}' in vhost '{vhost}'", encode_segment(name)));
    }

    fn add(&mut self, admin: &Admin, vhost: &VhostView) -> Result<(), Fault> {
        let name = vhost.name.as_str();
        self.add_topology(admin, vhost)?;
        // Those from the configuration are no definitions: an import would make others of them that stay when these are gone.
        let policies = admin.kept_policies(name, PolicyKind::User)?;
        self.policies.extend(policies.iter().map(|policy| policy_row(name, policy)));
        for policy in admin.kept_policies(name, PolicyKind::Operator)? {
            self.parameters.push(json!({
                "vhost": name,
                "component": "operator_policy",
                "name": policy.name,
                "value": operator_policy(&policy),
            }));
        }
        for one in admin.parameters(Some(name), None)? {
            self.parameters.push(json!({
                "vhost": name,
                "component": one.component,
                "name": one.name,
                "value": kept_value(&one.value),
            }));
        }
        if vhost.limits != VhostLimits::default() {
            self.parameters.push(json!({
                "vhost": name,
                "component": vhost_limits::COMPONENT,
                "name": vhost_limits::NAME,
                "value": vhost_limits::value_of(&vhost.limits),
            }));
        }
        Ok(())
    }

    /// Takes the name of the vhost out of every row.
    fn forget_vhost(&mut self) {
        let lists = [
            &mut self.exchanges,
            &mut self.queues,
            &mut self.bindings,
            &mut self.policies,
            &mut self.parameters,
        ];
        for row in lists.into_iter().flatten() {
            if let Value::Object(members) = row {
                members.remove("vhost");
            }
        }
    }

    fn put(self, document: &mut Map<String, Value>) {
        let lists = [
            ("exchanges", self.exchanges),
            ("queues", self.queues),
            ("bindings", self.bindings),
            ("policies", self.policies),
            ("parameters", self.parameters),
        ];
        document.extend(lists.map(|(name, rows)| (name.to_owned(), Value::Array(rows))));
        if !self.not_exported.is_empty() {
            let warning = format!("{NOT_EXPORTED}: {}", self.not_exported.named());
            document.insert("warnings".into(), json!([warning]));
        }
    }
}

/// The row of what an import takes back as it is: JSON carries its name or key and its arguments, and no import refuses it.
fn importable(
    list: &str,
    name: &ShortString,
    arguments: &FieldTable,
    default_type: Option<&str>,
    row: impl FnOnce() -> Value,
) -> Option<Value> {
    let row = (is_text(name) && survives_json(arguments)).then(row)?;
    check(list, &row, default_type).is_ok().then_some(row)
}

fn exchange_row(exchange: &ExchangeView) -> Value {
    json!({
        "name": name(&exchange.name),
        "vhost": exchange.vhost,
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": from_table(&exchange.arguments),
    })
}

fn queue_row(queue: &QueueView) -> Value {
    json!({
        "name": name(&queue.name),
        "vhost": queue.vhost,
        "type": queue.queue_type,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "arguments": from_table(&queue.arguments),
    })
}

fn binding_row(binding: &BindingView) -> Value {
    json!({
        "source": name(&binding.source),
        "vhost": binding.vhost,
        "destination": name(&binding.destination),
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": name(&binding.routing_key),
        "arguments": from_table(&binding.arguments),
    })
}

fn policy_row(vhost: &str, policy: &Policy) -> Value {
    let mut row = operator_policy(policy);
    row["vhost"] = vhost.into();
    row["name"] = policy.name.as_str().into();
    row
}

fn operator_policy(policy: &Policy) -> Value {
    json!({
        "pattern": policy.pattern,
        "apply-to": policy.apply_to.name(),
        "definition": from_table(&policy.definition),
        "priority": policy.priority,
    })
}
