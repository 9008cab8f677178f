//! `exchange.declare`, `exchange.delete`, and exchanges bound to exchanges.

use crate::support::{Heard, Message, World, short};
use courser_broker::Limits;
use courser_codec::{exchange, queue};

const OK: Heard = Heard::Done("exchange.declare-ok");
const DELETED: Heard = Heard::Done("exchange.delete-ok");
const DEFAULT: &str = "403 ACCESS_REFUSED - operation not permitted on the default exchange";

fn named<'n>(name: &'n str, kind: &'n str) -> exchange::Declare<'n> {
    exchange::Declare { exchange: short(name), kind: short(kind), ..Default::default() }
}

fn delete(name: &str) -> exchange::Delete<'_> {
    exchange::Delete { exchange: short(name), ..Default::default() }
}

#[test]
fn a_redeclare_that_is_the_same_is_fine() {
    let world = World::new();
    let mut client = world.connect();
    for kind in ["direct", "fanout", "topic", "headers"] {
        let declare = exchange::Declare { durable: true, internal: true, ..named(kind, kind) };
        assert_eq!(client.call(declare), OK);
        assert_eq!(client.call(declare), OK);
    }
}

#[test]
fn a_redeclare_that_differs_is_refused_with_what_differs() {
    let world = World::new();
    let mut client = world.connect();
    client.call(named("x", "direct"));
    let difference = |what: &str| format!("406 PRECONDITION_FAILED - inequivalent arg {what}");
    assert_eq!(
        client.refused(named("x", "fanout")),
        difference(
            "'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'"
        )
    );
    let flag = |name: &str| {
        difference(&format!(
            "'{name}' for exchange 'x' in vhost '/': received 'true' but current is 'false'"
        ))
    };
    let x = named("x", "direct");
    assert_eq!(client.refused(exchange::Declare { durable: true, ..x }), flag("durable"));
    assert_eq!(client.refused(exchange::Declare { auto_delete: true, ..x }), flag("auto_delete"));
    assert_eq!(client.refused(exchange::Declare { internal: true, ..x }), flag("internal"));
}

#[test]
fn an_unknown_type_is_refused() {
    let world = World::new();
    let text = world.connect().refused(named("x", "foo"));
    assert_eq!(text, "406 PRECONDITION_FAILED - unknown exchange type 'foo'");
    assert!(!world.has_exchange("x"));
}

#[test]
fn a_passive_declare_finds_and_never_makes_an_exchange() {
    let world = World::new();
    let mut client = world.connect();
    let passive = exchange::Declare { passive: true, ..named("x", "") };
    assert_eq!(client.refused(passive), "404 NOT_FOUND - no exchange 'x' in vhost '/'");
    assert!(!world.has_exchange("x"));
    client.call(named("x", "topic"));
    assert_eq!(client.call(passive), OK);
}

#[test]
fn reserved_names_are_refused_but_predefined_exchanges_can_be_redeclared() {
    let world = World::new();
    let mut client = world.connect();
    assert_eq!(
        client.refused(named("amq.x", "direct")),
        "403 ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'"
    );
    let predefined = [
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.topic", "topic"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
    ];
    for (name, kind) in predefined {
        let declare = exchange::Declare { durable: true, ..named(name, kind) };
        assert_eq!(client.call(declare), OK, "{name}");
        assert!(client.refused(named(name, kind)).starts_with("406 "), "{name}: durable differs");
    }
}

#[test]
fn predefined_exchanges_cannot_be_deleted() {
    let world = World::new();
    let mut client = world.connect();
    for name in ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"] {
        assert_eq!(
            client.refused(delete(name)),
            format!(
                "403 ACCESS_REFUSED - deletion of system exchange '{name}' in vhost '/' not allowed"
            )
        );
        assert!(world.has_exchange(name));
    }
}

#[test]
fn a_reserved_name_cannot_be_deleted_though_no_exchange_has_it() {
    let world = World::new();
    let mut client = world.connect();
    assert_eq!(
        client.refused(delete("amq.missing")),
        "403 ACCESS_REFUSED - deletion of system exchange 'amq.missing' in vhost '/' not allowed"
    );
    assert_eq!(client.call(delete("missing")), Heard::Done("exchange.delete-ok"));
}

#[test]
fn the_default_exchange_is_not_for_clients_to_change() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("x", "direct");
    assert_eq!(client.refused(named("", "direct")), DEFAULT);
    let passive = exchange::Declare { passive: true, ..named("", "") };
    assert_eq!(client.refused(passive), DEFAULT);
    assert_eq!(client.refused(delete("")), DEFAULT);
    let queue = short("q");
    assert_eq!(client.refused(queue::Bind { queue, ..Default::default() }), DEFAULT);
    assert_eq!(client.refused(queue::Unbind { queue, ..Default::default() }), DEFAULT);
    let x = short("x");
    assert_eq!(client.refused(exchange::Bind { source: x, ..Default::default() }), DEFAULT);
    assert_eq!(client.refused(exchange::Bind { destination: x, ..Default::default() }), DEFAULT);
    assert_eq!(client.refused(exchange::Unbind { source: x, ..Default::default() }), DEFAULT);
    assert_eq!(client.refused(exchange::Unbind { destination: x, ..Default::default() }), DEFAULT);
}

#[test]
fn the_default_exchange_routes_to_the_queue_of_that_name() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("r");
    client.publish("", "q", "for q");
    assert_eq!(client.pop_all("q"), ["for q"]);
    assert_eq!(client.pop("r"), None);
}

#[test]
fn deleting_a_missing_exchange_is_fine() {
    assert_eq!(World::new().connect().call(delete("missing")), DELETED);
}

#[test]
fn an_exchange_in_use_is_not_deleted_if_unused_is_asked_for() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("x", "direct");
    client.bind("q", "x", "k");
    let if_unused = exchange::Delete { if_unused: true, ..delete("x") };
    assert_eq!(
        client.refused(if_unused),
        "406 PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"
    );
    client.publish("x", "k", "still there");
    assert_eq!(client.pop("q").as_deref(), Some("still there"));
    client.unbind("q", "x", "k");
    assert_eq!(client.call(if_unused), DELETED);
    assert!(!world.has_exchange("x"));
}

#[test]
fn a_deleted_exchange_takes_its_bindings_along() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("x", "fanout");
    client.bind("q", "x", "");
    client.bind_exchange("amq.fanout", "x", "");
    client.bind_exchange("x", "amq.topic", "#");
    client.call(delete("x"));
    client.declare_exchange("x", "fanout");
    client.publish("x", "", "unbound");
    client.publish("amq.topic", "", "unbound");
    assert_eq!(client.pop("q"), None);
}

#[test]
fn publishing_to_an_internal_exchange_is_refused_but_exchanges_reach_it() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("front", "fanout");
    client.call(exchange::Declare { internal: true, ..named("inner", "fanout") });
    client.bind_exchange("inner", "front", "");
    client.bind("q", "inner", "");
    assert_eq!(
        client.refused_publish(Message::new("inner", "", "x")),
        "403 ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'"
    );
    client.publish("front", "", "through");
    assert_eq!(client.pop_all("q"), ["through"]);
}

#[test]
fn a_message_goes_through_exchanges_by_each_ones_own_rule() {
    let world = World::new();
    let mut client = world.connect();
    for queue in ["errors", "all", "kernel"] {
        client.declare(queue);
    }
    client.declare_exchange("errors", "direct");
    client.declare_exchange("everything", "fanout");
    client.bind_exchange("errors", "amq.topic", "*.error");
    client.bind_exchange("everything", "amq.topic", "#");
    client.bind("errors", "errors", "kernel.error");
    client.bind("all", "everything", "ignored");
    client.bind("kernel", "amq.topic", "kernel.#");
    client.publish("amq.topic", "kernel.error", "1");
    client.publish("amq.topic", "disk.error", "2");
    client.publish("amq.topic", "kernel.info", "3");
    assert_eq!(client.pop_all("errors"), ["1"]);
    assert_eq!(client.pop_all("all"), ["1", "2", "3"]);
    assert_eq!(client.pop_all("kernel"), ["1", "3"]);
}

#[test]
fn a_cycle_of_exchanges_delivers_once() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    for name in ["a", "b", "c"] {
        client.declare_exchange(name, "fanout");
        client.bind("q", name, "");
    }
    client.bind_exchange("b", "a", "");
    client.bind_exchange("c", "b", "");
    client.bind_exchange("a", "c", "");
    client.bind_exchange("a", "a", "");
    client.publish("b", "", "once");
    assert_eq!(client.pop_all("q"), ["once"]);
}

#[test]
fn unbinding_an_exchange_ends_its_route_and_what_is_not_bound_is_fine() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare_exchange("x", "fanout");
    client.bind("q", "x", "");
    client.bind_exchange("x", "amq.fanout", "");
    client.publish("amq.fanout", "", "bound");
    let unbind = exchange::Unbind {
        destination: short("x"),
        source: short("amq.fanout"),
        ..Default::default()
    };
    assert_eq!(client.call(unbind), Heard::Done("exchange.unbind-ok"));
    assert_eq!(client.call(unbind), Heard::Done("exchange.unbind-ok"));
    client.publish("amq.fanout", "", "unbound");
    assert_eq!(client.pop_all("q"), ["bound"]);
}

#[test]
fn binding_exchanges_that_are_not_there_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let destination = short("amq.direct");
    let bind = exchange::Bind { destination, source: short("x"), ..Default::default() };
    assert_eq!(client.refused(bind), "404 NOT_FOUND - no exchange 'x' in vhost '/'");
    let bind =
        exchange::Bind { destination: short("y"), source: destination, ..Default::default() };
    assert_eq!(client.refused(bind), "404 NOT_FOUND - no exchange 'y' in vhost '/'");
}

#[test]
fn nowait_is_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.tell(exchange::Declare { nowait: true, ..named("x", "fanout") });
    client.tell(exchange::Declare { nowait: true, passive: true, ..named("x", "fanout") });
    let (destination, source) = (short("x"), short("amq.fanout"));
    client.tell(exchange::Bind { destination, source, nowait: true, ..Default::default() });
    client.tell(exchange::Unbind { destination, source, nowait: true, ..Default::default() });
    client.tell(exchange::Delete { nowait: true, ..delete("x") });
    assert_eq!(client.heard(), []);
    assert!(!world.has_exchange("x"));
}

#[test]
fn a_vhost_has_no_more_exchanges_than_it_may() {
    // Seven are there from the start.
    let world = World::with(Limits { exchanges_max: 8, ..Limits::default() });
    let mut client = world.connect();
    client.declare_exchange("x", "direct");
    assert_eq!(
        client.refused(named("y", "direct")),
        "406 PRECONDITION_FAILED - vhost '/' has the 8 exchanges that it may have"
    );
    client.call(delete("x"));
    client.declare_exchange("y", "direct");
}
