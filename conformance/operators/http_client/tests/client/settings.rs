//! Policies, parameters, definitions.

use crate::support::{Vhost, api, members};
use rabbitmq_http_client::commons::PolicyTarget;
use rabbitmq_http_client::requests::{
    ExchangeParams, GlobalRuntimeParameterDefinition, PolicyDefinitionBuilder, PolicyParams,
    RuntimeParameterDefinition,
};
use rabbitmq_http_client::responses::PolicyDefinition;
use serde_json::{Value, json};

fn max_length(definition: PolicyDefinition) -> Option<Value> {
    definition.0?.get("max-length").cloned()
}

#[test]
fn policies_apply_to_what_they_match() {
    let vhost = Vhost::new("hc.policies");
    let (api, name) = (&vhost.api, vhost.name);
    api.declare_classic_queue(name, "short.1").expect("a queue");
    let definition =
        PolicyDefinitionBuilder::new().max_length(10).overflow_reject_publish().build();
    let policy = PolicyParams::new(name, "short", "^short", definition)
        .apply_to(PolicyTarget::ClassicQueues)
        .priority(7);
    api.declare_policy(&policy).expect("declared");
    let shown = api.get_policy(name, "short").expect("shown");
    assert_eq!((shown.priority, max_length(shown.definition)), (7, Some(10.into())));
    assert_eq!(
        api.get_queue_info(name, "short.1").expect("shown").policy.as_deref(),
        Some("short")
    );
    assert_eq!(api.list_policies_in(name).expect("listed").len(), 1);
    assert!(!api.list_policies().expect("listed").is_empty());
    let matching =
        api.list_matching_policies(name, "short.1", PolicyTarget::ClassicQueues).expect("listed");
    assert_eq!(matching.len(), 1);
    let wrong = PolicyParams::new(name, "wrong", ".*", members(json!({ "max-length": "many" })));
    api.declare_policy(&wrong).expect_err("no length");

    let definition = PolicyDefinitionBuilder::new().max_length(5).build();
    let operator =
        PolicyParams::new(name, "op", "^short", definition).apply_to(PolicyTarget::Queues);
    api.declare_operator_policy(&operator).expect("declared");
    assert_eq!(api.get_operator_policy(name, "op").expect("shown").pattern, "^short");
    assert_eq!(api.list_operator_policies_in(name).expect("listed").len(), 1);
    assert!(!api.list_operator_policies().expect("listed").is_empty());
    let effective = api.get_queue_info(name, "short.1").expect("shown").effective_policy_definition;
    assert_eq!(effective.and_then(max_length), Some(5.into()));
    api.delete_operator_policy(name, "op", false).expect("deleted");
    api.delete_policies_in(name, vec!["short"]).expect("deleted");
    api.delete_policy(name, "short", true).expect("gone is as good as deleted");
    assert_eq!(api.get_queue_info(name, "short.1").expect("shown").policy, None);
}

#[test]
fn global_parameters_and_names_of_the_cluster_are_kept() {
    let api = api();
    let value = members(json!({ "colour": "green" }));
    api.upsert_global_runtime_parameter(&GlobalRuntimeParameterDefinition {
        name: "hc-global",
        value,
    })
    .expect("set");
    assert_eq!(api.get_global_runtime_parameter("hc-global").expect("shown").name, "hc-global");
    let listed = api.list_global_runtime_parameters().expect("listed");
    assert!(listed.iter().any(|one| one.name == "hc-global"));
    api.clear_global_runtime_parameter("hc-global").expect("cleared");
    api.get_global_runtime_parameter("hc-global").expect_err("it is gone");

    let before = api.get_cluster_name().expect("a name").name;
    api.set_cluster_name("hc@cluster").expect("set");
    assert_eq!(api.get_cluster_name().expect("a name").name, "hc@cluster");
    api.set_cluster_name(&before).expect("set back");
    api.set_cluster_tags(members(json!({ "region": "north" }))).expect("set");
    assert_eq!(api.get_cluster_tags().expect("tags").0.get("region"), Some(&json!("north")));
    api.clear_cluster_tags().expect("cleared");
}

#[test]
fn parameters_of_federation_are_kept() {
    let vhost = Vhost::new("hc.parameters");
    let (api, name) = (&vhost.api, vhost.name);
    let value = members(json!({ "size": 50 }));
    let limits = RuntimeParameterDefinition {
        name: "limits",
        vhost: name,
        component: "federation-upstream-set",
        value,
    };
    api.upsert_runtime_parameter(&limits).expect("set");
    assert_eq!(
        api.list_runtime_parameters_of_component_in("federation-upstream-set", name)
            .expect("listed")
            .len(),
        1
    );
    assert!(
        !api.list_runtime_parameters_of_component("federation-upstream-set")
            .expect("listed")
            .is_empty()
    );
    assert!(!api.list_runtime_parameters().expect("listed").is_empty());
    let shown =
        api.get_runtime_parameter("federation-upstream-set", name, "limits").expect("shown");
    assert_eq!(shown.value.get("size"), Some(&json!(50)));
    api.clear_runtime_parameter("federation-upstream-set", name, "limits", false).expect("cleared");
    api.clear_runtime_parameter("federation-upstream-set", name, "limits", true)
        .expect("gone is as good as cleared");
}

/// What definitions say of a vhost: other tests delete what is theirs meanwhile.
fn of_vhost(definitions: Value, vhost: &str) -> Value {
    let Value::Object(mut lists) = definitions else { panic!("no object: {definitions}") };
    lists.remove("users");
    lists.remove("global_parameters");
    for (list, rows) in &mut lists {
        let of = if list == "vhosts" { "name" } else { "vhost" };
        if let Some(rows) = rows.as_array_mut() {
            rows.retain(|row| row[of] == vhost);
        }
    }
    Value::Object(lists)
}

#[test]
fn definitions_go_out_and_come_back() {
    let vhost = Vhost::new("hc.definitions");
    let (api, name) = (&vhost.api, vhost.name);
    api.declare_quorum_queue(name, "kept").expect("a queue");
    api.declare_exchange(name, &ExchangeParams::durable_fanout("source", None))
        .expect("an exchange");
    api.bind_queue(name, "kept", "source", None, None).expect("bound");
    let all = api.export_cluster_wide_definitions_as_data().expect("decoded");
    assert!(all.find_queue(name, "kept").is_some());
    let within = api.export_vhost_definitions_as_data(name).expect("decoded");
    assert_eq!((within.queues.len(), within.exchanges.len(), within.bindings.len()), (1, 1, 1));

    let text = api.export_vhost_definitions_as_string(name).expect("a text");
    let text: Value = serde_json::from_str(&text).expect("JSON");
    let everything = api.export_cluster_wide_definitions_as_string().expect("a text");
    let everything: Value = serde_json::from_str(&everything).expect("JSON");
    let own = of_vhost(everything, name);
    api.delete_queue(name, "kept", false).expect("deleted");
    api.import_vhost_definitions(name, text).expect("imported");
    assert_eq!(api.get_queue_info(name, "kept").expect("it is back").queue_type, "quorum");
    assert_eq!(api.list_queue_bindings(name, "kept").expect("listed").len(), 2);
    api.delete_queue(name, "kept", false).expect("deleted");
    api.import_cluster_wide_definitions(own).expect("imported");
    assert_eq!(api.get_queue_info(name, "kept").expect("it is back").queue_type, "quorum");
    api.import_definitions(json!({ "queues": 7 })).expect_err("no definitions");
}
