//! How much of what `x-recent-history` exchanges remember is there after a restart.

use crate::recent_history_beside_others::{history, publish};
use crate::support::{Client, Message, Step, World, WorldOnDisk, declare_with};
use courser_broker::Limits;
use courser_codec::FieldTable;

fn limits(memory_high_bytes: u64) -> Limits {
    Limits { memory_high_bytes, ..Limits::default() }
}

/// So many messages with their numbers, in reads of some hundred.
fn publish_numbers(client: &mut Client, exchange: &str, count: usize) {
    let message = |nth: usize| {
        let message = Message::new(exchange, "", nth.to_string());
        Step::Publish(1, message.with_properties(|of| of.delivery_mode = Some(2)))
    };
    let steps: Vec<_> = (0..count).map(message).collect();
    steps.chunks(500).for_each(|steps| client.read(steps));
}

/// What the log has for each history, the longest first. Restarts the broker.
fn lengths(world: &mut WorldOnDisk) -> Vec<usize> {
    let recovered = world.found_by_restart();
    let lengths = recovered.queues.values().map(|index| index.positions().count());
    let mut lengths: Vec<usize> = lengths.filter(|length| *length > 0).collect();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    lengths
}

fn shortened(world: &World) -> Vec<(String, String, u64)> {
    let mut all = Vec::new();
    world.broker.for_each_shortened_history(&mut |vhost, exchange, messages| {
        all.push((vhost.to_owned(), exchange.to_string(), messages));
    });
    all.sort();
    all
}

#[test]
fn a_restart_with_as_much_memory_as_before_forgets_nothing() {
    const OTHERS: usize = 300;
    // 3,125 places, not counting the first 20 of each.
    let mut world = WorldOnDisk::with(limits(200_000));
    let mut client = world.connect();
    for (name, count) in [("large", 3000), ("second", 500)] {
        history(&mut client, name, 100_000, true);
        publish(&mut client, name, count);
    }
    client.declare_exchange("all", "fanout");
    for nth in 0..OTHERS {
        let name = format!("h{nth}");
        history(&mut client, &name, 20, true);
        client.bind_exchange(&name, "all", "");
    }
    publish(&mut client, "all", 20);
    client.disconnect();
    let before = lengths(&mut world);
    assert_eq!(before.len(), 2 + OTHERS);
    assert!(before[0] > 2000 && before[1] > 200, "{:?}", &before[..2]);
    for _ in 0..3 {
        assert_eq!(lengths(&mut world), before);
        assert_eq!(shortened(&world), []);
    }
}

#[test]
fn what_has_no_room_after_a_restart_is_forgotten_in_equal_parts_and_told() {
    let mut world = WorldOnDisk::with(limits(8_000_000));
    let mut client = world.connect();
    for (name, count) in [("large", 6020), ("second", 2020), ("small", 20)] {
        history(&mut client, name, 100_000, true);
        publish_numbers(&mut client, name, count);
    }
    client.disconnect();
    // 3,200 places, not counting the first 20 of each: two fifths of what they want.
    world.restart_within(limits(102_400));
    let told = |name: &str, count| ("/".to_owned(), name.to_owned(), count);
    assert_eq!(shortened(&world), [told("large", 3600), told("second", 1200)]);
    assert_eq!(lengths(&mut world), [2420, 820, 20]);
    assert_eq!(shortened(&world), [], "there is room for what is left");
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.bind("q", "second", "");
    let newest: Vec<String> = (1200..2020).map(|nth| nth.to_string()).collect();
    assert_eq!(client.pop_all("q"), newest);
    publish_numbers(&mut client, "large", 1);
    client.disconnect();
    assert_eq!(lengths(&mut world), [2420, 820, 20], "it has as many as before");
}
