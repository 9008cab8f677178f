//! Bindings as an operator sees them.

use crate::support::{Client, World};
use courser_auth::Resource;
use courser_broker::admin::{Admin, Admits, BindingView, NewBinding};
use courser_broker::{Fault, steps};
use courser_codec::FieldTable;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn keys(bindings: &[BindingView]) -> Vec<(String, String, String)> {
    let text = |binding: &BindingView| {
        (
            binding.source.to_string(),
            binding.destination.to_string(),
            binding.routing_key.to_string(),
        )
    };
    bindings.iter().map(text).collect()
}

fn owned(expected: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    expected.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect()
}

#[test]
fn bindings_are_shown_from_both_ends_with_those_by_name() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("a");
    client.declare("b");
    client.bind("b", "amq.topic", "x.*");
    client.bind("a", "amq.topic", "y");
    client.bind("a", "amq.topic", "x.*");
    let admin = world.broker.admin();
    let from = admin.bindings_from("/", b"amq.topic", &mut |_| true).expect("the exchange");
    let expected = [("amq.topic", "a", "x.*"), ("amq.topic", "a", "y"), ("amq.topic", "b", "x.*")];
    assert_eq!(keys(&from), owned(&expected));
    let to = admin.bindings_to_queue("/", b"a", &mut |_| true).expect("the queue");
    assert_eq!(
        keys(&to),
        owned(&[("", "a", "a"), ("amq.topic", "a", "x.*"), ("amq.topic", "a", "y")])
    );
    let by_name = admin.bindings_from("/", b"", &mut |_| true).expect("the default exchange");
    assert_eq!(keys(&by_name), owned(&[("", "a", "a"), ("", "b", "b")]));
}

#[test]
fn all_bindings_of_a_vhost_come_by_source() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("q", "amq.topic", "t");
    client.bind("q", "amq.direct", "d");
    let mut all = Vec::new();
    let admin = world.broker.admin();
    admin
        .for_each_binding("/", &mut |_| true, &mut |binding| all.push(binding))
        .expect("the vhost");
    let expected = [("", "q", "q"), ("amq.direct", "q", "d"), ("amq.topic", "q", "t")];
    assert_eq!(keys(&all), owned(&expected));
}

#[test]
fn a_binding_is_found_by_its_key_among_many() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let key = |nth: u64| format!("key.{nth}");
    (0..1000).for_each(|nth| client.bind("q", "amq.direct", &key(nth)));
    for nth in 0..250_i64 {
        let binding = NewBinding {
            source: "amq.direct".try_into().expect("short"),
            destination: "q".try_into().expect("short"),
            to_queue: true,
            routing_key: "same".try_into().expect("short"),
            arguments: FieldTable::new().with("nth", nth),
        };
        world.broker.admin().bind("/", binding).expect("a binding");
    }
    let between = |source: &str, texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let before = steps();
        let (source, queue) = (source.as_bytes(), Resource::Queue(b"q"));
        let admin = world.broker.admin();
        let found = admin.bindings_by_key("/", source, queue, &texts, &mut |_| true);
        (found.expect("both ends"), steps() - before)
    };
    let (found, taken) = between("amq.direct", &["key.7", "nothing", "key.7"]);
    assert_eq!(keys(&found), owned(&[("amq.direct", "q", "key.7")]));
    assert!((1..100).contains(&taken), "{taken} steps");
    let (found, _) = between("amq.direct", &["same"]);
    let mut nths: Vec<i64> = found
        .iter()
        .filter_map(|one| one.arguments.get("nth").and_then(|value| value.as_integer()))
        .collect();
    nths.sort_unstable();
    assert_eq!(nths, (0..250).collect::<Vec<i64>>());
    let (found, _) = between("", &["q"]);
    assert_eq!(keys(&found), owned(&[("", "q", "q")]));
}

/// What waits longer for a list waits for its end.
const LONG: Duration = Duration::from_secs(20);
/// Bindings that take more than one portion.
const SOME: usize = 600;

/// The bindings from `x` to `q`, as far as they are admitted.
type List = fn(&Admin, Admits<'_>) -> Result<Vec<BindingView>, Fault>;

const LISTS: [(&str, List); 4] = [
    ("from", |admin, admits| admin.bindings_from("/", b"x", admits)),
    ("to a queue", |admin, admits| admin.bindings_to_queue("/", b"q", admits)),
    ("to an exchange", |admin, admits| admin.bindings_to_exchange("/", b"q", admits)),
    ("between", |admin, admits| admin.bindings_between("/", b"x", Resource::Queue(b"q"), admits)),
];

/// A topic exchange `x` with many bindings to the queue `q` and to the exchange `q`.
fn with_many() -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    ["x", "q"].iter().for_each(|exchange| client.declare_exchange(exchange, "topic"));
    for nth in 0..SOME {
        client.bind("q", "x", &format!("stays.{nth}"));
        client.bind_exchange("q", "x", &format!("stays.{nth}"));
    }
    (world, client)
}

#[test]
fn a_list_of_bindings_holds_up_no_other_bindings() {
    for (what, list) in LISTS {
        let (world, mut client) = with_many();
        let admin = world.broker.admin();
        let ((ask, asked), (tell, done)) = (channel::<usize>(), channel());
        thread::scope(|scope| {
            scope.spawn(move || {
                for nth in asked {
                    client.bind("q", "x", &format!("comes.{nth}"));
                    client.bind_exchange("q", "x", &format!("comes.{nth}"));
                    let _ = tell.send(());
                }
            });
            let (mut nth, mut has_waited) = (0, false);
            let found = list(&admin, &mut |_| {
                nth += 1;
                if nth % 50 == 0 && !has_waited {
                    ask.send(nth).expect("it is asked");
                    has_waited = done.recv_timeout(LONG).is_err();
                }
                true
            });
            drop(ask);
            assert!(!has_waited, "{what}");
            let found = keys(&found.expect("both ends"));
            let stays = found.iter().filter(|(_, _, key)| key.starts_with("stays."));
            assert_eq!(stays.count(), if what == "from" { 2 * SOME } else { SOME }, "{what}");
        });
    }
}

#[test]
fn a_list_of_bindings_ends_where_there_is_no_room_for_more() {
    let (world, mut client) = with_many();
    client.bind("q", "amq.topic", "another source");
    client.bind_exchange("q", "amq.topic", "another source");
    for (what, list) in LISTS {
        let mut asked = 0;
        let found = list(&world.broker.admin(), &mut |_| {
            asked += 1;
            asked <= 7
        });
        assert_eq!((found.expect("both ends").len(), asked), (7, 8), "{what}");
    }
}
