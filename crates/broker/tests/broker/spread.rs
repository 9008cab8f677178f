//! Exchanges that hand each message to one destination: `x-random`, `x-local-random` and `x-modulus-hash`.

use crate::support::{Client, Heard, World, WorldOnDisk, short};
use courser_codec::exchange;

const QUEUES: [&str; 4] = ["q0", "q1", "q2", "q3"];

fn bound(client: &mut Client, kind: &str) {
    client.declare_exchange("x", kind);
    for queue in QUEUES {
        client.declare(queue);
        client.bind(queue, "x", queue);
    }
}

fn counts(world: &World) -> [usize; 4] {
    QUEUES.map(|queue| world.counts(queue).0)
}

#[test]
fn random_hands_each_message_to_one_queue_and_none_is_left_out() {
    for kind in ["x-random", "x-local-random"] {
        let world = World::new();
        let mut client = world.connect();
        bound(&mut client, kind);
        for _ in 0..4000 {
            client.publish("x", "the same", "m");
        }
        let counts = counts(&world);
        assert_eq!(counts.iter().sum::<usize>(), 4000);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{kind}: {counts:?}");
    }
}

#[test]
fn only_queues_are_bound_to_a_local_random_exchange() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", "x-local-random");
    let bind = exchange::Bind {
        destination: short("amq.fanout"),
        source: short("x"),
        ..Default::default()
    };
    let text = "406 PRECONDITION_FAILED - only queues can be bound to exchange 'x' of type \
                x-local-random";
    assert_eq!(client.refused(bind), text);
}

#[test]
fn a_local_random_exchange_survives_a_restart_as_what_it_is() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    let declare = exchange::Declare {
        exchange: short("x"),
        kind: short("x-local-random"),
        durable: true,
        ..Default::default()
    };
    client.call(declare);
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
}

#[test]
fn modulus_hash_sends_the_same_key_the_same_way() {
    let world = World::new();
    let mut client = world.connect();
    bound(&mut client, "x-modulus-hash");
    for _ in 0..10 {
        client.publish("x", "the same", "m");
    }
    let mut ten = counts(&world);
    ten.sort_unstable();
    assert_eq!(ten, [0, 0, 0, 10]);
    for key in 0..4000 {
        client.publish("x", &format!("key {key}"), "m");
    }
    let counts = counts(&world);
    assert!(counts.iter().all(|count| (850..1160).contains(count)), "{counts:?}");
}

#[test]
fn modulus_hash_does_not_depend_on_the_order_of_the_bindings() {
    let way = |order: [usize; 4]| {
        let world = World::new();
        let mut client = world.connect();
        client.declare_exchange("x", "x-modulus-hash");
        QUEUES.iter().for_each(|queue| client.declare(queue));
        order.iter().for_each(|one| client.bind(QUEUES[*one], "x", ""));
        client.publish("x", "some key", "m");
        counts(&world)
    };
    assert_eq!(way([0, 1, 2, 3]), way([3, 1, 0, 2]));
}

#[test]
fn modulus_hash_goes_by_names_however_many_there_were_and_whichever_went() {
    const MANY: usize = 1500;
    let name = |nth: usize| format!("q{nth:04}");
    let (many, few) = (World::new(), World::new());
    let mut clients = [&many, &few].map(|world| {
        let mut client = world.connect();
        client.declare_exchange("x", "x-modulus-hash");
        client
    });
    // In another order than that of the names, and most of them go again.
    let all = || (0..MANY).map(|nth| nth * 7 % MANY);
    let goes = |nth: usize| !nth.is_multiple_of(13) || (500..900).contains(&nth);
    let [client, other] = &mut clients;
    for nth in all() {
        client.declare(&name(nth));
        client.bind(&name(nth), "x", "");
    }
    all().filter(|nth| goes(*nth)).for_each(|nth| drop(client.delete(&name(nth))));
    let left: Vec<_> = (0..MANY).filter(|nth| !goes(*nth)).map(name).collect();
    for queue in &left {
        other.declare(queue);
        other.bind(queue, "x", "");
    }
    for key in 0..2000 {
        client.publish("x", &key.to_string(), "m");
        other.publish("x", &key.to_string(), "m");
    }
    let counts = |world: &World| left.iter().map(|queue| world.counts(queue).0).collect::<Vec<_>>();
    assert_eq!(counts(&many), counts(&few));
    assert_eq!(counts(&many).iter().sum::<usize>(), 2000);
}

#[test]
fn without_bindings_messages_go_nowhere() {
    let world = World::new();
    let mut client = world.connect();
    for kind in ["x-random", "x-local-random", "x-modulus-hash"] {
        client.declare_exchange(kind, kind);
        client.declare("q");
        client.bind("q", kind, "a");
        client.bind("q", kind, "b");
        client.publish(kind, "k", "kept");
        client.unbind("q", kind, "a");
        client.publish(kind, "k", "kept");
        client.unbind("q", kind, "b");
        client.publish(kind, "k", "lost");
        assert_eq!(client.pop_all("q"), ["kept", "kept"], "{kind}");
    }
}
