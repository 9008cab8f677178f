//! What clients do.

use super::scene::{Census, Scene, durable, messages_of, transient};
use super::{Ending, Fault, Told, letters_come_late, trial};
use crate::support::{Message, short};
use courser_codec::{FieldTable, Table, basic, exchange, queue};

pub fn three_in_a(scene: &mut Scene) {
    scene.fill(&["1", "2", "3"].map(|body| durable("", "a", body)));
}

pub fn three_dying(scene: &mut Scene) {
    scene.fill(&["1", "2", "3"].map(|body| durable("", "dying", body)));
}

/// The client has them all.
pub fn consuming(scene: &mut Scene, queue: &str) {
    scene.client.consume(queue);
    assert_eq!(scene.client.bodies(), ["1", "2", "3"]);
}

fn once(body: &str) -> Message {
    durable("", "once", body).headers(FieldTable::new().with("x-deduplication-header", "id"))
}

#[test]
fn publish_to_several_queues() {
    trial(|_| {}, |scene| scene.publish(&[durable("both", "", "1")])).every_call_fails_once();
}

#[test]
fn publish_what_need_not_survive() {
    trial(|_| {}, |scene| scene.publish(&[transient("both", "", "1")]))
        .not_after(Ending::Restart)
        .not_after(Ending::Checkpoint)
        .every_call_fails_once();
}

#[test]
fn publish_what_need_not_survive_to_a_consumer_and_to_another_queue() {
    let consume = |scene: &mut Scene| {
        let consume = basic::Consume { queue: short("a"), no_ack: true, ..Default::default() };
        scene.client.call(consume);
    };
    trial(consume, |scene| scene.publish(&[transient("both", "", "1")]))
        .not_after(Ending::Restart)
        .not_after(Ending::Checkpoint)
        .every_call_fails_once();
}

#[test]
fn publish_to_a_consumer() {
    trial(|scene| drop(scene.client.consume("a")), |scene| scene.publish(&[durable("", "a", "1")]))
        .every_call_fails_once();
}

#[test]
fn publish_to_be_delayed() {
    let later = |scene: &mut Scene| {
        let headers = FieldTable::new().with("x-delay", 500);
        scene.publish(&[durable("later", "", "1").headers(headers)])
    };
    trial(|_| {}, later).every_call_fails_once();
}

#[test]
fn publish_to_be_remembered() {
    trial(
        |scene| scene.client.bind("a", "recent", ""),
        |scene| scene.publish(&[durable("recent", "", "1")]),
    )
    .every_call_fails_once();
}

#[test]
fn publish_what_is_taken_once() {
    trial(|_| {}, |scene| scene.publish(&[once("1")])).every_call_fails_once();
}

#[test]
fn publish_again_what_is_taken_once() {
    let twice = |scene: &mut Scene| match scene.publish(&[once("1")]) {
        Told::Refused => {
            scene.world.store().heal();
            scene.connect();
            scene.publish(&[once("1")])
        }
        told => told,
    };
    trial(|_| {}, twice).every_call_fails_once();
}

#[test]
fn publish_more_than_there_may_be() {
    trial(
        |scene| scene.fill(&["1", "2"].map(|body| durable("", "limited", body))),
        |scene| scene.publish(&[durable("", "limited", "3")]),
    )
    .every_call_fails_once();
}

#[test]
fn publish_what_an_exchange_has_no_way_for() {
    let prepare = |scene: &mut Scene| {
        let arguments = FieldTable::new().with("alternate-exchange", "both").to_entries();
        let (exchange, kind) = (short("new"), short("direct"));
        let arguments = Table::from_entries(&arguments);
        let declare =
            exchange::Declare { exchange, kind, arguments, durable: true, ..Default::default() };
        scene.client.call(declare);
    };
    trial(prepare, |scene| scene.publish(&[durable("new", "", "1")])).every_call_fails_once();
}

#[test]
fn publish_before_what_is_there() {
    fn ranked(priority: u8, body: &str) -> Message {
        let message = durable("", "new", body);
        message.with_properties(|properties| properties.priority = Some(priority))
    }
    let prepare = |scene: &mut Scene| {
        scene.declare_new(FieldTable::new().with("x-max-priority", 5));
        scene.fill(&[ranked(1, "1"), ranked(1, "2")]);
    };
    trial(prepare, |scene| scene.publish(&[ranked(4, "first")])).every_call_fails_once();
}

/// The queue takes no message as long as there is one of the same.
fn present_once(scene: &mut Scene) {
    scene.declare_new(FieldTable::new().with("x-message-deduplication", true));
}

fn one_of_the_same(body: &str) -> Message {
    durable("", "new", body).headers(FieldTable::new().with("x-deduplication-header", "id"))
}

#[test]
fn publish_again_what_is_there() {
    let twice = |scene: &mut Scene| {
        scene.publish(&[one_of_the_same("1")]);
        scene.world.store().heal();
        scene.connect();
        scene.publish(&[one_of_the_same("1")])
    };
    trial(present_once, twice).every_call_fails_once();
}

#[test]
fn acknowledge_what_another_of_the_same_may_follow() {
    let prepare = |scene: &mut Scene| {
        present_once(scene);
        scene.fill(&[one_of_the_same("1")]);
        scene.client.get("new").expect("a message");
    };
    let follow = |scene: &mut Scene| {
        scene.tell(basic::Ack { delivery_tag: 1, multiple: false });
        scene.world.store().heal();
        scene.connect();
        scene.publish(&[one_of_the_same("2")])
    };
    // Of what the store does not hear any more nothing follows.
    trial(prepare, follow).not_with(Fault::Failed).every_call_fails_once();
}

#[test]
fn acknowledge() {
    let prepare = |scene: &mut Scene| {
        three_in_a(scene);
        scene.client.get("a").expect("a message");
    };
    trial(prepare, |scene| scene.tell(basic::Ack { delivery_tag: 1, multiple: false }))
        .every_call_fails_once();
}

#[test]
fn acknowledge_what_makes_room_for_more() {
    let prepare = |scene: &mut Scene| {
        three_in_a(scene);
        scene.client.qos(1);
        scene.client.consume("a");
        assert_eq!(scene.client.bodies(), ["1"]);
    };
    trial(prepare, |scene| scene.tell(basic::Ack { delivery_tag: 1, multiple: false }))
        .every_call_fails_once();
}

#[test]
fn reject_for_the_dead_letter_exchange() {
    let prepare = |scene: &mut Scene| {
        three_dying(scene);
        consuming(scene, "dying");
    };
    trial(prepare, |scene| {
        scene.tell(basic::Nack { delivery_tag: 2, multiple: true, requeue: false })
    })
    .excusing(letters_come_late)
    .every_call_fails_once();
}

#[test]
fn get_without_acknowledgement() {
    // A message that was sent comes again when its end can't be kept.
    trial(three_in_a, |scene| {
        let get = basic::Get { queue: short("a"), no_ack: true };
        scene.call(get)
    })
    .may_be_told_early(Fault::Failed)
    .every_call_fails_once();
}

#[test]
fn purge() {
    trial(three_in_a, |scene| scene.call(queue::Purge { queue: short("a"), ..Default::default() }))
        .every_call_fails_once();
}

#[test]
fn delete_a_queue() {
    trial(three_in_a, |scene| {
        scene.call(queue::Delete { queue: short("a"), ..Default::default() })
    })
    .every_call_fails_once();
}

#[test]
fn delete_an_exchange() {
    trial(
        |_| {},
        |scene| scene.call(exchange::Delete { exchange: short("both"), ..Default::default() }),
    )
    .every_call_fails_once();
}

#[test]
fn delete_an_exchange_with_what_it_delays() {
    let prepare = |scene: &mut Scene| {
        let headers = FieldTable::new().with("x-delay", 500);
        scene.fill(&[durable("later", "", "1").headers(headers)]);
    };
    trial(prepare, |scene| {
        scene.call(exchange::Delete { exchange: short("later"), ..Default::default() })
    })
    .every_call_fails_once();
}

#[test]
fn declare_a_queue() {
    trial(
        |_| {},
        |scene| {
            let queue = short("new");
            scene.call(queue::Declare { queue, durable: true, ..Default::default() })
        },
    )
    .every_call_fails_once();
}

#[test]
fn declare_an_exchange() {
    trial(
        |_| {},
        |scene| {
            let (exchange, kind) = (short("new"), short("x-recent-history"));
            scene.call(exchange::Declare { exchange, kind, durable: true, ..Default::default() })
        },
    )
    .every_call_fails_once();
}

#[test]
fn bind() {
    trial(
        |_| {},
        |scene| {
            let (queue, exchange) = (short("letters"), short("both"));
            scene.call(queue::Bind { queue, exchange, ..Default::default() })
        },
    )
    .every_call_fails_once();
}

#[test]
fn unbind() {
    trial(
        |_| {},
        |scene| {
            let (queue, exchange) = (short("a"), short("both"));
            scene.call(queue::Unbind { queue, exchange, ..Default::default() })
        },
    )
    .every_call_fails_once();
}

#[test]
fn bind_to_a_history() {
    // A store that fails has the binding, as it was not told that it is to go: what was remembered need not have been sent.
    let excuse = |_: Ending, fault: Fault, census: &mut Census| {
        let sent = census.entry(messages_of("b")).or_default();
        if fault == Fault::Failed
            && ["1", "2"].starts_with(&sent.iter().map(String::as_str).collect::<Vec<_>>())
        {
            sent.clear();
        }
    };
    trial(
        |scene| scene.fill(&["1", "2"].map(|body| durable("recent", "", body))),
        |scene| {
            let (queue, exchange) = (short("b"), short("recent"));
            scene.call(queue::Bind { queue, exchange, ..Default::default() })
        },
    )
    .excusing(excuse)
    .every_call_fails_once();
}
