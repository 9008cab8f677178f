//! Durable exchanges, queues and bindings after a restart: as they were last, no more and no less.

use crate::support::{Client, Heard, WorldOnDisk, declare_with, short};
use courser_codec::{FieldTable, Table, exchange, queue};

fn declare_exchange(client: &mut Client, name: &str, kind: &str, auto_delete: bool) {
    let declare = exchange::Declare {
        exchange: short(name),
        kind: short(kind),
        durable: true,
        auto_delete,
        ..Default::default()
    };
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
}

/// A broker with these durable queues.
fn with_queues(names: &[&str]) -> (WorldOnDisk, Client) {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    names.iter().for_each(|name| declare_with(&mut client, name, true, &FieldTable::new()));
    (world, client)
}

/// Restarts the broker in both ways, one after the other, and calls `check` after each.
fn after_restarts(world: &mut WorldOnDisk, client: Client, check: impl Fn(&mut Client)) {
    drop(client);
    world.restart();
    check(&mut world.connect());
    world.restart_from_checkpoint();
    check(&mut world.connect());
}

#[test]
fn a_binding_that_was_removed_stays_removed() {
    let (mut world, mut client) = with_queues(&["q", "other"]);
    client.bind("q", "amq.direct", "kept");
    client.bind("q", "amq.direct", "removed");
    client.bind("other", "amq.direct", "removed");
    client.unbind("q", "amq.direct", "removed");
    after_restarts(&mut world, client, |client| {
        client.publish("amq.direct", "kept", "1");
        client.publish("amq.direct", "removed", "2");
        assert_eq!(client.pop_all("q"), ["1"]);
        assert_eq!(client.pop_all("other"), ["2"]);
    });
}

#[test]
fn a_binding_between_exchanges_that_was_removed_stays_removed() {
    let (mut world, mut client) = with_queues(&["q"]);
    declare_exchange(&mut client, "to", "fanout", false);
    client.bind("q", "to", "");
    client.bind_exchange("to", "amq.fanout", "");
    let unbind = exchange::Unbind {
        destination: short("to"),
        source: short("amq.fanout"),
        ..Default::default()
    };
    assert_eq!(client.call(unbind), Heard::Done("exchange.unbind-ok"));
    after_restarts(&mut world, client, |client| {
        client.publish("amq.fanout", "", "lost");
        client.publish("to", "", "found");
        assert_eq!(client.pop_all("q"), ["found"]);
    });
}

#[test]
fn a_binding_is_the_same_whatever_the_order_of_its_arguments_also_for_the_log() {
    let (mut world, mut client) = with_queues(&["q"]);
    let one_way = FieldTable::new().with("a", 1).with("b", 2).to_entries();
    let other_way = FieldTable::new().with("b", 2).with("a", 1).to_entries();
    for entries in [&one_way, &other_way] {
        let bind = queue::Bind {
            queue: short("q"),
            exchange: short("amq.headers"),
            arguments: Table::from_entries(entries),
            ..Default::default()
        };
        assert_eq!(client.call(bind), Heard::Done("queue.bind-ok"));
    }
    let unbind = queue::Unbind {
        queue: short("q"),
        exchange: short("amq.headers"),
        arguments: Table::from_entries(&other_way),
        ..Default::default()
    };
    assert_eq!(client.call(unbind), Heard::Done("queue.unbind-ok"));
    after_restarts(&mut world, client, |client| {
        let headers = FieldTable::new().with("a", 1).with("b", 2);
        client.send(crate::support::Message::new("amq.headers", "", "lost").headers(headers));
        assert_eq!(client.pop("q"), None);
    });
}

#[test]
fn an_exchange_that_went_with_its_last_binding_stays_away() {
    let (mut world, mut client) = with_queues(&["q"]);
    declare_exchange(&mut client, "x", "direct", true);
    client.bind("q", "x", "k");
    client.unbind("q", "x", "k");
    drop(client);
    world.restart();
    assert!(!world.has_exchange("x"));
    // The name is free for another one, which has no binding from before.
    let mut client = world.connect();
    declare_exchange(&mut client, "x", "direct", false);
    after_restarts(&mut world, client, |client| {
        client.publish("x", "k", "lost");
        assert_eq!(client.pop("q"), None);
    });
}

#[test]
fn exchanges_that_the_log_has_numbers_of_keep_apart_from_those_it_has_none_of() {
    let (mut world, mut client) = with_queues(&["q"]);
    let delayed = FieldTable::new().with("x-delayed-type", "fanout").to_entries();
    let pairs = || (0..20).flat_map(|a| (0..10).map(move |b| (format!("a{a}"), format!("b{b}"))));
    for nth in 0..10 {
        let name = format!("b{nth}");
        let declare = exchange::Declare {
            exchange: short(&name),
            kind: short("x-delayed-message"),
            durable: true,
            arguments: Table::from_entries(&delayed),
            ..Default::default()
        };
        assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
        client.bind("q", &name, "");
    }
    // Their names come first, and so they get their numbers first after a restart.
    (0..20).for_each(|nth| declare_exchange(&mut client, &format!("a{nth}"), "direct", false));
    pairs().for_each(|(from, to)| client.bind_exchange(&to, &from, &to));
    after_restarts(&mut world, client, |client| {
        for (from, to) in pairs() {
            client.publish(&from, &to, "m");
            assert_eq!(client.pop_all("q"), ["m"], "from {from} to {to}");
        }
    });
}

#[test]
fn what_was_deleted_and_made_anew_is_what_was_made_last() {
    let (mut world, mut client) = with_queues(&["q"]);
    declare_exchange(&mut client, "x", "direct", false);
    client.bind("q", "x", "k");
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    declare_exchange(&mut client, "x", "fanout", false);
    client.delete("q");
    declare_with(&mut client, "q", true, &FieldTable::new().with("x-max-length", 1));
    after_restarts(&mut world, client, |client| {
        client.publish("x", "k", "lost");
        client.fill("q", &["1", "2"]);
        assert_eq!(client.pop_all("q"), ["2"]);
    });
}
