//! What others see of an `x-recent-history` exchange: they have their turns while it sends what it remembers, and have their own
//! bindings.

use crate::recent_history::with_large_history;
use crate::support::{Client, Message, Step, WorldOnDisk, declare_with, on_a_thread, short};
use courser_broker::steps;
use courser_codec::{FieldTable, Method, Table, exchange, queue};
use courser_journal::testing::Call;
use courser_store::StoreError;
use parking_lot::Mutex;
use std::sync::Arc;

/// Declares an exchange that remembers so many messages.
fn history(client: &mut Client, name: &str, length: i32, durable: bool) {
    let entries = FieldTable::new().with("x-recent-history-length", length).to_entries();
    let (exchange, kind) = (short(name), short("x-recent-history"));
    let arguments = Table::from_entries(&entries);
    client.call(exchange::Declare { exchange, kind, durable, arguments, ..Default::default() });
}

/// So many messages of one byte, in reads of some hundred.
fn publish(client: &mut Client, exchange: &str, count: usize) {
    let message = Message::new(exchange, "", "x").with_properties(|of| of.delivery_mode = Some(2));
    let steps = vec![Step::Publish(1, message); count];
    steps.chunks(500).for_each(|steps| client.read(steps));
}

#[test]
fn a_history_for_very_many_queues_is_sent_in_portions() {
    const QUEUES: usize = 2000;
    const MESSAGES: usize = 200;
    /// What is sent at once, and what finding the way of one message and putting it into its queues takes.
    const MOST: u64 = (1 << 20) + 10 * QUEUES as u64;
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    history(&mut client, "h", 1000, true);
    publish(&mut client, "h", MESSAGES);
    client.declare_exchange("all", "fanout");
    for nth in 0..QUEUES {
        let name = format!("q{nth}");
        declare_with(&mut client, &name, true, &FieldTable::new());
        client.bind(&name, "all", "");
    }
    let appends = Arc::new(Mutex::new(vec![steps()]));
    let seen = Arc::clone(&appends);
    world.store().set_faults(move |call| {
        if call == Call::Append {
            seen.lock().push(steps());
        }
        None
    });
    client.bind_exchange("all", "h", "");
    world.store().heal();
    let taken: Vec<u64> = appends.lock().windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((4..MESSAGES / 10).contains(&taken.len()), "{taken:?}");
    assert!(taken.iter().all(|steps| *steps <= MOST), "{taken:?}");
    for nth in [0, QUEUES / 2, QUEUES - 1] {
        assert_eq!(world.counts(&format!("q{nth}")).0, MESSAGES, "q{nth}");
    }
}

#[test]
fn a_binding_that_another_client_was_told_of_stays_though_its_history_finds_no_room() {
    let (mut world, mut client) = with_large_history();
    let mut other = Some(world.connect());
    let mut appends = 0;
    world.store().set_faults(move |call| {
        appends += u64::from(call == Call::Append);
        // The first is the binding, the second the beginning of the history.
        if let Some(mut other) = other.take_if(|_| appends == 2) {
            on_a_thread(move || other.bind("later", "large", ""));
        }
        (call == Call::Append && appends > 2).then_some(StoreError::Full)
    });
    let (queue, exchange) = (short("later"), short("large"));
    let text = client.fatal(queue::Bind { queue, exchange, ..Default::default() });
    assert!(text.starts_with("506 "), "{text}");
    world.store().heal();
    for _ in 0..2 {
        let mut other = world.connect();
        other.purge("later");
        other.publish("large", "", "new");
        assert_eq!(other.pop("later").as_deref(), Some("new"));
        other.disconnect();
        world.restart_from_checkpoint();
    }
}

#[test]
fn what_an_exchange_remembers_takes_long_to_send_through_another() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    history(&mut client, "h", 1000, false);
    client.declare("q");
    let (queue, exchange, destination) = (short("q"), short("h"), short("amq.fanout"));
    let to_queue: Method<'_> = queue::Bind { queue, exchange, ..Default::default() }.into();
    let onward = exchange::Bind { destination, source: exchange, ..Default::default() };
    let take_long = |client: &mut Client| (client.takes_long(to_queue), client.takes_long(onward));
    assert_eq!(take_long(&mut client), (false, false));
    publish(&mut client, "h", 1);
    assert_eq!(take_long(&mut client), (false, true), "there may be very many queues behind it");
    publish(&mut client, "h", 200);
    assert_eq!(take_long(&mut client), (true, true));
}
