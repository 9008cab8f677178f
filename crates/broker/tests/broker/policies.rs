//! Policies: which one counts, what comes of it together with arguments, and that everything follows
//! at once.

use crate::support::{Heard, Message, World, WorldOnDisk, declare_with, short};
use courser_broker::{ApplyTo, EffectiveSettings, Policy, PolicyKind};
use courser_codec::{FieldTable, FieldValue, Table, exchange};
use std::sync::Arc;

fn policy(name: &str, pattern: &str, definition: FieldTable) -> Policy {
    let (name, pattern) = (name.to_owned(), pattern.to_owned());
    Policy { name, pattern, apply_to: ApplyTo::All, priority: 0, definition }
}

fn with(key: &str, value: impl Into<FieldValue>) -> FieldTable {
    FieldTable::new().with(key, value)
}

impl World {
    fn set(&self, policy: Policy) {
        self.broker.set_policy("/", PolicyKind::User, policy).expect("a good policy");
    }

    fn set_operator(&self, policy: Policy) {
        self.broker.set_policy("/", PolicyKind::Operator, policy).expect("a good policy");
    }

    fn traits(&self, queue: &str) -> Arc<EffectiveSettings> {
        let queue = self.vhost().queue(queue.as_bytes()).expect("the queue");
        queue.traits().unwrap_or_default()
    }

    fn refuses(&self, kind: PolicyKind, policy: Policy) -> String {
        self.broker.set_policy("/", kind, policy).expect_err("a bad policy").to_string()
    }
}

#[test]
fn a_policy_holds_for_queues_that_match_before_and_after_it() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("tmp.before");
    client.declare("kept");
    world.set(policy("short", "^tmp\\.", with("message-ttl", 60_000)));
    client.declare("tmp.after");
    assert_eq!(world.traits("tmp.before").message_ttl_ms, Some(60_000));
    assert_eq!(world.traits("tmp.after").message_ttl_ms, Some(60_000));
    assert_eq!(world.traits("kept").message_ttl_ms, None);
    assert!(world.broker.clear_policy("/", PolicyKind::User, "short").expect("cleared"));
    assert!(!world.broker.clear_policy("/", PolicyKind::User, "short").expect("cleared"));
    assert_eq!(world.traits("tmp.before").message_ttl_ms, None);
    assert_eq!(world.traits("tmp.after").message_ttl_ms, None);
}

#[test]
fn messages_expire_in_a_queue_that_gets_a_time_to_live_later() {
    let world = World::new();
    world.broker.tick(1_000);
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["early"]);
    world.set(policy("ttl", "^q$", with("message-ttl", 5_000)));
    world.broker.tick(4_000);
    client.publish("", "q", "late");
    world.broker.tick(6_100);
    assert_eq!(client.pop_all("q"), ["late"]);
}

#[test]
fn a_length_limit_drops_what_is_too_much_already() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2", "3", "4"]);
    world.set(policy("two", "^q$", with("max-length", 2)));
    assert_eq!(world.counts("q").0, 2);
    client.publish("", "q", "5");
    assert_eq!(client.pop_all("q"), ["4", "5"]);
}

#[test]
fn what_a_policy_drops_goes_to_the_dead_letter_exchange_of_the_policy() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2"]);
    client.declare("dead");
    let definition = with("max-length", 1)
        .with("dead-letter-exchange", "")
        .with("dead-letter-routing-key", "dead");
    world.set(policy("p", "^q$", definition));
    assert_eq!(client.pop_all("dead"), ["1"]);
    assert_eq!(client.pop_all("q"), ["2"]);
}

#[test]
fn the_policy_of_the_highest_priority_counts_alone() {
    let world = World::new();
    world.connect().declare("q");
    world.set(Policy { priority: 1, ..policy("low", "q", with("expires", 1000)) });
    world.set(Policy { priority: 2, ..policy("high", "q", with("message-ttl", 1000)) });
    world.set(Policy { priority: 3, ..policy("elsewhere", "^other$", with("expires", 5)) });
    assert_eq!(world.traits("q").message_ttl_ms, Some(1000));
    assert_eq!(world.traits("q").expires_ms, None);
    let queue = world.broker.admin().queue("/", b"q").expect("the queue");
    assert_eq!((queue.policy.as_deref(), queue.operator_policy), (Some("high"), None));
}

#[test]
fn the_smallest_of_argument_policy_and_operator_policy_counts() {
    let world = World::new();
    let mut client = world.connect();
    let sizes = [(10, 20, 30), (20, 10, 30), (30, 20, 10)];
    for (nth, (argument, user, operator)) in sizes.into_iter().enumerate() {
        let name = format!("q{nth}");
        declare_with(&mut client, &name, false, &with("x-max-length", argument));
        world.set(policy(&name, &name, with("max-length", user)));
        world.set_operator(policy(&name, &name, with("max-length", operator)));
        let bounds = world.traits(&name).bounds.expect("a limit");
        assert_eq!(bounds.messages, Some(10), "{argument} {user} {operator}");
    }
}

#[test]
fn an_operator_policy_adds_what_the_policy_does_not_say() {
    let world = World::new();
    world.connect().declare("q");
    world.set(policy("user", "q", with("message-ttl", 1000)));
    world.set_operator(policy("operator", "q", with("expires", 2000)));
    assert_eq!(world.traits("q").message_ttl_ms, Some(1000));
    assert_eq!(world.traits("q").expires_ms, Some(2000));
}

#[test]
fn an_argument_that_is_no_number_wins_over_a_policy() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &with("x-dead-letter-exchange", "mine"));
    world.set(policy("p", "q", with("dead-letter-exchange", "theirs")));
    let to = world.traits("q").dead_letter.clone().expect("an exchange");
    assert_eq!(to.exchange, short("mine"));
}

#[test]
fn a_policy_is_for_the_types_that_it_names() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q.classic");
    declare_with(&mut client, "q.quorum", true, &with("x-queue-type", "quorum"));
    let only = |apply_to| Policy { apply_to, ..policy("p", "^q", with("expires", 1000)) };
    let expires = |queue| world.traits(queue).expires_ms.is_some();
    for (apply_to, classic, quorum) in [
        (ApplyTo::All, true, true),
        (ApplyTo::Queues, true, true),
        (ApplyTo::ClassicQueues, true, false),
        (ApplyTo::QuorumQueues, false, true),
        (ApplyTo::Streams, false, false),
        (ApplyTo::Exchanges, false, false),
    ] {
        if apply_to != ApplyTo::Streams {
            world.set(only(apply_to));
            assert_eq!((expires("q.classic"), expires("q.quorum")), (classic, quorum));
        }
    }
}

#[test]
fn a_policy_gives_exchanges_an_alternate_one_unless_they_name_their_own() {
    let world = World::new();
    let mut client = world.connect();
    for (queue, exchange) in [("theirs", "x.theirs"), ("mine", "x.mine")] {
        client.declare(queue);
        client.declare_exchange(exchange, "fanout");
        client.bind(queue, exchange, "");
    }
    client.declare_exchange("plain", "direct");
    let entries = with("alternate-exchange", "x.mine").to_entries();
    let arguments = Table::from_entries(&entries);
    let (exchange, kind) = (short("declared"), short("direct"));
    let declare = exchange::Declare { exchange, kind, arguments, ..Default::default() };
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
    client.publish("plain", "nowhere", "lost");
    world.set(policy("p", "^(plain|declared)$", with("alternate-exchange", "x.theirs")));
    client.publish("plain", "nowhere", "saved");
    client.publish("declared", "nowhere", "own");
    assert_eq!(client.pop_all("theirs"), ["saved"]);
    assert_eq!(client.pop_all("mine"), ["own"]);
    world.broker.clear_policy("/", PolicyKind::User, "p").expect("cleared");
    client.publish("plain", "nowhere", "lost again");
    assert_eq!(client.pop_all("theirs"), Vec::<String>::new());
}

#[test]
fn a_stream_follows_a_policy() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "s", true, &with("x-queue-type", "stream"));
    let body = "x".repeat(1000);
    for _ in 0..50 {
        client.send(Message::new("", "s", &body));
    }
    assert_eq!(world.counts("s").0, 50);
    let only = Policy {
        apply_to: ApplyTo::Streams,
        ..policy("p", "^s$", with("max-length-bytes", 10_000))
    };
    world.set(only);
    for _ in 0..50 {
        client.send(Message::new("", "s", &body));
    }
    assert!(world.counts("s").0 < 60, "{} left", world.counts("s").0);
}

#[test]
fn policies_of_one_vhost_do_not_reach_another() {
    let world = World::new();
    let other = world.broker.define_vhost("other", Default::default()).expect("a vhost");
    world.connect_to(Arc::clone(&other)).declare("q");
    world.set(policy("p", ".*", with("expires", 1000)));
    let queue = other.queue(b"q").expect("the queue");
    assert_eq!(queue.traits(), None);
    let nowhere = policy("p", ".*", with("expires", 1000));
    let error =
        world.broker.set_policy("nowhere", PolicyKind::User, nowhere).expect_err("no vhost");
    assert_eq!(error.to_string(), "vhost 'nowhere' not found");
}

#[test]
fn policies_survive_a_restart_and_so_does_what_they_do() {
    for from_checkpoint in [false, true] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &FieldTable::new());
        world.set(Policy { priority: -3, ..policy("p", "^q$", with("message-ttl", 1000)) });
        world.set_operator(policy("o", "^q$", with("message-ttl", 500)));
        world.set(policy("gone", "^q$", with("expires", 500)));
        world.broker.clear_policy("/", PolicyKind::User, "gone").expect("cleared");
        drop(client);
        if from_checkpoint {
            world.restart_from_checkpoint()
        } else {
            world.restart()
        }
        assert_eq!(world.traits("q").message_ttl_ms, Some(500));
        let kept = world.vhost().policies(PolicyKind::User);
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].name.as_str(), kept[0].priority), ("p", -3));
        assert_eq!(world.vhost().policies(PolicyKind::Operator).len(), 1);
    }
}

#[test]
fn predefined_exchanges_follow_their_policy_after_a_restart_too() {
    let mut world = WorldOnDisk::new();
    world.set(policy("p", "direct$", with("alternate-exchange", "amq.fanout")));
    for _ in 0..2 {
        let exchange = world.broker.admin().exchange("/", b"amq.direct").expect("it is there");
        assert_eq!(exchange.policy.as_deref(), Some("p"));
        assert_eq!(exchange.alternate_exchange.expect("its own").as_bytes(), b"amq.fanout");
        world.restart();
    }
}

#[test]
fn policies_of_the_configuration_are_replaced_as_a_whole() {
    let world = World::new();
    world.connect().declare("q");
    world.set(policy("set", "^other$", with("expires", 1000)));
    let configured = |name: &str, ms: i64| {
        ("/".to_owned(), PolicyKind::User, policy(name, "^q$", with("message-ttl", ms)))
    };
    world.broker.configure_policies(vec![configured("a", 1000)]).expect("good policies");
    assert_eq!(world.traits("q").message_ttl_ms, Some(1000));
    assert!(!world.broker.clear_policy("/", PolicyKind::User, "a").expect("stays"));
    world.broker.configure_policies(vec![configured("b", 2000)]).expect("good policies");
    assert_eq!(world.traits("q").message_ttl_ms, Some(2000));
    let bad = ("nowhere".to_owned(), PolicyKind::User, policy("c", "q", with("expires", 1)));
    world.broker.configure_policies(vec![bad]).expect_err("no vhost");
    assert_eq!(world.traits("q").message_ttl_ms, Some(2000), "nothing is changed by a mistake");
    world.broker.configure_policies(Vec::new()).expect("good policies");
    assert_eq!(world.traits("q").message_ttl_ms, None);
    assert_eq!(world.vhost().policies(PolicyKind::User).len(), 1);
}

#[test]
fn a_broker_that_leads_no_more_has_nothing_follow_policies_of_the_configuration() {
    let ours = || policy("p", "^q$", with("message-ttl", 1000));
    let configured = || ("/".to_owned(), PolicyKind::User, ours());
    for leads in [true, false] {
        let world = WorldOnDisk::new();
        world.connect().declare("q");
        if !leads {
            world.store().contest();
            world.store().depose();
        }
        world.broker.configure_policies(vec![configured()]).expect("good policies");
        assert_eq!(world.traits("q").message_ttl_ms, leads.then_some(1000));
    }
}

#[test]
fn a_pattern_may_look_around() {
    let world = World::new();
    world.set(policy("ours", r"^(?!amq\.)", with("message-ttl", 1000)));
    world.set_operator(policy("twice", r"^(\w)\1", with("expires", 2000)));
    let mut client = world.connect();
    client.declare("qq");
    client.declare("q");
    client.declare("amq");
    assert_eq!(world.traits("qq").message_ttl_ms, Some(1000));
    assert_eq!(world.traits("qq").expires_ms, Some(2000));
    assert_eq!(world.traits("q").expires_ms, None);
    assert!(world.vhost().policies(PolicyKind::User).len() == 1);
    assert_eq!(world.traits("amq").message_ttl_ms, Some(1000));
    let slow = policy("ours", r"^(\w+\w+)+(?=!)", with("message-ttl", 3000));
    world.set(slow);
    let long = "a".repeat(200);
    client.declare(&long);
    assert_eq!(world.traits(&long).message_ttl_ms, None, "a match of too many steps is none");
}

#[test]
fn what_is_said_of_the_place_of_queues_is_taken() {
    let world = World::new();
    let definition = with("queue-leader-locator", "balanced")
        .with("queue-master-locator", "min-masters")
        .with("initial-cluster-size", 3)
        .with("stream-filter-size-bytes", 32)
        .with("message-ttl", 5);
    world.set(policy("placed", "^q$", definition));
    let mut client = world.connect();
    client.declare("q");
    assert_eq!(world.traits("q").message_ttl_ms, Some(5));
    let bad = policy("p", "q", with("queue-leader-locator", "here"));
    let bad = world.refuses(PolicyKind::User, bad);
    assert!(bad.starts_with("definition.queue-leader-locator is not good: "), "{bad}");
}

#[test]
fn what_is_wrong_with_a_policy_is_named() {
    let world = World::new();
    let user = |policy| world.refuses(PolicyKind::User, policy);
    let broken = user(policy("p", "(", with("expires", 1)));
    let start = "pattern should be regular expression but is invalid: ";
    assert!(broken.starts_with(start), "{broken}");
    // What another engine would read in another way.
    for pattern in ["a(?R)b", "(?x)a b", "[a&&b]"] {
        let refused = user(policy("p", pattern, with("expires", 1)));
        assert!(refused.starts_with(start), "{pattern}: {refused}");
    }
    let unknown = user(policy("p", "q", with("ttl", 1)));
    assert!(unknown.starts_with("definition.ttl is unknown; there are expires, "), "{unknown}");
    let negative = user(policy("p", "q", with("max-length", -1)));
    assert_eq!(negative, "definition.max-length is not good: {value_negative,-1}");
    assert_eq!(user(policy("p", "q", FieldTable::new())), "definition is empty");
    assert_eq!(user(policy("", "q", with("expires", 1))), "name must have 1 to 255 bytes");
    let operator = |policy| world.refuses(PolicyKind::Operator, policy);
    let bound = operator(policy("p", "q", with("dead-letter-exchange", "x")));
    assert!(bound.contains("is not for operator policies"), "{bound}");
    assert!(world.vhost().policies(PolicyKind::User).is_empty());
}

#[test]
fn there_are_no_more_policies_than_there_may_be() {
    let world = World::new();
    for nth in 0..1000 {
        world.set(policy(&nth.to_string(), "^x$", with("expires", 1000)));
    }
    world.set(policy("7", "^y$", with("expires", 1000)));
    let error = world.refuses(PolicyKind::User, policy("one more", "x", with("expires", 1000)));
    assert_eq!(error, "there are the 1000 policies that a vhost may have");
}
