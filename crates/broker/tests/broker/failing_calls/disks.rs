//! Each operation of the disk fails once, while a checkpoint is made and while the broker starts.

use super::scene::{Census, Scene, durable};
use super::{Ending, On, Told};
use crate::support::{Message, declare_with};
use courser_codec::FieldTable;
use courser_journal::testing::{FailsOnce, Faults};
use courser_store::Log;

/// Every operation fails as on a bad sector. Those that write fail as on a full disk, too, those that look as what is
/// forbidden.
const FAULTS: [fn(u64) -> Faults; 4] = [
    |after| Faults { fail_change: Some(FailsOnce { after, os_error: 5 }), ..Faults::default() },
    |after| Faults { fail_change: Some(FailsOnce { after, os_error: 28 }), ..Faults::default() },
    |after| Faults { fail_look: Some(FailsOnce { after, os_error: 5 }), ..Faults::default() },
    |after| Faults { fail_look: Some(FailsOnce { after, os_error: 13 }), ..Faults::default() },
];

/// Something of all that there can be, part of it in a checkpoint and part of it behind.
fn some_of_everything(scene: &mut Scene) {
    scene.client.bind("a", "recent", "");
    let arguments = FieldTable::new().with("x-max-priority", 5);
    let arguments = arguments.with("x-message-deduplication", true);
    declare_with(&mut scene.client, "new", true, &arguments);
    for round in ["1", "2"] {
        let later = FieldTable::new().with("x-delay", 500);
        scene.fill(&[
            durable("both", "", round),
            durable("recent", "", round),
            durable("", "s", round),
            durable("", "dying", round),
            durable("later", "", round).headers(later),
            ranked(1, round),
            ranked(4, round),
        ]);
        scene.world.checkpoint();
    }
    scene.client.get("b").expect("a message");
    scene.client.ack(1);
    scene.fill(&[durable("", "b", "behind"), durable("", "dying", "behind")]);
}

/// It is before those of lower priority, and there once.
fn ranked(priority: u8, round: &str) -> Message {
    let body = format!("{round} of {priority}");
    let headers = FieldTable::new().with("x-deduplication-header", body.as_str());
    let message = durable("", "new", &body).headers(headers);
    message.with_properties(|properties| properties.priority = Some(priority))
}

/// What there is in the end, when what may be there once has come again, and what is remembered has gone to one more queue.
fn found(mut scene: Scene) -> Census {
    scene.connect();
    scene.fill(&[ranked(1, "1"), ranked(4, "1"), ranked(1, "2"), ranked(4, "2")]);
    scene.client.bind("letters", "recent", "");
    scene.end(Ending::Memory)
}

/// Has each operation fail once for `run`, which returns what is wrong with what has come of it.
#[track_caller]
fn each_operation_fails(run: impl Fn(Scene, Faults) -> (bool, Option<String>)) {
    let mut problems = Vec::new();
    for log in [On::Journal, On::Copy] {
        for (kind, faults) in FAULTS.iter().enumerate() {
            for after in 0.. {
                let (has_failed, problem) = run(Scene::new(log, some_of_everything), faults(after));
                let at = format!("on {log:?}, fault {kind} at operation {after}");
                problems.extend(problem.map(|text| format!("{at}: {text}")));
                if !has_failed {
                    break;
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What differs.
fn difference(found: &Census, expected: &Census) -> Option<String> {
    let differs = |(what, is): &(&String, &Vec<String>)| expected.get(*what) != Some(*is);
    let other: Vec<_> = found.iter().filter(differs).collect();
    let missing: Vec<_> = expected.keys().filter(|what| !found.contains_key(*what)).collect();
    (found != expected).then(|| format!("there is {other:?}, not {missing:?}"))
}

/// Makes a checkpoint, goes on, and looks at what is there when the power has gone. Returns whether something failed.
fn checkpoint(mut scene: Scene, faults: Faults, expected: &[Census; 2]) -> (bool, Option<String>) {
    scene.world.disk().set_faults(faults);
    let made = scene.world.try_checkpoint();
    let has_failed = !scene.world.disk().has_fault_left();
    scene.world.disk().set_faults(Faults::default());
    let is_over = scene.world.store().failure().is_some();
    let told = scene.publish(&[durable("", "b", "on")]);
    let again = scene.world.try_checkpoint();
    scene.client.disconnect();
    scene.world.lose_power();
    let found = found(scene);
    let problem = match (told, &again) {
        (Told::Done, Ok(())) if !is_over => difference(&found, &expected[1]),
        (Told::Refused, Err(_)) if is_over && found == expected[0] => None,
        (Told::Refused, Err(_)) if is_over => difference(&found, &expected[1]),
        _ => Some("it does not go on as it says".to_owned()),
    };
    let problem =
        problem.map(|text| format!("{made:?}, over {is_over}, {told:?}, {again:?}: {text}"));
    (has_failed, problem)
}

#[test]
fn a_checkpoint_is_made() {
    let untouched = |goes_on: bool| {
        let mut scene = Scene::new(On::Journal, some_of_everything);
        if goes_on {
            scene.fill(&[durable("", "b", "on")]);
        }
        scene.client.disconnect();
        scene.world.restart();
        found(scene)
    };
    let expected = [untouched(false), untouched(true)];
    each_operation_fails(|scene, faults| checkpoint(scene, faults, &expected));
}

/// Starts the broker again, or once more if that fails. Returns whether something failed.
fn start(
    mut scene: Scene,
    faults: Faults,
    in_order: bool,
    expected: &Census,
) -> (bool, Option<String>) {
    scene.client.disconnect();
    let started = scene.world.restart_with(faults, in_order);
    let has_failed = !scene.world.disk().has_fault_left();
    scene.world.disk().set_faults(Faults::default());
    if let Err(why) = &started {
        if !has_failed || !why.contains(" failed: ") {
            return (has_failed, Some(format!("it does not say what failed: {why}")));
        }
        if let Err(why) = scene.world.try_start() {
            return (has_failed, Some(format!("{started:?}, and another start: {why}")));
        }
    }
    let problem = difference(&found(scene), expected);
    (has_failed, problem.map(|text| format!("{started:?}: {text}")))
}

#[test]
fn the_broker_starts() {
    for in_order in [true, false] {
        let mut untouched = Scene::new(On::Journal, some_of_everything);
        untouched.client.disconnect();
        untouched.world.restart();
        let expected = found(untouched);
        each_operation_fails(|scene, faults| start(scene, faults, in_order, &expected));
    }
}
