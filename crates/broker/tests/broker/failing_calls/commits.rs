//! Transactions: whole or not at all, whatever fails.

use super::clients::{consuming, three_dying, three_in_a};
use super::scene::{Scene, durable, transient};
use super::{Ending, letters_come_late, trial};
use courser_codec::{FieldTable, basic, tx};

#[test]
fn commit_publishes_and_acknowledgements() {
    let prepare = |scene: &mut Scene| {
        three_in_a(scene);
        scene.fill(&["1", "2"].map(|body| durable("", "once", body)));
        scene.client.tx_select();
        for queue in ["once", "a"] {
            let delivery_tag = scene.client.get(queue).expect("a message").tag;
            // The next leader is told of this one with the settlement.
            scene.client.get(queue).expect("another one");
            scene.client.tell(basic::Ack { delivery_tag, multiple: false });
        }
        scene.client.send(durable("", "b", "committed"));
        scene.client.send(durable("both", "", "too"));
    };
    trial(prepare, |scene| scene.call(tx::Commit {})).every_call_fails_once();
}

#[test]
fn commit_to_exchanges_that_keep() {
    let prepare = |scene: &mut Scene| {
        scene.client.bind("b", "recent", "");
        scene.client.tx_select();
        let headers = FieldTable::new().with("x-delay", 500);
        scene.client.send(durable("later", "", "delayed").headers(headers));
        scene.client.send(durable("recent", "", "remembered"));
    };
    trial(prepare, |scene| scene.call(tx::Commit {})).every_call_fails_once();
}

#[test]
fn commit_to_a_queue_that_drops() {
    let prepare = |scene: &mut Scene| {
        scene.fill(&["1", "2"].map(|body| durable("", "limited", body)));
        scene.client.tx_select();
        scene.client.send(durable("", "limited", "3"));
        scene.client.send(durable("", "b", "too"));
    };
    trial(prepare, |scene| scene.call(tx::Commit {}))
        .excusing(letters_come_late)
        .every_call_fails_once();
}

#[test]
fn commit_rejects_and_requeues() {
    let prepare = |scene: &mut Scene| {
        three_dying(scene);
        consuming(scene, "dying");
        scene.client.tx_select();
        scene.client.tell(basic::Nack { delivery_tag: 1, multiple: false, requeue: false });
        scene.client.tell(basic::Nack { delivery_tag: 2, multiple: false, requeue: true });
        scene.client.tell(basic::Ack { delivery_tag: 3, multiple: false });
        scene.client.send(durable("", "b", "committed"));
    };
    trial(prepare, |scene| scene.call(tx::Commit {}))
        .excusing(letters_come_late)
        .every_call_fails_once();
}

#[test]
fn commit_what_makes_room_for_more() {
    let prepare = |scene: &mut Scene| {
        three_in_a(scene);
        scene.client.tx_select();
        scene.client.qos(1);
        scene.client.consume("a");
        let delivery_tag = scene.client.deliveries()[0].tag;
        scene.client.tell(basic::Ack { delivery_tag, multiple: false });
        scene.client.send(durable("", "b", "committed"));
    };
    trial(prepare, |scene| scene.call(tx::Commit {})).every_call_fails_once();
}

#[test]
fn commit_one_message_that_need_not_survive() {
    let prepare = |scene: &mut Scene| {
        three_dying(scene);
        scene.client.tx_select();
        scene.client.get("dying").expect("a message");
        scene.client.tell(basic::Nack { delivery_tag: 1, multiple: false, requeue: false });
        scene.client.send(transient("", "b", "committed"));
    };
    trial(prepare, |scene| scene.call(tx::Commit {}))
        .not_after(Ending::Restart)
        .not_after(Ending::Checkpoint)
        .excusing(letters_come_late)
        .every_call_fails_once();
}
