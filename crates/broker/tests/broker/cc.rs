//! The headers CC and BCC: further routing keys that a publisher names.

use crate::frame_costs::cost;
use crate::support::{Client, Heard, Message, World, declare_with, owned, processor_time};
use courser_codec::{FieldTable, FieldValue, basic, tx};
use std::time::Duration;

fn array(keys: &[&str]) -> FieldValue {
    FieldValue::Array(keys.iter().map(|key| FieldValue::from(*key)).collect())
}

fn table(entries: &[(&str, FieldValue)]) -> FieldTable {
    entries.iter().map(|(name, value)| (owned(name), value.clone())).collect()
}

fn copied(exchange: &str, key: &str, body: &str, entries: &[(&str, FieldValue)]) -> Message {
    Message::new(exchange, key, body).headers(table(entries))
}

fn with_queues(names: &[&str]) -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    names.iter().for_each(|name| client.declare(name));
    (world, client)
}

#[test]
fn cc_and_bcc_name_further_queues_at_the_default_exchange() {
    let (_world, mut client) = with_queues(&["to", "cc1", "cc2", "bcc"]);
    let (cc, bcc) = (array(&["cc1", "cc2", "none"]), array(&["bcc"]));
    client.send(copied("", "to", "hello", &[("CC", cc), ("BCC", bcc)]));
    for queue in ["to", "cc1", "cc2", "bcc"] {
        assert_eq!(client.pop_all(queue), ["hello"], "{queue}");
    }
}

#[test]
fn a_queue_gets_one_copy_however_often_it_is_named() {
    let (_world, mut client) = with_queues(&["to"]);
    let (cc, bcc) = (array(&["to", "to"]), array(&["to"]));
    client.send(copied("", "to", "once", &[("CC", cc), ("BCC", bcc)]));
    assert_eq!(client.pop_all("to"), ["once"]);
}

#[test]
fn direct_and_topic_exchanges_match_every_key() {
    let (_world, mut client) = with_queues(&["a", "b"]);
    for (name, kind) in [("d", "direct"), ("t", "topic")] {
        client.declare_exchange(name, kind);
        client.bind("a", name, "k.a");
        client.bind("b", name, "k.b");
        client.send(copied(name, "nothing", name, &[("CC", array(&["k.a", "k.b"]))]));
        assert_eq!(client.pop_all("a"), [name]);
        assert_eq!(client.pop_all("b"), [name]);
    }
}

#[test]
fn consumers_see_cc_and_never_bcc() {
    let (_world, mut client) = with_queues(&["to"]);
    let entries = [("before", 1.into()), ("BCC", array(&["x"])), ("CC", array(&["y"]))];
    client.send(copied("", "to", "m", &entries));
    let delivery = client.get("to").expect("a message");
    let headers = delivery.properties.headers.expect("headers");
    assert_eq!(headers, table(&[("before", 1.into()), ("CC", array(&["y"]))]));
}

#[test]
fn a_copy_is_enough_for_mandatory() {
    let (_world, mut client) = with_queues(&["cc"]);
    client.send(copied("", "none", "m", &[("CC", array(&["cc"]))]).mandatory());
    assert_eq!(client.heard(), []);
    assert_eq!(client.pop_all("cc"), ["m"]);
}

#[test]
fn copies_keep_their_place_among_other_publishes_of_the_batch() {
    let (_world, mut client) = with_queues(&["a", "b"]);
    use crate::support::Step::Publish;
    client.read(&[
        Publish(1, Message::new("", "a", "1")),
        Publish(1, copied("", "b", "2", &[("CC", array(&["a"]))])),
        Publish(1, Message::new("", "a", "3")),
    ]);
    assert_eq!(client.pop_all("a"), ["1", "2", "3"]);
    assert_eq!(client.pop_all("b"), ["2"]);
}

#[test]
fn a_transaction_routes_copies_at_its_commit() {
    let (_world, mut client) = with_queues(&["to", "bcc"]);
    client.call(tx::Select {});
    client.send(copied("", "to", "m", &[("BCC", array(&["bcc"]))]));
    assert_eq!(client.pop("bcc"), None);
    assert_eq!(client.call(tx::Commit {}), Heard::Done("tx.commit-ok"));
    assert_eq!(client.pop_all("bcc"), ["m"]);
    let delivery = client.get("to").expect("a message");
    assert_eq!(delivery.properties.headers, Some(FieldTable::new()));
}

#[test]
fn anything_but_an_array_is_refused() {
    let (_world, mut client) = with_queues(&["to"]);
    for name in ["CC", "BCC"] {
        let text = client.refused_publish(copied("", "to", "m", &[(name, "q".into())]));
        assert_eq!(
            text,
            format!(
                "406 PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,\"{name}\",longstr}}"
            )
        );
    }
    assert_eq!(client.pop("to"), None);
}

#[test]
fn elements_that_are_no_text_are_passed_over() {
    let (_world, mut client) = with_queues(&["to", "cc"]);
    let mixed = FieldValue::Array(vec![FieldValue::I32(1), "cc".into()]);
    client.send(copied("", "to", "m", &[("CC", mixed)]));
    assert_eq!(client.pop_all("cc"), ["m"]);
}

/// What a publish to an exchange of this type takes, whose 2,000 queues match every key of `keys`.
fn publish_to_2000_queues(kind: &str, binding: &str, keys: Vec<FieldValue>) -> Duration {
    let (world, mut client) = with_queues(&[]);
    client.declare_exchange("x", kind);
    for n in 0..2000 {
        client.declare(&n.to_string());
        client.bind(&n.to_string(), "x", binding);
    }
    let message = copied("x", "a", "m", &[("CC", FieldValue::Array(keys))]);
    let before = processor_time();
    client.send(message);
    let took = processor_time() - before;
    assert!((0..2000).all(|n| world.counts(&n.to_string()) == (1, 0, 0)));
    took
}

#[test]
fn keys_that_lead_to_the_same_queues_cost_next_to_nothing() {
    let equal = vec![FieldValue::from("a"); 20_000];
    let different = (0..10_000).map(|n| n.to_string().as_str().into()).collect();
    let limit = Duration::from_secs(1);
    assert!(publish_to_2000_queues("direct", "a", equal) < limit);
    assert!(publish_to_2000_queues("topic", "#", different) < limit);
}

/// Makes an exchange with every pattern of `#` and eight words that are `a` or `*`. Its name, and headers with so many keys,
/// each word of which comes to each part of each pattern.
pub fn tangled(client: &mut Client, keys: usize) -> (&'static str, FieldTable) {
    client.declare("to");
    client.declare_exchange("x", "topic");
    for nth in 0..1 << 8 {
        let words = (0..8).map(|bit| if nth >> bit & 1 == 0 { ".a" } else { ".*" });
        client.bind("to", "x", &format!("#{}", words.collect::<String>()));
    }
    let keys: Vec<String> = (0..keys).map(|nth| format!("{}x{nth}", "a.".repeat(120))).collect();
    let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
    ("x", table(&[("CC", array(&keys))]))
}

#[test]
fn a_message_whose_keys_take_too_long_to_route_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let (exchange, headers) = tangled(&mut client, 300);
    let message = Message::new(exchange, "k", "tangled").headers(headers);
    let taken = cost(|| client.send(message));
    assert!(taken <= 300_000, "{taken}");
    let heard = client.heard();
    let is_refused =
        matches!(&heard[..], [Heard::ConnectionClosed(why)] if why.starts_with("506 "));
    assert!(is_refused, "{heard:?}");
    let mut client = world.connect();
    let (exchange, headers) = tangled(&mut client, 3);
    client.send(Message::new(exchange, "k", "tangled").headers(headers));
    assert_eq!(client.pop_all("to"), ["tangled"]);
}

#[test]
fn a_letter_whose_keys_take_too_long_to_route_goes_where_it_has_come_to() {
    let world = World::new();
    let mut client = world.connect();
    let letters = FieldTable::new().with("x-dead-letter-exchange", "x");
    declare_with(&mut client, "from", false, &letters);
    let (_, headers) = tangled(&mut client, 300);
    client.send(Message::new("", "from", "tangled").headers(headers));
    let tag = client.get("from").expect("it waits").tag;
    let taken = cost(|| client.tell(basic::Reject { delivery_tag: tag, requeue: false }));
    assert!(taken <= 300_000, "{taken}");
    assert_eq!(client.pop_all("to"), ["tangled"]);
}

#[test]
fn letters_whose_keys_take_long_to_route_are_posted_in_portions() {
    let world = World::new();
    let mut client = world.connect();
    let letters = FieldTable::new().with("x-dead-letter-exchange", "x");
    declare_with(&mut client, "from", false, &letters);
    let (_, headers) = tangled(&mut client, 300);
    for _ in 0..40 {
        client.send(Message::new("", "from", "tangled").headers(headers.clone()));
    }
    client.consume("from");
    assert_eq!(client.bodies().len(), 40);
    let refuse = basic::Nack { delivery_tag: 0, multiple: true, requeue: false };
    let taken = cost(|| client.tell(refuse));
    assert!(taken <= 4_000_000, "{taken}");
    // The timer goes on with the rest, a portion at a time.
    while world.counts("to").0 < 40 {
        let taken = cost(|| {
            world.broker.tick(world.broker.now_ms() + 1);
        });
        assert!((1..=4_000_000).contains(&taken), "{taken}");
    }
}

#[test]
fn a_commit_whose_messages_take_too_long_to_route_together_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let (exchange, headers) = tangled(&mut client, 3);
    client.call(tx::Select {});
    for _ in 0..180 {
        client.send(Message::new(exchange, "k", "tangled").headers(headers.clone()));
    }
    let mut why = String::new();
    let taken = cost(|| why = client.fatal(tx::Commit {}));
    assert!(taken <= 18_000_000, "{taken}");
    assert!(why.starts_with("506 ") && why.contains("publishes of a transaction"), "{why}");
}
