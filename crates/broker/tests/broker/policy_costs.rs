//! What the patterns of policies may cost together, and who bears that.

use crate::support::{World, short};
use courser_broker::admin::{NewQueue, PageRequest};
use courser_broker::{ApplyTo, Policy, PolicyKind, steps};
use courser_codec::{FieldTable, exchange, queue};

fn policy(name: &str, pattern: &str) -> Policy {
    let (name, pattern) = (name.to_owned(), pattern.to_owned());
    let definition = FieldTable::new().with("expires", 1_000_000);
    Policy { name, pattern, apply_to: ApplyTo::All, priority: 0, definition }
}

impl World {
    fn set_costly(&self, kind: PolicyKind, policy: Policy) -> Result<bool, String> {
        self.broker.set_policy("/", kind, policy).map_err(|error| error.to_string())
    }
}

/// As costly as a pattern may be: it has two states for each of these repetitions, and may be in all of them at once.
const LARGEST: &str = "^(?:a*b?){1400}[^a-z]";

#[test]
fn the_patterns_of_the_policies_of_a_vhost_have_a_bound_together() {
    for costly in [LARGEST, r"^(?!amq\.)"] {
        let world = World::new();
        let costly = |nth: usize| policy(&format!("costly-{nth}"), costly);
        for nth in 0..10 {
            world.set_costly(PolicyKind::User, costly(nth)).expect("there is room");
            world.set_costly(PolicyKind::Operator, costly(nth)).expect("there is room");
        }
        let refused = world.set_costly(PolicyKind::User, costly(10)).expect_err("too much");
        assert!(refused.starts_with("pattern is too costly"), "{refused}");
        let preview = world.broker.admin().preview_policy("/", PolicyKind::User, costly(10));
        assert_eq!(preview.expect_err("too much").to_string(), refused);
        let in_place = world.set_costly(PolicyKind::User, costly(3));
        in_place.expect("another one takes the place of one that is there");
        world.broker.clear_policy("/", PolicyKind::Operator, "costly-3").expect("it is there");
        for nth in 0..250 {
            let cheap = policy(&nth.to_string(), "^orders\\.[a-z]+$");
            world
                .set_costly(PolicyKind::User, cheap)
                .expect("a quarter of a thousand are as costly");
        }
    }
}

#[test]
fn a_vhost_whose_policies_cost_too_much_takes_what_costs_no_more() {
    let world = World::new();
    let set = |name: &str, pattern: &str| world.set_costly(PolicyKind::User, policy(name, pattern));
    for nth in 0..19 {
        set(&format!("costly-{nth}"), LARGEST).expect("there is room");
    }
    for nth in 0..256 {
        set(&format!("cheap-{nth}"), "^o").expect("there is room");
    }
    set("one more", "^o").expect_err("there is no room");
    set("cheap-7", "^p").expect("it costs as much as the one in whose place it comes");
    set("costly-7", "^p").expect("it costs less");
    set("cheap-8", LARGEST).expect("there is room again");
    set("cheap-9", LARGEST).expect_err("and no more");
}

#[test]
fn a_preview_is_made_in_portions_that_cost_a_bounded_number_of_steps() {
    const QUEUES: u64 = 100;
    let world = World::new();
    let mut client = world.connect();
    (0..QUEUES).for_each(|nth| client.declare(&format!("q.{nth}")));
    let portions_of = |pattern: &str| {
        let policy = policy("new", pattern);
        let previewing = world.broker.admin().preview_policy("/", PolicyKind::User, policy);
        let (mut previewing, mut portions) = (previewing.expect("good"), Vec::new());
        loop {
            let before = steps();
            let has_more = previewing.go_on();
            portions.push(steps() - before);
            if !has_more {
                break;
            }
        }
        let (looked_at, all) = previewing.progress();
        assert!(looked_at == all && all as u64 > QUEUES, "{looked_at} of {all}");
        (portions, previewing.found().matching_queues as u64)
    };
    let (portions, matching) = portions_of("^q");
    assert!(portions.len() < 5 && matching == QUEUES, "{portions:?}");
    let (portions, matching) = portions_of(LARGEST);
    assert!(portions.len() > 50 && matching == 0, "{portions:?}");
    // What the last name takes comes to it.
    assert!(portions.iter().all(|steps| *steps < 2 * 2048), "{portions:?}");
}

#[test]
fn a_declare_looks_once_for_the_pattern_of_each_policy() {
    let world = World::new();
    let mut client = world.connect();
    let mut steps_of = |queue: &str| {
        let before = steps();
        client.declare(queue);
        steps() - before
    };
    let without = steps_of("first");
    for nth in 0..20 {
        let mut one = policy(&nth.to_string(), "^never[0-9]$");
        // What is refused for their type is not looked for.
        one.apply_to = if nth % 2 == 0 { ApplyTo::Queues } else { ApplyTo::Streams };
        world.set_costly(PolicyKind::User, one).expect("a good policy");
    }
    let cheap = steps_of("second") - without;
    assert!((10..=100).contains(&cheap), "{cheap} steps for ten patterns");
    for nth in 0..10 {
        let costly = policy(&format!("costly-{nth}"), LARGEST);
        world.set_costly(PolicyKind::User, costly).expect("a good policy");
    }
    let costly = steps_of("third") - without;
    // A connection that has taken so many lets others have their turn.
    assert!((10_000..=12_000).contains(&costly), "{costly} steps for ten of the largest");
    let again = steps_of("third");
    assert!(again <= without, "{again} steps for a queue that is there");
}

#[test]
fn a_declare_takes_long_where_patterns_are_costly_unless_it_makes_nothing() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("there");
    let queue = |name: &'static str| queue::Declare { queue: short(name), ..Default::default() };
    let exchange =
        |name: &'static str| exchange::Declare { exchange: short(name), ..Default::default() };
    for nth in 0..5 {
        assert!(!client.takes_long(queue("new")) && !client.takes_long(exchange("new")), "{nth}");
        let costly = policy(&format!("costly-{nth}"), LARGEST);
        world.set_costly(PolicyKind::User, costly).expect("a good policy");
    }
    assert!(client.takes_long(queue("new")) && client.takes_long(exchange("new")));
    assert!(!client.takes_long(queue("there")) && !client.takes_long(exchange("amq.direct")));
}

#[test]
fn a_list_tells_the_policies_of_queues_and_exchanges_without_looking_for_patterns() {
    let world = World::new();
    let admin = world.broker.admin();
    for nth in 0..20 {
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        admin.declare_queue("/", &format!("q.{nth}"), queue).expect("a queue");
    }
    let list = || {
        let before = steps();
        let queues: Vec<_> = admin.queues(Some("/")).expect("the vhost").iter().collect();
        let exchanges: Vec<_> = admin.exchanges(Some("/")).expect("the vhost").iter().collect();
        let all = admin.queues(None).expect("all vhosts");
        let sorted = all.page_by(&PageRequest::first(5), true, |queue| queue.policy());
        let first = sorted.items.first().map(|queue| queue.name.to_string());
        (queues, exchanges, first, steps() - before)
    };
    let (.., without) = list();
    world.set_costly(PolicyKind::User, policy("many", "^(q|amq)\\.")).expect("a good policy");
    let in_front = Policy { priority: 1, ..policy("one", "^q\\.7$") };
    world.set_costly(PolicyKind::User, in_front).expect("a good policy");
    world.set_costly(PolicyKind::Operator, policy("none", LARGEST)).expect("a good policy");
    let (queues, exchanges, first, with) = list();
    assert_eq!(first.as_deref(), Some("q.7"));
    for queue in queues {
        let expected = if queue.name == *"q.7" { "one" } else { "many" };
        assert_eq!((queue.policy.as_deref(), queue.operator_policy), (Some(expected), None));
    }
    for exchange in exchanges {
        let is_named = !exchange.name.is_empty();
        assert_eq!(exchange.policy.as_deref(), is_named.then_some("many"), "{}", exchange.name);
    }
    assert_eq!(with, without, "steps");
}
