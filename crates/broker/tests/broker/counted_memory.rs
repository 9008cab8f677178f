//! What clients make the broker hold counts by no less than what it takes, as the allocator has it.

use crate::delayed::{START_MS, delayed, delayed_type, persistent, run_until, with_exchange};
use crate::frame_costs::large;
use crate::support::{
    Client, Message, Step, World, WorldOnDisk, allocated_bytes, declare_with, short,
};
use courser_codec::{FieldTable, Table, basic, exchange, queue};

/// Queues that things are bound to: as many as there are bindings, or one for all.
const QUEUES: usize = 500;
const BINDINGS: usize = 2000;

/// What was counted and what was allocated while `act` ran.
fn costs(world: &World, act: impl FnOnce()) -> (i64, i64) {
    let before = (world.broker.memory_used_bytes() as i64, allocated_bytes());
    act();
    let after = (world.broker.memory_used_bytes() as i64, allocated_bytes());
    (after.0 - before.0, after.1 - before.1)
}

fn declare_exchange(client: &mut Client, kind: &str) {
    declare_exchange_with(client, "x", kind, &FieldTable::new());
}

fn declare_exchange_with(client: &mut Client, name: &str, kind: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let (exchange, kind, arguments) = (short(name), short(kind), Table::from_entries(&entries));
    client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
}

fn bind(client: &mut Client, queue: &str, key: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    client.call(queue::Bind {
        queue: short(queue),
        exchange: short("x"),
        routing_key: short(key),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    });
}

fn unbind(client: &mut Client, queue: &str, key: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    client.call(queue::Unbind {
        queue: short(queue),
        exchange: short("x"),
        routing_key: short(key),
        arguments: Table::from_entries(&entries),
    });
}

/// Binds with each number's key and arguments, to one queue and to many, and sees that no more is allocated than counts; and,
/// when all but a few are gone, that this is given back.
fn assert_counted(
    kind: &str,
    key: impl Fn(usize) -> String,
    arguments: impl Fn(usize) -> FieldTable,
) {
    for queues in [1, QUEUES] {
        let world = World::new();
        let mut client = world.connect();
        for number in 0..queues {
            client.declare(&format!("q{number}"));
        }
        declare_exchange(&mut client, kind);
        let each = |act: &mut dyn FnMut(&str, &str, &FieldTable),
                    numbers: std::ops::Range<usize>| {
            for number in numbers {
                act(&format!("q{}", number % queues), &key(number), &arguments(number));
            }
        };
        let (counted, allocated) = costs(&world, || {
            each(
                &mut |queue, key, arguments| bind(&mut client, queue, key, arguments),
                0..BINDINGS,
            );
        });
        assert!(allocated <= counted, "{kind}, {queues} queues: {allocated} of {counted} counted");
        assert!(
            counted < 40 * allocated,
            "{kind}, {queues} queues: {allocated} of {counted} counted"
        );
        let (uncounted, freed) = costs(&world, || {
            each(
                &mut |queue, key, arguments| unbind(&mut client, queue, key, arguments),
                8..BINDINGS,
            );
        });
        let (counted, left) = (counted + uncounted, allocated + freed);
        // Maps keep room for 64 entries, and each queue has something of its own.
        let spare = 65_536 + 256 * queues as i64;
        assert!(left <= counted + spare, "{kind}, {queues} queues: {left} of {counted} left");
    }
}

fn none(_: usize) -> FieldTable {
    FieldTable::new()
}

#[test]
fn bindings_count_by_what_their_exchange_keeps_of_them() {
    for kind in ["direct", "fanout", "x-modulus-hash", "x-random"] {
        assert_counted(kind, |number| format!("k{number}"), none);
        assert_counted(kind, |number| format!("{number}{}", "k".repeat(200)), none);
    }
    assert_counted("x-consistent-hash", |number| format!("{}", number + 1), none);
}

#[test]
fn topics_count_by_their_words() {
    assert_counted("topic", |number| format!("k{number}"), none);
    assert_counted("topic", |number| format!("orders.{number}.*.#"), none);
    assert_counted("topic", |number| format!("{number}{}", ".a".repeat(120)), none);
    assert_counted("topic", |number| format!("{}{number}", "a.".repeat(120)), none);
    assert_counted("topic", |number| format!("{number}{}", ".*.#".repeat(60)), none);
    let digits = |number: usize| {
        (0..11).map(|bit| if number >> bit & 1 == 1 { "one" } else { "zero" }).collect::<Vec<_>>()
    };
    assert_counted("topic", |number| digits(number).join("."), none);
}

#[test]
fn headers_count_by_what_they_are_found_by() {
    let any = |number: usize| {
        let table = FieldTable::new().with("x-match", "any");
        (0..10).fold(table, |table, at| {
            table.with(&format!("h{at}"), format!("{number} {at}").as_str())
        })
    };
    assert_counted("headers", |_| String::new(), any);
    let all = |number: usize| {
        let text = format!("{number}{}", "x".repeat(3000));
        FieldTable::new().with("x-match", "all").with("text", text.as_str()).with("n", 1)
    };
    assert_counted("headers", |_| String::new(), all);
    assert_counted("headers", |number| format!("k{number}"), none);
}

#[test]
fn delayed_messages_count_by_where_they_wait() {
    const MESSAGES: usize = 5000;
    // Soon, and on each level of what waits longer.
    for delay_ms in [100, 20_000, 600_000, 50_000_000] {
        let world = World::new();
        let mut client = with_exchange(&world);
        let places = || world.broker.admin().memory_uses().places as i64;
        let message = |nth: usize| Step::Publish(1, delayed("x", delay_ms + (nth % 7) as i64));
        let messages: Vec<Step<'_>> = (0..MESSAGES).map(message).collect();
        let before = (places(), allocated_bytes(), world.broker.memory_used_bytes() as i64);
        messages.chunks(100).for_each(|some| client.read(some));
        let counted = world.broker.memory_used_bytes() as i64 - before.2;
        let (placed, allocated) = (places() - before.0, allocated_bytes() - before.1);
        assert!(placed >= 32 * MESSAGES as i64 - 8192, "{delay_ms} ms: {placed} of places");
        assert!(allocated <= counted + 65_536, "{delay_ms} ms: {allocated} of {counted} counted");
        // Some of it comes closer.
        run_until(&world, START_MS + delay_ms as u64 - 5);
        assert!(places() - before.0 >= 32 * MESSAGES as i64 - 8192, "{delay_ms} ms");
        run_until(&world, START_MS + delay_ms as u64 + 7);
        client.purge("q");
        assert!(places() <= before.0 + 8192, "{delay_ms} ms: {} are left", places());
    }
}

#[test]
fn delayed_messages_that_are_due_far_from_each_other_count_by_what_each_takes() {
    // Each in a bucket of its own, of as many as a level has; and three in each of many exchanges.
    let scattered: [(u32, i64, usize); 5] =
        [(24, 5000, 1), (16, 250, 20), (8, 250, 20), (16, 3, 1000), (0, 3, 1000)];
    for (bits, messages, exchanges) in scattered {
        let world = World::new();
        let mut client = with_exchange(&world);
        let names: Vec<String> = (0..exchanges).map(|nth| format!("x{nth}")).collect();
        for name in &names {
            let arguments = delayed_type("fanout");
            declare_exchange_with(&mut client, name, "x-delayed-message", &arguments);
        }
        let (counted, allocated) = costs(&world, || {
            for name in &names {
                for nth in 1..=messages {
                    let delay = FieldTable::new().with("x-delay", nth << bits);
                    client.send(Message::new(name, "", "x").headers(delay));
                }
            }
        });
        let what = format!("{messages} in each of {exchanges}, {bits} bits");
        assert!(allocated <= counted + 65_536, "{what}: {allocated} of {counted} counted");
        assert!(counted < 3 * allocated, "{what}: {allocated} of {counted} counted");
        let (uncounted, freed) = costs(&world, || {
            run_until(&world, START_MS + ((messages + 1) << bits) as u64);
        });
        let (counted, left) = (counted + uncounted, allocated + freed);
        assert!(left <= counted + 65_536, "{what}: {left} of {counted} left");
    }
}

#[test]
fn a_start_counts_what_each_delayed_message_takes_that_it_finds() {
    const MESSAGES: i64 = 2000;
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    for nth in 1..=MESSAGES {
        client.send(persistent(delayed("x", nth << 24)));
    }
    world.flush();
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    let (uncounted, freed) = costs(&world, || {
        client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    });
    assert!(freed <= -100 * MESSAGES, "{freed}");
    assert!(uncounted <= freed + 65_536, "{freed} of {uncounted} counted");
}

/// Opens channels with so many consumers of a queue each, whose tags begin like this, and sees that no more is allocated than
/// counts.
fn assert_consumers_counted(
    what: &str,
    (channels, consumers): (u16, usize),
    tag: &str,
    arguments: &FieldTable,
) {
    let world = large();
    let mut client = world.connect();
    let is_stream = arguments.get("x-queue-type").is_some();
    declare_with(&mut client, "q", is_stream, arguments);
    let global = what == "starved";
    let (counted, allocated) = costs(&world, || {
        for number in 2..channels + 2 {
            client.open_channel(number);
            if global || is_stream {
                let qos = basic::Qos { prefetch_count: 1, global, ..Default::default() };
                client.call_on(number, qos);
            }
            for nth in 0..consumers {
                let mut arguments = FieldTable::new();
                if !is_stream {
                    arguments = arguments.with("x-priority", nth as i64);
                }
                let entries = arguments.to_entries();
                let arguments = Table::from_entries(&entries);
                let (queue, tag) = (short("q"), format!("{tag}{nth}"));
                let consumer_tag = short(&tag);
                let consume =
                    basic::Consume { queue, consumer_tag, arguments, ..Default::default() };
                client.call_on(number, consume);
            }
        }
        if global {
            client.fill("q", &vec!["x"; usize::from(channels) * (consumers + 1)]);
            client.heard();
        }
    });
    assert!(allocated <= counted + 4096, "{what}: {allocated} of {counted} counted");
    assert!(counted < 4 * allocated, "{what}: {allocated} of {counted} counted");
}

#[test]
fn channels_and_consumers_count_by_what_they_take() {
    let none = FieldTable::new();
    assert_consumers_counted("channels", (1000, 0), "", &none);
    assert_consumers_counted("a consumer on each channel", (1000, 1), "ctag1.", &none);
    assert_consumers_counted("many on a channel", (1, 5000), "ctag1.", &none);
    assert_consumers_counted("long tags", (1, 5000), &"t".repeat(240), &none);
    assert_consumers_counted("starved", (1000, 2), "ctag1.", &none);
    let single = FieldTable::new().with("x-single-active-consumer", true);
    assert_consumers_counted("standing by", (1, 5000), "ctag1.", &single);
    let stream = FieldTable::new().with("x-queue-type", "stream");
    assert_consumers_counted("readers", (1, 1000), "ctag1.", &stream);
}

#[test]
fn queues_and_exchanges_count_by_what_they_take() {
    const EACH: i64 = 2000;
    let letters = FieldTable::new().with("x-dead-letter-exchange", "x").with("x-message-ttl", 1000);
    let kinds = [
        ("classic", FieldTable::new()),
        ("quorum", FieldTable::new().with("x-queue-type", "quorum")),
        ("stream", FieldTable::new().with("x-queue-type", "stream")),
        ("ranked", FieldTable::new().with("x-max-priority", 10)),
        ("limits", letters.with("x-max-length", 1000).with("x-max-length-bytes", 100_000)),
    ];
    let assert_counted = |what: &str, make: &mut dyn FnMut(&mut Client, i64)| {
        let world = World::new();
        let mut client = world.connect();
        let (counted, allocated) =
            costs(&world, || (0..EACH).for_each(|nth| make(&mut client, nth)));
        let (counted, allocated) = (counted / EACH, allocated / EACH);
        assert!(
            allocated <= counted && counted < 2 * allocated,
            "{what}: {allocated} of {counted}"
        );
    };
    for (what, arguments) in kinds {
        let mut make = move |client: &mut Client, nth| {
            let name = format!("queue {nth}");
            declare_with(client, &name, true, &arguments);
            if what != "stream" {
                // It has counts from then on.
                client.publish("", &name, "x");
                client.purge(&name);
            }
        };
        assert_counted(what, &mut make);
    }
    for kind in ["direct", "topic", "headers", "x-delayed-message", "x-random"] {
        let mut make = move |client: &mut Client, nth| {
            let arguments = delayed_type("direct");
            declare_exchange_with(client, &format!("exchange {nth}"), kind, &arguments);
        };
        assert_counted(kind, &mut make);
    }
}
