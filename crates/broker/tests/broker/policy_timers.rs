//! What happens at a certain time, and is to happen earlier by a policy that comes meanwhile.

use crate::support::{Client, Heard, World};
use courser_codec::FieldTable;

const START_MS: u64 = 1_000_000;
const LONG_MS: i64 = 25_000;
const SHORT_MS: i64 = 2_000;

/// A broker whose queue q has a policy that sets `key` to a long time.
fn with_long(key: &str) -> (World, Client) {
    let world = World::new();
    world.broker.tick(START_MS);
    let mut client = world.connect();
    client.declare("q");
    world.give_policy("q", FieldTable::new().with(key, LONG_MS));
    (world, client)
}

fn shorten(world: &World, key: &str) {
    world.give_policy("q", FieldTable::new().with(key, SHORT_MS));
}

/// The end of the short time, counted from the start.
const OVER_MS: u64 = START_MS + SHORT_MS as u64;

#[test]
fn a_consumer_has_no_longer_than_the_policy_says_now() {
    for settled_before in [false, true] {
        let (world, mut client) = with_long("consumer-timeout");
        client.fill("q", &["1", "2"]);
        if settled_before {
            // Its timer is armed for later.
            let tag = client.get("q").expect("a message").tag;
            client.ack(tag);
            shorten(&world, "consumer-timeout");
        }
        client.get("q").expect("a message");
        if !settled_before {
            shorten(&world, "consumer-timeout");
        }
        world.broker.tick(OVER_MS - 1);
        assert_eq!(client.heard(), []);
        world.broker.tick(OVER_MS);
        assert!(matches!(&client.heard()[..], [Heard::ChannelClosed(_)]), "{settled_before}");
    }
}

#[test]
fn messages_live_no_longer_than_the_policy_says_now() {
    let (world, mut client) = with_long("message-ttl");
    client.publish("", "q", "before");
    shorten(&world, "message-ttl");
    client.publish("", "q", "after");
    world.broker.tick(OVER_MS - 1);
    assert_eq!(world.counts("q").0, 2);
    world.broker.tick(OVER_MS);
    assert_eq!(world.counts("q").0, 0);
}

#[test]
fn messages_of_a_queue_that_was_empty_live_no_longer_either() {
    let (world, mut client) = with_long("message-ttl");
    client.publish("", "q", "before");
    client.pop("q").expect("a message");
    shorten(&world, "message-ttl");
    client.publish("", "q", "after");
    world.broker.tick(OVER_MS);
    assert_eq!(world.counts("q").0, 0);
}

#[test]
fn a_queue_lives_no_longer_unused_than_the_policy_says_now() {
    let (world, _client) = with_long("expires");
    shorten(&world, "expires");
    world.broker.tick(OVER_MS - 1);
    assert!(world.has_queue("q"));
    world.broker.tick(OVER_MS);
    assert!(!world.has_queue("q"));
}
