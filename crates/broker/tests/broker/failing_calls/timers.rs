//! What happens when its time has come. All of it is tried again, so that in the end it is done.

use super::scene::{Scene, durable};
use super::{Told, letters_come_late, trial};
use courser_codec::FieldTable;

/// What the first second brings, while a call fails.
fn a_second_passes(scene: &mut Scene) -> Told {
    scene.pass(1000);
    // So that it does something: what was there before is not there any more.
    scene.world.store().heal();
    scene.publish(&[durable("", "b", "passed")])
}

#[test]
fn delayed_messages_go() {
    let prepare = |scene: &mut Scene| {
        let headers = FieldTable::new().with("x-delay", 500);
        scene.fill(&[durable("later", "", "1").headers(headers)]);
    };
    trial(prepare, a_second_passes).every_call_fails_once();
}

#[test]
fn messages_expire() {
    let prepare = |scene: &mut Scene| {
        scene.fill(&["1", "2"].map(|body| durable("", "short-lived", body)));
    };
    trial(prepare, a_second_passes).excusing(letters_come_late).every_call_fails_once();
}

#[test]
fn queues_expire() {
    let prepare = |scene: &mut Scene| {
        let arguments = FieldTable::new().with("x-expires", 500);
        scene.declare_new(arguments);
        scene.client.bind("new", "both", "");
        scene.fill(&[durable("", "new", "1")]);
    };
    trial(prepare, a_second_passes).every_call_fails_once();
}
