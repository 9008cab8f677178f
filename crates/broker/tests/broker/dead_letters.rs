//! Dead letters: where they go, and what they say of themselves.

use crate::support::{
    Client, Delivery, Heard, Message, World, WorldOnDisk, deaths, declare_with, headers, short,
};
use courser_codec::{FieldTable, FieldValue, basic, exchange};

pub fn to_queue(queue: &str) -> FieldTable {
    FieldTable::new().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", queue)
}

/// Queue `q`, whose dead letters go to queue `dead`.
pub fn declare_both(client: &mut Client) {
    client.declare("dead");
    declare_with(client, "q", false, &to_queue("dead"));
}

pub fn reject(client: &mut Client, queue: &str) -> Delivery {
    let delivery = client.get(queue).expect("a message");
    client.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
    delivery
}

pub fn text(value: &str) -> FieldValue {
    FieldValue::from(value)
}

#[test]
fn what_a_consumer_refuses_is_told_of_its_death() {
    let world = World::new();
    world.broker.set_time(1_700_000_000_999);
    let mut client = world.connect();
    client.declare_exchange("x", "fanout");
    client.declare_exchange("dlx", "direct");
    client.declare("dead");
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "dlx");
    declare_with(&mut client, "q", false, &arguments);
    client.bind("q", "x", "");
    client.bind("dead", "dlx", "key");
    client.send(Message::new("x", "key", "refused").with_properties(|properties| {
        properties.headers = Some(FieldTable::new().with("own", 1));
        properties.expiration = Some("60000".try_into().expect("short"));
        properties.correlation_id = Some("7".try_into().expect("short"));
    }));
    reject(&mut client, "q");
    let dead = client.get("dead").expect("a dead letter");
    assert_eq!((dead.text(), dead.exchange.as_str()), ("refused", "dlx"));
    assert_eq!((dead.routing_key.as_str(), dead.redelivered), ("key", true));
    assert_eq!(dead.properties.expiration, None);
    assert_eq!(dead.properties.correlation_id, Some("7".try_into().expect("short")));
    let death = FieldTable::new()
        .with("count", 1_i64)
        .with("reason", "rejected")
        .with("queue", "q")
        .with("time", FieldValue::Timestamp(1_700_000_000))
        .with("exchange", "x")
        .with("routing-keys", vec![text("key")])
        .with("original-expiration", "60000");
    let expected = FieldTable::new()
        .with("own", 1)
        .with("x-first-death-reason", "rejected")
        .with("x-first-death-queue", "q")
        .with("x-first-death-exchange", "x")
        .with("x-last-death-reason", "rejected")
        .with("x-last-death-queue", "q")
        .with("x-last-death-exchange", "x")
        .with("x-death", vec![FieldValue::Table(death)]);
    assert_eq!(headers(&dead), expected);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn deaths_are_counted_by_queue_and_reason_latest_first() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "a", false, &to_queue("b"));
    declare_with(&mut client, "b", false, &to_queue("a"));
    client.fill("a", &["to and fro"]);
    for queue in ["a", "b", "a"] {
        reject(&mut client, queue);
    }
    let back = client.get("b").expect("a dead letter");
    assert_eq!(deaths(&back), ["a rejected 2", "b rejected 1"]);
    let headers = headers(&back);
    assert_eq!(headers.get("x-first-death-queue"), Some(&text("a")));
    assert_eq!(headers.get("x-first-death-exchange"), Some(&text("")));
    assert_eq!(headers.get("x-last-death-queue"), Some(&text("a")));
}

#[test]
fn refusing_several_at_once_keeps_their_order() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    client.fill("q", &["1", "2", "3"]);
    client.consume("q");
    assert_eq!(client.bodies(), ["1", "2", "3"]);
    client.tell(basic::Nack { delivery_tag: 3, multiple: true, requeue: false });
    assert_eq!(client.pop_all("dead"), ["1", "2", "3"]);
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn refusing_makes_room_for_the_next_delivery() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    client.qos(1);
    client.consume("q");
    client.fill("q", &["1", "2"]);
    assert_eq!(client.bodies(), ["1"]);
    client.tell(basic::Reject { delivery_tag: 1, requeue: false });
    assert_eq!(client.bodies(), ["2"]);
}

#[test]
fn a_missing_exchange_loses_dead_letters() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "not there");
    declare_with(&mut client, "q", false, &arguments);
    client.fill("q", &["lost"]);
    reject(&mut client, "q");
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn an_internal_exchange_takes_dead_letters() {
    let world = World::new();
    let mut client = world.connect();
    let (exchange, kind) = (short("inner"), short("fanout"));
    let declare = exchange::Declare { exchange, kind, internal: true, ..Default::default() };
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
    client.declare("dead");
    client.bind("dead", "inner", "");
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "inner");
    declare_with(&mut client, "q", false, &arguments);
    client.fill("q", &["m"]);
    reject(&mut client, "q");
    assert_eq!(client.pop_all("dead"), ["m"]);
}

/// What a client may say of a death that no broker has recorded.
fn claimed(queue: &str) -> FieldValue {
    let death =
        FieldTable::new().with("queue", queue).with("reason", "expired").with("count", 7_i64);
    FieldValue::Table(death)
}

#[test]
fn what_a_client_says_of_deaths_makes_way_for_the_first_one_that_happens() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    let claims: [FieldValue; 4] = [
        "yesterday".into(),
        FieldValue::Array(Vec::new()),
        vec![text("odd"), FieldValue::Void].into(),
        vec![claimed("q"), claimed("dead")].into(),
    ];
    for claim in claims {
        let said = FieldTable::new().with("x-death", claim).with("x-first-death-queue", "other");
        client.send(Message::new("", "q", "m").headers(said));
        reject(&mut client, "q");
        let dead = client.get("dead").expect("a dead letter");
        assert_eq!(deaths(&dead), ["q rejected 1"]);
        assert_eq!(headers(&dead).get("x-first-death-queue"), Some(&text("q")));
    }
}

#[test]
fn what_a_client_says_of_deaths_is_carried_along_while_there_is_none() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let said = FieldTable::new().with("x-death", vec![claimed("q")]);
    client.send(Message::new("", "q", "m").headers(said.clone()));
    assert_eq!(headers(&client.get("q").expect("a message")), said);
}

#[test]
fn a_death_that_a_client_only_claims_makes_no_circle() {
    let world = World::new();
    world.broker.set_time(1000);
    let mut client = world.connect();
    client.declare("dead");
    declare_with(&mut client, "q", false, &to_queue("dead").with("x-message-ttl", 10));
    let said = FieldTable::new().with("x-death", vec![claimed("dead")]);
    client.send(Message::new("", "q", "not lost").headers(said));
    world.broker.tick(1010);
    assert_eq!(client.pop_all("dead"), ["not lost"]);
}

#[test]
fn a_dead_letter_that_its_consumer_publishes_again_has_not_died_yet() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    client.fill("q", &["m"]);
    for _ in 0..3 {
        reject(&mut client, "q");
        let dead = client.get("dead").expect("a dead letter");
        assert_eq!(deaths(&dead), ["q rejected 1"]);
        client.send(Message::new("", "q", "m").headers(headers(&dead)));
    }
}

#[test]
fn which_deaths_have_happened_is_known_after_a_restart() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "a", true, &to_queue("b"));
    declare_with(&mut client, "b", true, &to_queue("a"));
    let said = FieldTable::new().with("x-death", vec![claimed("a")]);
    client.send(Message::new("", "a", "m").headers(said).with_properties(|properties| {
        properties.delivery_mode = Some(2);
    }));
    client.disconnect();
    world.restart();
    for (queue, restarts) in [("a", true), ("b", false), ("a", true)] {
        let mut client = world.connect();
        reject(&mut client, queue);
        client.disconnect();
        if restarts { world.restart() } else { world.restart_from_checkpoint() }
    }
    let mut client = world.connect();
    let back = client.get("b").expect("a dead letter");
    assert_eq!(deaths(&back), ["a rejected 2", "b rejected 1"]);
    client.disconnect();
}

#[test]
fn in_a_transaction_a_refusal_counts_with_the_commit() {
    let world = World::new();
    let mut client = world.connect();
    declare_both(&mut client);
    client.fill("q", &["m"]);
    client.tx_select();
    reject(&mut client, "q");
    let mut observer = world.connect();
    assert_eq!(observer.get("dead"), None);
    client.commit();
    assert_eq!(observer.pop_all("dead"), ["m"]);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn dead_letters_survive_a_restart_and_what_they_were_does_not_come_back() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "dead", true, &FieldTable::new());
    declare_with(&mut client, "q", true, &to_queue("dead"));
    let persistent = |text: &str| {
        Message::new("", "q", text).with_properties(|properties| properties.delivery_mode = Some(2))
    };
    for body in ["1", "2", "3"] {
        client.send(persistent(body));
    }
    reject(&mut client, "q");
    client.disconnect();
    world.restart();
    assert_eq!((world.counts("q"), world.counts("dead")), ((2, 0, 0), (1, 0, 0)));
    let mut client = world.connect();
    reject(&mut client, "q");
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    assert_eq!(client.pop_all("dead"), ["1", "2"]);
    assert_eq!(client.pop_all("q"), ["3"]);
    client.disconnect();
}

#[test]
fn a_letter_does_not_make_all_that_has_expired_where_it_comes_leave_in_one_go() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("end");
    declare_with(&mut client, "dead", false, &to_queue("end").with("x-message-ttl", 10));
    declare_with(&mut client, "q", false, &to_queue("dead"));
    let names: Vec<String> = (0..1000).map(|nth| nth.to_string()).collect();
    client.fill("dead", &names.iter().map(String::as_str).collect::<Vec<_>>());
    client.fill("q", &["refused", "too"]);
    world.broker.set_time(1000);
    reject(&mut client, "q");
    reject(&mut client, "q");
    assert_eq!(world.counts("end").0, 0);
    let mut now_ms = 1000;
    let mut arrived = 0;
    while let Some(next_ms) = world.broker.tick(now_ms) {
        let more = world.counts("end").0 - arrived;
        assert!(more <= 300, "{more} in one go");
        arrived += more;
        now_ms = now_ms.max(next_ms);
    }
    let all = client.pop_all("end");
    assert_eq!(all.len(), 1002);
    assert_eq!(all[..1000], names);
    assert_eq!(all[1000..], ["refused", "too"]);
}

#[test]
fn letters_of_a_queue_arrive_in_the_order_in_which_they_left_from_any_thread() {
    const MESSAGES: usize = 5000;
    let world = World::new();
    world.broker.set_time(1000);
    let mut client = world.connect();
    client.declare("dead");
    declare_with(&mut client, "q", false, &to_queue("dead").with("x-message-ttl", 10));
    let names: Vec<String> = (0..MESSAGES).map(|nth| nth.to_string()).collect();
    client.fill("q", &names.iter().map(String::as_str).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| while world.broker.tick(1010).is_some() {});
        }
    });
    assert_eq!(client.pop_all("dead"), names);
}
