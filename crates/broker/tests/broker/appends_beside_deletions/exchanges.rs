//! The deletion of an exchange.

use super::*;
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewBinding};
use courser_codec::queue;

const A_FANOUT: Deletion = Deletion {
    make: |world| {
        make(&world.broker.admin());
        with_queue(world)
    },
    delete,
    make_anew: make,
    check_new,
};

const A_HISTORY: Deletion = Deletion {
    make: |world| {
        let mut client = with_queue(world);
        history(&mut client, GOING);
        client
    },
    delete,
    make_anew: make,
    check_new,
};

const A_DELAY: Deletion = Deletion {
    make: |world| {
        let mut client = with_queue(world);
        delay(&mut client, GOING);
        client
    },
    delete,
    make_anew: make,
    check_new,
};

fn make(admin: &Admin) {
    let settings = ExchangeSettings {
        kind: ExchangeKind::Fanout,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: table(),
    };
    admin.declare_exchange("/", GOING, &settings).expect("an exchange");
}

fn delete(admin: &Admin) {
    admin.delete_exchange("/", GOING.as_bytes(), false).expect("it is there");
}

fn check_new(world: &WorldOnDisk) {
    let mut client = world.connect();
    client.purge("q");
    client.publish(GOING, "", "x");
    assert_eq!(client.pop("q"), None, "nothing is bound to it");
    client.disconnect();
}

/// A client, and a durable queue `q`.
fn with_queue(world: &WorldOnDisk) -> Client {
    let mut client = world.connect();
    declare(&mut client, "q", table());
    client
}

/// Bound to a queue and between other exchanges, after some messages.
fn bound(_: &WorldOnDisk, client: &mut Client) {
    (0..3).for_each(|_| client.send(delayed(GOING)));
    (0..3).for_each(|_| client.send(persistent(GOING, "")));
    client.bind("q", GOING, "");
    client.bind_exchange(GOING, "amq.fanout", "");
    client.bind_exchange("amq.topic", GOING, "");
}

#[test]
fn a_binding_of_an_exchange() {
    let (queue, exchange, routing_key) = (short("q"), short(GOING), short("new"));
    let bind = queue::Bind { queue, exchange, routing_key, ..Default::default() };
    for (what, deletion) in [("fanout", A_FANOUT), ("history", A_HISTORY), ("delay", A_DELAY)] {
        deletion.beside(what, bound, by_client(bind));
        for (source, destination) in [(GOING, "amq.direct"), ("amq.direct", GOING)] {
            let (source, destination) = (short(source), short(destination));
            let bind = exchange::Bind { source, destination, ..Default::default() };
            deletion.beside(what, bound, by_client(bind));
        }
    }
    let unbind = queue::Unbind { queue, exchange, ..Default::default() };
    A_FANOUT.beside("queue.unbind", bound, by_client(unbind));
    let binding = NewBinding {
        source: short(GOING).into(),
        destination: short("q").into(),
        to_queue: true,
        routing_key: short("").into(),
        arguments: table(),
    };
    A_FANOUT.beside(
        "by an operator",
        nothing,
        by_operator(|admin| admin.bind("/", binding.clone())),
    );
}

#[test]
fn a_history_for_an_exchange() {
    let with_history = |world: &WorldOnDisk, client: &mut Client| {
        bound(world, client);
        history(client, "recent");
        (0..3).for_each(|_| client.send(persistent("recent", "")));
    };
    let (source, destination) = (short("recent"), short(GOING));
    let bind = exchange::Bind { source, destination, ..Default::default() };
    for (what, deletion) in [("fanout", A_FANOUT), ("history", A_HISTORY), ("delay", A_DELAY)] {
        deletion.beside(what, with_history, by_client(bind));
    }
}

#[test]
fn a_message_for_an_exchange() {
    for (what, deletion) in [("fanout", A_FANOUT), ("history", A_HISTORY), ("delay", A_DELAY)] {
        deletion.beside(what, bound, by_publish(persistent(GOING, "")));
        deletion.beside(what, bound, by_publish(delayed(GOING)));
        deletion.beside(what, bound, by_publish(delayed("amq.fanout")));
    }
    A_DELAY.beside("what is due", bound, |world, _| world.tick_all(START_MS + 10_000));
    let dying = |world: &WorldOnDisk, client: &mut Client| {
        bound(world, client);
        let dead = table().with("x-dead-letter-exchange", GOING).with("x-message-ttl", 1000);
        declare(client, "dying", dead);
        fill(client, "dying");
    };
    for (what, deletion) in [("fanout", A_FANOUT), ("history", A_HISTORY), ("delay", A_DELAY)] {
        deletion.beside(what, dying, |world, _| world.tick_all(START_MS + 2000));
    }
}

#[test]
fn a_removal_of_an_exchange() {
    let delete = exchange::Delete { exchange: short(GOING), ..Default::default() };
    for deletion in [A_FANOUT, A_HISTORY, A_DELAY] {
        let late = Deletion {
            delete: |admin| drop(admin.delete_exchange("/", GOING.as_bytes(), false)),
            ..deletion
        };
        late.beside("exchange.delete", bound, by_client(delete));
    }
}
