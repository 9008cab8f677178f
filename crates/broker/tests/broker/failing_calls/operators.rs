//! What operators do.

use super::scene::{Scene, durable};
use super::trial;
use crate::support::owned;
use courser_broker::admin::{MoveTo, Selection};
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::FieldTable;

/// A policy that leaves room for one message in a.
fn policy() -> Policy {
    Policy {
        name: "short".to_owned(),
        pattern: "^a$".to_owned(),
        apply_to: ApplyTo::Queues,
        priority: 0,
        definition: FieldTable::new().with("max-length", 1),
    }
}

#[test]
fn set_a_policy() {
    trial(
        |_| {},
        |scene| Scene::asked(scene.world.broker.set_policy("/", PolicyKind::User, policy())),
    )
    .every_call_fails_once();
}

#[test]
fn set_a_policy_that_drops_messages() {
    trial(
        |scene| scene.fill(&["1", "2", "3"].map(|body| durable("", "a", body))),
        |scene| Scene::asked(scene.world.broker.set_policy("/", PolicyKind::User, policy())),
    )
    .every_call_fails_once();
}

#[test]
fn clear_a_policy() {
    let prepare = |scene: &mut Scene| {
        scene.world.broker.set_policy("/", PolicyKind::User, policy()).expect("a good policy");
    };
    trial(prepare, |scene| {
        Scene::asked(scene.world.broker.clear_policy("/", PolicyKind::User, "short"))
    })
    .every_call_fails_once();
}

#[test]
fn move_messages() {
    trial(
        |scene| scene.fill(&["1", "2", "3"].map(|body| durable("", "a", body))),
        |scene| {
            let (admin, to) = (scene.world.broker.admin(), MoveTo::Queue(owned("b")));
            let all = Selection::default();
            let moved = admin.relocate("/", b"a", &all, &to, &|_| Some(true), false);
            Scene::asked(moved.map(|moved| assert_eq!(moved.moved, 3)))
        },
    )
    .every_call_fails_once();
}
