//! Messages, and those who send and take them.

use crate::support::{Amqp, Vhost, api, await_some, members};
use courser_client::ConsumeOptions;
use rabbitmq_http_client::commons::PaginationParams;
use serde_json::json;

#[test]
fn messages_are_published_taken_and_purged() {
    let vhost = Vhost::new("hc.messages");
    let (api, name) = (&vhost.api, vhost.name);
    api.declare_classic_queue(name, "q").expect("a queue");
    let properties = members(json!({ "delivery_mode": 2, "headers": { "a": 1 } }));
    let routed =
        api.publish_message(name, "amq.default", "q", "one", properties).expect("published");
    assert!(routed.routed);
    let routed = api
        .publish_message(name, "amq.default", "none", "x", members(json!({})))
        .expect("published");
    assert!(!routed.routed);
    api.publish_message(name, "no.such", "q", "x", members(json!({})))
        .expect_err("no such exchange");
    let looked_at = api.get_messages(name, "q", 5, "ack_requeue_true").expect("taken");
    assert_eq!(
        (looked_at.len(), looked_at[0].payload.as_str(), looked_at[0].redelivered),
        (1, "one", false)
    );
    let taken = api.get_messages(name, "q", 5, "ack_requeue_false").expect("taken");
    assert_eq!((taken[0].payload.as_str(), taken[0].redelivered), ("one", true));
    assert!(api.get_messages(name, "q", 5, "ack_requeue_false").expect("taken").is_empty());
    api.publish_message(name, "amq.default", "q", "two", members(json!({}))).expect("published");
    api.purge_queue(name, "q").expect("purged");
    assert!(api.get_messages(name, "q", 5, "ack_requeue_false").expect("taken").is_empty());
}

#[test]
fn connections_channels_and_consumers_are_shown_and_closed() {
    let vhost = Vhost::new("hc.clients");
    let (api, name) = (&vhost.api, vhost.name);
    api.declare_classic_queue(name, "q").expect("a queue");
    let amqp = Amqp::open(name);
    let channel = amqp.runtime.block_on(amqp.connection.open_channel()).expect("a channel");
    let consumer =
        amqp.runtime.block_on(channel.consume("q", ConsumeOptions::default())).expect("a consumer");
    let connection =
        await_some("the connection", || api.list_connections_in(name).expect("listed").pop());
    assert_eq!(connection.username, "guest");
    assert_eq!(api.get_connection_info(&connection.name).expect("shown").name, connection.name);
    assert!(
        !api.list_connections_paged(&PaginationParams::first_page_default())
            .expect("a page")
            .is_empty()
    );
    assert!(!api.list_connections().expect("listed").is_empty());
    assert!(
        api.list_user_connections("guest").expect("listed").iter().any(|one| one.vhost == name)
    );
    let channels = api.list_channels_on(&connection.name).expect("listed");
    assert_eq!(channels.len(), 1);
    assert_eq!(api.list_channels_in(name).expect("listed").len(), 1);
    assert!(!api.list_channels().expect("listed").is_empty());
    assert_eq!(api.get_channel_info(&channels[0].name).expect("shown").name, channels[0].name);
    let consumers = api.list_consumers_in(name).expect("listed");
    assert_eq!((consumers.len(), consumers[0].queue.name.as_str()), (1, "q"));
    assert!(!api.list_consumers().expect("listed").is_empty());

    api.close_connection(&connection.name, Some("for a test"), false).expect("closed");
    let reason = amqp.runtime.block_on(amqp.connection.closed()).to_string();
    assert!(reason.contains("for a test"), "{reason}");
    drop(consumer);
    await_some("its end", || {
        api.list_connections_in(name).expect("listed").is_empty().then_some(())
    });
    api.close_connection(&connection.name, None, false).expect_err("it is gone");
    api.close_connection(&connection.name, None, true).expect("gone is as good as closed");
}

#[test]
fn clients_of_the_stream_protocol_and_links_to_other_brokers_are_lists_of_none() {
    let api = api();
    assert!(api.list_stream_connections().expect("listed").is_empty());
    assert!(api.list_stream_publishers().expect("listed").is_empty());
    assert!(api.list_stream_consumers().expect("listed").is_empty());
    assert!(api.list_shovels().expect("listed").is_empty());
    assert!(api.list_federation_links().expect("listed").is_empty());
    assert!(api.list_federation_upstreams().expect("listed").is_empty());
}
