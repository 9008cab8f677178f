//! Vhosts, queues, exchanges, bindings.

use crate::support::{Vhost, api, members};
use rabbitmq_http_client::commons::{
    BindingDestinationType, ExchangeType, PaginationParams, QueueType,
};
use rabbitmq_http_client::requests::{
    BindingDeletionParams, ExchangeParams, QueueParams, StreamParams, VirtualHostParams,
};
use serde_json::json;

#[test]
fn vhosts_are_made_changed_protected_and_deleted() {
    let api = api();
    let asked = VirtualHostParams::named("hc/vhosts")
        .with_description("first")
        .with_tags(vec!["a", "b"])
        .with_default_queue_type(QueueType::Quorum);
    api.create_vhost(&asked).expect("made");
    let made = api.get_vhost("hc/vhosts").expect("shown");
    assert_eq!(made.description.as_deref(), Some("first"));
    assert_eq!(made.default_queue_type.as_deref(), Some("quorum"));
    api.update_vhost(&VirtualHostParams::named("hc/vhosts").with_description("second"))
        .expect("changed");
    assert_eq!(api.get_vhost("hc/vhosts").expect("shown").description.as_deref(), Some("second"));
    assert!(api.list_vhosts().expect("listed").iter().any(|vhost| vhost.name == "hc/vhosts"));
    let page = api.list_vhosts_paged(&PaginationParams::first_page(1)).expect("a page");
    assert_eq!(page.len(), 1);
    api.enable_vhost_deletion_protection("hc/vhosts").expect("protected");
    api.delete_vhost("hc/vhosts", false).expect_err("it is protected");
    api.disable_vhost_deletion_protection("hc/vhosts").expect("not protected");
    api.delete_vhost("hc/vhosts", false).expect("deleted");
    api.delete_vhost("hc/vhosts", false).expect_err("it is gone");
    api.delete_vhost("hc/vhosts", true).expect("gone is as good as deleted");
}

#[test]
fn queues_of_all_types_are_declared_listed_and_deleted() {
    let vhost = Vhost::new("hc.queues");
    let (api, name) = (&vhost.api, vhost.name);
    let classic = QueueParams::new_durable_classic_queue("c@1", None)
        .with_max_length(10)
        .with_message_ttl(60_000)
        .with_dead_letter_exchange("amq.fanout");
    api.declare_queue(name, &classic).expect("a classic queue");
    api.declare_quorum_queue(name, "q 1").expect("a quorum queue");
    let stream = StreamParams::with_expiration_and_length_limit("s/1", "1D", 1 << 20);
    api.declare_stream(name, &stream).expect("a stream");
    api.declare_queue(name, &QueueParams::new_transient_autodelete("t1", None))
        .expect("one for a while");

    let shown = api.get_queue_info(name, "c@1").expect("shown");
    assert_eq!((shown.queue_type.as_str(), shown.durable), ("classic", true));
    assert_eq!(shown.arguments["x-max-length"], 10);
    assert_eq!(api.get_stream_info(name, "s/1").expect("shown").queue_type, "stream");
    assert_eq!(api.list_queues_in(name).expect("listed").len(), 4);
    assert!(api.list_queues().expect("listed").len() >= 4);
    assert!(api.list_queues_with_details().expect("listed").len() >= 4);
    assert_eq!(api.list_classic_queues_in(name).expect("listed").len(), 2);
    assert_eq!(api.list_quorum_queues_in(name).expect("listed").len(), 1);
    assert_eq!(api.list_streams_in(name).expect("listed").len(), 1);
    let second = api.list_queues_in_paged(name, &PaginationParams::new(2, 3)).expect("a page");
    assert_eq!(second.len(), 1);
    assert!(
        !api.list_streams_paged(&PaginationParams::first_page_default())
            .expect("a page")
            .is_empty()
    );

    let other = QueueParams::new_durable_classic_queue("c@1", None);
    api.declare_queue(name, &other).expect_err("its arguments are others");
    api.delete_queues(name, &["c@1", "q 1"], false).expect("deleted");
    api.delete_queue(name, "c@1", false).expect_err("it is gone");
    api.delete_queue(name, "c@1", true).expect("gone is as good as deleted");
    api.delete_stream(name, "s/1", false).expect("deleted");
    api.get_queue_info(name, "s/1").expect_err("it is gone");
    api.rebalance_queue_leaders().expect("nothing to move is no error");
}

#[test]
fn exchanges_of_all_types_are_declared_and_deleted() {
    let vhost = Vhost::new("hc.exchanges");
    let (api, name) = (&vhost.api, vhost.name);
    let kinds = [
        ("e.direct", ExchangeType::Direct),
        ("e.fanout", ExchangeType::Fanout),
        ("e.topic", ExchangeType::Topic),
        ("e.headers", ExchangeType::Headers),
        ("e.hash", ExchangeType::ConsistentHashing),
    ];
    for (exchange, kind) in &kinds {
        api.declare_exchange(name, &ExchangeParams::durable(exchange, kind.clone(), None))
            .expect("declared");
        let shown = api.get_exchange_info(name, exchange).expect("shown");
        assert_eq!(shown.exchange_type, String::from(kind.clone()));
    }
    let listed = api.list_exchanges_in(name).expect("listed");
    assert!(kinds.iter().all(|(exchange, _)| listed.iter().any(|one| one.name == *exchange)));
    assert!(api.list_exchanges().expect("listed").len() >= listed.len());
    let page = api.list_exchanges_in_paged(name, &PaginationParams::first_page(2)).expect("a page");
    assert_eq!(page.len(), 2);
    let alternate = members(json!({ "alternate-exchange": "e.fanout" }));
    let topic = ExchangeParams::durable_topic("e.topic", Some(alternate));
    api.declare_exchange(name, &topic).expect_err("its arguments are others");
    let names: Vec<&str> = kinds.iter().map(|(exchange, _)| *exchange).collect();
    api.delete_exchanges(name, &names, false).expect("deleted");
    api.delete_exchange(name, "e.topic", false).expect_err("it is gone");
    api.delete_exchange(name, "e.topic", true).expect("gone is as good as deleted");
}

#[test]
fn bindings_are_found_by_both_ends_and_deleted_by_what_they_are() {
    let vhost = Vhost::new("hc.bindings");
    let (api, name) = (&vhost.api, vhost.name);
    api.declare_classic_queue(name, "q").expect("a queue");
    for exchange in ["from", "to"] {
        api.declare_exchange(name, &ExchangeParams::durable_topic(exchange, None))
            .expect("an exchange");
    }
    let arguments = Some(members(json!({ "x-count": 3 })));
    api.bind_queue(name, "q", "from", Some("a.*~b#"), arguments).expect("bound");
    api.bind_exchange(name, "to", "from", Some("#"), None).expect("bound");

    let of_queue = api.list_queue_bindings(name, "q").expect("listed");
    let binding = of_queue.iter().find(|one| one.source == "from").expect("listed");
    assert_eq!((binding.routing_key.as_str(), of_queue.len()), ("a.*~b#", 2));
    assert_eq!(api.list_exchange_bindings_with_source(name, "from").expect("listed").len(), 2);
    assert_eq!(api.list_exchange_bindings_with_destination(name, "to").expect("listed").len(), 1);
    assert_eq!(api.list_bindings_in(name).expect("listed").len(), 3);
    assert!(api.list_bindings().expect("listed").len() >= 3);

    let deletion = BindingDeletionParams::from_binding_info(binding);
    api.delete_binding(&deletion, false).expect("deleted");
    api.delete_binding(&deletion, true).expect("gone is as good as deleted");
    api.recreate_binding(binding).expect("bound again");
    assert_eq!(api.list_queue_bindings(name, "q").expect("listed").len(), 2);
    let between = BindingDeletionParams {
        virtual_host: name,
        source: "from",
        destination: "to",
        destination_type: BindingDestinationType::Exchange,
        routing_key: "#",
        arguments: None,
    };
    api.delete_binding(&between, false).expect("deleted");
    assert!(api.list_exchange_bindings_with_destination(name, "to").expect("listed").is_empty());
}
