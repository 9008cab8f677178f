//! `queue.declare`.

use crate::support::{Heard, World, short};
use courser_broker::Limits;
use courser_codec::{FieldTable, FieldValue, Table, queue};

fn named(name: &str) -> queue::Declare<'_> {
    queue::Declare { queue: short(name), ..Default::default() }
}

fn declared(name: &str, messages: u32, consumers: u32) -> Heard {
    Heard::DeclareOk { queue: name.to_owned(), messages, consumers }
}

#[test]
fn declare_ok_names_the_queue_and_counts_ready_messages_and_consumers() {
    let world = World::new();
    let mut client = world.connect();
    assert_eq!(client.call(named("q")), declared("q", 0, 0));
    client.fill("q", &["a", "b", "c"]);
    let polled = client.get("q");
    assert!(polled.is_some());
    assert_eq!(client.call(named("q")), declared("q", 2, 0));
    client.qos(1);
    client.consume("q");
    let passive = queue::Declare { passive: true, ..named("q") };
    assert_eq!(client.call(passive), declared("q", 1, 1));
}

#[test]
fn the_broker_makes_up_a_name_that_no_other_queue_has() {
    let world = World::new();
    let mut client = world.connect();
    let mut names = std::collections::HashSet::new();
    for _ in 0..100 {
        let answer = client.call(named(""));
        let Heard::DeclareOk { queue, .. } = answer else { panic!("{answer:?}") };
        assert!(queue.starts_with("amq.gen-") && queue.len() == 30, "{queue}");
        assert!(names.insert(queue));
    }
}

#[test]
fn an_empty_name_is_the_queue_declared_last_on_that_channel() {
    let world = World::new();
    let mut client = world.connect();
    client.open_channel(2);
    client.declare("one");
    client.declare("two");
    assert_eq!(client.call_on(2, named("three")), declared("three", 0, 0));
    client.fill("one", &["1"]);
    client.fill("two", &["2"]);
    client.fill("three", &["3"]);
    assert_eq!(client.pop("").as_deref(), Some("2"));
    client.bind("", "amq.direct", "");
    client.publish("amq.direct", "two", "bound by its own name");
    assert_eq!(client.purge(""), Heard::Count(1));
    assert_eq!(client.delete(""), Heard::Count(0));
    assert!(!world.has_queue("two"));
}

#[test]
fn an_empty_name_without_a_queue_declared_before_is_not_found() {
    let world = World::new();
    let mut client = world.connect();
    let text = "404 NOT_FOUND - no previously declared queue";
    assert_eq!(client.refused(queue::Purge::default()), text);
    assert_eq!(client.refused(queue::Delete::default()), text);
    assert_eq!(client.refused(queue::Bind { exchange: short("x"), ..Default::default() }), text);
    assert_eq!(client.refused(courser_codec::basic::Consume::default()), text);
    assert_eq!(client.refused(courser_codec::basic::Get::default()), text);
    client.declare("q");
    client.open_channel(2);
    let elsewhere = client.call_on(2, queue::Purge::default());
    assert_eq!(elsewhere, Heard::ChannelClosed(text.to_owned()));
}

#[test]
fn a_passive_declare_finds_and_never_makes_a_queue() {
    let world = World::new();
    let mut client = world.connect();
    let passive = queue::Declare { passive: true, durable: true, ..named("q") };
    assert_eq!(client.refused(passive), "404 NOT_FOUND - no queue 'q' in vhost '/'");
    assert!(!world.has_queue("q"));
    client.declare("q");
    assert_eq!(client.call(passive), declared("q", 0, 0));
    let nameless = queue::Declare { passive: true, ..named("") };
    assert_eq!(client.refused(nameless), "404 NOT_FOUND - no queue '' in vhost '/'");
}

#[test]
fn a_redeclare_that_is_the_same_changes_nothing() {
    let world = World::new();
    let mut client = world.connect();
    let durable = queue::Declare { durable: true, ..named("q") };
    assert_eq!(client.call(durable), declared("q", 0, 0));
    client.fill("q", &["kept"]);
    assert_eq!(client.call(durable), declared("q", 1, 0));
    assert_eq!(world.connect().call(durable), declared("q", 1, 0));
}

#[test]
fn a_redeclare_that_differs_is_refused_with_what_differs() {
    let world = World::new();
    let mut client = world.connect();
    client.call(queue::Declare { durable: true, ..named("q") });
    let difference = |name: &str, received: bool, current: bool| {
        format!(
            "406 PRECONDITION_FAILED - inequivalent arg '{name}' for queue 'q' in vhost '/': \
             received '{received}' but current is '{current}'"
        )
    };
    assert_eq!(client.refused(named("q")), difference("durable", false, true));
    let auto_delete = queue::Declare { durable: true, auto_delete: true, ..named("q") };
    assert_eq!(client.refused(auto_delete), difference("auto_delete", true, false));
    let both = queue::Declare { durable: false, ..auto_delete };
    assert_eq!(client.refused(both), difference("durable", false, true), "durable comes first");
    client.call(queue::Declare { auto_delete: true, ..named("fleeting") });
    let text = client.refused(named("fleeting"));
    assert!(text.ends_with("received 'false' but current is 'true'"), "{text}");
}

#[test]
fn a_shared_queue_cannot_be_redeclared_as_exclusive() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let text = client.refused(queue::Declare { exclusive: true, durable: true, ..named("q") });
    assert_eq!(text, crate::exclusive::locked("q"));
}

#[test]
fn reserved_names_are_refused() {
    let world = World::new();
    let mut client = world.connect();
    let text = |name: &str| {
        format!("403 ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'")
    };
    assert_eq!(client.refused(named("amq.x")), text("amq.x"));
    let answer = client.call(named(""));
    let Heard::DeclareOk { queue: own, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(client.refused(named(&own)), text(&own));
    let passive = queue::Declare { passive: true, ..named(&own) };
    assert_eq!(client.call(passive), declared(&own, 0, 0));
}

#[test]
fn names_lose_carriage_returns_and_line_feeds() {
    let world = World::new();
    let mut client = world.connect();
    assert_eq!(client.call(named("a\r\nb\n")), declared("ab", 0, 0));
    client.fill("ab", &["x"]);
    assert_eq!(client.pop("a\nb").as_deref(), Some("x"));
    client.declare_exchange("x\n", "fanout");
    client.bind("ab\r", "\nx", "");
    client.publish("x\r", "", "y");
    assert_eq!(client.pop("ab").as_deref(), Some("y"));
}

#[test]
fn a_name_is_just_a_name_whatever_is_in_it() {
    let world = World::new();
    let mut client = world.connect();
    let longest = "n".repeat(255);
    for name in ["../../x", "/etc/passwd", "a/b\\c", "\0", "käse 🧀", " ", &longest] {
        assert_eq!(client.call(named(name)), declared(name, 0, 0));
        client.fill(name, &["x"]);
        assert_eq!(client.pop(name).as_deref(), Some("x"), "{name:?}");
    }
}

#[test]
fn arguments_that_the_broker_does_not_know_do_not_matter() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let entries = FieldTable::new().with("x-my-own", 5).with("colour", "red").to_entries();
    let with_more = queue::Declare { arguments: Table::from_entries(&entries), ..named("q") };
    assert_eq!(client.call(with_more), declared("q", 0, 0));
}

#[test]
fn a_known_argument_that_differs_is_refused_with_both_values() {
    let world = World::new();
    let mut client = world.connect();
    let lazy = FieldTable::new().with("x-queue-mode", "lazy").to_entries();
    let normal = FieldTable::new().with("x-queue-mode", "default").to_entries();
    let with = |entries| queue::Declare { arguments: Table::from_entries(entries), ..named("q") };
    assert_eq!(client.call(with(&lazy)), declared("q", 0, 0));
    let start = "406 PRECONDITION_FAILED - inequivalent arg 'x-queue-mode' for queue 'q' in vhost \
                 '/': received";
    assert_eq!(client.refused(with(&normal)), format!("{start} 'default' but current is 'lazy'"));
    let current = "current is the value 'lazy' of type 'longstr'";
    assert_eq!(client.refused(named("q")), format!("{start} none but {current}"));
    client.declare("plain");
    let text = client.refused(queue::Declare { queue: short("plain"), ..with(&lazy) });
    assert!(
        text.ends_with("received the value 'lazy' of type 'longstr' but current is none"),
        "{text}"
    );
}

#[test]
fn an_argument_that_the_type_of_a_queue_does_not_take_is_not_compared() {
    let world = World::new();
    let mut client = world.connect();
    for (queue_type, name, value) in [
        ("classic", "x-max-age", "1D"),
        ("quorum", "x-queue-mode", "lazy"),
        ("stream", "x-overflow", "drop-head"),
    ] {
        let of_type = FieldTable::new().with("x-queue-type", queue_type);
        let (plain, more) = (of_type.to_entries(), of_type.with(name, value).to_entries());
        let with = |entries| queue::Declare {
            arguments: Table::from_entries(entries),
            durable: true,
            ..named(queue_type)
        };
        assert_eq!(client.call(with(&plain)), declared(queue_type, 0, 0));
        assert_eq!(client.call(with(&more)), declared(queue_type, 0, 0), "{name}");
        let anew = queue::Declare { queue: short("new"), ..with(&more) };
        assert!(client.refused(anew).contains(&format!("invalid arg '{name}'")), "{name}");
    }
}

#[test]
fn integers_in_arguments_agree_by_value_whatever_their_width() {
    let world = World::new();
    let mut client = world.connect();
    for version in [
        FieldValue::U8(2),
        FieldValue::I8(2),
        FieldValue::I16(2),
        FieldValue::U16(2),
        FieldValue::I32(2),
        FieldValue::U32(2),
        FieldValue::I64(2),
    ] {
        let entries = FieldTable::new().with("x-queue-version", version).to_entries();
        let declare = queue::Declare { arguments: Table::from_entries(&entries), ..named("q") };
        assert_eq!(client.call(declare), declared("q", 0, 0));
    }
}

#[test]
fn malformed_arguments_end_the_connection() {
    let world = World::new();
    let mut client = world.connect();
    let declare = queue::Declare { arguments: Table::from_entries(b"\x01aZ"), ..named("q") };
    let text = client.fatal(declare);
    assert!(text.starts_with("50"), "{text}");
    assert!(!world.has_queue("q"));
}

#[test]
fn nowait_declares_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.tell(queue::Declare { nowait: true, ..named("q") });
    client.tell(queue::Declare { nowait: true, passive: true, ..named("q") });
    assert_eq!(client.heard(), []);
    assert!(world.has_queue("q"));
    let differs = queue::Declare { nowait: true, durable: true, ..named("q") };
    assert!(client.refused(differs).starts_with("406 "));
}

#[test]
fn a_vhost_has_no_more_queues_than_it_may() {
    let world = World::with(Limits { queues_max: 2, ..Limits::default() });
    let mut client = world.connect();
    client.declare("one");
    client.declare("two");
    let text = client.refused(named("three"));
    assert_eq!(text, "406 PRECONDITION_FAILED - vhost '/' has the 2 queues that it may have");
    client.declare("one");
    client.delete("two");
    client.declare("three");
}
