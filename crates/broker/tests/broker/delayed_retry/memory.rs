//! What waits is counted memory until it returns or is gone.

use super::{T0_MS, begin, delayed, retrying};
use crate::support::{Client, Heard, Message, World, WorldOnDisk, declare_with};
use courser_broker::Limits;
use courser_codec::basic;
use std::collections::HashMap;

const MESSAGES: usize = 4096;

/// Bytes of memory while many have come back, and when they have gone in some way.
fn used_bytes(of: &str, waiting: usize, end: fn(&World, &mut Client)) -> (u64, u64) {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying(of));
    (0..MESSAGES).for_each(|_| client.publish("", "q", "a"));
    let tags = (0..MESSAGES).map(|_| client.get("q").expect("one").tag);
    let delivery_tag = tags.max().expect("some");
    client.tell(basic::Nack { delivery_tag, multiple: true, requeue: true });
    assert_eq!(delayed(&world), waiting);
    let used = world.broker.memory_used_bytes();
    end(&world, &mut client);
    (used, world.broker.memory_used_bytes())
}

#[test]
fn what_waits_is_counted_memory_until_it_has_returned_or_is_gone() {
    let ways: [fn(&World, &mut Client); 3] = [
        |world, client| {
            world.tick_all(T0_MS + 400);
            assert_eq!(client.pop_all("q").len(), MESSAGES);
        },
        |_, client| assert_eq!(client.purge("q"), Heard::Count(MESSAGES as u32)),
        |_, client| assert_eq!(client.delete("q"), Heard::Count(MESSAGES as u32)),
    ];
    for (way, end) in ways.into_iter().enumerate() {
        let (at_once, after_at_once) = used_bytes("failed", 0, end);
        let (later, after_later) = used_bytes("all", MESSAGES, end);
        // Its place is counted in either case.
        assert!(later > at_once, "{way}: {later} and {at_once}");
        let leftover = after_later as i64 - after_at_once as i64;
        assert!(leftover < MESSAGES as i64 * 32, "{way}: {after_later} and {after_at_once}");
    }
}

#[test]
fn what_waits_has_a_share_of_memory_beyond_which_the_first_that_is_due_returns() {
    const MANY: usize = 12_000;
    const PREFETCH: usize = 100;
    let world = WorldOnDisk::with(Limits { memory_high_bytes: 2_000_000, ..Limits::default() });
    world.tick_all(T0_MS);
    let (mut client, mut consumer) = (world.connect(), world.connect());
    declare_with(&mut client, "q", true, &retrying("all"));
    for number in 0..MANY {
        let message = Message::new("", "q", number.to_string());
        client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
    }
    world.sync();
    let used = world.broker.memory_used_bytes();
    assert!(used < 500_000, "{used}: they wait on the disk");
    consumer.qos(PREFETCH as u16);
    consumer.consume("q");
    let mut tries = HashMap::<String, usize>::new();
    let mut returned_first = None;
    for round in 0..MANY / PREFETCH {
        // Too short for any to be due.
        world.tick_all(T0_MS + round as u64);
        let deliveries = consumer.deliveries();
        let delivery_tag = deliveries.last().expect("there is always one to try").tag;
        for delivery in deliveries {
            let tried = tries.entry(delivery.text().to_owned()).or_default();
            *tried += 1;
            if *tried == 2 {
                returned_first.get_or_insert(delivery.text().to_owned());
            }
        }
        consumer.tell(basic::Nack { delivery_tag, multiple: true, requeue: true });
    }
    assert!(world.broker.alarm().is_none(), "{}", world.broker.memory_used_bytes());
    let delayed = world.broker.admin().queue("/", b"q").expect("the queue").delayed.messages;
    assert!((MANY / 4..MANY * 2 / 3).contains(&delayed), "{delayed}");
    assert_eq!(returned_first.as_deref(), Some("0"), "it has waited for longest");
    assert!(tries.values().all(|tries| *tries <= 3), "each has its turn");
    consumer.disconnect();
    world.tick_all(T0_MS + 10_000);
    assert_eq!(client.pop_all("q").len(), MANY);
}
