//! `queue.bind`, `queue.unbind`, and direct and fanout exchanges.

use crate::support::{Heard, World, short};
use courser_broker::Limits;
use courser_codec::{exchange, queue};

fn bind<'n>(queue: &'n str, exchange: &'n str, key: &'n str) -> queue::Bind<'n> {
    let (queue, exchange, routing_key) = (short(queue), short(exchange), short(key));
    queue::Bind { queue, exchange, routing_key, ..Default::default() }
}

#[test]
fn a_direct_exchange_routes_by_the_whole_key() {
    let world = World::new();
    let mut client = world.connect();
    for queue in ["one", "two", "both"] {
        client.declare(queue);
    }
    client.bind("one", "amq.direct", "1");
    client.bind("two", "amq.direct", "2");
    client.bind("both", "amq.direct", "1");
    client.bind("both", "amq.direct", "2");
    for key in ["1", "2", "3", "", "11"] {
        client.publish("amq.direct", key, key);
    }
    assert_eq!(client.pop_all("one"), ["1"]);
    assert_eq!(client.pop_all("two"), ["2"]);
    assert_eq!(client.pop_all("both"), ["1", "2"]);
}

#[test]
fn a_fanout_exchange_routes_to_all_and_gives_each_queue_one_copy() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("one");
    client.declare("two");
    client.bind("one", "amq.fanout", "a");
    client.bind("one", "amq.fanout", "b");
    client.bind("two", "amq.fanout", "");
    client.publish("amq.fanout", "whatever", "x");
    assert_eq!(client.pop_all("one"), ["x"]);
    assert_eq!(client.pop_all("two"), ["x"]);
    client.unbind("one", "amq.fanout", "a");
    client.publish("amq.fanout", "whatever", "y");
    assert_eq!(client.pop_all("one"), ["y"], "the other binding is still there");
    client.unbind("one", "amq.fanout", "b");
    client.publish("amq.fanout", "whatever", "z");
    assert_eq!(client.pop("one"), None);
    assert_eq!(client.pop_all("two"), ["y", "z"]);
}

#[test]
fn binding_twice_is_one_binding() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("q", "amq.direct", "k");
    client.bind("q", "amq.direct", "k");
    client.publish("amq.direct", "k", "x");
    assert_eq!(client.pop_all("q"), ["x"]);
    client.unbind("q", "amq.direct", "k");
    client.publish("amq.direct", "k", "y");
    assert_eq!(client.pop("q"), None);
}

#[test]
fn a_route_that_was_used_before_follows_every_change() {
    let world = World::new();
    let (mut publisher, mut other) = (world.connect(), world.connect());
    other.declare("one");
    other.declare("two");
    let publish = |client: &mut crate::support::Client, body| {
        client.publish("amq.direct", "k", body);
    };
    publish(&mut publisher, "to no queue");
    other.bind("one", "amq.direct", "k");
    publish(&mut publisher, "1");
    other.bind("two", "amq.direct", "k");
    publish(&mut publisher, "2");
    other.unbind("one", "amq.direct", "k");
    publish(&mut publisher, "3");
    assert_eq!(other.pop_all("one"), ["1", "2"]);
    assert_eq!(other.pop_all("two"), ["2", "3"]);
    other.delete("two");
    publish(&mut publisher, "4");
    other.declare("two");
    publish(&mut publisher, "5");
    assert_eq!(other.pop("two"), None, "a new queue has no bindings");
}

#[test]
fn a_route_to_a_queue_that_is_made_later_is_found() {
    let world = World::new();
    let (mut publisher, mut other) = (world.connect(), world.connect());
    publisher.publish("", "q", "to no queue");
    other.declare("q");
    publisher.publish("", "q", "x");
    other.delete("q");
    other.declare("q");
    publisher.publish("", "q", "y");
    assert_eq!(other.pop_all("q"), ["y"]);
}

#[test]
fn binding_what_is_missing_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let text = client.refused(bind("q", "x", ""));
    assert_eq!(text, "404 NOT_FOUND - no exchange 'x' in vhost '/'");
    let text = client.refused(bind("r", "amq.direct", ""));
    assert_eq!(text, "404 NOT_FOUND - no queue 'r' in vhost '/'");
    let text = client.refused(bind("r", "x", ""));
    assert_eq!(text, "404 NOT_FOUND - no exchange 'x' in vhost '/'", "of both, the exchange");
}

#[test]
fn unbinding_what_is_missing_is_fine() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.unbind("q", "amq.direct", "never bound");
    client.unbind("q", "no exchange", "k");
    client.unbind("no queue", "amq.direct", "k");
}

#[test]
fn an_empty_key_of_an_unnamed_queue_is_its_name() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("", "amq.direct", "");
    client.bind("", "amq.direct", "k");
    client.publish("amq.direct", "q", "by name");
    client.publish("amq.direct", "k", "by key");
    client.publish("amq.direct", "", "by nothing");
    assert_eq!(client.pop_all("q"), ["by name", "by key"]);
    client.unbind("", "amq.direct", "");
    client.publish("amq.direct", "q", "unbound");
    assert_eq!(client.pop("q"), None);
}

#[test]
fn an_empty_key_of_a_named_queue_is_empty() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("q", "amq.direct", "");
    client.publish("amq.direct", "q", "by name");
    client.publish("amq.direct", "", "by nothing");
    assert_eq!(client.pop_all("q"), ["by nothing"]);
}

#[test]
fn nowait_binds_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.tell(queue::Bind { nowait: true, ..bind("q", "amq.direct", "k") });
    assert_eq!(client.heard(), []);
    client.publish("amq.direct", "k", "x");
    assert_eq!(client.pop_all("q"), ["x"]);
}

#[test]
fn a_vhost_has_no_more_bindings_than_it_may_and_counts_them_right() {
    let world = World::with(Limits { bindings_max: 3, ..Limits::default() });
    let mut client = world.connect();
    let full = "406 PRECONDITION_FAILED - vhost '/' has the 3 bindings that it may have";
    let fill = |client: &mut crate::support::Client| {
        client.declare("q");
        client.declare_exchange("x", "fanout");
        client.bind("q", "x", "1");
        client.bind("q", "x", "2");
        client.bind_exchange("x", "amq.fanout", "");
        assert_eq!(client.refused(bind("q", "x", "3")), full);
    };
    fill(&mut client);
    client.unbind("q", "x", "1");
    client.bind("q", "x", "2");
    client.bind("q", "x", "3");
    assert_eq!(client.refused(bind("q", "x", "4")), full);
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    fill(&mut client);
    assert_eq!(client.delete("q"), Heard::Count(0));
    client.call(exchange::Unbind {
        destination: short("x"),
        source: short("amq.fanout"),
        ..Default::default()
    });
    fill(&mut client);
}
