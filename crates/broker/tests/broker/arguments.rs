//! The arguments of `queue.declare`: what is refused, and in which words.

use crate::support::{Client, Heard, World, short};
use courser_codec::{FieldTable, FieldValue, Table, queue};

fn declare(client: &mut Client, name: &str, arguments: &FieldTable) -> Heard {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    let answer =
        client.call(queue::Declare { queue: short(name), arguments, ..Default::default() });
    if matches!(answer, Heard::ChannelClosed(_)) {
        client.open_channel(1);
    }
    answer
}

/// What follows `invalid arg 'NAME' for queue 'q' in vhost '/': `.
fn why(client: &mut Client, name: &str, value: impl Into<FieldValue>) -> String {
    let arguments = FieldTable::new().with(name, value);
    let answer = declare(client, "q", &arguments);
    let Heard::ChannelClosed(text) = answer else { panic!("{name} is not refused: {answer:?}") };
    let start =
        format!("406 PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/': ");
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn numbers_out_of_range_are_refused() {
    let world = World::new();
    let mut client = world.connect();
    for name in ["x-max-length", "x-max-length-bytes", "x-message-ttl", "x-expires"] {
        assert_eq!(why(&mut client, name, -1), "{value_negative,-1}");
    }
    for name in ["x-expires", "x-consumer-timeout", "x-cache-size"] {
        assert_eq!(why(&mut client, name, 0), "{value_zero,0}", "{name}");
    }
    for name in ["x-message-ttl", "x-expires", "x-cache-ttl"] {
        let text = why(&mut client, name, 315_360_000_001_i64);
        assert_eq!(text, "{value_too_large,315360000001}");
    }
    assert_eq!(why(&mut client, "x-max-priority", 256), "{max_value_exceeded,256}");
    assert_eq!(why(&mut client, "x-max-priority", -1), "{value_negative,-1}");
    assert_eq!(why(&mut client, "x-queue-version", 3), "\"unsupported queue version '3'\"");
    assert!(!world.has_queue("q"));
}

#[test]
fn a_value_of_another_type_than_an_integer_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let names = [
        "x-expires",
        "x-message-ttl",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-priority",
        "x-delivery-limit",
        "x-consumer-timeout",
        "x-queue-version",
    ];
    for name in names {
        assert_eq!(why(&mut client, name, "5"), "\"expected integer, got longstr\"");
        assert_eq!(why(&mut client, name, 5.0), "\"expected integer, got double\"");
    }
}

#[test]
fn a_value_of_another_type_than_a_text_or_a_flag_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let names = ["x-dead-letter-routing-key", "x-overflow", "x-queue-mode", "x-queue-type"];
    for name in names {
        assert_eq!(why(&mut client, name, 5), "{unacceptable_type,signedint}");
    }
    let text = why(&mut client, "x-single-active-consumer", "true");
    assert_eq!(text, "{unacceptable_type,longstr}");
    assert_eq!(why(&mut client, "x-message-deduplication", 1), "{unacceptable_type,signedint}");
    let exchange = FieldTable::new().with("x-dead-letter-exchange", 5);
    let text = "406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' \
                in queue 'q' in vhost '/'";
    assert_eq!(declare(&mut client, "q", &exchange), Heard::ChannelClosed(text.to_owned()));
}

#[test]
fn a_text_that_is_none_of_the_choices_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    assert_eq!(why(&mut client, "x-overflow", "drop-tail"), "invalid_overflow");
    assert_eq!(why(&mut client, "x-dead-letter-strategy", "never"), "invalid_dlx_strategy");
    assert_eq!(why(&mut client, "x-queue-mode", "quick"), "\"unsupported queue mode 'quick'\"");
    assert_eq!(why(&mut client, "x-queue-type", "fast"), "\"unsupported queue type 'fast'\"");
    let locator = why(&mut client, "x-queue-leader-locator", "here");
    assert_eq!(locator, "invalid_queue_locator_arg");
}

#[test]
fn a_dead_letter_routing_key_needs_a_dead_letter_exchange() {
    let world = World::new();
    let mut client = world.connect();
    let text = why(&mut client, "x-dead-letter-routing-key", "k");
    assert_eq!(text, "routing_key_but_no_dlx_defined");
}

#[test]
fn an_argument_of_another_type_of_queue_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    for (name, value) in [
        ("x-max-age", FieldValue::from("1D")),
        ("x-stream-max-segment-size-bytes", FieldValue::from(1000)),
        ("x-quorum-initial-group-size", FieldValue::from(3)),
        ("x-max-in-memory-length", FieldValue::from(3)),
        ("x-max-in-memory-bytes", FieldValue::from("many")),
    ] {
        let text = format!(
            "406 PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/' of queue \
             type rabbit_classic_queue"
        );
        let arguments = FieldTable::new().with(name, value);
        assert_eq!(declare(&mut client, "q", &arguments), Heard::ChannelClosed(text));
    }
}

#[test]
fn no_type_is_classic() {
    let world = World::new();
    let mut client = world.connect();
    let classic = FieldTable::new().with("x-queue-type", "classic");
    assert!(matches!(declare(&mut client, "named", &classic), Heard::DeclareOk { .. }));
    assert!(matches!(declare(&mut client, "named", &FieldTable::new()), Heard::DeclareOk { .. }));
    client.declare("unnamed");
    assert!(matches!(declare(&mut client, "unnamed", &classic), Heard::DeclareOk { .. }));
}

#[test]
fn an_empty_type_is_none() {
    let world = World::new();
    let mut client = world.connect();
    let empty = FieldTable::new().with("x-queue-type", "");
    for arguments in
        [&empty, &FieldTable::new(), &FieldTable::new().with("x-queue-type", "classic")]
    {
        let answer = declare(&mut client, "q", arguments);
        assert!(matches!(answer, Heard::DeclareOk { .. }), "{arguments:?}: {answer:?}");
        let answer = declare(&mut client, "q", &empty);
        assert!(matches!(answer, Heard::DeclareOk { .. }), "{arguments:?}: {answer:?}");
    }
}
