//! The deletion of a queue.

use super::*;
use courser_broker::admin::{MoveTo, NewBinding, NewQueue, Selection};
use courser_codec::{basic, queue, tx};

const A_QUEUE: Deletion = Deletion {
    make: |world| {
        make(&world.broker.admin());
        world.connect()
    },
    delete,
    make_anew: make,
    check_new,
};

const A_QUORUM_QUEUE: Deletion = Deletion {
    make: |world| {
        let mut client = world.connect();
        declare(&mut client, GOING, table().with("x-queue-type", "quorum"));
        client
    },
    delete,
    make_anew: make,
    check_new,
};

const A_STREAM: Deletion = Deletion {
    make: |world| {
        let mut client = world.connect();
        let arguments = table().with("x-queue-type", "stream").with("x-max-age", "1m");
        declare(&mut client, GOING, arguments);
        client
    },
    delete,
    make_anew: make,
    check_new,
};

fn make(admin: &Admin) {
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("/", GOING, queue).expect("a queue");
}

fn delete(admin: &Admin) {
    admin.delete_queue("/", GOING.as_bytes(), false, false).expect("it is there");
}

fn check_new(world: &WorldOnDisk) {
    assert_eq!(world.counts(GOING), (0, 0, 0));
    let queues = world.broker.admin().queues(Some("/")).expect("the vhost is there");
    assert!(queues.iter().all(|queue| !queue.paused));
}

/// With messages in the queue, which is bound to everything, and to which dead letters go.
fn filled(_: &WorldOnDisk, client: &mut Client) {
    declare_exchange(client, "all", "fanout", table());
    delay(client, "later");
    history(client, "recent");
    declare(client, "other", table());
    for exchange in ["all", "later", "recent"] {
        client.bind(GOING, exchange, "");
    }
    client.bind("other", "all", "");
    client.bind("other", "amq.fanout", "");
    fill(client, GOING);
    (0..3).for_each(|_| client.send(persistent("recent", "")));
    client.send(delayed("later"));
    let dead = table().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", GOING);
    declare(client, "dying", dead.with("x-message-ttl", 1000));
    fill(client, "dying");
}

#[test]
fn a_binding_to_a_queue() {
    let (queue, exchange) = (short(GOING), short("amq.fanout"));
    let bind = queue::Bind { queue, exchange, ..Default::default() };
    A_QUEUE.beside("queue.bind", nothing, by_client(bind));
    let routing_key = short("new");
    let bind = queue::Bind { queue, exchange: short("recent"), routing_key, ..Default::default() };
    A_QUEUE.beside("to a history", filled, by_client(bind));
    let unbind = queue::Unbind { queue, exchange: short("all"), ..Default::default() };
    A_QUEUE.beside("queue.unbind", filled, by_client(unbind));
    let binding = NewBinding {
        source: short("amq.fanout").into(),
        destination: short(GOING).into(),
        to_queue: true,
        routing_key: short("").into(),
        arguments: table(),
    };
    A_QUEUE.beside(
        "by an operator",
        nothing,
        by_operator(|admin| admin.bind("/", binding.clone())),
    );
}

#[test]
fn a_message_for_a_queue() {
    A_QUEUE.beside("a publish", nothing, by_publish(persistent("", GOING)));
    A_QUEUE.beside("to two queues", filled, by_publish(persistent("all", "")));
    A_QUEUE.beside("by a history", filled, by_publish(persistent("recent", "")));
    A_QUEUE.beside(
        "tx.commit",
        |_, client| {
            client.tx_select();
            client.send(persistent("", GOING));
        },
        by_client(tx::Commit {}),
    );
    for due_ms in [2000, 10_000] {
        A_QUEUE.beside("what is due", filled, |world, _| world.tick_all(START_MS + due_ms));
    }
    A_STREAM.beside("to a stream", nothing, by_publish(persistent("", GOING)));
}

#[test]
fn a_move_to_a_queue_and_from_one() {
    let relocate = |from: &'static str, to: &str| {
        let move_to = MoveTo::Exchange(short(to).into(), None);
        by_operator(move |admin| {
            let selection = Selection::default();
            admin.relocate("/", from.as_bytes(), &selection, &move_to, &|_| Some(true), false)
        })
    };
    A_QUEUE.beside("from it", filled, relocate(GOING, "amq.fanout"));
    A_QUEUE.beside("to it", filled, relocate("dying", "all"));
    let moved = |from: &'static str, to: &'static str| {
        by_operator(move |admin| admin.move_messages("/", from.as_bytes(), to.as_bytes(), None))
    };
    A_QUEUE.beside("all from it", filled, moved(GOING, "other"));
    A_QUEUE.beside("all to it", filled, moved("dying", GOING));
}

#[test]
fn a_settlement_in_a_queue() {
    let consuming = |world: &WorldOnDisk, client: &mut Client| {
        filled(world, client);
        client.consume(GOING);
    };
    let ack = basic::Ack { delivery_tag: 1, multiple: false };
    A_QUEUE.beside("basic.ack", consuming, by_client(ack));
    let reject = |requeue| by_client(basic::Reject { delivery_tag: 1, requeue });
    A_QUEUE.beside("basic.reject", consuming, reject(false));
    A_QUORUM_QUEUE.beside("to come back", consuming, reject(true));
    let get = basic::Get { queue: short(GOING), no_ack: true };
    A_QUEUE.beside("basic.get", filled, by_client(get));
    let consume = basic::Consume { queue: short(GOING), no_ack: true, ..Default::default() };
    A_QUEUE.beside("basic.consume", filled, by_client(consume));
}

#[test]
fn a_removal_in_a_queue() {
    let purge = queue::Purge { queue: short(GOING), nowait: false };
    A_QUEUE.beside("queue.purge", filled, by_client(purge));
    A_QUEUE.beside(
        "of some",
        filled,
        by_operator(|admin| admin.purge_some("/", GOING.as_bytes(), 1)),
    );
    let limit = |world: &WorldOnDisk, _: &mut Client| {
        world.give_policy(GOING, table().with("max-length", 1));
    };
    A_QUEUE.beside("by a limit", filled, limit);
    let old = |_: &WorldOnDisk, client: &mut Client| fill(client, GOING);
    A_STREAM.beside("of what is old", old, |world, _| world.tick_all(START_MS + 1_000_000));
}

#[test]
fn a_pause_of_a_queue() {
    let paused = |world: &WorldOnDisk, _: &mut Client| {
        world.broker.admin().pause_queue("/", GOING.as_bytes()).expect("it is there");
    };
    A_QUEUE.beside(
        "its beginning",
        nothing,
        by_operator(|admin| admin.pause_queue("/", GOING.as_bytes())),
    );
    A_QUEUE.beside(
        "its end",
        paused,
        by_operator(|admin| admin.resume_queue("/", GOING.as_bytes())),
    );
}
