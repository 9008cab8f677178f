//! Where a message would go, what a policy would change, and who has what is not acknowledged.

use crate::cc::tangled;
use crate::support::{Message, World, declare_with, owned};
use courser_broker::admin::{
    Admin, ApplyTo, ExchangeKind, ExchangeSettings, NewBinding, NewMessage, Policy, PolicyKind,
    PolicyPreview,
};
use courser_broker::steps;
use courser_codec::{FieldTable, OwnedProperties};

fn exchange(world: &World, name: &str, kind: &str, arguments: FieldTable) {
    let settings = ExchangeSettings {
        kind: ExchangeKind::parse(kind.as_bytes()).expect("a type"),
        durable: false,
        auto_delete: false,
        internal: false,
        arguments,
    };
    world.broker.admin().declare_exchange("/", name, &settings).expect("a new exchange");
}

fn bind(world: &World, source: &str, destination: &str, to_queue: bool, key: &str) {
    let binding = NewBinding {
        source: owned(source),
        destination: owned(destination),
        to_queue,
        routing_key: owned(key),
        arguments: FieldTable::new(),
    };
    world.broker.admin().bind("/", binding).expect("a binding");
}

fn message(exchange: &str, key: &str) -> NewMessage {
    NewMessage { exchange: owned(exchange), routing_key: owned(key), ..NewMessage::default() }
}

#[test]
fn a_traced_message_goes_where_a_published_one_goes() {
    let world = World::new();
    let mut client = world.connect();
    let queues = ["a", "b", "c", "d"];
    queues.iter().for_each(|queue| client.declare(queue));
    exchange(&world, "rest", "fanout", FieldTable::new());
    exchange(&world, "topic", "topic", FieldTable::new().with("alternate-exchange", "rest"));
    exchange(&world, "direct", "direct", FieldTable::new());
    exchange(&world, "headers", "headers", FieldTable::new());
    bind(&world, "topic", "a", true, "x.*");
    bind(&world, "topic", "b", true, "#.y");
    bind(&world, "topic", "direct", false, "to.direct");
    bind(&world, "direct", "c", true, "to.direct");
    bind(&world, "direct", "topic", false, "to.direct");
    bind(&world, "rest", "d", true, "");
    bind(&world, "headers", "a", true, "");
    let admin = world.broker.admin();
    for name in ["", "topic", "direct", "rest", "headers"] {
        for key in ["a", "x.y", "x", "x.z.y", "to.direct", "none", ""] {
            let trace = admin.trace_route("/", &message(name, key)).expect("an exchange");
            let traced: Vec<String> = trace.queues.iter().map(|one| one.name.to_string()).collect();
            client.send(Message::new(name, key, "x"));
            let got = queues.iter().filter(|queue| !client.pop_all(queue).is_empty());
            let mut got: Vec<String> = got.map(ToString::to_string).collect();
            let mut traced = traced;
            got.sort();
            traced.sort();
            assert_eq!(traced, got, "{name} {key}");
        }
    }
}

#[test]
fn a_trace_says_which_binding_let_it_through_and_what_came_of_nothing() {
    let world = World::new();
    let mut client = world.connect();
    let to_dead = FieldTable::new().with("x-dead-letter-exchange", "dead");
    declare_with(&mut client, "q", false, &to_dead);
    exchange(&world, "topic", "topic", FieldTable::new().with("alternate-exchange", "gone"));
    for key in ["x.*", "x.#", "y"] {
        bind(&world, "topic", "q", true, key);
    }
    let admin = world.broker.admin();
    let trace = admin.trace_route("/", &message("topic", "x.1")).expect("an exchange");
    let keys: Vec<String> =
        trace.steps[0].bindings.iter().map(|one| one.binding.routing_key.to_string()).collect();
    assert_eq!(keys, ["x.#", "x.*"]);
    assert_eq!(trace.queues[0].dead_letters, Some((owned("dead"), None)));
    let trace = admin.trace_route("/", &message("topic", "z")).expect("an exchange");
    assert_eq!((trace.steps.len(), trace.queues.len()), (1, 0));
    assert!(trace.steps[0].alternate_is_missing);
    assert_eq!(admin.trace_route("/", &message("none", "z")).expect_err("none").code, 404);
    assert_eq!(world.counts("q"), (0, 0, 0), "nothing has been published");
}

#[test]
fn only_a_binding_that_leads_back_is_a_loop() {
    let world = World::new();
    for name in ["first", "left", "right", "last", "round"] {
        exchange(&world, name, "fanout", FieldTable::new());
    }
    let ways = [("first", "left"), ("first", "right"), ("left", "last"), ("right", "last")];
    ways.iter().for_each(|(from, to)| bind(&world, from, to, false, ""));
    let loops = || -> Vec<String> {
        let trace = world.broker.admin().trace_route("/", &message("first", "")).expect("a way");
        let bindings = trace.steps.iter().flat_map(|step| &step.bindings);
        let loops = bindings.filter(|one| one.is_loop);
        loops.map(|one| format!("{} {}", one.binding.source, one.binding.destination)).collect()
    };
    assert_eq!(loops(), [""; 0], "two ways lead to the last one, and none from it");
    bind(&world, "last", "right", false, "");
    assert_eq!(loops().len(), 1, "right and last lead to each other");
    bind(&world, "left", "left", false, "");
    assert!(loops().contains(&"left left".to_owned()));
    bind(&world, "last", "round", false, "");
    bind(&world, "round", "first", false, "");
    assert!(loops().contains(&"round first".to_owned()));
    assert_eq!(loops().len(), 3);
}

#[test]
fn the_way_of_a_message_whose_keys_take_too_long_to_route_is_not_told() {
    let world = World::new();
    let mut client = world.connect();
    let (exchange, headers) = tangled(&mut client, 300);
    let properties = OwnedProperties { headers: Some(headers), ..OwnedProperties::default() };
    let message = NewMessage { properties, ..message(exchange, "k") };
    let before = steps();
    let refused = world.broker.admin().trace_route("/", &message);
    assert_eq!(refused.expect_err("too many steps").code, 506);
    // The way, and the patterns that are shown besides.
    let taken = steps() - before;
    assert!(taken < 5_000_000, "{taken}");
}

#[test]
fn a_trace_looks_only_at_bindings_that_it_shows() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    exchange(&world, "direct", "direct", FieldTable::new());
    exchange(&world, "topic", "topic", FieldTable::new());
    exchange(&world, "fanout", "fanout", FieldTable::new());
    for number in 0..2000 {
        let key = format!("key.{number}");
        ["direct", "topic", "fanout"].iter().for_each(|name| bind(&world, name, "q", true, &key));
    }
    for (name, shown, most) in [("direct", 1, 10), ("topic", 1, 2100), ("fanout", 100, 200)] {
        let before = steps();
        let trace = world.broker.admin().trace_route("/", &message(name, "key.7")).expect("a way");
        let taken = steps() - before;
        assert_eq!((trace.queue_count, trace.steps[0].bindings.len()), (1, shown), "{name}");
        assert!((shown as u64..most).contains(&taken), "{name}: {taken} steps");
    }
}

fn policy(name: &str, priority: i64, length: i64) -> Policy {
    Policy {
        name: name.to_owned(),
        pattern: "^q".to_owned(),
        apply_to: ApplyTo::Queues,
        priority,
        definition: FieldTable::new().with("max-length", length),
    }
}

fn previewed(admin: &Admin, policy: Policy) -> PolicyPreview {
    let mut previewing = admin.preview_policy("/", PolicyKind::User, policy).expect("good");
    while previewing.go_on() {}
    previewing.found()
}

#[test]
fn a_preview_says_what_a_policy_would_change_and_changes_nothing() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q1", false, &FieldTable::new().with("x-max-length", 3_i64));
    client.declare("q2");
    client.declare("other");
    let admin = world.broker.admin();
    admin.set_policy("/", PolicyKind::User, policy("old", 1, 9)).expect("a policy");
    let preview = previewed(&admin, policy("new", 2, 5));
    assert_eq!((preview.matching_queues, preview.changed_queues), (2, 2));
    let second = &preview.queues[1];
    assert_eq!(second.name, owned("q2"));
    assert_eq!(
        (second.policy_before.as_deref(), second.policy_after.as_deref()),
        (Some("old"), Some("new"))
    );
    let length =
        |table: &FieldTable| table.get("x-max-length").and_then(|value| value.as_integer());
    assert_eq!((length(&second.before), length(&second.after)), (Some(9), Some(5)));
    assert_eq!(length(&preview.queues[0].after), Some(3), "the smaller number counts");
    let lower = previewed(&admin, policy("low", 0, 5));
    assert_eq!((lower.matching_queues, lower.changed_queues), (2, 0));
    assert_eq!(admin.policies("/", PolicyKind::User).expect("the vhost").len(), 1);
}

#[test]
fn what_is_not_acknowledged_has_an_owner_and_an_age() {
    let world = World::new();
    world.broker.tick(10_000);
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["a", "b", "c"]);
    let tag = client.consume("q");
    world.broker.tick(15_000);
    client.publish("", "q", "d");
    client.ack(2);
    let (total, found) = world.broker.admin().unacked("/", b"q", 0, 10).expect("the queue");
    assert_eq!(total, 3);
    let tags: Vec<u64> = found.iter().map(|one| one.delivery_tag).collect();
    assert_eq!(tags, [1, 3, 4]);
    let since: Vec<Option<u64>> = found.iter().map(|one| one.since_ms).collect();
    assert_eq!(since, [Some(10_000), Some(10_000), Some(15_000)]);
    assert!(found.iter().all(|one| one.consumer_tag == Some(owned(&tag))));
    let first = found[0].message.as_ref().expect("a message");
    assert_eq!((first.routing_key.to_string(), first.body_bytes), ("q".to_owned(), 1));
    let (total, rest) = world.broker.admin().unacked("/", b"q", 2, 10).expect("the queue");
    assert_eq!((total, rest.len()), (3, 1));
    // Another queue's are not among them.
    client.declare("other");
    assert_eq!(world.broker.admin().unacked("/", b"other", 0, 10).expect("the queue").0, 0);
}

#[test]
fn what_other_queues_have_out_is_not_looked_at() {
    let world = World::new();
    let mut client = world.connect();
    client.open_channel(2);
    for queue in ["theirs", "mine", "both"] {
        client.declare(queue);
        client.fill(queue, &["x"; 2500]);
    }
    client.consume("theirs");
    let looks = |queue: &str| {
        let before = steps();
        let (total, _) = world.broker.admin().unacked("/", queue.as_bytes(), 0, 1).expect("it");
        (total, steps() - before)
    };
    let (total, taken) = looks("theirs");
    assert!(total == 2500 && taken >= 2500, "{taken} steps are counted for {total} deliveries");
    let (total, taken) = looks("mine");
    assert!(total == 0 && taken < 100, "{taken} steps");
    // What lies among others is found, however far behind it lies.
    client.get("mine").expect("a message");
    client.consume("both");
    client.get("mine").expect("a message");
    let (_, found) = world.broker.admin().unacked("/", b"mine", 0, 10).expect("the queue");
    let tags: Vec<u64> = found.iter().map(|one| one.delivery_tag).collect();
    assert_eq!(tags, [2501, 5002]);
    client.ack(2501);
    let (_, found) = world.broker.admin().unacked("/", b"mine", 0, 10).expect("the queue");
    assert_eq!(found.iter().map(|one| one.delivery_tag).collect::<Vec<_>>(), [5002]);
}

#[test]
fn a_delayed_message_says_so() {
    let world = World::new();
    exchange(
        &world,
        "later",
        "x-delayed-message",
        FieldTable::new().with("x-delayed-type", "fanout"),
    );
    let headers = Some(FieldTable::new().with("x-delay", 1500_i64));
    let properties = OwnedProperties { headers, ..OwnedProperties::default() };
    let message = NewMessage { properties, ..message("later", "") };
    let trace = world.broker.admin().trace_route("/", &message).expect("an exchange");
    assert_eq!(trace.steps[0].delayed_ms, Some(1500));
}
