//! What machines take from the heap: nothing for a message on the hot path, little for announcements, and what is
//! bounded stays so.
#![allow(clippy::disallowed_methods, reason = "the tests tell the time")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use courser_codec::*;
use courser_connection::server::{Config, Connection, Event};

/// Counts what the current thread has allocated.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; the counters are constants that need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        HELD_BYTES.set(HELD_BYTES.get() + layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD_BYTES.set(HELD_BYTES.get() - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A connection in use with channel 1 open.
fn running(config: Config) -> Connection {
    let now = Instant::now();
    let tune_ok = connection::TuneOk {
        channel_max: config.channel_max,
        frame_max: config.frame_max,
        heartbeat: config.heartbeat_s,
    };
    let mut bytes = PROTOCOL_HEADER.to_vec();
    let start_ok = connection::StartOk {
        client_properties: Table::EMPTY,
        mechanism: "PLAIN".try_into().unwrap(),
        response: b"\0u\0p",
        locale: ShortStr::EMPTY,
    };
    start_ok.write_frame(0, &mut bytes);
    tune_ok.write_frame(0, &mut bytes);
    connection::Open::default().write_frame(0, &mut bytes);
    channel::Open {}.write_frame(1, &mut bytes);
    let mut machine = Connection::new(Arc::new(config), now);
    let mut input = &bytes[..];
    while let Some(event) = machine.next(&mut input, now) {
        match event {
            Event::Login { .. } => machine.login_accepted(now),
            Event::Open { .. } => machine.open_accepted(now),
            Event::ChannelOpened { channel: 1 } => {}
            other => panic!("{other:?}"),
        }
    }
    *machine.output() = Vec::new();
    machine
}

fn publish_start(channel: u16, body_size: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    basic::Publish { routing_key: "queue".try_into().unwrap(), ..Default::default() }
        .write_frame(channel, &mut bytes);
    write_content_header_frame(
        channel,
        basic::CLASS_ID,
        body_size,
        RawProperties::EMPTY,
        &mut bytes,
    );
    bytes
}

fn drain(machine: &mut Connection, bytes: &[u8], mut each: impl FnMut(Event<'_>)) {
    let now = Instant::now();
    let mut input = bytes;
    while let Some(event) = machine.next(&mut input, now) {
        each(event);
    }
}

#[test]
fn small_publishes_and_acks_allocate_nothing() {
    let mut bytes = Vec::new();
    for len in [0, 16, 1024, 100_000] {
        bytes.extend(publish_start(1, len as u64));
        if len > 0 {
            write_body_frame(1, &vec![1; len], &mut bytes);
        }
        basic::Ack { delivery_tag: 1, multiple: true }.write_frame(1, &mut bytes);
    }
    let mut machine = running(Config::default());
    let before = ALLOCATIONS.get();
    let mut count = 0;
    drain(&mut machine, &bytes, |event| {
        assert!(matches!(event, Event::Publish(_) | Event::Request { .. }));
        count += 1;
    });
    assert_eq!((count, ALLOCATIONS.get() - before), (8, 0));
}

#[test]
fn an_idle_connection_holds_next_to_nothing() {
    let config = Arc::new(Config::default());
    let before = HELD_BYTES.get();
    let machine = Connection::new(config, Instant::now());
    assert_eq!(HELD_BYTES.get() - before, 0);
    drop(machine);
    let mut machine = running(Config::default());
    let own = HELD_BYTES.get();
    drain(&mut machine, &publish_start(1, 50_000), |_| {});
    let channels_and_message = HELD_BYTES.get() - own;
    assert!(channels_and_message < 1024, "{channels_and_message}");
}

#[test]
fn a_client_that_is_not_let_in_yet_holds_no_more_than_it_has_sent() {
    for login_frame_max in [0, 32 * 1024] {
        let config = Arc::new(Config { login_frame_max, ..Config::default() });
        let frame_max = login_frame_max.max(FRAME_MIN_SIZE) as usize;
        let said = b"\0V".repeat((frame_max - 100) / 2);
        let mut bytes = PROTOCOL_HEADER.to_vec();
        let start_ok = connection::StartOk {
            client_properties: Table::from_entries(&said),
            mechanism: "PLAIN".try_into().unwrap(),
            response: b"\0u\0p",
            locale: ShortStr::EMPTY,
        };
        start_ok.write_frame(0, &mut bytes);
        let before = HELD_BYTES.get();
        let mut machine = Connection::new(config, Instant::now());
        let mut is_asked = false;
        drain(&mut machine, &bytes, |event| {
            let held = HELD_BYTES.get() - before;
            assert!(held < frame_max as i64, "{held}");
            is_asked |= matches!(event, Event::Login { client_properties, .. }
                if client_properties.as_bytes() == said);
        });
        assert!(is_asked);
    }
}

#[test]
fn a_high_channel_number_costs_no_more_than_a_low_one() {
    let mut machine = running(Config::default());
    let mut open = Vec::with_capacity(64);
    let own = HELD_BYTES.get();
    for channel in [u16::MAX, 30_000, 2_048] {
        open.clear();
        channel::Open {}.write_frame(channel, &mut open);
        drain(&mut machine, &open, |_| {});
    }
    let held = HELD_BYTES.get() - own;
    assert!(held < 2048, "{held}");
}

#[test]
fn an_announced_size_alone_costs_nothing() {
    let mut machine = running(Config::default());
    let mut bytes = Vec::new();
    for channel in 2..=2047 {
        channel::Open {}.write_frame(channel, &mut bytes);
        bytes.extend(publish_start(channel, 16 * 1024 * 1024));
    }
    bytes.extend(publish_start(1, 16 * 1024 * 1024));
    let before = HELD_BYTES.get();
    drain(&mut machine, &bytes, |event| {
        assert!(matches!(event, Event::ChannelOpened { .. } | Event::PublishBegun { .. }));
    });
    let held = HELD_BYTES.get() - before;
    assert!(held < 2047 * 512, "{held}");
}

#[test]
fn incomplete_messages_are_bounded_over_all_channels() {
    const LIMIT: u64 = 8 * 1024 * 1024;
    let mut machine = running(Config { max_incomplete_bytes: LIMIT, ..Config::default() });
    let mut bytes = Vec::new();
    for channel in 2..=200 {
        channel::Open {}.write_frame(channel, &mut bytes);
        bytes.extend(publish_start(channel, 200_000));
        write_body_frame(channel, &vec![0; 100_000], &mut bytes);
    }
    let before = HELD_BYTES.get();
    let mut held_max = 0;
    let mut closed = None;
    drain(&mut machine, &bytes, |event| {
        held_max = held_max.max(HELD_BYTES.get() - before);
        if let Event::Closed(reason) = event {
            closed = Some(reason.code);
        }
    });
    assert_eq!(closed, Some(506));
    assert!(held_max < LIMIT as i64 + 300_000, "{held_max}");
    *machine.output() = Vec::new();
    assert!(HELD_BYTES.get() - before < 1024, "all of it is given back");
}

#[test]
fn a_message_in_many_pieces_holds_at_most_twice_what_has_come() {
    const SIZE: usize = 10 * 1024 * 1024;
    let mut machine = running(Config::default());
    let now = Instant::now();
    let mut bytes = publish_start(1, SIZE as u64);
    for _ in 0..SIZE / 65_536 {
        write_body_frame(1, &[3; 65_536], &mut bytes);
    }
    let before = HELD_BYTES.get();
    let mut taken = 0;
    let mut published = 0;
    for end in (0..=bytes.len()).step_by(50_000).chain([bytes.len()]) {
        let mut input = &bytes[taken..end];
        while let Some(event) = machine.next(&mut input, now) {
            match event {
                Event::PublishBegun { channel: 1, .. } => {}
                Event::LargePublish(publish) => published = publish.body.len(),
                event => panic!("{event:?}"),
            }
        }
        taken = end - input.len();
        assert!(input.len() < 32, "all but the head of a frame is taken");
        assert!(HELD_BYTES.get() - before <= 2 * taken as i64 + 66_000);
    }
    assert_eq!(published, SIZE);
}
