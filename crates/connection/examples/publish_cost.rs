//! What the server's machine costs per message, in nanoseconds: a read's worth of publishes or acknowledgements, taken
//! apart over and over.
//!
//! `cargo run --release -p courser-connection --example publish_cost`, or under `valgrind --tool=callgrind` with the
//! number of rounds as an argument (20, say) for exact instruction counts, and the name of one measurement as another.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use courser_codec::{
    Method, PROTOCOL_HEADER, Properties, RawProperties, ShortStr, Table, basic, channel,
    connection, write_body_frame, write_content_header_frame,
};
use courser_connection::server::{Config, Connection, Event};

/// Octets that one read brings.
const READ_BYTES: usize = 64 * 1024;

fn main() {
    let rounds: u32 =
        std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000);
    let only = std::env::args().nth(2);
    let messages = [
        ("publish, 16 B", publish(16)),
        ("publish, 1 KiB", publish(1024)),
        ("publish, 16 KiB", publish(16 * 1024)),
        ("publish, 16 B in two body frames", publish_in_two(16)),
        ("basic.ack", ack()),
    ];
    for (name, message) in
        messages.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        measure(name, message, rounds);
    }
}

fn measure(name: &str, message: &[u8], rounds: u32) {
    let count = READ_BYTES / message.len();
    let read = message.repeat(count);
    let (mut connection, now) = running();
    let mut best_ns = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..rounds / 5 {
            assert_eq!(take_apart(&mut connection, black_box(&read), now), count);
        }
        let total_ns = start.elapsed().as_nanos() as f64;
        best_ns = best_ns.min(total_ns / f64::from(rounds / 5) / count as f64);
    }
    println!("{name:34} {best_ns:6.1} ns");
}

#[inline(never)]
fn take_apart(connection: &mut Connection, read: &[u8], now: Instant) -> usize {
    let mut input = read;
    let mut events = 0;
    while let Some(event) = connection.next(&mut input, now) {
        match event {
            Event::Publish(publish) => {
                black_box(&publish);
            }
            other => {
                black_box(&other);
            }
        }
        events += 1;
    }
    assert!(input.is_empty());
    events
}

/// A connection in use with channel 1 open.
fn running() -> (Connection, Instant) {
    let now = Instant::now();
    let mut octets = PROTOCOL_HEADER.to_vec();
    let start_ok = connection::StartOk {
        client_properties: Table::EMPTY,
        mechanism: ShortStr::from_static("PLAIN"),
        response: b"\0guest\0guest",
        locale: ShortStr::EMPTY,
    };
    start_ok.write_frame(0, &mut octets);
    connection::TuneOk { channel_max: 2047, frame_max: 131_072, heartbeat: 60 }
        .write_frame(0, &mut octets);
    connection::Open::default().write_frame(0, &mut octets);
    channel::Open {}.write_frame(1, &mut octets);
    let mut machine = Connection::new(Arc::new(Config::default()), now);
    let mut input = &octets[..];
    while let Some(event) = machine.next(&mut input, now) {
        match event {
            Event::Login { .. } => machine.login_accepted(now),
            Event::Open { .. } => machine.open_accepted(now),
            _ => {}
        }
    }
    machine.output().clear();
    (machine, now)
}

/// Method and content header, as a client with a content type and a delivery mode writes them.
fn publish_head(body_size: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    let method =
        basic::Publish { routing_key: ShortStr::from_static("perftest"), ..Default::default() };
    method.write_frame(1, &mut octets);
    let properties = Properties {
        content_type: Some(ShortStr::from_static("application/octet-stream")),
        delivery_mode: Some(1),
        ..Default::default()
    };
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    let properties = RawProperties::from_encoded(&encoded).unwrap_or_default();
    write_content_header_frame(1, basic::CLASS_ID, body_size as u64, properties, &mut octets);
    octets
}

fn publish(body_size: usize) -> Vec<u8> {
    let mut octets = publish_head(body_size);
    write_body_frame(1, &vec![1; body_size], &mut octets);
    octets
}

fn publish_in_two(body_size: usize) -> Vec<u8> {
    let mut octets = publish_head(body_size);
    write_body_frame(1, &vec![1; body_size / 2], &mut octets);
    write_body_frame(1, &vec![1; body_size / 2], &mut octets);
    octets
}

fn ack() -> Vec<u8> {
    let mut octets = Vec::new();
    Method::BasicAck(basic::Ack { delivery_tag: 1, multiple: false }).write_frame(1, &mut octets);
    octets
}
