//! Parameters of vhosts, and global ones.

use crate::support::{World, WorldOnDisk, lasting};
use courser_broker::admin::{CLUSTER_NAME, EventKind, NewQueue, Parameter};
use std::thread;

fn parameter(vhost: &str, component: &str, name: &str, value: &str) -> Parameter {
    let text = str::to_owned;
    Parameter {
        vhost: text(vhost),
        component: text(component),
        name: text(name),
        value: text(value),
    }
}

fn names(world: &World, vhost: Option<&str>, component: Option<&str>) -> Vec<String> {
    let all = world.broker.admin().parameters(vhost, component).expect("the vhost");
    all.into_iter().map(|one| format!("{}|{}|{}", one.vhost, one.component, one.name)).collect()
}

#[test]
fn parameters_are_listed_by_vhost_component_and_name_and_survive_a_restart() {
    let mut disk = WorldOnDisk::new();
    let admin = disk.broker.admin();
    admin.change_vhost("v", |_| {}).expect("a vhost");
    for (vhost, component, name) in
        [("v", "shovel", "s"), ("/", "shovel", "b"), ("/", "shovel", "a"), ("/", "federation", "z")]
    {
        let new = parameter(vhost, component, name, r#"{"a":1}"#);
        assert!(admin.set_parameter(&new).expect("a parameter"));
    }
    assert!(!admin.set_parameter(&parameter("/", "shovel", "a", "2")).expect("another value"));
    drop(admin);
    for checkpoint in [false, true] {
        if checkpoint {
            disk.restart_from_checkpoint();
        } else {
            disk.restart();
        }
        let all = ["/|federation|z", "/|shovel|a", "/|shovel|b", "v|shovel|s"];
        assert_eq!(names(&disk, None, None), all);
        assert_eq!(names(&disk, Some("/"), Some("shovel")), ["/|shovel|a", "/|shovel|b"]);
        let admin = disk.broker.admin();
        assert_eq!(admin.parameter("/", "shovel", "a").expect("it is there"), "2");
        assert_eq!(admin.parameter("v", "shovel", "s").expect("it is there"), r#"{"a":1}"#);
    }
}

#[test]
fn parameters_are_removed_by_themselves_and_with_their_vhost() {
    let mut disk = WorldOnDisk::new();
    let admin = disk.broker.admin();
    admin.change_vhost("v", |_| {}).expect("a vhost");
    admin.set_parameter(&parameter("v", "c", "one", "1")).expect("a parameter");
    admin.set_parameter(&parameter("v", "c", "two", "2")).expect("a parameter");
    assert!(admin.clear_parameter("v", "c", "one").expect("the vhost is there"));
    assert!(!admin.clear_parameter("v", "c", "one").expect("the vhost is there"));
    assert_eq!(admin.parameter("v", "c", "one").expect_err("it is gone").code, 404);
    admin.delete_vhost("v").expect("it is there");
    admin.change_vhost("v", |_| {}).expect("a vhost");
    drop(admin);
    disk.restart();
    assert!(names(&disk, Some("v"), None).is_empty());
}

#[test]
fn parameters_of_a_vhost_that_is_being_deleted_are_neither_set_nor_removed() {
    let world = WorldOnDisk::new();
    let admin = world.broker.admin();
    admin.change_vhost("v", |_| {}).expect("a vhost");
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("v", "q", queue).expect("a queue");
    let one = parameter("v", "c", "one", "1");
    admin.set_parameter(&one).expect("a parameter");
    let (held, begun, release) = lasting();
    world.store().before_next_append(held);
    let (set, cleared) = thread::scope(|scope| {
        scope.spawn(|| world.broker.admin().delete_vhost("v").expect("it is there"));
        begun.recv().expect("it begins");
        let done = (admin.set_parameter(&one), admin.clear_parameter("v", "c", "one"));
        release.send(()).expect("it is waited for");
        done
    });
    let deleted = "320 CONNECTION_FORCED - vhost 'v' is deleted";
    assert_eq!(set.expect_err("it is deleted").to_string(), deleted);
    assert_eq!(cleared.expect_err("it is deleted").to_string(), deleted);
}

#[test]
fn global_parameters_belong_to_no_vhost_and_survive_a_restart() {
    let mut disk = WorldOnDisk::new();
    let admin = disk.broker.admin();
    assert!(admin.set_global_parameter(CLUSTER_NAME, r#""rabbit@host""#).expect("a parameter"));
    admin.set_global_parameter("x", "{}").expect("a parameter");
    assert!(admin.clear_global_parameter("x").expect("it was there"));
    drop(admin);
    disk.restart();
    let admin = disk.broker.admin();
    assert_eq!(admin.global_parameter(CLUSTER_NAME).as_deref(), Some(r#""rabbit@host""#));
    assert_eq!(admin.global_parameters().len(), 1);
    assert!(names(&disk, None, None).is_empty());
}

#[test]
fn parameters_have_names_values_and_bounds() {
    let world = World::new();
    let admin = world.broker.admin();
    for (component, name, value) in [("", "n", "1"), ("c", "", "1"), ("c", "n", "")] {
        assert_eq!(
            admin.set_parameter(&parameter("/", component, name, value)).expect_err("none").code,
            406
        );
    }
    let large = "x".repeat(64 << 10);
    assert!(admin.set_global_parameter("n", &format!("{large}x")).is_err());
    for nth in 0..256 {
        admin.set_global_parameter(&nth.to_string(), &large).expect("there is room");
    }
    let refused = admin.set_global_parameter("more", "1").expect_err("there is none");
    let text = "406 PRECONDITION_FAILED - limit (16777216 bytes of parameters) reached";
    assert_eq!(refused.to_string(), text);
    admin.set_global_parameter("0", "1").expect("less than before");
    admin.set_global_parameter("more", "1").expect("there is room again");
    assert_eq!(admin.set_parameter(&parameter("nope", "c", "n", "1")).expect_err("none").code, 404);
}

#[test]
fn those_who_follow_hear_of_parameters() {
    let world = World::new();
    let admin = world.broker.admin();
    let mut follower = admin.follow();
    admin.set_parameter(&parameter("/", "shovel", "s", "1")).expect("a parameter");
    admin.clear_parameter("/", "shovel", "s").expect("it is there");
    let events = follower.take(usize::MAX).events;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::ParameterSet, EventKind::ParameterCleared]);
    assert_eq!(events[0].details, [("component", "shovel".to_owned())]);
}

#[test]
fn what_the_program_remembers_needs_no_room_that_others_leave() {
    let world = World::new();
    let admin = world.broker.admin();
    let large = "x".repeat(64 << 10);
    for nth in 0..256 {
        admin.set_global_parameter(&nth.to_string(), &large).expect("there is room");
    }
    assert!(admin.set_own_parameter("mine", "1").expect("there is always room"));
    assert!(!admin.set_own_parameter("mine", "22").expect("also for more"));
    assert_eq!(admin.global_parameter("mine").as_deref(), Some("22"));
    assert!(admin.set_own_parameter("mine", &format!("{large}x")).is_err());
    assert!(admin.set_global_parameter("more", "1").is_err());
}
