//! What comes back from clients.

use super::clients::{consuming, three_in_a};
use super::scene::{Scene, durable};
use super::{Told, letters_come_late, trial};
use courser_codec::{FieldTable, basic};

/// Nothing fails any more: what has come back is delivered again, and acknowledged.
fn acknowledge_all(scene: &mut Scene, told: Told) -> Told {
    scene.world.store().heal();
    if told == Told::Refused {
        return told;
    }
    scene.pass(1000);
    scene.tell(basic::Ack { delivery_tag: 0, multiple: true })
}

/// A queue from which a message goes to another one that has come back more often than this.
fn with_limit(scene: &mut Scene, limit: i64) {
    let arguments = FieldTable::new().with("x-delivery-limit", limit);
    let arguments = arguments.with("x-dead-letter-exchange", "");
    scene.declare_new(arguments.with("x-dead-letter-routing-key", "letters"));
    scene.fill(&["1", "2", "3"].map(|body| durable("", "new", body)));
    scene.client.consume("new");
    assert_eq!(scene.client.bodies(), ["1", "2", "3"]);
}

#[test]
fn requeue() {
    let prepare = |scene: &mut Scene| {
        three_in_a(scene);
        consuming(scene, "a");
    };
    trial(prepare, |scene| {
        let told = scene.tell(basic::Nack { delivery_tag: 2, multiple: true, requeue: true });
        acknowledge_all(scene, told)
    })
    .every_call_fails_once();
}

#[test]
fn recover() {
    let prepare = |scene: &mut Scene| {
        three_in_a(scene);
        consuming(scene, "a");
    };
    trial(prepare, |scene| {
        let told = scene.call(basic::Recover { requeue: true });
        acknowledge_all(scene, told)
    })
    .every_call_fails_once();
}

#[test]
fn fail_on_what_may_come_back_once() {
    trial(
        |scene| with_limit(scene, 1),
        |scene| {
            match scene.tell(basic::Reject { delivery_tag: 1, requeue: true }) {
                Told::Refused => Told::Refused,
                // The second time is one too many.
                _ => scene.tell(basic::Reject { delivery_tag: 4, requeue: true }),
            }
        },
    )
    .excusing(letters_come_late)
    .every_call_fails_once();
}

#[test]
fn close_a_channel() {
    trial(
        |scene| with_limit(scene, 0),
        |scene| {
            scene.client.close_channel(1);
            scene.world.store().heal();
            scene.publish(&[durable("", "b", "closed")])
        },
    )
    .excusing(letters_come_late)
    .every_call_fails_once();
}

#[test]
fn give_back_what_waits_for_its_next_try() {
    let prepare = |scene: &mut Scene| {
        let arguments = FieldTable::new().with("x-queue-type", "quorum");
        let arguments = arguments.with("x-delayed-retry-type", "all");
        let arguments = arguments.with("x-delayed-retry-min", 400);
        scene.declare_new(arguments.with("x-delayed-retry-max", 400));
        scene.fill(&["1", "2"].map(|body| durable("", "new", body)));
        scene.client.consume("new");
        assert_eq!(scene.client.bodies(), ["1", "2"]);
    };
    trial(prepare, |scene| {
        let told = scene.tell(basic::Reject { delivery_tag: 1, requeue: true });
        // While a call fails, its time comes.
        scene.pass(500);
        acknowledge_all(scene, told)
    })
    .every_call_fails_once();
}
