//! `x-consumer-timeout`: a channel that keeps a message for too long is closed.

use crate::frame_costs::cost;
use crate::support::{Client, Heard, Message, Step, World, declare_with, short};
use courser_codec::{FieldTable, basic};

pub const TIMEOUT_MS: u64 = 1000;

fn declare(client: &mut Client) {
    let arguments = FieldTable::new().with("x-consumer-timeout", TIMEOUT_MS as i64);
    declare_with(client, "q", false, &arguments);
}

pub fn timed_out(channel: u16) -> Heard {
    Heard::ChannelClosed(format!(
        "406 PRECONDITION_FAILED - delivery acknowledgement on channel {channel} timed out. \
         Timeout value used: 1000 ms. This timeout value can be configured, see consumers doc \
         guide to learn more"
    ))
}

/// Lets it be this time, and does what is due then.
pub fn tick(world: &World, now_ms: u64) -> Option<u64> {
    world.broker.tick(now_ms)
}

#[test]
fn a_channel_that_acknowledges_too_late_is_closed_and_others_get_the_message() {
    let world = World::new();
    tick(&world, 10_000);
    let (mut slow, mut other) = (world.connect(), world.connect());
    declare(&mut slow);
    slow.qos(1);
    slow.consume("q");
    slow.fill("q", &["1", "2"]);
    assert_eq!(slow.bodies(), ["1"]);
    assert_eq!(tick(&world, 10_999), Some(11_000));
    assert_eq!(slow.heard(), []);
    tick(&world, 11_000);
    assert_eq!(slow.heard(), [timed_out(1)]);
    let got = other.get("q").expect("it is back");
    assert_eq!((got.text(), got.redelivered), ("1", true));
    assert_eq!(other.pop("q").as_deref(), Some("2"));
}

#[test]
fn a_consumer_that_acknowledges_in_time_may_go_on() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare(&mut client);
    client.qos(1);
    client.consume("q");
    for nth in 1..=20_u64 {
        client.publish("", "q", "x");
        assert_eq!(client.bodies(), ["x"]);
        tick(&world, 10_000 + nth * 900);
        client.ack(nth);
    }
    tick(&world, 100_000);
    assert_eq!(client.heard(), []);
}

#[test]
fn the_time_begins_with_each_delivery_anew() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare(&mut client);
    client.qos(1);
    client.consume("q");
    client.publish("", "q", "x");
    for nth in 1..=5_u64 {
        tick(&world, 10_000 + nth * 900);
        client.requeue(nth);
    }
    assert_eq!(client.bodies().len(), 6);
    tick(&world, 15_499);
    assert_eq!(client.heard(), []);
    tick(&world, 15_500);
    assert_eq!(client.heard(), [timed_out(1)]);
}

#[test]
fn only_the_channels_that_are_late_are_closed() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    client.open_channel(2);
    client.open_channel(3);
    declare(&mut client);
    client.declare("patient");
    client.fill("q", &["1", "2", "3"]);
    client.fill("patient", &["4"]);
    for (number, queue) in [(2, "q"), (3, "q"), (1, "patient")] {
        let get = courser_codec::basic::Get { queue: crate::support::short(queue), no_ack: false };
        assert!(matches!(client.call_on(number, get), Heard::GetOk { .. }));
        tick(&world, world.broker.now_ms() + 100);
    }
    tick(&world, 11_050);
    assert_eq!(client.heard(), [timed_out(2)]);
    tick(&world, 11_100);
    assert_eq!(client.heard(), [timed_out(3)]);
    tick(&world, 1_000_000);
    assert_eq!(client.heard(), []);
    assert_eq!(world.counts("q"), (3, 0, 0));
    assert_eq!(world.counts("patient"), (0, 1, 0));
}

#[test]
fn a_delivery_of_a_time_when_the_clock_was_ahead_holds_up_no_other() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    tick(&world, 1_000_000_000);
    declare(&mut first);
    first.qos(1);
    first.consume("q");
    first.fill("q", &["1"]);
    assert_eq!(first.bodies(), ["1"]);
    tick(&world, 10_000);
    second.qos(1);
    second.consume("q");
    first.fill("q", &["2"]);
    assert_eq!(second.bodies(), ["2"]);
    assert_eq!(tick(&world, 10_999), Some(11_000));
    tick(&world, 11_000);
    assert_eq!((first.heard(), second.heard()), (vec![timed_out(1)], vec![timed_out(1)]));
}

#[test]
fn a_channel_number_used_again_is_another_channel() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare(&mut client);
    client.publish("", "q", "x");
    client.get("q").expect("a message");
    client.close_channel(1);
    client.open_channel(1);
    tick(&world, 20_000);
    assert_eq!(client.heard(), []);
    client.get("q").expect("a message");
    client.delete("q");
    assert_eq!(tick(&world, 30_000), None);
    assert_eq!(client.heard(), []);
}

#[test]
fn without_acknowledgements_no_consumer_is_late() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare(&mut client);
    client.consume_no_ack("q");
    client.publish("", "q", "x");
    assert_eq!(client.bodies(), ["x"]);
    assert_eq!(tick(&world, 20_000), None);
    assert_eq!(client.heard(), []);
}

#[test]
fn many_who_are_overdue_at_once_are_not_compared_with_each_other() {
    const CHANNELS: u16 = 2_000;
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare(&mut client);
    for number in 2..2 + CHANNELS {
        client.open_channel(number);
        client.tell_on(
            number,
            basic::Consume { queue: short("q"), nowait: true, ..Default::default() },
        );
    }
    client.read(&vec![Step::Publish(1, Message::new("", "q", "x")); usize::from(CHANNELS)]);
    assert_eq!(world.counts("q"), (0, usize::from(CHANNELS), usize::from(CHANNELS)));
    client.heard();
    let taken = cost(|| {
        tick(&world, 11_000);
    });
    assert!(taken <= 8 * u64::from(CHANNELS), "{taken} steps");
    let heard = client.heard();
    let closed = heard.iter().filter(|heard| matches!(heard, Heard::ChannelClosed(_))).count();
    assert_eq!(closed, usize::from(CHANNELS));
}
