//! The deletion of a vhost.

use super::*;
use courser_auth::{Permission, TopicPermission};
use courser_broker::admin::{
    ExchangeKind, ExchangeSettings, MoveTo, NewBinding, NewQueue, Parameter, Selection,
};
use courser_broker::{ApplyTo, Policy, PolicyKind, VhostLimits};
use courser_codec::{basic, queue, tx};

const A_VHOST: Deletion = Deletion {
    make: |world| {
        let admin = world.broker.admin();
        admin.put_user("user", &[], |_| Ok(())).expect("a user");
        make(&admin);
        let vhost = world.broker.vhost(GOING).expect("it is there");
        let mut client = world.connect_to(vhost);
        declare(&mut client, "q", table());
        client
    },
    delete: |admin| admin.delete_vhost(GOING).expect("it is there"),
    make_anew: make,
    check_new: |world| {
        let admin = world.broker.admin();
        let settings = admin.vhost(GOING).expect("it was made anew");
        assert_eq!((settings.limits, settings.tracing), (VhostLimits::default(), false));
        assert_eq!(admin.queues(Some(GOING)).expect("it is there").len(), 0);
    },
};

fn make(admin: &Admin) {
    admin.change_vhost(GOING, |_| ()).expect("a vhost");
}

fn policy() -> Policy {
    Policy {
        name: "p".to_owned(),
        pattern: "^q$".to_owned(),
        apply_to: ApplyTo::All,
        priority: 0,
        definition: table().with("max-length", 1),
    }
}

fn parameter() -> Parameter {
    let [vhost, component, name, value] = [GOING, "component", "name", "1"].map(str::to_owned);
    Parameter { vhost, component, name, value }
}

/// The queue `q` bound to everything, with messages in it.
fn filled(_: &WorldOnDisk, client: &mut Client) {
    declare_exchange(client, "all", "fanout", table());
    delay(client, "later");
    history(client, "recent");
    for exchange in ["all", "later", "recent"] {
        client.bind("q", exchange, "");
    }
    client.bind_exchange("all", "recent", "");
    fill(client, "q");
    (0..3).for_each(|_| client.send(persistent("recent", "")));
    client.send(delayed("later"));
    let dead = table().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "q");
    declare(client, "dying", dead.with("x-message-ttl", 1000));
    fill(client, "dying");
}

#[test]
fn a_declaration_in_a_vhost() {
    let queue = |arguments: FieldTable| {
        move |_: &WorldOnDisk, client: &mut Client| {
            let entries = arguments.to_entries();
            let (queue, arguments) = (short("new"), Table::from_entries(&entries));
            ask(client, queue::Declare { queue, durable: true, arguments, ..Default::default() });
        }
    };
    A_VHOST.beside("queue.declare", nothing, queue(table()));
    A_VHOST.beside("of a quorum queue", nothing, queue(table().with("x-queue-type", "quorum")));
    A_VHOST.beside("of a stream", nothing, queue(table().with("x-queue-type", "stream")));
    for (kind, arguments) in [
        ("topic", table()),
        ("x-recent-history", table()),
        ("x-delayed-message", table().with("x-delayed-type", "fanout")),
    ] {
        A_VHOST.beside(kind, nothing, |_, client| {
            exchange_with("new", kind, &arguments, |declare| ask(client, declare));
        });
    }
}

#[test]
fn a_declaration_in_a_vhost_that_has_no_queue() {
    let empty = |_: &WorldOnDisk, client: &mut Client| drop(client.delete("q"));
    let declare = queue::Declare { queue: short("new"), durable: true, ..Default::default() };
    A_VHOST.beside("queue.declare", empty, by_client(declare));
    A_VHOST.beside("exchange.declare", empty, |_, client| {
        exchange_with("new", "topic", &table(), |declare| ask(client, declare));
    });
    let (source, destination) = (short("amq.direct"), short("amq.fanout"));
    let bind = exchange::Bind { source, destination, ..Default::default() };
    A_VHOST.beside("exchange.bind", empty, by_client(bind));
}

#[test]
fn a_declaration_by_an_operator_in_a_vhost() {
    let queue = || NewQueue { durable: true, ..NewQueue::default() };
    A_VHOST.beside(
        "of a queue",
        nothing,
        by_operator(|admin| admin.declare_queue(GOING, "new", queue())),
    );
    let settings = ExchangeSettings {
        kind: ExchangeKind::Direct,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: table(),
    };
    A_VHOST.beside(
        "of an exchange",
        nothing,
        by_operator(|admin| admin.declare_exchange(GOING, "new", &settings)),
    );
    let binding = NewBinding {
        source: short("amq.fanout").into(),
        destination: short("q").into(),
        to_queue: true,
        routing_key: short("").into(),
        arguments: table(),
    };
    A_VHOST.beside(
        "of a binding",
        nothing,
        by_operator(|admin| admin.bind(GOING, binding.clone())),
    );
}

#[test]
fn a_binding_in_a_vhost() {
    let (queue, exchange) = (short("q"), short("amq.fanout"));
    let bind = queue::Bind { queue, exchange, ..Default::default() };
    A_VHOST.beside("queue.bind", nothing, by_client(bind));
    let (source, destination) = (short("amq.direct"), short("amq.fanout"));
    let bind = exchange::Bind { source, destination, ..Default::default() };
    A_VHOST.beside("exchange.bind", nothing, by_client(bind));
    let routing_key = short("new");
    let bind = queue::Bind { queue, exchange: short("recent"), routing_key, ..Default::default() };
    A_VHOST.beside("queue.bind to a history", filled, by_client(bind));
    let (source, destination) = (short("recent"), short("all"));
    let bind = exchange::Bind { source, destination, routing_key, ..Default::default() };
    A_VHOST.beside("exchange.bind to a history", filled, by_client(bind));
}

#[test]
fn a_removal_in_a_vhost() {
    let delete = queue::Delete { queue: short("q"), ..Default::default() };
    A_VHOST.beside("queue.delete", filled, by_client(delete));
    let delete = exchange::Delete { exchange: short("all"), ..Default::default() };
    A_VHOST.beside("exchange.delete", filled, by_client(delete));
    let unbind = queue::Unbind { queue: short("q"), exchange: short("all"), ..Default::default() };
    A_VHOST.beside("queue.unbind", filled, by_client(unbind));
    let purge = queue::Purge { queue: short("q"), nowait: false };
    A_VHOST.beside("queue.purge", filled, by_client(purge));
    A_VHOST.beside("of some", filled, by_operator(|admin| admin.purge_some(GOING, b"q", 1)));
}

#[test]
fn a_message_in_a_vhost() {
    A_VHOST.beside("a publish", filled, by_publish(persistent("", "q")));
    A_VHOST.beside("to a history", filled, by_publish(persistent("recent", "")));
    A_VHOST.beside("a delayed one", filled, by_publish(delayed("later")));
    let stream = |_: &WorldOnDisk, client: &mut Client| {
        declare(client, "s", table().with("x-queue-type", "stream"));
    };
    A_VHOST.beside("to a stream", stream, by_publish(persistent("", "s")));
    A_VHOST.beside(
        "tx.commit",
        |_, client| {
            client.tx_select();
            client.send(persistent("", "q"));
        },
        by_client(tx::Commit {}),
    );
    let move_to = MoveTo::Exchange(short("all").into(), None);
    A_VHOST.beside(
        "a move",
        filled,
        by_operator(|admin| {
            let selection = Selection::default();
            admin.relocate(GOING, b"dying", &selection, &move_to, &|_| Some(true), false)
        }),
    );
}

#[test]
fn a_settlement_in_a_vhost() {
    let consuming = |world: &WorldOnDisk, client: &mut Client| {
        filled(world, client);
        client.consume("dying");
    };
    A_VHOST.beside(
        "basic.ack",
        consuming,
        by_client(basic::Ack { delivery_tag: 1, multiple: false }),
    );
    let reject = |requeue| by_client(basic::Reject { delivery_tag: 1, requeue });
    A_VHOST.beside("basic.reject", consuming, reject(false));
    let counting = |_: &WorldOnDisk, client: &mut Client| {
        declare(client, "counting", table().with("x-queue-type", "quorum"));
        fill(client, "counting");
        client.consume("counting");
    };
    A_VHOST.beside("to come back", counting, reject(true));
    A_VHOST.beside("basic.get", filled, by_client(basic::Get { queue: short("q"), no_ack: true }));
    let consume = basic::Consume { queue: short("q"), no_ack: true, ..Default::default() };
    A_VHOST.beside("basic.consume", filled, by_client(consume));
    for due_ms in [2000, 10_000] {
        A_VHOST.beside("what is due", filled, |world, _| world.tick_all(START_MS + due_ms));
    }
}

#[test]
fn what_an_operator_says_in_a_vhost() {
    for kind in [PolicyKind::User, PolicyKind::Operator] {
        A_VHOST.beside(
            "a policy",
            filled,
            by_operator(|admin| admin.set_policy(GOING, kind, policy())),
        );
    }
    let with_policy = |world: &WorldOnDisk, _: &mut Client| {
        let set = world.broker.admin().set_policy(GOING, PolicyKind::User, policy());
        assert!(set.expect("a good policy"));
    };
    A_VHOST.beside(
        "its end",
        with_policy,
        by_operator(|admin| admin.clear_policy(GOING, PolicyKind::User, "p")),
    );
    A_VHOST.beside("a pause", nothing, by_operator(|admin| admin.pause_queue(GOING, b"q")));
}

#[test]
fn what_an_operator_says_of_a_vhost() {
    A_VHOST.beside("a parameter", nothing, by_operator(|admin| admin.set_parameter(&parameter())));
    let limits = VhostLimits { queues_max: Some(7), connections_max: None };
    let said = by_operator(|admin| {
        admin.change_known_vhost(GOING, |vhost| (vhost.limits, vhost.tracing) = (limits, true))
    });
    A_VHOST.beside("limits", nothing, said);
    let all = Permission::all();
    A_VHOST.beside(
        "a permission",
        nothing,
        by_operator(|admin| admin.set_permission("user", GOING, all.clone())),
    );
    let any = TopicPermission { write: ".*".to_owned(), read: ".*".to_owned() };
    A_VHOST.beside(
        "a topic permission",
        nothing,
        by_operator(|admin| admin.set_topic_permission("user", GOING, "amq.topic", any.clone())),
    );
    let without_client = |_: &WorldOnDisk, client: &mut Client| client.disconnect();
    let hold = by_operator(|admin| {
        admin.stop_vhost(GOING, 1)?;
        let mut export = admin.export_vhost(GOING)?;
        while export.next_piece()?.is_some() {}
        export.hold()
    });
    A_VHOST.beside("its standing still", without_client, hold);
}
