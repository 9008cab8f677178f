//! Every argument and every policy key that the broker knows: what it asks for is seen, or it is refused, or it stands on
//! the list of docs/features.md.
//!
//! The tables by which declarations are checked say which there are: one that is added to these needs a trial here that shows how its
//! effect is seen.

mod trials;
mod worlds;

use crate::support::{Client, Heard, declare_with, short};
use courser_broker::admin::ArgumentOf::{self, Binding, Consumer, Exchange, Queue};
use courser_broker::admin::{Effect, PolicyKind, known_arguments, policy_keys};
use courser_codec::{FieldTable, FieldValue, Table, basic, exchange, queue};
use std::collections::BTreeSet;
use trials::{Given, TRIALS, Trial, none, of_type};
use worlds::{without, world};

fn plain(trial: &Trial) -> Vec<String> {
    (trial.seen)(Given { arguments: &(trial.with)(), policy: None })
}

#[test]
fn every_argument_that_means_something_has_an_effect_that_is_seen() {
    let done = known_arguments().filter(|known| known.effect == Effect::Done);
    for known in done {
        let found = TRIALS.iter().find(|trial| trial.of == known.of && trial.name == known.name);
        let trial = found.unwrap_or_else(|| panic!("no trial of {known:?}"));
        let arguments = (trial.with)().with(trial.name, (trial.value)());
        let seen = (trial.seen)(Given { arguments: &arguments, policy: None });
        assert_ne!(seen, plain(trial), "nothing comes of {known:?}");
    }
}

#[test]
fn every_key_of_a_policy_has_an_effect_that_is_seen() {
    for kind in [PolicyKind::User, PolicyKind::Operator] {
        for key in policy_keys(kind) {
            let (of, name) = match key {
                "alternate-exchange" => (Exchange, key.to_owned()),
                key => (Queue, format!("x-{key}")),
            };
            let known = known_arguments().find(|known| known.of == of && known.name == name);
            if known.is_some_and(|known| known.effect == Effect::None) {
                continue;
            }
            let found = TRIALS.iter().find(|trial| trial.of == of && trial.name == name);
            let trial = found.unwrap_or_else(|| panic!("no trial of {key}"));
            let definition = beside(key).with(key, (trial.value)());
            let policy = (kind, definition);
            let arguments = (trial.with)();
            let seen = (trial.seen)(Given { arguments: &arguments, policy: Some(&policy) });
            assert_ne!(seen, plain(trial), "nothing comes of {key} in a policy {kind:?}");
        }
    }
}

/// What a policy with this key has to have besides.
fn beside(key: &str) -> FieldTable {
    match key {
        "delayed-retry-type" => none().with("delayed-retry-min", 1_000),
        _ => none(),
    }
}

#[test]
fn what_is_taken_without_an_effect_is_on_the_list_of_the_documentation() {
    let features = include_str!("../../../../../docs/features.md");
    let heading = "## Taken without an effect\n";
    let section = features.split_once(heading).expect("the section").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed = |of: &str| -> BTreeSet<&str> {
        let row = format!("| {of} |");
        let line = section.lines().find(|line| line.starts_with(&row)).expect("its line");
        let names = line.split('|').nth(2).expect("its names").split('`');
        names.skip(1).step_by(2).collect()
    };
    let taken = |of: ArgumentOf| -> BTreeSet<&str> {
        let all = known_arguments().filter(|known| known.of == of && known.effect == Effect::None);
        all.map(|known| known.name).collect()
    };
    assert_eq!(listed("arguments of queues"), taken(Queue));
    assert_eq!(listed("arguments of exchanges"), taken(Exchange));
    assert_eq!((taken(Binding), taken(Consumer)), (BTreeSet::new(), BTreeSet::new()));
    let without_effect = taken(Queue);
    let keys = policy_keys(PolicyKind::User).map(|key| format!("x-{key}"));
    let keys: BTreeSet<String> =
        keys.filter(|name| without_effect.contains(name.as_str())).collect();
    let said = listed("keys of policies").into_iter().map(|key| format!("x-{key}"));
    assert_eq!(said.collect::<BTreeSet<_>>(), keys);
}

/// Each takes values of some type: what is of another is refused, not left aside.
#[test]
fn a_value_of_another_type_is_refused_for_every_argument() {
    for known in known_arguments() {
        let found = TRIALS.iter().find(|trial| trial.of == known.of && trial.name == known.name);
        let of_cache = || of_type("fanout").with("x-message-deduplication", true);
        let with = match (found, known.of) {
            (Some(trial), _) => (trial.with)(),
            (None, Exchange) => of_cache(),
            (None, _) => none(),
        };
        let arguments = with.with(known.name, FieldValue::Table(none()));
        let mut client = world().connect();
        client.qos(1);
        let heard = ask(&mut client, known.of, &arguments);
        assert!(matches!(heard, Heard::ChannelClosed(_)), "{known:?} takes a table");
    }
}

/// Declares, binds or consumes with these arguments, which say also of what.
fn ask(client: &mut Client, of: ArgumentOf, arguments: &FieldTable) -> Heard {
    let what = if of == Exchange { "type" } else { "x-queue-type" };
    let (rest, kind) =
        if of == Queue { (arguments.clone(), None) } else { without(arguments, what) };
    let entries = rest.to_entries();
    let arguments = Table::from_entries(&entries);
    let (queue, exchange, durable) = (short("q"), short("x"), true);
    match of {
        Queue => client.call(queue::Declare { queue, durable, arguments, ..Default::default() }),
        Exchange => {
            let kind = short(kind.as_ref().and_then(FieldValue::as_str).expect("a type"));
            client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() })
        }
        Binding => {
            client.declare_exchange("x", "headers");
            client.declare("q");
            client.call(queue::Bind { queue, exchange, arguments, ..Default::default() })
        }
        Consumer => {
            let of_queue = kind.map_or_else(none, |kind| none().with("x-queue-type", kind));
            declare_with(client, "q", true, &of_queue);
            client.call(basic::Consume { queue, arguments, ..Default::default() })
        }
    }
}
