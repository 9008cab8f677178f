//! What a client was handed and never sent, as it is not committed: what becomes of it where its channel or connection ends.

use crate::commits::{bodies, fill, world, world_with};
use crate::support::{Client, Step, WorldOnDisk, declare_with, headers, short};
use courser_broker::admin::GetMode;
use courser_codec::{FieldTable, Method, basic, channel};

/// A client's channel ends, in one way or another.
type End = fn(&mut Client);

const ENDS: [End; 2] = [|client| client.close_channel(1), |client| client.disconnect()];

/// What a new consumer of `q` gets: bodies, whether they are redelivered, and how often they have failed.
fn found(world: &WorldOnDisk) -> Vec<(String, bool, Option<i64>)> {
    world.flush();
    let mut client = world.connect();
    client.consume("q");
    let deliveries = client.deliveries();
    let seen = deliveries.iter().map(|one| {
        let count = headers(one).get("x-delivery-count").and_then(|count| count.as_integer());
        (one.text().to_owned(), one.redelivered, count)
    });
    seen.collect()
}

/// Has a client hear that its channel 1 is closed, as its connection puts that behind all it has to say.
fn close_in_order(client: &mut Client) {
    client.close_channel(1);
    let mut close_ok = Vec::new();
    Method::from(channel::CloseOk {}).write_frame(1, &mut close_ok);
    client.session().outbox().lock().put_frames(&close_ok);
}

#[test]
fn what_needs_no_acknowledgement_is_sent_before_its_channel_closes() {
    let (world, mut publisher, mut consumer) = world();
    declare_with(&mut publisher, "acknowledged", true, &FieldTable::new());
    world.flush();
    consumer.consume_no_ack("q");
    consumer.consume("acknowledged");
    fill(&mut publisher, "q", &["1"]);
    fill(&mut publisher, "acknowledged", &["returned"]);
    fill(&mut publisher, "q", &["2"]);
    close_in_order(&mut consumer);
    assert_eq!(consumer.heard(), []);
    assert_eq!(world.counts("acknowledged"), (1, 0, 0));
    world.flush();
    assert_eq!(bodies(&consumer.heard()), ["1", "2", "channel.close-ok"]);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn so_is_what_is_polled() {
    let (world, mut publisher, mut consumer) = world();
    fill(&mut publisher, "q", &["1"]);
    consumer.read(&[Step::Call(1, basic::Get { queue: short("q"), no_ack: true }.into())]);
    close_in_order(&mut consumer);
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(bodies(&consumer.heard()), ["got 1", "channel.close-ok"]);
}

#[test]
fn a_new_channel_of_the_number_has_nothing_to_do_with_it() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume_no_ack("q");
    fill(&mut publisher, "q", &["1", "2"]);
    close_in_order(&mut consumer);
    consumer.open_channel(1);
    let consume = basic::Consume { queue: short("q"), nowait: true, ..Default::default() };
    consumer.read(&[Step::Call(1, consume.into())]);
    world.flush();
    assert_eq!(bodies(&consumer.heard()), ["1", "2", "channel.close-ok"]);
    fill(&mut publisher, "q", &["3"]);
    world.flush();
    let delivery = consumer.deliveries().remove(0);
    assert_eq!((delivery.text(), delivery.tag), ("3", 1));
    consumer.disconnect();
    assert_eq!(found(&world), [("3".to_owned(), true, None)]);
}

#[test]
fn it_returns_as_it_was_and_counts_for_no_delivery_limit() {
    for end in ENDS {
        let (world, mut publisher, _) = world_with(&FieldTable::new().with("x-delivery-limit", 1));
        fill(&mut publisher, "q", &["sent"]);
        world.flush();
        fill(&mut publisher, "q", &["unsent"]);
        let mut consumer = world.connect();
        consumer.qos(2);
        consumer.consume("q");
        assert_eq!(consumer.bodies(), ["sent"]);
        end(&mut consumer);
        assert_eq!(world.counts("q"), (2, 0, 0));
        let mut holder = world.connect();
        holder.qos(1);
        let tag = holder.consume("q");
        assert_eq!(holder.bodies(), ["sent"]);
        for _ in 0..3 {
            let mut consumer = world.connect();
            consumer.consume("q");
            assert_eq!(world.counts("q"), (0, 2, 2));
            end(&mut consumer);
        }
        holder.cancel(&tag);
        holder.requeue(1);
        let expected = [("sent".to_owned(), true, Some(1)), ("unsent".to_owned(), false, None)];
        assert_eq!(found(&world), expected);
    }
}

#[test]
fn what_is_polled_and_never_sent_counts_for_none_either() {
    let (world, mut publisher, mut consumer) =
        world_with(&FieldTable::new().with("x-delivery-limit", 1));
    fill(&mut publisher, "q", &["1"]);
    for _ in 0..3 {
        consumer.read(&[Step::Call(1, basic::Get { queue: short("q"), no_ack: false }.into())]);
        assert_eq!(consumer.heard(), []);
        consumer.disconnect();
        consumer = world.connect();
    }
    assert_eq!(found(&world), [("1".to_owned(), false, None)]);
}

#[test]
fn it_returns_to_its_place_among_what_was_sent() {
    let (world, mut publisher, mut consumer) = world();
    fill(&mut publisher, "q", &["1"]);
    world.flush();
    consumer.consume("q");
    assert_eq!(consumer.bodies(), ["1"]);
    fill(&mut publisher, "q", &["2", "3"]);
    let mut other = world.connect();
    other.consume("q");
    consumer.close_channel(1);
    world.flush();
    let deliveries = other.deliveries();
    let seen: Vec<_> = deliveries.iter().map(|one| (one.text(), one.redelivered)).collect();
    assert_eq!(seen, [("1", true), ("2", false), ("3", false)]);
}

#[test]
fn what_an_operator_has_not_been_given_is_not_redelivered() {
    let (world, mut publisher, _) = world();
    fill(&mut publisher, "q", &["given"]);
    world.flush();
    fill(&mut publisher, "q", &["not committed"]);
    let admin = world.broker.admin();
    let got = admin.get("/", b"q", 10, GetMode::Requeue { counts: false }, 100, 10_000);
    assert_eq!(got.expect("a queue").len(), 1);
    let expected = [("given".to_owned(), true, None), ("not committed".to_owned(), false, None)];
    assert_eq!(found(&world), expected);
}
