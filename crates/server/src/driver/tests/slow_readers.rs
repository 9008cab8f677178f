//! Clients that are slow to take what they have asked for.

use crate::accounts::GUEST;
use crate::clock::Clock;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::shared;
use courser_broker::admin::{NewMessage, NewQueue};
use courser_broker::{Broker, Limits};
use courser_codec::{FieldTable, PROTOCOL_HEADER, Table, basic, channel, connection};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::sync::watch;

/// Bytes that a client takes each second.
const RATE: usize = 64 << 10;
/// Bytes of a message, and how many are asked for at a time: much longer on their way than two heartbeats.
const MESSAGE_BYTES: usize = 256 << 10;
const MESSAGES: usize = 8;
const HEARTBEAT_S: u16 = 4;
const HEARTBEAT: &[u8] = &[8, 0, 0, 0, 0, 0, 0, 0xce];

/// All that a client says before it asks for messages.
fn opened() -> Vec<u8> {
    let mut said = PROTOCOL_HEADER.to_vec();
    let start_ok = connection::StartOk {
        client_properties: Table::from_entries(&[]),
        mechanism: "ANONYMOUS".try_into().expect("short"),
        response: b"",
        locale: "en_US".try_into().expect("short"),
    };
    start_ok.write_frame(0, &mut said);
    let (channel_max, frame_max, heartbeat) = (1, 128 << 10, HEARTBEAT_S);
    connection::TuneOk { channel_max, frame_max, heartbeat }.write_frame(0, &mut said);
    let open = connection::Open { virtual_host: "/".try_into().expect("short") };
    open.write_frame(0, &mut said);
    channel::Open {}.write_frame(1, &mut said);
    said
}

/// Asks for messages.
fn gets() -> Vec<u8> {
    let mut said = Vec::new();
    for _ in 0..MESSAGES {
        let get = basic::Get { queue: "q".try_into().expect("short"), no_ack: true };
        get.write_frame(1, &mut said);
    }
    said
}

// No time passes but that of the client.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_read_because_of_its_answers_is_not_missed_for_its_heartbeats() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let broker = Broker::new(store, gauge, Limits::default(), 7);
    let shared = Arc::new(shared(broker, &Clock::of(|| 1_800_000_000_000)));
    let admin = shared.broker.admin();
    let queue = NewQueue { durable: false, auto_delete: false, arguments: FieldTable::new() };
    admin.declare_queue("/", "q", queue).expect("a queue");
    let message = NewMessage {
        routing_key: "q".try_into().expect("short"),
        body: vec![7; MESSAGE_BYTES].into(),
        ..NewMessage::default()
    };
    for _ in 0..2 * MESSAGES {
        let publishing = admin.publish(GUEST, "/", &message).expect("it is let in");
        publishing.await.expect("it is routed");
    }
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = duplex(RATE);
    let (_stop, stopping) = watch::channel(false);
    tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(&shared), stopping));
    let (mut reading, mut writing) = split(theirs);
    tokio::spawn(async move {
        // The others are read when the first answers are on their way.
        for said in [opened(), gets(), gets()] {
            writing.write_all(&said).await.expect("it is taken");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        while writing.write_all(HEARTBEAT).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let (mut piece, mut taken) = (vec![0; RATE], 0);
    while taken < 2 * MESSAGES * MESSAGE_BYTES {
        let read = reading.read(&mut piece).await.expect("an open pipe");
        assert!(read > 0, "it is given up after {taken} bytes");
        taken += read;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
