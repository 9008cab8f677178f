//! What waits is counted memory until it returns or is gone.

use super::{T0_MS, begin, delayed, retrying};
use crate::support::{Client, Heard, World, declare_with};
use courser_codec::basic;

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
