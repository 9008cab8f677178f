//! What a queue does changes while it is in use: policies that come and go.

use crate::support::{Client, Heard, World};
use courser_codec::FieldTable;

fn world_with(messages: usize) -> (World, Client) {
    let world = World::new();
    world.broker.set_time(1_000);
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &vec!["m"; messages]);
    (world, client)
}

#[test]
fn a_time_to_live_begins_for_what_waits_already() {
    let (world, mut client) = world_with(1);
    world.broker.set_time(5_000);
    world.give_policy("q", FieldTable::new().with("message-ttl", 100));
    client.fill("q", &["new"]);
    world.broker.tick(5_099);
    assert_eq!(world.counts("q"), (2, 0, 0));
    world.broker.tick(5_100);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn a_time_to_live_that_is_taken_back_holds_no_more() {
    let (world, mut client) = world_with(0);
    world.give_policy("q", FieldTable::new().with("message-ttl", 100));
    client.fill("q", &["m"]);
    world.take_policy();
    world.broker.tick(9_000);
    assert_eq!(client.pop_all("q"), ["m"]);
}

#[test]
fn a_bound_makes_what_is_too_much_leave_piece_by_piece() {
    let (world, _client) = world_with(5_000);
    world.give_policy("q", FieldTable::new().with("max-length", 10));
    assert!(world.counts("q").0 > 10, "not all at once");
    while world.broker.tick(1_000) == Some(1_000) {}
    assert_eq!(world.counts("q"), (10, 0, 0));
}

#[test]
fn a_bound_in_bytes_counts_what_is_there() {
    let (world, _client) = world_with(20);
    world.give_policy("q", FieldTable::new().with("max-length-bytes", 7));
    world.broker.tick(1_000);
    assert_eq!(world.counts("q"), (7, 0, 0));
}

#[test]
fn publishers_are_refused_from_the_moment_on_that_says_so() {
    let (world, mut client) = world_with(1);
    client.confirm_select();
    client.fill("q", &["taken"]);
    assert_eq!(client.heard(), [Heard::Confirm { channel: 1, through: 1, multiple: false }]);
    let full = FieldTable::new().with("max-length", 1).with("overflow", "reject-publish");
    world.give_policy("q", full);
    client.fill("q", &["refused"]);
    assert_eq!(client.heard(), [Heard::Refused { channel: 1, tag: 2 }]);
}

#[test]
fn an_expiry_begins_and_ends_with_its_trait() {
    let (world, _client) = world_with(0);
    world.give_policy("q", FieldTable::new().with("expires", 100));
    assert_eq!(world.broker.tick(1_050), Some(1_100));
    world.take_policy();
    assert_eq!(world.broker.tick(1_100), None);
    assert!(world.has_queue("q"));
}
