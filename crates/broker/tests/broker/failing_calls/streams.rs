//! Streams: what is kept of them, and what their readers get.

use super::scene::{Scene, durable};
use super::{Fault, Told, trial};
use crate::streams::read;
use crate::support::Message;
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::{FieldTable, basic};

/// What the stream's limit leaves room for some of.
fn large(number: usize) -> Message {
    durable("", "s", &format!("{number:0>300}"))
}

fn limit(definition: FieldTable) -> Policy {
    let (name, pattern) = ("limit".to_owned(), "^s$".to_owned());
    Policy { name, pattern, apply_to: ApplyTo::All, priority: 0, definition }
}

#[test]
fn publish_to_a_stream() {
    trial(|_| {}, |scene| scene.publish(&[durable("", "s", "1")])).every_call_fails_once();
}

#[test]
fn publish_more_than_a_stream_may_have() {
    let prepare = |scene: &mut Scene| {
        let limit = limit(FieldTable::new().with("max-length-bytes", 2000));
        scene.world.broker.set_policy("/", PolicyKind::User, limit).expect("a good policy");
        (0..10).for_each(|number| scene.fill(&[large(number)]));
    };
    trial(prepare, |scene| scene.publish(&[large(10)])).every_call_fails_once();
}

#[test]
fn what_is_too_old_for_a_stream_leaves_it() {
    let prepare = |scene: &mut Scene| {
        let limit = limit(FieldTable::new().with("max-age", "1s"));
        scene.world.broker.set_policy("/", PolicyKind::User, limit).expect("a good policy");
        scene.fill(&[durable("", "s", "1")]);
        scene.pass(400);
        scene.fill(&[durable("", "s", "2")]);
    };
    // All is too old in the end.
    trial(prepare, |scene| {
        (0..3).for_each(|_| scene.pass(1000));
        scene.world.store().heal();
        scene.publish(&[durable("", "b", "passed")])
    })
    .every_call_fails_once();
}

#[test]
fn read_a_stream() {
    let prepare = |scene: &mut Scene| {
        scene.fill(&["1", "2", "3"].map(|body| durable("", "s", body)));
        scene.client.qos(2);
    };
    // What was read is kept, to be looked at.
    trial(prepare, |scene| {
        read(&mut scene.client, "s", "first");
        let mut bodies = scene.client.bodies();
        scene.pass(500);
        scene.world.store().heal();
        for _ in 0..3 {
            scene.pass(1000);
            bodies.extend(scene.client.bodies());
            scene.tell(basic::Ack { delivery_tag: 0, multiple: true });
        }
        bodies.extend(scene.client.bodies());
        if !scene.is_connected() {
            return Told::Refused;
        }
        scene.publish(&[durable("", "b", &bodies.join(" "))])
    })
    // Nothing goes on then.
    .not_with(Fault::Failed)
    .every_call_fails_once();
}
