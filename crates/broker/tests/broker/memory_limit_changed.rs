//! The memory limit changes while the broker runs, and what is derived from it changes with it.

use crate::memory_bounds::world_of;
use crate::support::{Client, Heard, Message, WorldOnDisk};
use courser_broker::Limits;

fn fill(client: &mut Client, kilobytes: usize) {
    for _ in 0..kilobytes {
        client.send(Message::new("", "q", vec![b'x'; 1000]));
    }
}

#[test]
fn the_alarm_follows_a_changed_limit_at_once() {
    let world = world_of(1 << 30);
    let mut client = world.connect();
    client.declare("q");
    fill(&mut client, 100);
    assert_eq!(world.broker.alarm(), None);
    world.broker.set_memory_high_bytes(50_000);
    assert_eq!(world.broker.alarm(), Some("low on memory"));
    assert_eq!(world.broker.admin().memory_high_bytes(), 50_000);
    world.broker.set_memory_high_bytes(60_000);
    assert_eq!(world.broker.alarm(), Some("low on memory"));
    world.broker.set_memory_high_bytes(1 << 30);
    assert_eq!(world.broker.alarm(), None);
}

#[test]
fn the_shares_of_the_limit_follow_it() {
    let world = world_of(1 << 30);
    let mut client = world.connect();
    client.declare("q");
    client.tx_select();
    fill(&mut client, 100);
    assert_eq!(client.heard(), []);
    // A quarter of that is less than what the transaction holds.
    world.broker.set_memory_high_bytes(200_000);
    fill(&mut client, 1);
    let heard = client.heard();
    assert!(matches!(&heard[..], [Heard::ChannelClosed(_)]), "{heard:?}");

    world.broker.set_memory_high_bytes(1 << 30);
    let mut client = world.connect();
    client.tx_select();
    fill(&mut client, 100);
    assert_eq!(client.heard(), []);
}

#[test]
fn transient_messages_go_to_the_log_from_half_of_the_changed_limit_on() {
    let world = WorldOnDisk::with(Limits { memory_high_bytes: 1 << 30, ..Limits::default() });
    let mut client = world.connect();
    client.declare("q");
    world.broker.set_memory_high_bytes(1_000_000);
    fill(&mut client, 2_000);
    let bytes = world.broker.messages_bytes();
    assert!((400_000..700_000).contains(&bytes), "{bytes}");
    assert_eq!(world.broker.alarm(), None);
}
