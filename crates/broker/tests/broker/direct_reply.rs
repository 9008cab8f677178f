//! Direct reply-to: requests from a consumer of `amq.rabbitmq.reply-to`, and their answers.

use crate::frame_costs::{consume, cost};
use crate::support::{Client, Heard, Message, World, guest, owned, short};
use courser_broker::admin::ConnectionDetails;
use courser_codec::{FieldTable, FieldValue, basic, queue, tx};

const REPLY_TO: &str = "amq.rabbitmq.reply-to";

fn consume_replies(tag: &str) -> basic::Consume<'_> {
    let (queue, consumer_tag) = (short(REPLY_TO), short(tag));
    basic::Consume { queue, consumer_tag, no_ack: true, ..Default::default() }
}

fn request(body: &str) -> Message {
    Message::new("", "rpc", body)
        .with_properties(|properties| properties.reply_to = Some(owned(REPLY_TO)))
}

fn passive(name: &str) -> queue::Declare<'_> {
    queue::Declare { queue: short(name), passive: true, ..Default::default() }
}

/// A client that waits for replies, and another one that has seen its request.
fn asked(world: &World) -> (Client, Client, String) {
    let mut server = world.connect();
    server.declare("rpc");
    let mut client = world.connect();
    client.consume_with(consume_replies("mine"));
    client.send(request("question"));
    let delivery = server.get("rpc").expect("the request");
    let reply_to = delivery.properties.reply_to.expect("a name").to_string();
    (client, server, reply_to)
}

#[test]
fn a_reply_goes_to_the_one_who_asked() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    assert!(reply_to.starts_with("amq.rabbitmq.reply-to."));
    server.publish("", &reply_to, "answer");
    let deliveries = client.deliveries();
    let [delivery] = &deliveries[..] else { panic!("{deliveries:?}") };
    assert_eq!(delivery.text(), "answer");
    assert_eq!((&*delivery.consumer, &*delivery.exchange), ("mine", ""));
    assert_eq!((delivery.routing_key.as_str(), delivery.redelivered), (&*reply_to, false));
}

#[test]
fn other_properties_of_the_request_stay_as_they_are() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("rpc");
    client.consume_with(consume_replies(""));
    let headers = FieldTable::new().with("a", 1).with("b", "text");
    let message = request("q").headers(headers.clone());
    client.send(message.with_properties(|properties| properties.correlation_id = Some(owned("7"))));
    let properties = client.get("rpc").expect("the request").properties;
    assert_eq!(properties.headers, Some(headers));
    assert_eq!(properties.correlation_id, Some(owned("7")));
}

#[test]
fn each_channel_has_a_consumer_of_its_own() {
    let world = World::new();
    let (mut client, mut server, first) = asked(&world);
    client.open_channel(2);
    client.consume_on(2, consume_replies("other"));
    client.read(&[crate::support::Step::Publish(2, request("second"))]);
    let second = server.get("rpc").expect("the request").properties.reply_to.expect("a name");
    server.publish("", &second.to_string(), "2");
    server.publish("", &first, "1");
    let got: Vec<_> = client.deliveries().iter().map(|one| (one.channel, one.body[0])).collect();
    assert_eq!(got, [(2, b'2'), (1, b'1')]);
}

#[test]
fn late_replies_are_dropped_without_a_word() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    client.cancel("mine");
    server.send(Message::new("", &reply_to, "late").mandatory());
    assert_eq!(server.heard(), []);
    client.consume_with(consume_replies("again"));
    server.publish("", &reply_to, "to the one before");
    assert_eq!(client.bodies(), [""; 0]);
    client.disconnect();
    server.send(Message::new("", &reply_to, "later").mandatory());
    assert_eq!(server.heard(), []);
}

#[test]
fn a_mandatory_reply_is_delivered_and_not_returned() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    server.send(Message::new("", &reply_to, "answer").mandatory());
    assert_eq!(server.heard(), []);
    assert_eq!(client.bodies(), ["answer"]);
}

#[test]
fn replies_are_confirmed() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    server.confirm_select();
    server.publish("", &reply_to, "answer");
    assert!(matches!(&server.heard()[..], [Heard::Confirm { through: 1, .. }]));
    assert_eq!(client.bodies(), ["answer"]);
}

#[test]
fn a_reply_can_be_a_copy() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    let cc = FieldValue::Array(vec![reply_to.as_str().into()]);
    server.send(Message::new("", "rpc", "both").headers(FieldTable::new().with("CC", cc)));
    assert_eq!(client.bodies(), ["both"]);
    assert_eq!(server.pop_all("rpc"), ["both"]);
}

#[test]
fn a_transaction_sends_requests_and_replies_at_its_commit() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    for one in [&mut client, &mut server] {
        one.call(tx::Select {});
    }
    client.send(request("in a transaction"));
    client.call(tx::Commit {});
    let again = server.get("rpc").expect("the request").properties.reply_to;
    assert_eq!(again.expect("a name").to_string(), reply_to);
    server.publish("", &reply_to, "answer");
    assert_eq!(client.bodies(), [""; 0]);
    server.call(tx::Commit {});
    assert_eq!(client.bodies(), ["answer"]);
}

#[test]
fn the_pseudo_queue_can_be_declared_and_tells_who_waits() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    for name in [REPLY_TO, &reply_to] {
        let declared = Heard::DeclareOk { queue: name.to_owned(), messages: 0, consumers: 1 };
        assert_eq!(server.call(passive(name)), declared);
        let declare = queue::Declare { queue: short(name), ..Default::default() };
        assert_eq!(server.call(declare), declared);
    }
    client.cancel("mine");
    let missing = format!("404 NOT_FOUND - no queue '{reply_to}' in vhost '/'");
    assert_eq!(server.refused(passive(&reply_to)), missing);
}

#[test]
fn the_name_is_not_shown_with_the_consumers_of_a_channel() {
    let world = World::new();
    let mut client = connect_named(&world, "asks");
    client.consume_with(consume_replies("mine"));
    let none = &mut |one| panic!("{one:?}");
    world.broker.admin().for_each_consumer_on("asks", 1, none).expect("the connection is there");
}

#[test]
fn a_forged_name_is_not_found() {
    let world = World::new();
    let mut client = world.connect();
    let forged = "amq.rabbitmq.reply-to.g2dkAA5yYWJiaXQ";
    let missing = format!("404 NOT_FOUND - no queue '{forged}' in vhost '/'");
    assert_eq!(client.refused(passive(forged)), missing);
    let queue = short(forged);
    assert_eq!(client.refused(queue::Declare { queue, ..Default::default() }), missing);
    assert_eq!(client.refused(basic::Consume { queue, ..Default::default() }), missing);
    let get = basic::Get { queue: short(REPLY_TO), no_ack: true };
    let missing = "404 NOT_FOUND - no queue 'amq.rabbitmq.reply-to' in vhost '/'";
    assert_eq!(client.refused(get), missing);
}

#[test]
fn names_are_good_in_their_vhost_only() {
    let world = World::new();
    let (mut client, _server, reply_to) = asked(&world);
    let mut stranger =
        world.connect_to(world.broker.define_vhost("other", Default::default()).expect("a vhost"));
    stranger.publish("", &reply_to, "from elsewhere");
    assert!(stranger.refused(passive(&reply_to)).starts_with("404 "));
    assert_eq!(client.bodies(), [""; 0]);
}

#[test]
fn a_reply_consumer_cannot_acknowledge_and_is_alone_on_its_channel() {
    let world = World::new();
    let mut client = world.connect();
    let acknowledging = basic::Consume { no_ack: false, ..consume_replies("") };
    assert_eq!(
        client.refused(acknowledging),
        "406 PRECONDITION_FAILED - reply consumer cannot acknowledge"
    );
    client.consume_with(consume_replies("a"));
    assert_eq!(
        client.refused(consume_replies("b")),
        "406 PRECONDITION_FAILED - reply consumer already set"
    );
    client.consume_with(consume_replies("a"));
    assert_eq!(
        client.refused(consume_replies("a")),
        "406 PRECONDITION_FAILED - reply consumer already set"
    );
    client.declare("q");
    client.consume_with(basic::Consume { queue: short("q"), ..consume_replies("a") });
    assert_eq!(
        client.fatal(consume_replies("a")),
        "530 NOT_ALLOWED - attempt to reuse consumer tag 'a'"
    );
}

#[test]
fn a_request_without_a_reply_consumer_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("rpc");
    let missing = "406 PRECONDITION_FAILED - fast reply consumer does not exist";
    assert_eq!(client.refused_publish(request("q")), missing);
    client.consume_with(consume_replies("a"));
    client.cancel("a");
    assert_eq!(client.refused_publish(request("q")), missing);
    assert_eq!(client.pop("rpc"), None);
}

#[test]
fn replies_wait_while_the_client_stops_the_flow() {
    let world = World::new();
    let (mut client, mut server, reply_to) = asked(&world);
    client.call(courser_codec::channel::Flow { active: false });
    server.publish("", &reply_to, "answer");
    assert_eq!(client.bodies(), [""; 0]);
    client.call(courser_codec::channel::Flow { active: true });
    assert_eq!(client.bodies(), ["answer"]);
}

#[test]
fn a_request_costs_the_same_however_many_consumers_its_channel_has() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("rpc");
    client.declare("q");
    consume(&mut client, "q", 2000);
    client.consume_with(consume_replies("mine"));
    let taken = cost(|| client.send(request("question")));
    assert!(taken < 64, "{taken}");
    assert!(client.get("rpc").expect("the request").properties.reply_to.is_some());
    client.cancel("mine");
    let missing = "406 PRECONDITION_FAILED - fast reply consumer does not exist";
    assert_eq!(client.refused_publish(request("question")), missing);
}

fn connect_named(world: &World, name: &str) -> Client {
    let details = ConnectionDetails { name: name.to_owned(), ..ConnectionDetails::default() };
    let session = world.broker.open_connection(world.vhost(), guest(), 131_072, details);
    Client::new(session, 131_072, std::sync::Weak::new())
}

#[test]
fn a_reply_consumer_that_an_operator_cancels_is_gone() {
    let world = World::new();
    let mut client = connect_named(&world, "one");
    client.declare("rpc");
    client.consume_with(consume_replies("mine"));
    world.broker.admin().cancel_consumer("one", 1, b"mine").expect("it is there");
    client.heard();
    let missing = "406 PRECONDITION_FAILED - fast reply consumer does not exist";
    assert_eq!(client.refused_publish(request("question")), missing);
    client.consume_with(consume_replies("other"));
    client.send(request("question"));
    assert!(client.get("rpc").expect("the request").properties.reply_to.is_some());
}
