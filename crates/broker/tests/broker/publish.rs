//! `basic.publish`: what is taken, what is refused, what is returned.

use crate::support::{Heard, Message, Step, World, guest, owned, short};
use courser_broker::Identity;
use courser_codec::{FieldTable, FieldValue};

fn returned(exchange: &str, routing_key: &str, body: &str) -> Heard {
    Heard::Return {
        reply: (312, "NO_ROUTE".into()),
        exchange: exchange.into(),
        routing_key: routing_key.into(),
        body: body.into(),
    }
}

#[test]
fn messages_come_out_in_the_order_in_which_they_went_in() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    publisher.declare("r");
    let body = |number: &usize| number.to_string();
    let bodies: Vec<String> = (0..500).map(|number| body(&number)).collect();
    for read in bodies.chunks(7) {
        let message = |body: &String| Message::new("", "q", body);
        let other = |body: &String| Message::new("", "r", body);
        let steps = read
            .iter()
            .flat_map(|body| [Step::Publish(1, message(body)), Step::Publish(1, other(body))]);
        publisher.read(&steps.collect::<Vec<_>>());
    }
    consumer.consume_no_ack("q");
    assert_eq!(consumer.bodies(), bodies);
    assert_eq!(consumer.pop_all("r"), bodies);
}

#[test]
fn a_message_comes_out_as_it_went_in() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.bind("q", "amq.topic", "#");
    let headers = FieldTable::new()
        .with("text", "value")
        .with("number", FieldValue::U32(7))
        .with("nested", FieldTable::new().with("deep", FieldValue::Void))
        .with("list", vec![FieldValue::Bool(true), FieldValue::I8(-1)]);
    let message = Message::new("amq.topic", "a.b", b"\0\xff body").with_properties(|properties| {
        properties.headers = Some(headers);
        properties.content_type = Some(owned("text/plain"));
        properties.delivery_mode = Some(2);
        properties.priority = Some(9);
        properties.correlation_id = Some(owned("correlation"));
        properties.timestamp = Some(u64::MAX);
        properties.user_id = Some(owned("guest"));
        properties.expiration = Some(owned("60000"));
    });
    client.send(message.clone());
    let polled = client.get("q").expect("a message");
    assert_eq!(polled.properties, *message.properties());
    assert_eq!(polled.body, b"\0\xff body");
    assert_eq!((&*polled.exchange, &*polled.routing_key), ("amq.topic", "a.b"));
    client.requeue(polled.tag);
    client.consume("q");
    let [delivery] = &client.deliveries()[..] else { panic!("one delivery") };
    assert_eq!(delivery.properties, *message.properties());
    assert_eq!((&*delivery.exchange, &*delivery.routing_key), ("amq.topic", "a.b"));
}

#[test]
fn bodies_of_any_size_come_out_whole_in_frames_of_the_consumers_size() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    let sizes = [0, 1, 4087, 4088, 4089, 8176, 100_000, 1_000_000];
    let body = |size: usize| (0..size).map(|at| at as u8).collect::<Vec<u8>>();
    for size in sizes {
        let message = || Message::new("", "q", body(size));
        publisher.read(&[Step::Publish(1, message()), Step::PublishLarge(1, message())]);
    }
    // Every frame is checked against frame_max when it is decoded.
    let mut consumer = world.connect_with_frame_max(4096);
    consumer.consume("q");
    let deliveries = consumer.deliveries();
    assert_eq!(deliveries.len(), sizes.len() * 2);
    for (delivery, size) in deliveries.iter().zip(sizes.iter().flat_map(|size| [size, size])) {
        assert!(delivery.body == body(*size), "a body of {size}");
    }
}

#[test]
fn a_large_body_is_handed_to_a_waiting_consumer_in_frames_too() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect_with_frame_max(4096));
    publisher.declare("q");
    consumer.consume_no_ack("q");
    let body = vec![7; 50_000];
    publisher.read(&[
        Step::Publish(1, Message::new("", "q", "before")),
        Step::PublishLarge(1, Message::new("", "q", &body)),
        Step::Publish(1, Message::new("", "q", "after")),
    ]);
    let bodies: Vec<Vec<u8>> = consumer.deliveries().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies, [b"before".to_vec(), body, b"after".to_vec()]);
}

#[test]
fn publishing_to_a_missing_exchange_costs_the_channel() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.read(&[
        Step::Publish(1, Message::new("", "q", "before")),
        Step::Publish(1, Message::new("x", "k", "refused")),
    ]);
    let text = "404 NOT_FOUND - no exchange 'x' in vhost '/'";
    assert_eq!(client.heard(), [Heard::ChannelClosed(text.into())]);
    client.open_channel(1);
    assert_eq!(client.pop_all("q"), ["before"]);
}

#[test]
fn an_exchange_that_was_there_before_is_missed_at_once() {
    let world = World::new();
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare_exchange("x", "fanout");
    client.publish("x", "k", "fine");
    other.call(courser_codec::exchange::Delete { exchange: short("x"), ..Default::default() });
    let text = client.refused_publish(Message::new("x", "k", "refused"));
    assert_eq!(text, "404 NOT_FOUND - no exchange 'x' in vhost '/'");
}

#[test]
fn an_unroutable_message_is_dropped_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.publish("", "missing", "x");
    client.publish("amq.direct", "missing", "x");
    assert_eq!(client.heard(), []);
}

#[test]
fn an_unroutable_mandatory_message_is_returned_whole() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.read(&[
        Step::Publish(1, Message::new("amq.topic", "a.b", "back").mandatory()),
        Step::Publish(1, Message::new("", "q", "routed").mandatory()),
        Step::PublishLarge(1, Message::new("", "missing", "back too").mandatory()),
    ]);
    assert_eq!(
        client.heard(),
        [returned("amq.topic", "a.b", "back"), returned("", "missing", "back too")]
    );
    assert_eq!(client.pop_all("q"), ["routed"]);
}

#[test]
fn a_returned_message_keeps_to_the_publishers_frames() {
    let world = World::new();
    let mut client = world.connect_with_frame_max(4096);
    let body = "x".repeat(10_000);
    client.send(Message::new("", "missing", &body).mandatory());
    assert_eq!(client.heard(), [returned("", "missing", &body)]);
}

#[test]
fn immediate_is_not_implemented() {
    let world = World::new();
    let mut client = world.connect();
    client.send(Message::new("", "q", "x").immediate());
    let text = "540 NOT_IMPLEMENTED - immediate=true";
    assert_eq!(client.heard(), [Heard::ConnectionClosed(text.into())]);
}

#[test]
fn a_bad_expiration_is_refused_with_what_is_wrong() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    for (expiration, problem) in [
        ("abc", "no_integer"),
        ("", "no_integer"),
        ("10x", "{leftover_string,\"x\"}"),
        ("-1", "{value_negative,-1}"),
        ("99999999999999", "{value_too_large,99999999999999}"),
        ("99999999999999999999999", "{value_too_large,99999999999999999999999}"),
    ] {
        assert_eq!(
            client.refused_publish(Message::new("", "q", "x").expiration(expiration)),
            format!("406 PRECONDITION_FAILED - invalid expiration '{expiration}': {problem}")
        );
    }
    client.send(Message::new("", "q", "fine").expiration("60000"));
    assert_eq!(client.pop_all("q"), ["fine"]);
}

#[test]
fn a_user_id_has_to_be_ones_own() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.send(Message::new("", "q", "own").user_id("guest"));
    assert_eq!(
        client.refused_publish(Message::new("", "q", "x").user_id("a")),
        "406 PRECONDITION_FAILED - user_id property set to 'a' but authenticated user was 'guest'"
    );
    assert_eq!(
        client.refused_publish(Message::new("missing", "q", "x").user_id("a")),
        "404 NOT_FOUND - no exchange 'missing' in vhost '/'",
        "of both, the exchange"
    );
    let mut impersonator = world.connect_as(Identity { impersonator: true, ..guest() });
    impersonator.send(Message::new("", "q", "allowed").user_id("a"));
    assert_eq!(client.pop_all("q"), ["own", "allowed"]);
}

#[test]
fn malformed_properties_end_the_connection_and_reach_no_consumer() {
    let world = World::new();
    let mut consumer = world.connect();
    consumer.declare("q");
    consumer.consume_no_ack("q");
    for bytes in [
        // content-type of 5 bytes, of which 1 is there.
        &b"\x80\x00\x05a"[..],
        // Bytes behind the last property.
        b"\x08\x00\x01\x02",
        // Headers whose only value has a type that does not exist.
        b"\x20\x00\x00\x00\x00\x03\x01aZ",
        // A flag that no property has.
        b"\x00\x01",
    ] {
        let mut publisher = world.connect();
        publisher.send(Message::new("", "q", "x").with_encoded_properties(bytes));
        let heard = publisher.heard();
        assert!(
            matches!(&heard[..], [Heard::ConnectionClosed(text)] if text.starts_with("50")),
            "{bytes:?}: {heard:?}"
        );
        assert_eq!(consumer.heard(), []);
    }
}

#[test]
fn bytes_behind_no_properties_are_malformed_whatever_their_number() {
    let world = World::new();
    world.connect().declare("q");
    for (len, is_transaction) in
        [(1, false), (2, true), (11, false), (4096, true), (131_050, false)]
    {
        let mut publisher = world.connect();
        if is_transaction {
            publisher.tx_select();
        }
        let encoded = vec![0; 2 + len];
        publisher.send(Message::new("", "q", "x").with_encoded_properties(&encoded));
        let heard = publisher.heard();
        assert!(
            matches!(&heard[..], [Heard::ConnectionClosed(text)] if text.starts_with("502")),
            "{len} bytes: {heard:?}"
        );
    }
    assert_eq!(world.counts("q"), (0, 0, 0));
}
