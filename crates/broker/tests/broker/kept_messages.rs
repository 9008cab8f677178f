//! What does not survive a restart, where several exchanges keep it: it is there once for all that delay it, and once for all that
//! remember it.

use crate::delayed::run_until;
use crate::frame_costs::large;
use crate::support::{Client, Heard, Message, WorldOnDisk, short, taken_bytes};
use courser_codec::{FieldTable, Table, exchange};
use courser_store::Log;

/// Exchanges that delay messages and exchanges that remember them, so many of each, behind `all`; the former have the queue `q`.
fn keeping(client: &mut Client, count: usize) {
    client.declare_exchange("all", "fanout");
    client.declare("q");
    for (name, kind) in [("delays", "x-delayed-message"), ("remembers", "x-recent-history")] {
        for nth in 0..count {
            let arguments = match name {
                "delays" => FieldTable::new().with("x-delayed-type", "fanout"),
                _ => FieldTable::new(),
            };
            let entries = arguments.to_entries();
            let name = format!("{name}{nth}");
            let (exchange, kind) = (short(&name), short(kind));
            let arguments = Table::from_entries(&entries);
            client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
            client.bind_exchange(&name, "all", "");
            if kind.as_bytes() == b"x-delayed-message" {
                client.bind("q", &name, "");
            }
        }
    }
}

fn delayed(body: &str) -> Message {
    Message::new("all", "", body).headers(FieldTable::new().with("x-delay", 10))
}

#[test]
fn a_body_that_many_exchanges_keep_is_there_once_for_each_kind() {
    const EXCHANGES: usize = 50;
    const BYTES: usize = 100_000;
    let world = large();
    world.broker.set_time(0);
    let mut client = world.connect();
    keeping(&mut client, EXCHANGES);
    let message = delayed(&"x".repeat(BYTES));
    let before = taken_bytes();
    client.send(message);
    let taken = (taken_bytes() - before) as usize;
    assert!(taken < 20 * BYTES, "{taken}");
    run_until(&world, 10);
    assert_eq!(client.pop_all("q").len(), EXCHANGES);
    client.declare("late");
    client.bind("late", &format!("remembers{}", EXCHANGES - 1), "");
    assert_eq!(client.pop_all("late"), ["x".repeat(BYTES)]);
}

#[test]
fn a_place_in_the_log_that_exchanges_share_is_there_until_the_last_has_let_go_of_it() {
    let world = WorldOnDisk::without_memory();
    world.broker.set_time(0);
    let mut client = world.connect();
    keeping(&mut client, 3);
    let before = world.store().end();
    client.send(delayed("x"));
    assert!(world.store().end() > before, "it is in the log, as there is no memory");
    for name in ["delays0", "remembers0"] {
        let gone = client.call(exchange::Delete { exchange: short(name), ..Default::default() });
        assert_eq!(gone, Heard::Done("exchange.delete-ok"));
    }
    run_until(&world, 10);
    assert_eq!(client.pop_all("q"), ["x", "x"]);
    client.declare("late");
    client.bind("late", "remembers1", "");
    client.bind("late", "remembers2", "");
    assert_eq!(client.pop_all("late"), ["x", "x"]);
}
