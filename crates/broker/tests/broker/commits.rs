//! In a cluster, clients see what is committed.

use crate::support::{Client, Heard, Message, Step, WorldOnDisk, declare_with, short};
use courser_broker::admin::GetMode;
use courser_codec::{FieldTable, Method, basic, channel, queue, tx};

fn persistent(queue: &str, body: &str) -> Message {
    Message::new("", queue, body).with_properties(|properties| properties.delivery_mode = Some(2))
}

pub fn fill(client: &mut Client, queue: &str, bodies: &[&str]) {
    let steps: Vec<_> =
        bodies.iter().map(|body| Step::Publish(1, persistent(queue, body))).collect();
    client.read(&steps);
}

pub fn bodies(heard: &[Heard]) -> Vec<String> {
    let body = |heard: &Heard| match heard {
        Heard::Delivery(delivery) => delivery.text().to_owned(),
        Heard::GetOk { delivery, .. } => format!("got {}", delivery.text()),
        Heard::Confirm { through, .. } => format!("confirmed {through}"),
        Heard::CancelOk(_) => "cancelled".to_owned(),
        Heard::Done(name) => (*name).to_owned(),
        other => format!("{other:?}"),
    };
    heard.iter().map(body).collect()
}

/// A broker on a replicated log, with a durable queue `q`, and a client of each kind.
pub fn world() -> (WorldOnDisk, Client, Client) {
    world_with(&FieldTable::new())
}

pub fn world_with(arguments: &FieldTable) -> (WorldOnDisk, Client, Client) {
    let world = WorldOnDisk::on_copy();
    let mut publisher = world.connect();
    declare_with(&mut publisher, "q", true, arguments);
    world.flush();
    let consumer = world.connect();
    (world, publisher, consumer)
}

#[test]
fn a_message_is_delivered_when_it_is_committed() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume("q");
    fill(&mut publisher, "q", &["1", "2"]);
    assert_eq!(world.counts("q"), (0, 2, 1), "they have been handed out");
    assert!(!consumer.is_woken(), "there is nothing to send");
    world.flush();
    assert!(consumer.is_woken());
    let deliveries = consumer.deliveries();
    let seen: Vec<_> = deliveries.iter().map(|one| (one.text(), one.tag)).collect();
    assert_eq!(seen, [("1", 1), ("2", 2)]);
    consumer.ack_through(2);
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn so_is_one_that_has_waited_in_the_queue() {
    let (world, mut publisher, mut consumer) = world();
    fill(&mut publisher, "q", &["1"]);
    world.flush();
    fill(&mut publisher, "q", &["2", "3"]);
    consumer.consume("q");
    assert_eq!(consumer.bodies(), ["1"], "it has been committed long ago");
    world.flush();
    assert_eq!(consumer.bodies(), ["2", "3"]);
}

#[test]
fn a_single_broker_does_not_wait() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.consume("q");
    fill(&mut client, "q", &["1"]);
    assert_eq!(client.bodies(), ["1"]);
}

#[test]
fn what_is_not_in_the_log_does_not_wait_but_keeps_its_place_on_its_channel() {
    let (world, mut publisher, mut consumer) = world();
    consumer.open_channel(2);
    publisher.declare("t");
    consumer.consume("q");
    consumer.consume("t");
    consumer.consume_on(2, basic::Consume { queue: short("t"), ..Default::default() });
    publisher.publish("", "t", "at once");
    assert_eq!(consumer.bodies(), ["at once"]);
    fill(&mut publisher, "q", &["first"]);
    publisher.fill("t", &["other channel", "same channel"]);
    assert_eq!(consumer.bodies(), ["other channel"]);
    consumer.read(&[Step::Call(1, channel::Flow { active: true }.into())]);
    assert_eq!(consumer.heard(), [], "its answers stay behind it");
    world.flush();
    let heard = consumer.heard();
    assert_eq!(bodies(&heard[..2]), ["first", "same channel"]);
    assert_eq!(heard[2], Heard::FlowOk(true));
}

#[test]
fn polling_waits_too_and_an_empty_queue_says_so_when_that_is_current() {
    let (world, mut publisher, mut consumer) = world();
    let get = || Method::from(basic::Get { queue: short("q"), no_ack: false });
    consumer.read(&[Step::Call(1, get())]);
    world.flush();
    assert_eq!(consumer.heard(), [Heard::GetEmpty]);
    fill(&mut publisher, "q", &["1"]);
    consumer.read(&[Step::Call(1, get()), Step::Call(1, get())]);
    assert_eq!(consumer.heard(), []);
    world.flush();
    let heard = consumer.heard();
    assert_eq!(bodies(&heard[..1]), ["got 1"]);
    assert_eq!(heard[1], Heard::GetEmpty);
}

#[test]
fn what_needs_no_acknowledgement_waits_as_well() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume_no_ack("q");
    fill(&mut publisher, "q", &["1"]);
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["1"]);
    world.flush();
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn a_policy_asks_for_messages_before_they_are_committed() {
    let (world, mut publisher, mut consumer) = world();
    world.give_policy("q", FieldTable::new().with("deliver-before-commit", true));
    consumer.consume("q");
    fill(&mut publisher, "q", &["early"]);
    assert_eq!(consumer.bodies(), ["early"]);
    world.take_policy();
    fill(&mut publisher, "q", &["in time"]);
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["in time"]);
}

#[test]
fn a_transaction_is_delivered_when_it_is_committed_whatever_a_policy_says() {
    let (world, mut publisher, _) = world();
    let early = FieldTable::new().with("x-deliver-before-commit", true);
    declare_with(&mut publisher, "early", true, &early);
    declare_with(&mut publisher, "t", false, &FieldTable::new());
    world.flush();
    // On one channel each would wait behind the first.
    let mut consumers = ["q", "early", "t"].map(|queue| {
        let mut consumer = world.connect();
        consumer.consume(queue);
        consumer
    });
    publisher.tx_select();
    publisher.read(&[
        Step::Publish(1, persistent("q", "1")),
        Step::Publish(1, persistent("early", "2")),
        Step::Publish(1, Message::new("", "t", "3")),
        Step::Call(1, tx::Commit {}.into()),
    ]);
    consumers.iter_mut().for_each(|consumer| assert_eq!(consumer.heard(), []));
    world.flush();
    let delivered = consumers.each_mut().map(|consumer| consumer.bodies());
    assert_eq!(delivered, [["1"], ["2"], ["3"]]);
    let mut other = world.connect();
    fill(&mut other, "early", &["at once"]);
    assert_eq!(consumers[1].bodies(), ["at once"]);
}

#[test]
fn a_dead_letter_of_a_transaction_waits_in_a_queue_that_delivers_early() {
    let (world, mut publisher, mut consumer) = world();
    let early = FieldTable::new().with("x-deliver-before-commit", true);
    declare_with(&mut publisher, "letters", true, &early);
    let dying = FieldTable::new()
        .with("x-max-length", 0)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "letters");
    declare_with(&mut publisher, "dying", true, &dying);
    world.flush();
    consumer.consume("letters");
    publisher.tx_select();
    publisher
        .read(&[Step::Publish(1, persistent("dying", "1")), Step::Call(1, tx::Commit {}.into())]);
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["1"]);
}

#[test]
fn a_delivery_does_not_wait_for_a_proof_on_another_channel() {
    let (world, mut publisher, mut consumer) = world();
    consumer.open_channel(2);
    consumer.consume_on(2, basic::Consume { queue: short("q"), ..Default::default() });
    consumer.heard();
    world.store().contest();
    let passive = queue::Declare { queue: short("q"), passive: true, ..Default::default() };
    consumer.read(&[Step::Call(1, passive.into())]);
    fill(&mut publisher, "q", &["1"]);
    world.flush();
    assert!(consumer.is_woken());
    assert_eq!(consumer.bodies(), ["1"]);
}

#[test]
fn a_closed_channel_is_sent_nothing_and_its_messages_return() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume("q");
    fill(&mut publisher, "q", &["1"]);
    consumer.read(&[Step::Call(1, channel::Flow { active: true }.into())]);
    consumer.close_channel(1);
    assert_eq!(consumer.heard(), [Heard::FlowOk(true)], "it need not wait any more");
    assert_eq!(world.counts("q"), (1, 0, 0));
    consumer.open_channel(1);
    consumer.consume_no_ack("q");
    world.flush();
    let deliveries = consumer.deliveries();
    assert_eq!(deliveries.len(), 1);
    assert_eq!((deliveries[0].text(), deliveries[0].tag), ("1", 1));
}

#[test]
fn a_lost_connection_gives_back_what_it_has_not_been_sent() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume("q");
    fill(&mut publisher, "q", &["1"]);
    consumer.disconnect();
    assert_eq!(world.counts("q"), (1, 0, 0));
    let mut next = world.connect();
    next.consume("q");
    assert_eq!(next.heard(), []);
    world.flush();
    assert_eq!(next.bodies(), ["1"]);
}

#[test]
fn a_cancel_is_answered_behind_what_was_handed_out_before() {
    let (world, mut publisher, mut consumer) = world();
    let tag = consumer.consume("q");
    fill(&mut publisher, "q", &["1"]);
    let cancel = basic::Cancel { consumer_tag: short(&tag), nowait: false };
    consumer.read(&[Step::Call(1, cancel.into())]);
    fill(&mut publisher, "q", &["2"]);
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(bodies(&consumer.heard()), ["1", "cancelled"]);
}

#[test]
fn consumers_are_told_of_a_deletion_when_it_is_committed() {
    let (world, mut publisher, mut consumer) = world();
    let tag = consumer.consume("q");
    let delete = queue::Delete { queue: short("q"), ..Default::default() };
    publisher.read(&[Step::Call(1, delete.into())]);
    assert!(!world.has_queue("q"));
    assert_eq!(consumer.heard(), [], "the next leader may have it");
    world.flush();
    assert!(consumer.is_woken());
    assert_eq!(consumer.heard(), [Heard::Cancelled(tag)]);
}

#[test]
fn what_waits_is_bounded_and_goes_on_when_it_is_sent() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume_no_ack("q");
    let outbox = std::sync::Arc::clone(consumer.session().outbox());
    let body = "x".repeat(1000);
    let many = vec![&*body; 100];
    for _ in 0..8 {
        fill(&mut publisher, "q", &many);
    }
    assert_eq!(consumer.heard(), []);
    let (ready, ..) = world.counts("q");
    assert!((100..700).contains(&ready), "{ready} wait in the queue");
    assert!(!outbox.is_full_of_answers(), "its client is read");
    world.flush();
    let mut delivered = 0;
    while delivered < 800 {
        let some = consumer.bodies().len();
        assert!(some > 0, "{delivered} delivered");
        delivered += some;
    }
    world.flush();
    assert_eq!(world.counts("q").0, 0);
}

#[test]
fn what_is_polled_counts_as_answers_while_it_waits() {
    let (world, mut publisher, mut client) = world();
    declare_with(&mut publisher, "other", true, &FieldTable::new());
    fill(&mut publisher, "other", &[&"x".repeat(1000)]);
    world.flush();
    fill(&mut publisher, "q", &["not committed"]);
    let get = |queue| Step::Call(1, basic::Get { queue: short(queue), no_ack: false }.into());
    client.read(&[get("q")]);
    let outbox = std::sync::Arc::clone(client.session().outbox());
    let mut polled = 1;
    while !outbox.is_full_of_answers() {
        polled += 1;
        assert!(polled < 10_000, "its client is read on and on");
        let (delivery_tag, multiple, requeue) = (polled, false, true);
        let nack = basic::Nack { delivery_tag, multiple, requeue };
        client.read(&[get("other"), Step::Call(1, nack.into())]);
    }
    world.flush();
    let heard = client.heard();
    assert_eq!(heard.len() as u64, polled);
    assert_eq!(bodies(&heard[..1]), ["got not committed"]);
    assert!(!outbox.is_full_of_answers());
}

#[test]
fn what_waits_counts_as_memory_until_it_is_sent() {
    let (world, mut publisher, mut consumer) = world();
    consumer.consume("q");
    let outboxes = || world.broker.admin().memory_uses().outboxes;
    let before = outboxes();
    fill(&mut publisher, "q", &[&"x".repeat(2000)]);
    assert!(outboxes() >= before + 2000, "{before}, then {}", outboxes());
    world.flush();
    assert_eq!(consumer.bodies().len(), 1);
    assert!(outboxes() < before + 2000, "{before}, then {}", outboxes());
}

#[test]
fn consumers_of_higher_priority_and_messages_of_higher_priority_come_first_all_the_same() {
    let (world, mut publisher, mut consumer) =
        world_with(&FieldTable::new().with("x-max-priority", 5));
    let urgent = |body: &str| {
        persistent("q", body).with_properties(|properties| {
            (properties.delivery_mode, properties.priority) = (Some(2), Some(5));
        })
    };
    fill(&mut publisher, "q", &["1", "2"]);
    publisher.send(urgent("3"));
    consumer.consume("q");
    assert_eq!(consumer.heard(), []);
    world.flush();
    assert_eq!(consumer.bodies(), ["3", "1", "2"]);
}

#[test]
fn operators_are_shown_and_given_what_is_committed() {
    let (world, mut publisher, _) = world();
    fill(&mut publisher, "q", &["1"]);
    world.flush();
    fill(&mut publisher, "q", &["2"]);
    let admin = world.broker.admin();
    let peek = || {
        let peeked = admin.peek("/", b"q", 0, 10, 100).expect("a queue");
        peeked.into_iter().flatten().map(|one| one.body.to_vec()).collect::<Vec<_>>()
    };
    let get = |mode| {
        let got = admin.get("/", b"q", 10, mode, 100, 10_000).expect("a queue");
        got.into_iter().map(|one| one.body.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(peek(), [b"1"]);
    assert_eq!(get(GetMode::Requeue { counts: false }), [b"1"]);
    assert_eq!(get(GetMode::Acknowledge), [b"1"]);
    assert_eq!(get(GetMode::Acknowledge), Vec::<Vec<u8>>::new());
    assert_eq!(world.counts("q").0, 1, "it is where it was");
    world.flush();
    assert_eq!(peek(), [b"2"]);
    assert_eq!(get(GetMode::Acknowledge), [b"2"]);
}
