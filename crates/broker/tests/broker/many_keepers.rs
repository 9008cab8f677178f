//! Messages that very many exchanges keep, and batches that are not taken: what they take of the log and of memory.

use crate::recent_history_beside_others::history;
use crate::support::{
    BATCH_BYTES, Client, Heard, Message, Step, WorldOnDisk, allocated_bytes, declare_with, short,
    taken_bytes,
};
use courser_codec::{FieldTable, Table, exchange, queue, tx};
use courser_store::Log;

const MIB: usize = 1 << 20;

fn persistent(exchange: &str, bytes: usize) -> Message {
    let message = Message::new(exchange, "", vec![b'm'; bytes]);
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// A fanout exchange `all` with so many durable histories behind it, of so many messages each.
fn with_histories(world: &WorldOnDisk, count: usize, length: i32) -> Client {
    let mut client = world.connect();
    client.declare_exchange("all", "fanout");
    for nth in 0..count {
        let name = format!("h{nth}");
        history(&mut client, &name, length, true);
        client.bind_exchange(&name, "all", "");
    }
    client
}

/// A fanout exchange `all` with so many durable exchanges behind it that delay messages.
pub fn with_delays(client: &mut Client, count: usize) {
    client.declare_exchange("all", "fanout");
    let entries = FieldTable::new().with("x-delayed-type", "fanout").to_entries();
    for nth in 0..count {
        let name = format!("d{nth}");
        let (exchange, kind) = (short(&name), short("x-delayed-message"));
        let arguments = Table::from_entries(&entries);
        let durable = true;
        client.call(exchange::Declare { exchange, kind, durable, arguments, ..Default::default() });
        client.bind_exchange(&name, "all", "");
    }
}

/// The lengths of what a history remembers.
pub fn remembered(client: &mut Client, history: &str) -> Vec<usize> {
    let (queue, exchange) = (short("late"), short(history));
    declare_with(client, "late", false, &FieldTable::new());
    client.bind("late", history, "");
    let found = client.pop_all("late");
    client.call(queue::Unbind { queue, exchange, ..Default::default() });
    found.iter().map(String::len).collect()
}

#[test]
fn a_message_that_many_exchanges_remember_is_in_the_log_once() {
    let mut world = WorldOnDisk::new();
    let mut client = with_histories(&world, 60, 2);
    // As large as 60 copies of it are too large for.
    let message = persistent("all", MIB);
    let before = world.store().end();
    client.send(message);
    let logged = world.store().end().0 - before.0;
    assert_eq!(client.heard(), []);
    assert!(logged < 2 * MIB as u64, "{logged}");
    // One of them forgets it sooner, and one goes.
    for _ in 0..2 {
        client.send(persistent("h3", 7));
    }
    let exchange = short("h4");
    client.call(exchange::Delete { exchange, ..Default::default() });
    client.disconnect();
    let restarts: [fn(&mut WorldOnDisk); 3] =
        [WorldOnDisk::restart, WorldOnDisk::restart_from_checkpoint, |world| world.crash(|| {})];
    for restart in restarts {
        restart(&mut world);
        let mut client = world.connect();
        for nth in [0, 5, 59] {
            assert_eq!(remembered(&mut client, &format!("h{nth}")), [MIB], "h{nth}");
        }
        assert_eq!(remembered(&mut client, "h3"), [7, 7]);
        client.disconnect();
        world.sync();
    }
}

#[test]
fn copies_for_many_delays_are_refused_before_they_are_made() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    with_delays(&mut client, 80);
    let delayed = |bytes| {
        let headers = FieldTable::new().with("x-delay", 1000);
        persistent("all", bytes).headers(headers)
    };
    // A few small ones are taken.
    client.send(delayed(10_000));
    assert_eq!(client.heard(), []);
    let mut in_transaction = world.connect();
    in_transaction.tx_select();
    let publishes: Vec<_> = (0..4).map(|_| Step::Publish(1, delayed(MIB / 4))).collect();
    in_transaction.read(&publishes);
    let large = delayed(MIB);
    let before = taken_bytes();
    client.send(large);
    let heard = client.heard();
    let refusal = in_transaction.fatal(tx::Commit {});
    let taken = (taken_bytes() - before) as u64;
    let [Heard::ConnectionClosed(text)] = &heard[..] else { panic!("{heard:?}") };
    for text in [text, &refusal] {
        assert!(text.starts_with("506 RESOURCE_ERROR - "), "{text}");
    }
    assert!(taken < BATCH_BYTES, "{taken}");
}

#[test]
fn a_batch_that_is_not_taken_leaves_no_memory_behind() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    world.fill_disk();
    let message = || {
        let message = Message::new("", "q", vec![b'm'; 6 * MIB]);
        message.with_properties(|properties| properties.delivery_mode = Some(2))
    };
    let before = allocated_bytes();
    client.send(message());
    let heard = client.heard();
    let [Heard::ConnectionClosed(text)] = &heard[..] else { panic!("{heard:?}") };
    assert!(text.starts_with("506 "), "{text}");
    let left = allocated_bytes() - before;
    assert!(left < 3 * MIB as i64, "{left}");
}
