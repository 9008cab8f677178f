//! What the machines cost per message, in nanoseconds: a read's worth of messages, taken apart over and over.
//!
//! `cargo run --release -p courser-connection --example message_cost`, or under `valgrind --tool=callgrind` with the
//! number of rounds as an argument (20, say) for exact instruction counts, and the name of one measurement as another.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use courser_codec::{
    Method, Properties, RawProperties, ShortStr, basic, write_body_frame,
    write_content_header_frame,
};
use courser_connection::{client, server};

/// Bytes that one read brings.
const READ_BYTES: usize = 64 * 1024;

fn main() {
    let rounds: u32 =
        std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000);
    let only = std::env::args().nth(2);
    let wants = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let (mut client, mut server, now) = connected();
    for (name, message) in [
        ("server: publish, 16 B", publish(16, 1)),
        ("server: publish, 1 KiB", publish(1024, 1)),
        ("server: publish, 16 KiB", publish(16 * 1024, 1)),
        ("server: publish, 16 B in two frames", publish(16, 2)),
        ("server: basic.ack", ack()),
    ] {
        if wants(name) {
            let (read, count) = read_of(&message);
            measure(name, rounds, count, || server_takes(&mut server, &read, now));
        }
    }
    for (name, message) in
        [("client: deliver, 16 B", deliver(16)), ("client: deliver, 1 KiB", deliver(1024))]
    {
        if wants(name) {
            let (read, count) = read_of(&message);
            measure(name, rounds, count, || client_takes(&mut client, &read, now));
        }
    }
    for (name, size) in [("client: publish, 16 B", 16), ("client: publish, 1 KiB", 1024)] {
        if wants(name) {
            let body = vec![1; size];
            let mut out = Vec::with_capacity(READ_BYTES * 2);
            let count = READ_BYTES / publish(size, 1).len();
            measure(name, rounds, count, || client_writes(&mut client, &body, count, &mut out));
        }
    }
}

fn read_of(message: &[u8]) -> (Vec<u8>, usize) {
    let count = READ_BYTES / message.len();
    (message.repeat(count), count)
}

fn measure(name: &str, rounds: u32, count: usize, mut round: impl FnMut() -> usize) {
    let mut best_ns = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..rounds / 5 {
            assert_eq!(round(), count);
        }
        let total_ns = start.elapsed().as_nanos() as f64;
        best_ns = best_ns.min(total_ns / f64::from(rounds / 5) / count as f64);
    }
    println!("{name:38} {best_ns:6.1} ns");
}

#[inline(never)]
fn server_takes(connection: &mut server::Connection, read: &[u8], now: Instant) -> usize {
    let mut input = black_box(read);
    let mut events = 0;
    while let Some(event) = connection.next(&mut input, now) {
        black_box(&event);
        events += 1;
    }
    assert!(input.is_empty());
    events
}

#[inline(never)]
fn client_takes(connection: &mut client::Connection, read: &[u8], now: Instant) -> usize {
    let mut input = black_box(read);
    let mut events = 0;
    while let Some(event) = connection.next(&mut input, now) {
        black_box(&event);
        events += 1;
    }
    assert!(input.is_empty());
    events
}

#[inline(never)]
fn client_writes(
    connection: &mut client::Connection,
    body: &[u8],
    count: usize,
    out: &mut Vec<u8>,
) -> usize {
    out.clear();
    let method =
        basic::Publish { routing_key: ShortStr::from_static("perftest"), ..Default::default() };
    let mut written = 0;
    for _ in 0..count {
        written += usize::from(
            connection.publish(1, &method, RawProperties::EMPTY, black_box(body), out).is_ok(),
        );
    }
    black_box(out);
    written
}

/// Both ends of a connection in use, with channel 1 open.
fn connected() -> (client::Connection, server::Connection, Instant) {
    let now = Instant::now();
    let mut client = client::Connection::new(Arc::new(client::Config::default()), now);
    let mut server = server::Connection::new(Arc::new(server::Config::default()), now);
    let mut is_open = false;
    while !is_open {
        let bytes = std::mem::take(client.output());
        let mut input = &bytes[..];
        while let Some(event) = server.next(&mut input, now) {
            match event {
                server::Event::Login { .. } => server.login_accepted(now),
                server::Event::Open { .. } => server.open_accepted(now),
                server::Event::ChannelOpened { .. } => is_open = true,
                other => panic!("{other:?}"),
            }
        }
        let bytes = std::mem::take(server.output());
        let mut input = &bytes[..];
        while let Some(event) = client.next(&mut input, now) {
            if let client::Event::Opened = event {
                assert_eq!(client.open_channel(), Ok(1));
            }
        }
    }
    (client, server, now)
}

/// Header and body as a client with a content type and a delivery mode writes them.
fn write_content(body_size: usize, body_frames: usize, out: &mut Vec<u8>) {
    let properties = Properties {
        content_type: Some(ShortStr::from_static("application/octet-stream")),
        delivery_mode: Some(1),
        ..Default::default()
    };
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    let properties = RawProperties::from_encoded(&encoded).unwrap_or_default();
    write_content_header_frame(1, basic::CLASS_ID, body_size as u64, properties, out);
    for _ in 0..body_frames {
        write_body_frame(1, &vec![1; body_size / body_frames], out);
    }
}

fn publish(body_size: usize, body_frames: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    basic::Publish { routing_key: ShortStr::from_static("perftest"), ..Default::default() }
        .write_frame(1, &mut bytes);
    write_content(body_size, body_frames, &mut bytes);
    bytes
}

fn deliver(body_size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let method = basic::Deliver {
        consumer_tag: ShortStr::from_static("amq.ctag-0123456789"),
        delivery_tag: 1,
        routing_key: ShortStr::from_static("perftest"),
        ..Default::default()
    };
    method.write_frame(1, &mut bytes);
    write_content(body_size, 1, &mut bytes);
    bytes
}

fn ack() -> Vec<u8> {
    let mut bytes = Vec::new();
    Method::BasicAck(basic::Ack { delivery_tag: 1, multiple: false }).write_frame(1, &mut bytes);
    bytes
}
