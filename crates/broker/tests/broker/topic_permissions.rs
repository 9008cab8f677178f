//! Rights to routing keys of topic exchanges.

use crate::permissions::world;
use crate::support::{Message, World, short, taken_bytes};
use courser_auth::{Permission, TopicPermission};
use courser_codec::{FieldTable, FieldValue, exchange, queue};

/// Gives the user all ordinary rights, and on `x-top` only keys that begin with its name.
fn narrow_topics(world: &World) {
    let admin = world.broker.admin();
    admin.set_permission("u", "/", Permission::all()).expect("a permission");
    let own = || "^{username}\\.".to_owned();
    let permission = TopicPermission { write: own(), read: own() };
    admin.set_topic_permission("u", "/", "x-top", permission).expect("a permission");
}

fn topic_text(right: &str, key: &str) -> String {
    format!(
        "403 ACCESS_REFUSED - {right} access to topic '{key}' in exchange 'x-top' in vhost '/' \
         refused for user 'u'"
    )
}

#[test]
fn topic_permissions_hold_for_every_key_of_a_publish() {
    let world = world();
    narrow_topics(&world);
    let mut client = world.connect_user("u");
    client.publish("x-top", "u.one", "");
    assert_eq!(client.heard(), []);
    let refused = client.refused_publish(Message::new("x-top", "v.one", ""));
    assert_eq!(refused, topic_text("write", "v.one"));
    for header in ["CC", "BCC"] {
        let more = FieldValue::Array(vec![FieldValue::LongStr(b"bad.cc".to_vec())]);
        let headers = FieldTable::new().with(header, more);
        let message = Message::new("x-top", "u.one", "").headers(headers);
        assert_eq!(client.refused_publish(message), topic_text("write", "bad.cc"));
    }
    client.publish("amq.topic", "v.one", "");
    assert_eq!(client.heard(), [], "another exchange has no such permission");
}

#[test]
fn topic_permissions_hold_for_binding_keys() {
    let world = world();
    narrow_topics(&world);
    let mut client = world.connect_user("u");
    client.bind("q", "x-top", "u.#");
    let (queue, exchange) = (short("q"), short("x-top"));
    let bind = queue::Bind { queue, exchange, routing_key: short("bad.#"), ..Default::default() };
    assert_eq!(client.refused(bind), topic_text("read", "bad.#"));
    let unbind = queue::Unbind { queue, exchange, routing_key: short("#"), ..Default::default() };
    assert_eq!(client.refused(unbind), topic_text("read", "#"));
    let (source, destination) = (short("x-top"), short("x-to"));
    let routing_key = short("bad");
    let bind = exchange::Bind { source, destination, routing_key, ..Default::default() };
    assert_eq!(client.refused(bind), topic_text("read", "bad"));
}

#[test]
fn a_change_copies_few_of_the_permissions_that_a_user_has() {
    const PERMISSIONS: usize = 2000;
    let world = world();
    let admin = world.broker.admin();
    let set = |nth: usize| {
        let before = taken_bytes();
        let any = || ".*".to_owned();
        let (name, topic) = (format!("x-{nth:06}"), TopicPermission { write: any(), read: any() });
        admin.set_topic_permission("u", "/", &name, topic).expect("a permission");
        taken_bytes() - before
    };
    let (few, many) = ((0..10).map(set).max(), (10..PERMISSIONS).map(set).max());
    assert!(many < few.map(|bytes| bytes + 100_000), "{many:?} bytes for one, {few:?} at first");
    let before = taken_bytes();
    admin.clear_topic_permissions("u", "/", Some("x-000007")).expect("it is there");
    assert!(taken_bytes() - before < 100_000);
    let left = admin.accounts();
    assert_eq!(left.topic_permissions("u", "/").len(), PERMISSIONS - 1);
    assert!(left.has_topic_permissions("u", "/") && !left.has_topic_permissions("u", ""));
}
