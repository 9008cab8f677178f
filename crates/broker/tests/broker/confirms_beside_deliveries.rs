//! Where another machine may come to lead: a channel that has confirms of what the log has not wait, and consumes besides.

use crate::current::with_queue;
use crate::support::{Client, Heard, Message, Step, World};
use courser_journal::testing::WatchedStore;
use std::sync::Arc;

/// A client that has its publishes confirmed and consumes from `q`.
fn world() -> (Arc<WatchedStore>, World, Client) {
    let (store, world, mut client) = with_queue();
    client.declare("transient");
    client.confirm_select();
    client.consume_no_ack("q");
    client.heard();
    store.contest();
    (store, world, client)
}

fn persistent(key: &str) -> Message {
    Message::new("", key, "x").with_properties(|properties| properties.delivery_mode = Some(2))
}

#[test]
fn deliveries_come_while_there_is_always_a_confirm_that_waits() {
    for key in ["transient", "nowhere"] {
        let (store, world, mut client) = world();
        let mut other = world.connect();
        client.read(&[Step::Publish(1, persistent(key))]);
        for nth in 1..10_u64 {
            let body = nth.to_string();
            other.fill("q", &[&body]);
            assert_eq!(client.heard(), [], "{key} {nth}");
            store.prove();
            // What is proven is sent when the next publish waits already.
            client.read(&[Step::Publish(1, persistent(key))]);
            let heard = client.heard();
            let [Heard::Confirm { through, .. }, Heard::Delivery(delivery)] = &heard[..] else {
                panic!("{key} {nth}: {heard:?}")
            };
            assert_eq!((*through, delivery.text()), (nth, &*body), "{key}");
        }
    }
}

#[test]
fn the_confirms_of_what_comes_at_once_wait_together() {
    let (store, world, mut client) = world();
    // Room for what is remembered of its ways.
    for _ in 0..2 {
        client.read(&[Step::Publish(1, persistent("transient"))]);
        client.read(&[Step::Publish(1, persistent("nowhere"))]);
        store.prove();
        client.heard();
    }
    let used = || world.broker.memory_used_bytes() - world.broker.messages_bytes();
    let before = used();
    client.read(&vec![Step::Publish(1, persistent("nowhere")); 500]);
    let more = used() - before;
    assert!(more < 1000, "{more} bytes");
    assert_eq!(client.heard(), []);
    store.prove();
    let heard = client.heard();
    assert!(matches!(heard[..], [Heard::Confirm { through: 504, .. }]), "{heard:?}");
}
