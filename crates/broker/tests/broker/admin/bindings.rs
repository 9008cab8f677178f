//! Bindings as an operator sees them.

use crate::support::World;

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
