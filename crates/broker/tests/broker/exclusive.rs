//! Exclusive queues: one connection's own, and gone with it.

use crate::support::{Client, Heard, World, short};
use courser_broker::admin::{Fault, GetMode};
use courser_codec::{FieldTable, Table, basic, queue};

pub fn locked(queue: &str) -> String {
    format!(
        "405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost \
         '/'. It could be originally declared on another connection or the exclusive property \
         value does not match that of the original declaration."
    )
}

fn declare_exclusive(client: &mut Client, name: &str) {
    let declare = queue::Declare { queue: short(name), exclusive: true, ..Default::default() };
    let answer = client.call(declare);
    assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
}

#[test]
fn another_connection_can_do_nothing_with_it() {
    let world = World::new();
    let (mut owner, mut other) = (world.connect(), world.connect());
    declare_exclusive(&mut owner, "q");
    let queue = short("q");
    let declare = queue::Declare { queue, exclusive: true, ..Default::default() };
    assert_eq!(other.refused(declare), locked("q"));
    let shared = queue::Declare { exclusive: false, ..declare };
    assert_eq!(other.refused(shared), locked("q"));
    let passive = queue::Declare { passive: true, ..declare };
    assert_eq!(other.refused(passive), locked("q"));
    let exchange = short("amq.direct");
    assert_eq!(other.refused(queue::Bind { queue, exchange, ..Default::default() }), locked("q"));
    let entries = FieldTable::new().with("x-match", "some").to_entries();
    let (headers, arguments) = (short("amq.headers"), Table::from_entries(&entries));
    let bind = queue::Bind { queue, exchange: headers, arguments, ..Default::default() };
    let text = other.refused(bind);
    assert!(text.starts_with("406 "), "a bad binding is told first: {text}");
    other.unbind("q", "amq.direct", "");
    owner.bind("q", "amq.direct", "");
    assert_eq!(other.refused(queue::Unbind { queue, exchange, ..Default::default() }), locked("q"));
    assert_eq!(other.refused(queue::Purge { queue, nowait: false }), locked("q"));
    assert_eq!(other.refused(queue::Delete { queue, ..Default::default() }), locked("q"));
    assert_eq!(other.refused(basic::Consume { queue, ..Default::default() }), locked("q"));
    assert_eq!(other.refused(basic::Get { queue, no_ack: true }), locked("q"));
    assert!(world.has_queue("q"));
}

#[test]
fn an_operator_sees_none_of_its_messages_and_changes_nothing_of_it() {
    let world = World::new();
    let mut owner = world.connect();
    declare_exclusive(&mut owner, "q");
    owner.fill("q", &["a", "b"]);
    assert!(owner.get("q").is_some(), "it is the owner's");
    let admin = world.broker.admin();
    let refused = |fault: Fault| assert_eq!(fault.code, 405, "{}", fault.explanation);
    refused(admin.peek("/", b"q", 0, 1, 1).expect_err("locked"));
    refused(admin.get("/", b"q", 1, GetMode::Requeue { counts: false }, 1, 1).expect_err("locked"));
    refused(admin.pause_queue("/", b"q").expect_err("locked"));
    refused(admin.resume_queue("/", b"q").expect_err("locked"));
    refused(admin.purge_some("/", b"q", 1).expect_err("locked"));
    refused(admin.move_messages("/", b"q", b"other", None).expect_err("locked"));
    let (count, held) = admin.unacked("/", b"q", 0, 10).expect("the queue");
    assert_eq!((count, &held[0].message), (1, &None), "who has it, and not what it is");
}

#[test]
fn another_connection_may_publish_to_it() {
    let world = World::new();
    let (mut owner, mut other) = (world.connect(), world.connect());
    declare_exclusive(&mut owner, "q");
    other.publish("", "q", "a reply");
    assert_eq!(owner.pop("q").as_deref(), Some("a reply"));
}

#[test]
fn all_channels_of_its_connection_share_it() {
    let world = World::new();
    let mut owner = world.connect();
    declare_exclusive(&mut owner, "q");
    declare_exclusive(&mut owner, "q");
    owner.open_channel(2);
    assert_eq!(
        owner.call_on(2, queue::Purge { queue: short("q"), nowait: false }),
        Heard::Count(0)
    );
    owner.close_channel(1);
    assert!(world.has_queue("q"), "it goes with the connection, not with a channel");
}

#[test]
fn it_goes_with_its_connection_and_the_name_is_free_at_once() {
    let world = World::new();
    let mut owner = world.connect();
    declare_exclusive(&mut owner, "q");
    owner.bind("q", "amq.fanout", "");
    owner.fill("q", &["lost"]);
    owner.disconnect();
    assert!(!world.has_queue("q"));
    let mut next = world.connect();
    declare_exclusive(&mut next, "q");
    next.publish("amq.fanout", "", "to no queue: the binding is gone too");
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn a_connection_that_is_dropped_without_a_close_takes_it_along() {
    let world = World::new();
    let mut owner = world.connect();
    declare_exclusive(&mut owner, "q");
    drop(owner);
    assert!(!world.has_queue("q"));
}

#[test]
fn a_connection_that_broke_a_rule_takes_it_along() {
    let world = World::new();
    let mut owner = world.connect();
    declare_exclusive(&mut owner, "q");
    owner.fatal(basic::Qos { prefetch_size: 1, ..Default::default() });
    assert!(!world.has_queue("q"));
}

#[test]
fn one_deleted_and_made_anew_by_another_stays_when_the_first_owner_goes() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    declare_exclusive(&mut first, "q");
    first.delete("q");
    declare_exclusive(&mut second, "q");
    first.disconnect();
    assert!(world.has_queue("q"));
}

#[test]
fn whether_it_is_durable_does_not_matter_to_a_redeclare() {
    let world = World::new();
    let mut owner = world.connect();
    declare_exclusive(&mut owner, "q");
    owner.fill("q", &["x"]);
    let queue = short("q");
    let durable = queue::Declare { queue, exclusive: true, durable: true, ..Default::default() };
    let answer = owner.call(durable);
    assert!(matches!(answer, Heard::DeclareOk { messages: 1, .. }), "{answer:?}");
}
