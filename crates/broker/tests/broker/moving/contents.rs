//! All that can be seen of a vhost, as text.

use super::{QUEUES, V};
use crate::support::World;
use courser_broker::PolicyKind;
use courser_broker::admin::{MESSAGES_MAX, MessageView, StreamStart};
use std::collections::BTreeMap;

/// By what it is the contents of, one line each.
pub type Contents = BTreeMap<String, Vec<String>>;

/// What is in the vhost that moves.
pub fn contents(world: &World) -> Contents {
    let mut all = definitions(world);
    let admin = world.broker.admin();
    for queue in QUEUES {
        let messages =
            admin.peek(V, queue.as_bytes(), 0, MESSAGES_MAX, usize::MAX).expect("it can");
        assert!(messages.len() < MESSAGES_MAX, "more than can be seen");
        all.insert(queue.to_owned(), messages.iter().flatten().map(print).collect());
    }
    all.insert("s".to_owned(), stream(world));
    all
}

/// That there is no difference, or what the first one is.
pub fn assert_same(these: &Contents, others: &Contents) {
    assert!(these.keys().eq(others.keys()));
    for ((name, these), others) in these.iter().zip(others.values()) {
        for (this, other) in these.iter().zip(others) {
            assert_eq!(this, other, "in {name}");
        }
        assert_eq!(these.len(), others.len(), "in {name}");
    }
}

fn stream(world: &World) -> Vec<String> {
    let read = world.broker.admin().read_stream(V, b"s", StreamStart::First, MESSAGES_MAX, 1 << 20);
    let page = read.expect("it can be read");
    let range = format!("from {} to {}", page.first_offset, page.next_offset);
    let messages = page.messages.iter().map(|one| format!("{}: {}", one.number, print(one)));
    messages.chain([range]).collect()
}

fn print(message: &MessageView) -> String {
    let MessageView { exchange, routing_key, redelivered, published_ms, header, body, .. } =
        message;
    let again = if *redelivered { " again" } else { "" };
    format!("{exchange} {routing_key}{again} {published_ms:?} {header:?} {body:?}")
}

fn definitions(world: &World) -> Contents {
    let admin = world.broker.admin();
    let mut all = Contents::new();
    let vhost = world.broker.vhost(V).expect("it is there");
    let exchanges = vhost.exchanges().into_iter().map(|one| {
        let settings = &one.settings;
        let waiting = one.messages_delayed();
        let view = admin.exchange(V, one.name.as_bytes()).expect("it is there");
        let (policy, alternate) = (view.policy, view.alternate_exchange);
        format!("{}: {settings:?}, {waiting} wait, {policy:?} {alternate:?}", one.name)
    });
    all.insert("exchanges".to_owned(), sorted(exchanges));
    let queues = vhost.queues().into_iter().map(|one| {
        let view = admin.queue(V, one.name.as_bytes()).expect("it is there");
        format!("{}: {:?} paused {} {:?}", one.name, one.settings, view.paused, one.traits())
    });
    all.insert("queues".to_owned(), sorted(queues));
    let mut bindings = Vec::new();
    admin
        .for_each_binding(V, &mut |_| true, &mut |one| bindings.push(format!("{one:?}")))
        .expect("it is there");
    all.insert("bindings".to_owned(), sorted(bindings.into_iter()));
    for kind in [PolicyKind::User, PolicyKind::Operator] {
        let policies = admin.policies(V, kind).expect("it is there");
        let policies = policies.iter().map(|one| format!("{one:?}"));
        all.insert(format!("policies {kind:?}"), sorted(policies));
    }
    let parameters = admin.parameters(Some(V), None).expect("it is there");
    all.insert("parameters".to_owned(), parameters.iter().map(|one| format!("{one:?}")).collect());
    let view = admin.vhost(V).expect("it is there");
    all.insert("vhost".to_owned(), vec![format!("{:?} {}", view.limits, view.description)]);
    all
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    lines
}
