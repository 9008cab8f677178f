//! Dead letters: which keys they go by, and whether they say that they were delivered before.

use crate::dead_letters::{declare_both, reject, text, to_queue};
use crate::support::{Client, Delivery, Message, World, WorldOnDisk, declare_with, headers, short};
use courser_codec::{FieldTable, FieldValue, Table, basic, exchange, tx};

#[test]
fn a_routing_key_for_dead_letters_replaces_all_keys() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    client.declare("copied");
    let keys = FieldTable::new().with("CC", vec![text("copied")]);
    client.send(Message::new("", "q", "copied").headers(keys.clone()));
    reject(&mut client, "q");
    let dead = client.get("dead").expect("a dead letter");
    assert_eq!(headers(&dead).get("CC"), Some(&vec![text("copied")].into()));
    assert_eq!(dead.routing_key, "dead");
    let death = headers(&dead).get("x-death").and_then(FieldValue::as_array).map(<[_]>::to_vec);
    let death = death.expect("a death")[0].as_table().expect("a table").clone();
    assert_eq!(death.get("routing-keys"), Some(&vec![text("q"), text("copied")].into()));
    assert_eq!(client.pop_all("copied"), ["copied"], "the copy, and no dead letter");
}

/// The keys that the latest death of a message names.
fn last_keys(dead: &Delivery) -> FieldValue {
    let deaths = headers(dead).get("x-death").and_then(FieldValue::as_array).map(<[_]>::to_vec);
    let latest = deaths.expect("a death")[0].as_table().expect("a table").clone();
    latest.get("routing-keys").expect("keys").clone()
}

#[test]
fn keys_that_were_replaced_count_no_more_wherever_the_letter_goes_from_there() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    let to = |key: Option<&str>| {
        let arguments = FieldTable::new().with("x-dead-letter-exchange", "dlx");
        match key {
            Some(key) => arguments.with("x-dead-letter-routing-key", key),
            None => arguments,
        }
    };
    let later = FieldTable::new().with("x-delayed-type", "direct").to_entries();
    client.call(exchange::Declare {
        exchange: short("dlx"),
        kind: short("x-delayed-message"),
        durable: true,
        arguments: Table::from_entries(&later),
        ..Default::default()
    });
    declare_with(&mut client, "q", true, &to(Some("next")));
    declare_with(&mut client, "next", true, &to(None));
    declare_with(&mut client, "last", true, &FieldTable::new());
    declare_with(&mut client, "copied", true, &FieldTable::new());
    client.bind("next", "dlx", "next");
    client.bind("copied", "dlx", "copied");
    let given = FieldTable::new().with("CC", vec![text("copied")]).with("x-delay", 1000);
    let message = Message::new("", "q", "m").headers(given);
    client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
    assert_eq!(client.pop_all("copied"), ["m"]);
    reject(&mut client, "q");
    client.disconnect();
    world.restart();
    world.broker.tick(world.broker.now_ms() + 1000);
    let mut client = world.connect();
    client.unbind("next", "dlx", "next");
    client.bind("last", "dlx", "next");
    reject(&mut client, "next");
    world.broker.tick(world.broker.now_ms() + 1000);
    let dead = client.get("last").expect("a dead letter");
    assert_eq!(headers(&dead).get("CC"), Some(&vec![text("copied")].into()));
    assert_eq!(last_keys(&dead), vec![text("next")].into());
    assert_eq!(client.pop_all("copied"), [] as [&str; 0]);
}

#[test]
fn a_letter_says_that_it_is_redelivered_where_a_client_may_have_failed_on_it() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    let reject = |client: &mut Client, requeue| {
        let delivery_tag = client.get("q").expect("a message").tag;
        client.tell(basic::Reject { delivery_tag, requeue });
    };
    let nack = |client: &mut Client, requeue| {
        let delivery_tag = client.get("q").expect("a message").tag;
        client.tell(basic::Nack { delivery_tag, multiple: false, requeue });
    };
    client.fill("q", &["rejected"]);
    reject(&mut client, false);
    client.fill("q", &["nacked"]);
    nack(&mut client, false);
    client.fill("q", &["nacked twice"]);
    nack(&mut client, true);
    nack(&mut client, false);
    client.fill("q", &["rejected, nacked"]);
    reject(&mut client, true);
    nack(&mut client, false);
    let dead: Vec<_> = (0..4).filter_map(|_| client.get("dead")).collect();
    let seen: Vec<_> = dead.iter().map(|one| (one.text(), one.redelivered)).collect();
    let expected = [
        ("rejected", true),
        ("nacked", false),
        ("nacked twice", false),
        ("rejected, nacked", true),
    ];
    assert_eq!(seen, expected);
    // The same where a consumer waits for them.
    client.consume("dead");
    client.fill("q", &["more"]);
    reject(&mut client, false);
    client.fill("q", &["still more"]);
    nack(&mut client, false);
    let letters = client.deliveries();
    assert_eq!(letters.iter().map(|one| one.redelivered).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_letter_of_what_a_client_failed_on_says_so_in_the_next_queue_as_well() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("last");
    declare_with(&mut client, "dead", false, &to_queue("last").with("x-message-ttl", 0));
    declare_with(&mut client, "q", false, &to_queue("dead"));
    let mut other = world.connect();
    client.fill("q", &["left by a client that has gone"]);
    other.get("q").expect("a message");
    other.disconnect();
    let delivery = client.get("q").expect("it is back");
    client.tell(basic::Nack { delivery_tag: delivery.tag, multiple: false, requeue: false });
    world.broker.tick(world.broker.now_ms() + 1);
    assert!(client.get("last").expect("it expired on its way").redelivered);
    // In a transaction as outside of one.
    client.fill("q", &["refused in a transaction"]);
    client.call(tx::Select {});
    let delivery_tag = client.get("q").expect("a message").tag;
    client.tell(basic::Reject { delivery_tag, requeue: false });
    client.call(tx::Commit {});
    world.broker.tick(world.broker.now_ms() + 1);
    assert!(client.get("last").expect("it expired on its way").redelivered);
}

#[test]
fn without_a_routing_key_a_dead_letter_keeps_its_own_and_those_of_cc() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("dlx", "direct");
    for queue in ["one", "two"] {
        client.declare(queue);
    }
    client.bind("one", "dlx", "q");
    client.bind("two", "dlx", "other");
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "dlx");
    declare_with(&mut client, "q", false, &arguments);
    let keys = FieldTable::new().with("CC", vec![text("other")]);
    client.send(Message::new("", "q", "m").headers(keys));
    reject(&mut client, "q");
    for queue in ["one", "two"] {
        let dead = client.get(queue).expect("a dead letter");
        assert_eq!(headers(&dead).get("CC"), Some(&vec![text("other")].into()));
    }
}
