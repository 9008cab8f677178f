//! Channels and consumers: together they are bounded, and each connection has some at any time.

use crate::memory_bounds::world_of;
use crate::support::{Client, Heard, short};
use courser_broker::Fault;
use courser_codec::basic;

const OF_CHANNELS: &str =
    "memory limit (1000000 bytes) of channels, consumers and stream filters reached";

/// Opens channels from this number on until one is refused. Returns the number of that and why.
fn open_channels(client: &mut Client, first: u16) -> (u16, Fault) {
    for number in first..=u16::MAX {
        match client.session().admit_channel() {
            Ok(()) => client.open_channel(number),
            Err(fault) => return (number, fault),
        }
    }
    panic!("none is refused");
}

#[test]
fn channels_together_are_bounded_and_each_connection_has_some_at_any_time() {
    let world = world_of(4_000_000);
    let mut client = world.connect();
    client.declare("q");
    let (number, fault) = open_channels(&mut client, 2);
    assert_eq!((fault.code, &*fault.explanation), (506, OF_CHANNELS), "it ends the connection");
    assert!((500..1000).contains(&number), "{number}");
    assert!(world.broker.memory_used_bytes() < 1_050_000);
    assert_eq!(world.broker.alarm(), None, "consumers could not end it");
    let consume =
        |queue| basic::Consume { queue: short(queue), no_ack: true, ..Default::default() };
    for queue in ["q", "amq.rabbitmq.reply-to"] {
        let refused = client.refused(consume(queue));
        assert_eq!(refused, format!("406 PRECONDITION_FAILED - {OF_CHANNELS}"), "{queue}");
    }
    // Others come and do what most of them do.
    for _ in 0..10 {
        let mut other = world.connect();
        assert!(matches!(other.call(consume("amq.rabbitmq.reply-to")), Heard::ConsumeOk(_)));
        let mut another = world.connect();
        assert!(matches!(another.call(consume("q")), Heard::ConsumeOk(_)));
        assert_eq!(another.session().admit_channel(), Ok(()));
        another.open_channel(2);
        assert_eq!(open_channels(&mut another, 3).1.code, 506, "and no more");
    }
    (2..100).for_each(|number| client.close_channel(number));
    assert_eq!(client.session().admit_channel(), Ok(()));
}

#[test]
fn consumers_together_are_bounded_and_each_connection_has_some_at_any_time() {
    let world = world_of(4_000_000);
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare("q");
    let consume = || basic::Consume { queue: short("q"), ..Default::default() };
    let mut consumers = 0;
    let refused = loop {
        match client.call(consume()) {
            Heard::ConsumeOk(_) => consumers += 1,
            refused => break refused,
        }
        if consumers == 1000 {
            // Another connection has as many as one may have at any time, and more.
            (0..100).for_each(|_| assert!(matches!(other.call(consume()), Heard::ConsumeOk(_))));
        }
    };
    let text = format!("406 PRECONDITION_FAILED - {OF_CHANNELS}");
    assert_eq!(refused, Heard::ChannelClosed(text));
    assert!((1000..2000).contains(&consumers), "{consumers}");
    assert!(world.broker.memory_used_bytes() < 1_050_000);
    client.open_channel(1);
    assert!(matches!(client.call(consume()), Heard::ConsumeOk(_)), "its others have ended");
}

#[test]
fn what_is_unacknowledged_keeps_none_from_opening_channels() {
    let world = world_of(4_000_000);
    let (mut client, mut publisher) = (world.connect(), world.connect());
    client.declare("q");
    client.consume("q");
    publisher.fill("q", &vec!["x"; 30_000]);
    assert_eq!(client.deliveries().len(), 30_000);
    assert!(world.broker.admin().memory_uses().sessions > 1_000_000);
    assert_eq!(client.session().admit_channel(), Ok(()));
    assert!(open_channels(&mut publisher, 2).0 > 500);
}
