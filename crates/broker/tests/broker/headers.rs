//! Headers exchanges.

use crate::frame_costs::cost;
use crate::support::{Client, Heard, Message, World, short};
use courser_codec::{FieldTable, FieldValue, Table, queue};

fn bind(client: &mut Client, queue: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let bind = queue::Bind {
        queue: short(queue),
        exchange: short("amq.headers"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    assert_eq!(client.call(bind), Heard::Done("queue.bind-ok"));
}

fn unbind(client: &mut Client, queue: &str, arguments: &FieldTable) {
    let entries = arguments.to_entries();
    let unbind = queue::Unbind {
        queue: short(queue),
        exchange: short("amq.headers"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    assert_eq!(client.call(unbind), Heard::Done("queue.unbind-ok"));
}

/// Whether a message with these headers goes to a queue bound with these arguments.
fn matches(arguments: &FieldTable, headers: Option<FieldTable>) -> bool {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    bind(&mut client, "q", arguments);
    let message = Message::new("amq.headers", "", "x");
    client.send(match headers {
        Some(headers) => message.headers(headers),
        None => message,
    });
    client.pop("q").is_some()
}

fn table() -> FieldTable {
    FieldTable::new()
}

#[test]
fn all_wants_every_header_and_is_the_default() {
    for arguments in [table(), table().with("x-match", "all")] {
        let arguments = arguments.with("a", 1).with("b", "two");
        assert!(matches(&arguments, Some(table().with("b", "two").with("c", true).with("a", 1))));
        assert!(!matches(&arguments, Some(table().with("a", 1))));
        assert!(!matches(&arguments, Some(table().with("a", 1).with("b", "three"))));
        assert!(!matches(&arguments, None));
    }
}

#[test]
fn any_wants_one_header() {
    let arguments = table().with("x-match", "any").with("a", 1).with("b", "two");
    assert!(matches(&arguments, Some(table().with("a", 1).with("b", "three"))));
    assert!(matches(&arguments, Some(table().with("b", "two"))));
    assert!(!matches(&arguments, Some(table().with("c", 1))));
    assert!(!matches(&arguments, None));
}

#[test]
fn all_of_nothing_matches_everything_and_any_of_nothing_nothing() {
    assert!(matches(&table().with("x-match", "all"), None));
    assert!(matches(&table(), Some(table().with("a", 1))));
    assert!(!matches(&table().with("x-match", "any"), Some(table().with("a", 1))));
}

#[test]
fn headers_that_begin_with_x_count_only_when_asked_for() {
    let wanted = |mode: &str| table().with("x-match", mode).with("x-kind", "a").with("b", 1);
    let only_b = || Some(table().with("b", 1));
    let only_x = || Some(table().with("x-kind", "a"));
    assert!(matches(&wanted("all"), only_b()));
    assert!(!matches(&wanted("all-with-x"), only_b()));
    assert!(!matches(&wanted("any"), only_x()));
    assert!(matches(&wanted("any-with-x"), only_x()));
}

#[test]
fn a_header_wanted_without_a_value_only_has_to_be_there() {
    let arguments = table().with("a", FieldValue::Void);
    assert!(matches(&arguments, Some(table().with("a", "anything"))));
    assert!(!matches(&arguments, Some(table().with("b", "anything"))));
}

#[test]
fn integers_match_by_value_whatever_their_width() {
    let arguments = table().with("a", FieldValue::I64(7));
    assert!(matches(&arguments, Some(table().with("a", FieldValue::U8(7)))));
    assert!(matches(&arguments, Some(table().with("a", FieldValue::I16(7)))));
    assert!(!matches(&arguments, Some(table().with("a", FieldValue::I16(8)))));
    assert!(!matches(&arguments, Some(table().with("a", "7"))));
}

#[test]
fn floats_match_by_value_whatever_their_width() {
    let (narrow, wide) = (FieldValue::F32(0.1), FieldValue::F64(f64::from(0.1_f32)));
    for (wanted, value) in [(&narrow, &wide), (&wide, &narrow), (&narrow, &narrow)] {
        let arguments = table().with("a", wanted.clone());
        assert!(matches(&arguments, Some(table().with("a", value.clone()))), "{wanted:?}");
    }
    let arguments = table().with("a", narrow);
    assert!(!matches(&arguments, Some(table().with("a", FieldValue::F64(0.1)))), "another value");
}

#[test]
fn the_route_of_one_message_is_not_taken_for_the_next() {
    let world = World::new();
    let mut client = world.connect();
    for queue in ["red", "blue"] {
        client.declare(queue);
        bind(&mut client, queue, &table().with("colour", queue));
    }
    let message = |colour: &str, body: &str| {
        Message::new("amq.headers", "", body).headers(table().with("colour", colour))
    };
    let steps: Vec<_> = [("red", "1"), ("blue", "2"), ("red", "3"), ("green", "4"), ("blue", "5")]
        .map(|(colour, body)| crate::support::Step::Publish(1, message(colour, body)))
        .into();
    client.read(&steps);
    assert_eq!(client.pop_all("red"), ["1", "3"]);
    assert_eq!(client.pop_all("blue"), ["2", "5"]);
}

#[test]
fn a_headers_exchange_behind_another_exchange_still_looks_at_headers() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    bind(&mut client, "q", &table().with("a", 1));
    client.bind_exchange("amq.headers", "amq.fanout", "");
    let message = |body: &str| Message::new("amq.fanout", "", body);
    client.send(message("without"));
    client.send(message("with").headers(table().with("a", 1)));
    client.send(message("without again"));
    assert_eq!(client.pop_all("q"), ["with"]);
}

#[test]
fn bindings_differ_by_their_arguments() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    bind(&mut client, "q", &table().with("a", 1));
    bind(&mut client, "q", &table().with("b", 1));
    bind(&mut client, "q", &table().with("b", 1));
    let publish = |client: &mut Client, name: &str| {
        client.send(Message::new("amq.headers", "", name).headers(table().with(name, 1)));
    };
    publish(&mut client, "a");
    unbind(&mut client, "q", &table().with("a", 1));
    publish(&mut client, "a");
    publish(&mut client, "b");
    assert_eq!(client.pop_all("q"), ["a", "b"]);
    unbind(&mut client, "q", &table().with("b", 1));
    publish(&mut client, "b");
    assert_eq!(client.pop("q"), None);
}

#[test]
fn the_order_of_a_bindings_arguments_does_not_matter() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let inner = |first: &str, second: &str| table().with(first, 1).with(second, 1);
    bind(&mut client, "q", &table().with("a", 1).with("b", 2).with("t", inner("x", "y")));
    let headers = table().with("a", 1).with("b", 2).with("t", inner("x", "y"));
    let message = Message::new("amq.headers", "", "x").headers(headers);
    client.send(message.clone());
    unbind(&mut client, "q", &table().with("t", inner("y", "x")).with("b", 2).with("a", 1));
    client.send(message);
    assert_eq!(client.pop_all("q").len(), 1);
}

#[test]
fn a_bad_x_match_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let mut refused = |value: FieldValue| {
        let entries = table().with("x-match", value).to_entries();
        client.refused(queue::Bind {
            queue: short("q"),
            exchange: short("amq.headers"),
            arguments: Table::from_entries(&entries),
            ..Default::default()
        })
    };
    let text = refused("some".into());
    let problem = "406 PRECONDITION_FAILED - Invalid x-match field";
    let expected = "; expected all, any, all-with-x, or any-with-x";
    assert_eq!(text, format!("{problem} value <<\"some\">>{expected}"));
    let expected = "; expected longstr";
    for (value, printed) in [
        (1.into(), "signedint (value 1)"),
        (true.into(), "bool (value true)"),
        (FieldValue::Void, "void (value undefined)"),
    ] {
        assert_eq!(refused(value), format!("{problem} type {printed}{expected}"));
    }
}

#[test]
fn bindings_with_common_headers_are_all_found_and_all_removed() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", "headers");
    let bind = |client: &mut Client, queue: &str, arguments: &FieldTable, bound: bool| {
        let entries = arguments.to_entries();
        let (queue, exchange) = (short(queue), short("x"));
        let arguments = Table::from_entries(&entries);
        let answer = match bound {
            true => client.call(queue::Bind { queue, exchange, arguments, ..Default::default() }),
            false => {
                client.call(queue::Unbind { queue, exchange, arguments, ..Default::default() })
            }
        };
        assert!(matches!(answer, Heard::Done(_)), "{answer:?}");
    };
    let common = |nth: i64| FieldTable::new().with("kind", "reading").with("site", nth);
    let bindings = [
        ("all1", common(1).with("x-match", "all")),
        ("all2", common(2)),
        ("any", FieldTable::new().with("x-match", "any").with("site", 1_i64).with("other", true)),
        ("there", FieldTable::new().with("site", FieldValue::Void)),
        ("part", FieldTable::new().with("share", 0.5_f64)),
        ("every", FieldTable::new()),
        ("none", FieldTable::new().with("x-match", "any")),
    ];
    for (queue, arguments) in &bindings {
        client.declare(queue);
        bind(&mut client, queue, arguments, true);
    }
    let got = |client: &mut Client, headers: FieldTable| -> Vec<&str> {
        client.send(Message::new("x", "", "m").headers(headers));
        let names = bindings.iter().map(|(queue, _)| *queue);
        names.filter(|queue| !client.pop_all(queue).is_empty()).collect()
    };
    assert_eq!(got(&mut client, common(1)), ["all1", "any", "there", "every"]);
    assert_eq!(got(&mut client, common(2)), ["all2", "there", "every"]);
    assert_eq!(got(&mut client, common(3)), ["there", "every"]);
    let share = FieldTable::new().with("share", 0.5_f64).with("other", true);
    assert_eq!(got(&mut client, share), ["any", "part", "every"]);
    assert_eq!(got(&mut client, FieldTable::new()), ["every"]);
    for (queue, arguments) in &bindings {
        bind(&mut client, queue, arguments, false);
    }
    assert_eq!(got(&mut client, common(1).with("other", true).with("share", 0.5_f64)), [""; 0]);
}

#[test]
fn a_thousand_bindings_that_differ_by_their_arguments_are_each_found_and_removed() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let arguments = |nth: i64| table().with("kind", "reading").with("site", nth);
    let turned = |nth: i64| table().with("site", nth).with("kind", "reading");
    for nth in 0..1000 {
        bind(&mut client, "q", &arguments(nth));
    }
    // They are there already.
    (0..1000).for_each(|nth| bind(&mut client, "q", &turned(nth)));
    let takes = |client: &mut Client, nth: i64| {
        client.send(Message::new("amq.headers", "", "m").headers(arguments(nth)));
        client.pop_all("q").len()
    };
    assert!((0..1000).all(|nth| takes(&mut client, nth) == 1));
    // From both ends and the middle, so that others change their places.
    for nth in (0..1000).filter(|nth| nth % 3 != 1) {
        unbind(&mut client, "q", &turned(nth));
    }
    assert!((0..1000).all(|nth| takes(&mut client, nth) == usize::from(nth % 3 == 1)));
    for nth in (0..1000).rev() {
        unbind(&mut client, "q", &turned(nth));
    }
    assert!((0..1000).all(|nth| takes(&mut client, nth) == 0));
}

#[test]
fn what_is_bound_with_no_number_is_bound_once_and_unbound() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let arguments = table().with("n", f64::NAN);
    (0..2).for_each(|_| bind(&mut client, "q", &arguments));
    let bound =
        || world.broker.admin().bindings_to_queue("/", b"q", &mut |_| true).expect("a queue").len();
    assert_eq!(bound(), 2, "the default exchange's and one more");
    unbind(&mut client, "q", &arguments);
    assert_eq!(bound(), 1);
}

/// So many headers, of short names, that few fit a frame.
fn many_headers(count: usize) -> FieldTable {
    (0..count)
        .fold(FieldTable::with_capacity(count), |table, n| table.with(&format!("{n:x}"), true))
}

#[test]
fn many_headers_and_bindings_that_want_as_many_cost_no_more_than_one_message_may() {
    let world = World::new();
    let mut client = world.connect();
    let headers = many_headers(1000);
    for (at, mode) in ["all", "any"].iter().cycle().take(20).enumerate() {
        let queue = at.to_string();
        client.declare(&queue);
        bind(&mut client, &queue, &headers.clone().with("x-match", *mode));
    }
    let send = |client: &mut Client, headers: FieldTable| {
        let taken = cost(|| client.send(Message::new("amq.headers", "", "m").headers(headers)));
        // What one message may, and a step for each destination that is found: after two others at least.
        assert!(taken <= (1 << 18) * 3 / 2, "{taken}");
        client.heard()
    };
    assert_eq!(send(&mut client, headers.clone()), []);
    assert!((0..20).all(|at| client.pop(&at.to_string()).is_some()));
    for at in 20..400 {
        bind(&mut client, "0", &headers.clone().with("x-match", "any").with("n", at));
    }
    let heard = send(&mut client, headers);
    let is_refused =
        matches!(&heard[..], [Heard::ConnectionClosed(why)] if why.starts_with("506 "));
    assert!(is_refused, "{heard:?}");
}

#[test]
fn a_queue_that_every_message_matches_is_found_once_until_the_last_of_its_bindings_goes() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let keys: Vec<String> = (0..1000).map(|nth| nth.to_string()).collect();
    keys.iter().for_each(|key| client.bind("q", "amq.headers", key));
    let send = |client: &mut Client| {
        let taken = cost(|| client.send(Message::new("amq.headers", "", "m")));
        assert!(taken < 64, "{taken}");
        client.pop_all("q").len()
    };
    assert_eq!(send(&mut client), 1);
    keys[1..].iter().for_each(|key| client.unbind("q", "amq.headers", key));
    assert_eq!(send(&mut client), 1);
    client.unbind("q", "amq.headers", "0");
    assert_eq!(send(&mut client), 0);
}
