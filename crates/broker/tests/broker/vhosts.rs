//! Vhosts are separate namespaces.

use crate::support::{Heard, Message, World, WorldOnDisk, declare_with, lasting, short};
use courser_broker::{ApplyTo, Batch, Policy, PolicyKind, VhostLimits};
use courser_codec::{FieldTable, exchange, queue};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// What waits longer waits for what it should not.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn vhosts_share_no_names_and_no_messages() {
    let world = World::new();
    let other_vhost = world.broker.define_vhost("other", Default::default()).expect("a vhost");
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
    let other_vhost = world.broker.define_vhost("other", Default::default()).expect("a vhost");
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
    let mut client =
        world.connect_to(world.broker.define_vhost("new", Default::default()).expect("a vhost"));
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
    world.broker.define_vhost("/", Default::default()).expect("a vhost");
    assert!(world.has_queue("q"));
    assert!(world.broker.vhost("missing").is_none());
}

#[test]
fn a_vhost_takes_no_more_connections_than_it_may_have() {
    let world = World::new();
    let limits = VhostLimits { connections_max: Some(1), queues_max: None };
    let vhost = world.broker.define_vhost("small", limits).expect("a vhost");
    let first = vhost.admit("u").expect("room");
    let Err(refused) = vhost.admit("u") else { panic!("one too many") };
    assert_eq!(
        refused.to_string(),
        "530 NOT_ALLOWED - access to vhost 'small' refused for user 'u': connection limit (1) is \
         reached"
    );
    drop(first);
    let client = world.connect_to(Arc::clone(&vhost));
    assert_eq!(vhost.connections(), 1);
    drop(client);
    assert_eq!(vhost.connections(), 0);
}

#[test]
fn a_vhost_takes_no_more_queues_than_it_may_have() {
    let world = World::new();
    let limits = VhostLimits { connections_max: None, queues_max: Some(1) };
    let vhost = world.broker.define_vhost("small", limits).expect("a vhost");
    let mut client = world.connect_to(vhost);
    client.declare("a");
    client.declare("a");
    let declare = queue::Declare { queue: short("b"), ..Default::default() };
    assert_eq!(
        client.refused(declare),
        "406 PRECONDITION_FAILED - cannot declare queue 'b': queue limit in vhost 'small' (1) is \
         reached"
    );
    client.open_channel(1);
    client.delete("a");
    client.declare("b");
    world.broker.define_vhost("small", VhostLimits::default()).expect("other limits");
    client.declare("c");
    world.connect().declare("elsewhere");
}

#[test]
fn vhosts_and_their_limits_survive_a_restart() {
    for from_checkpoint in [false, true] {
        let mut world = WorldOnDisk::new();
        let limits = VhostLimits { connections_max: Some(5), queues_max: None };
        let vhost = world.broker.define_vhost("empty", limits).expect("a vhost");
        drop(vhost);
        if from_checkpoint {
            world.restart_from_checkpoint()
        } else {
            world.restart()
        }
        let vhost = world.broker.vhost("empty").expect("the vhost");
        assert_eq!(vhost.limits(), Some(limits));
        assert_eq!(world.vhost().limits(), None);
    }
}

#[test]
fn queues_of_the_same_name_in_two_vhosts_survive_apart() {
    let mut world = WorldOnDisk::new();
    for (vhost, body) in [("/", "here"), ("other", "there")] {
        let mut client = world
            .connect_to(world.broker.define_vhost(vhost, Default::default()).expect("a vhost"));
        declare_with(&mut client, "q", true, &FieldTable::new());
        client.send(Message::new("", "q", body).with_properties(|of| of.delivery_mode = Some(2)));
    }
    world.restart();
    for (vhost, body) in [("/", "here"), ("other", "there")] {
        let mut client = world.connect_to(world.broker.vhost(vhost).expect("the vhost"));
        assert_eq!(client.pop_all("q"), [body]);
        client.disconnect();
    }
}

#[test]
fn a_deleted_vhost_does_not_come_back_with_a_binding() {
    for is_late in [false, true] {
        let mut world = WorldOnDisk::new();
        let made = world.broker.define_vhost("v", Default::default()).expect("a vhost");
        let mut client = world.connect_to(made);
        let (source, destination) = (short("amq.direct"), short("amq.fanout"));
        let bind = exchange::Bind { source, destination, ..Default::default() };
        if !is_late {
            assert_eq!(client.call(bind), Heard::Done("exchange.bind-ok"));
        }
        world.broker.admin().delete_vhost("v").expect("it is there");
        if is_late {
            // Of a client that does not know it yet.
            let refused = client.session().request(&mut Batch::default(), 1, &bind.into());
            assert!(refused.is_err());
        }
        client.disconnect();
        world.restart();
        assert!(world.broker.vhost("v").is_none(), "late: {is_late}");
    }
}

#[test]
fn a_new_vhost_that_waits_for_a_changed_configuration_holds_up_no_other() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    for _ in 0..2 {
        client.send(Message::new("", "q", "x").with_properties(|of| of.delivery_mode = Some(2)));
    }
    world.broker.define_vhost("other", VhostLimits::default()).expect("a vhost");
    let (held, begun, release) = lasting();
    world.store().before_next_append(held);
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let policy = Policy {
                name: "short".to_owned(),
                pattern: "^q$".to_owned(),
                apply_to: ApplyTo::All,
                priority: 0,
                definition: FieldTable::new().with("max-length", 1),
            };
            let configured = vec![("/".to_owned(), PolicyKind::User, policy)];
            world.broker.configure_policies(configured).expect("good policies");
        });
        begun.recv().expect("the queue follows");
        scope.spawn(|| world.broker.define_vhost("new", VhostLimits::default()).map(drop));
        while world.broker.vhost("new").is_none() {
            thread::yield_now();
        }
        let admin = world.broker.admin();
        scope.spawn(move || tell.send(admin.start_vhost("other", 0)));
        let stood_still = told.recv_timeout(LONG);
        release.send(()).expect("it is waited for");
        assert_eq!(stood_still, Ok(Ok(false)), "it waits for the new one");
    });
    assert_eq!(world.counts("q").0, 1, "the queue has followed");
}
