//! The node itself.

use crate::support::api;
use rabbitmq_http_client::commons::SupportedProtocol;
use rabbitmq_http_client::responses::ReachabilityProbeOutcome;

#[test]
fn the_overview_and_nodes_can_be_decoded() {
    let api = api();
    let overview = api.overview().expect("an overview");
    assert!(overview.rabbitmq_version.starts_with("4.3"), "{}", overview.rabbitmq_version);
    assert_eq!(api.server_version().expect("a version"), overview.rabbitmq_version);
    let nodes = api.list_nodes().expect("nodes");
    assert_eq!((nodes.len(), &nodes[0].name), (1, &overview.node));
    let node = api.get_node_info(&overview.node).expect("the node");
    assert!(node.uptime > 0);
    api.get_node_memory_footprint(&overview.node).expect("its memory");
    api.list_all_cluster_plugins().expect("plugins");
    api.list_node_plugins(&overview.node).expect("plugins");
    let attempts = api.auth_attempts_statistics(&overview.node).expect("attempts");
    assert!(attempts.iter().any(|row| row.all_attempt_count > 0));
    let reached = api.probe_reachability();
    assert!(matches!(reached, ReachabilityProbeOutcome::Reached(_)), "{reached:?}");
}

#[test]
fn health_checks_say_yes_and_no() {
    let api = api();
    api.health_check_cluster_wide_alarms().expect("no alarms");
    api.health_check_local_alarms().expect("no alarms");
    api.health_check_if_node_is_quorum_critical().expect("a node by itself");
    api.health_check_port_listener(5672).expect("a port that is listened on");
    api.health_check_port_listener(5999).expect_err("no listener");
    api.health_check_protocol_listener(SupportedProtocol::AMQP).expect("AMQP");
    api.health_check_protocol_listener(SupportedProtocol::MQTT).expect_err("no MQTT");
}

#[test]
fn features_are_listed() {
    let api = api();
    let flags = api.list_feature_flags().expect("flags");
    if let Some(flag) = flags.0.first() {
        api.enable_feature_flag(&flag.name).expect("it is enabled");
    }
    api.enable_all_stable_feature_flags().expect("they are enabled");
    api.list_all_deprecated_features().expect("features");
    api.list_deprecated_features_in_use().expect("features");
}
