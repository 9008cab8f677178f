//! Vhosts are separate namespaces.

use crate::support::{Heard, World, short};
use courser_codec::{exchange, queue};

#[test]
fn vhosts_share_no_names_and_no_messages() {
    let world = World::new();
    let other_vhost = world.broker.add_vhost("other");
    let mut here = world.connect();
    let mut there = world.connect_to(other_vhost);
    here.declare("q");
    here.declare_exchange("x", "fanout");
    let passive = queue::Declare { queue: short("q"), passive: true, ..Default::default() };
    assert_eq!(there.refused(passive), "404 NOT_FOUND - no queue 'q' in vhost 'other'");
    let passive = exchange::Declare { exchange: short("x"), passive: true, ..Default::default() };
    assert_eq!(there.refused(passive), "404 NOT_FOUND - no exchange 'x' in vhost 'other'");
    there.declare("q");
    there.publish("", "q", "there");
    here.publish("", "q", "here");
    assert_eq!(here.pop_all("q"), ["here"]);
    assert_eq!(there.pop_all("q"), ["there"]);
    there.delete("q");
    assert!(world.has_queue("q"));
}

#[test]
fn a_fanout_of_one_vhost_does_not_reach_another() {
    let world = World::new();
    let other_vhost = world.broker.add_vhost("other");
    let mut here = world.connect();
    let mut there = world.connect_to(other_vhost);
    for client in [&mut here, &mut there] {
        client.declare("q");
        client.bind("q", "amq.fanout", "");
    }
    here.publish("amq.fanout", "", "x");
    assert_eq!(here.pop_all("q"), ["x"]);
    assert_eq!(there.pop_all("q"), Vec::<String>::new());
}

#[test]
fn every_vhost_has_the_predefined_exchanges() {
    let world = World::new();
    let mut client = world.connect_to(world.broker.add_vhost("new"));
    for name in ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"] {
        let passive =
            exchange::Declare { exchange: short(name), passive: true, ..Default::default() };
        assert_eq!(client.call(passive), Heard::Done("exchange.declare-ok"), "{name}");
    }
}

#[test]
fn a_vhost_that_exists_is_not_made_anew() {
    let world = World::new();
    world.connect().declare("q");
    world.broker.add_vhost("/");
    assert!(world.has_queue("q"));
    assert!(world.broker.vhost("missing").is_none());
}
