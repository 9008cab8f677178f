//! What streams and their readers refuse.

use crate::streams::{declare, filled, try_read};
use crate::support::{Client, Heard, World, short};
use courser_codec::{FieldTable, FieldValue, Table, basic, queue};

#[test]
fn what_a_stream_can_not_do_is_refused() {
    let world = World::new();
    let mut client = filled(&world, 1);
    let mut refused = |change: fn(&mut queue::Declare<'_>)| {
        let entries = FieldTable::new().with("x-queue-type", "stream").to_entries();
        let arguments = Table::from_entries(&entries);
        let mut declare =
            queue::Declare { queue: short("t"), durable: true, arguments, ..Default::default() };
        change(&mut declare);
        client.refused(declare)
    };
    let text = |property: &str| {
        format!(
            "406 PRECONDITION_FAILED - invalid property '{property}' for queue 't' in vhost '/'"
        )
    };
    assert_eq!(refused(|declare| declare.durable = false), text("non-durable"));
    assert_eq!(refused(|declare| declare.exclusive = true), text("exclusive-owner"));
    assert_eq!(refused(|declare| declare.auto_delete = true), text("auto-delete"));
    assert_eq!(
        refused(|declare| declare.queue = short("")),
        "406 PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_stream_queue"
    );
    let too_large = FieldTable::new().with("x-stream-max-segment-size-bytes", 3_000_000_001_i64);
    assert_eq!(
        declare(&mut client, "t", too_large),
        Heard::ChannelClosed(
            "406 PRECONDITION_FAILED - Exceeded max value for x-stream-max-segment-size-bytes"
                .to_owned()
        )
    );
    for bytes in [15, 256] {
        let filter = FieldTable::new().with("x-stream-filter-size-bytes", bytes);
        let text = "406 PRECONDITION_FAILED - Invalid value for x-stream-filter-size-bytes";
        assert_eq!(declare(&mut client, "t", filter), Heard::ChannelClosed(text.to_owned()));
    }
    let unknown = FieldTable::new().with("x-max-length", 5);
    assert!(matches!(declare(&mut client, "t", unknown), Heard::ChannelClosed(_)));
    let get = basic::Get { queue: short("s"), no_ack: false };
    assert_eq!(
        world.connect().fatal(get),
        "540 NOT_IMPLEMENTED - basic.get not supported by stream queues queue 's' in vhost '/'"
    );
    assert_eq!(
        world.connect().fatal(queue::Purge { queue: short("s"), nowait: false }),
        "540 NOT_IMPLEMENTED - queue.purge not supported by stream queues queue 's' in vhost '/'"
    );
}

#[test]
fn a_reader_needs_a_prefetch_and_acknowledges() {
    let world = World::new();
    let mut client = filled(&world, 1);
    let consume = |client: &mut Client, name: &str, value: FieldValue| {
        let answer = try_read(client, "s", &FieldTable::new().with(name, value));
        let Heard::ChannelClosed(text) = answer else { panic!("not refused: {answer:?}") };
        client.open_channel(1);
        client.qos(10);
        text
    };
    assert_eq!(
        consume(&mut client, "x-stream-offset", "first".into()),
        "406 PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 's' in vhost '/'"
    );
    assert_eq!(
        consume(&mut client, "x-stream-offset", "5".into()),
        "406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': \
         {invalid_stream_offset_arg,{longstr,<<\"5\">>}}"
    );
    assert_eq!(
        consume(&mut client, "x-priority", 5.into()),
        "406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 's' in vhost '/' of queue type \
         rabbit_stream_queue"
    );
    client.declare("classic");
    let answer =
        try_read(&mut client, "classic", &FieldTable::new().with("x-stream-offset", "first"));
    let text = "406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'classic' in \
                vhost '/' of queue type rabbit_classic_queue";
    assert_eq!(answer, Heard::ChannelClosed(text.to_owned()));
    client.open_channel(1);
    client.qos(10);
    let no_ack = basic::Consume { queue: short("s"), no_ack: true, ..Default::default() };
    assert_eq!(
        client.fatal(no_ack),
        "540 NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queue 's' in \
         vhost '/'"
    );
}

#[test]
fn a_filter_that_can_not_be_meant_is_refused() {
    let world = World::new();
    let mut client = filled(&world, 1);
    client.qos(10);
    let several = FieldValue::Array(vec!["a".into(), 5.into()]);
    for (name, value, got) in [
        ("x-stream-filter", FieldValue::from(5), "signedint"),
        ("x-stream-filter", several, "signedint"),
        ("x-stream-match-unfiltered", "true".into(), "longstr"),
    ] {
        let answer = try_read(&mut client, "s", &FieldTable::new().with(name, value));
        let text = format!(
            "406 PRECONDITION_FAILED - invalid arg '{name}' for queue 's' in vhost '/': \
             {{unacceptable_type,{got}}}"
        );
        assert_eq!(answer, Heard::ChannelClosed(text));
        client.open_channel(1);
        client.qos(10);
    }
}
