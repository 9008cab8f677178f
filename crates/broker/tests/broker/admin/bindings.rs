//! Bindings as an operator sees them.

use crate::support::World;
use courser_auth::Resource;
use courser_broker::admin::NewBinding;
use courser_broker::steps;
use courser_codec::FieldTable;

fn keys(bindings: &[courser_broker::admin::BindingView]) -> Vec<(String, String, String)> {
    let text = |binding: &courser_broker::admin::BindingView| {
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
        let found = admin.bindings_between("/", source, queue, &texts, &mut |_| true);
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
