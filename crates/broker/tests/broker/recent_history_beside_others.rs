//! What others see of an `x-recent-history` exchange: they have their turns while it sends what it remembers, have their own
//! bindings, and room in memory.

use crate::recent_history::with_large_history;
use crate::support::{Client, Message, Step, World, WorldOnDisk, declare_with, on_a_thread, short};
use courser_broker::{Limits, steps};
use courser_codec::{FieldTable, Method, Table, exchange, queue};
use courser_journal::testing::Call;
use courser_store::StoreError;
use parking_lot::Mutex;
use std::sync::Arc;

/// Declares an exchange that remembers so many messages.
pub fn history(client: &mut Client, name: &str, length: i32, durable: bool) {
    let entries = FieldTable::new().with("x-recent-history-length", length).to_entries();
    let (exchange, kind) = (short(name), short("x-recent-history"));
    let arguments = Table::from_entries(&entries);
    client.call(exchange::Declare { exchange, kind, durable, arguments, ..Default::default() });
}

/// So many messages of one byte, in reads of some hundred.
pub fn publish(client: &mut Client, exchange: &str, count: usize) {
    let message = Message::new(exchange, "", "x").with_properties(|of| of.delivery_mode = Some(2));
    let steps = vec![Step::Publish(1, message); count];
    steps.chunks(500).for_each(|steps| client.read(steps));
}

/// Binds the queue `later` to the exchange of [`with_large_history`], for whose messages the store has no room.
fn refuse_binding(world: &mut WorldOnDisk, client: &mut Client) {
    let (queue, exchange) = (short("later"), short("large"));
    let text = client.fatal(queue::Bind { queue, exchange, ..Default::default() });
    assert!(text.starts_with("506 "), "{text}");
    world.store().heal();
}

/// Checks whether that queue is bound, and still is after a restart.
fn check_binding(world: &mut WorldOnDisk, is_bound: bool) {
    for _ in 0..2 {
        let mut other = world.connect();
        other.purge("later");
        other.publish("large", "", "new");
        assert_eq!(other.pop("later").as_deref(), is_bound.then_some("new"));
        other.disconnect();
        world.restart_from_checkpoint();
    }
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
fn a_binding_whose_history_finds_no_room_is_not_made() {
    let (mut world, mut client) = with_large_history();
    let mut appends = 0;
    world.store().set_faults(move |call| {
        appends += u64::from(call == Call::Append);
        // The binding, and some of the history.
        (call == Call::Append && appends > 2).then_some(StoreError::Full)
    });
    refuse_binding(&mut world, &mut client);
    check_binding(&mut world, false);
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
    refuse_binding(&mut world, &mut client);
    check_binding(&mut world, true);
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

/// A broker with this much memory, and `count` histories of this length behind `all`, that have got so many messages.
fn with_histories(memory_high_bytes: u64, count: usize, length: i32, messages: usize) -> World {
    let world = World::with(Limits { memory_high_bytes, ..Limits::default() });
    let mut client = world.connect();
    client.declare_exchange("all", "fanout");
    for nth in 0..count {
        let name = format!("h{nth}");
        history(&mut client, &name, length, false);
        client.bind_exchange(&name, "all", "");
    }
    for first in (0..messages).step_by(500) {
        let publish =
            |nth: usize| Step::Publish(1, Message::new("all", "", (first + nth).to_string()));
        client.read(&(0..500).map(publish).collect::<Vec<_>>());
    }
    world
}

/// What a queue gets that is bound to this exchange now.
fn remembered(world: &World, exchange: &str) -> Vec<String> {
    let mut client = world.connect();
    client.declare("later");
    client.bind("later", exchange, "");
    let bodies = client.pop_all("later");
    client.delete("later");
    bodies
}

#[test]
fn histories_have_a_share_of_memory_beyond_which_each_forgets_its_oldest_sooner() {
    const MESSAGES: usize = 4000;
    let world = with_histories(2_000_000, 40, 100_000, MESSAGES);
    assert_eq!(world.broker.alarm(), None, "no consumer could end it");
    let places = world.broker.admin().memory_uses().places;
    assert!((250_000..520_000).contains(&places), "{places}");
    let newest: Vec<String> = (0..MESSAGES).map(|nth| nth.to_string()).collect();
    for exchange in ["h0", "h39"] {
        let bodies = remembered(&world, exchange);
        assert!((20..MESSAGES).contains(&bodies.len()), "{exchange}: {}", bodies.len());
        assert_eq!(bodies, newest[MESSAGES - bodies.len()..], "{exchange}");
    }
    // What one gives back, another may use.
    let mut client = world.connect();
    for nth in 1..40 {
        let name = format!("h{nth}");
        client.call(exchange::Delete { exchange: short(&name), ..Default::default() });
    }
    let before = remembered(&world, "h0").len();
    (0..MESSAGES).for_each(|_| client.publish("all", "", "x"));
    assert_eq!(remembered(&world, "h0").len(), before + MESSAGES);
}

#[test]
fn each_history_has_room_for_the_usual_length_however_little_memory_there_is() {
    let world = with_histories(1000, 3, 50, 500);
    for exchange in ["h0", "h1", "h2"] {
        assert_eq!(remembered(&world, exchange).len(), 20, "{exchange}");
    }
}
