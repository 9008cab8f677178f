//! What an operator says of a vhost.

use crate::support::{Client, World, WorldOnDisk, declare_with, short};
use courser_broker::VhostLimits;
use courser_broker::admin::VhostView;
use courser_codec::{FieldTable, queue};

fn view(world: &World, name: &str) -> VhostView {
    world.broker.admin().vhost(name).expect("the vhost")
}

fn type_of(world: &World, queue: &str) -> &'static str {
    world.broker.admin().queue("/", queue.as_bytes()).expect("the queue").queue_type
}

fn default_type(world: &World, name: &str) {
    let admin = world.broker.admin();
    let changed = admin.change_vhost("/", |vhost| vhost.default_queue_type = Some(name.into()));
    assert!(!changed.expect("a known type"));
}

fn declare_durable(client: &mut Client, name: &str) {
    declare_with(client, name, true, &FieldTable::new());
}

#[test]
fn what_is_said_of_a_vhost_survives_a_restart_and_a_checkpoint() {
    let mut disk = WorldOnDisk::new();
    let said = disk.broker.admin().change_vhost("v", |vhost| {
        vhost.limits = VhostLimits { connections_max: Some(5), queues_max: None };
        vhost.description = "orders".into();
        vhost.tags = vec!["eu".into(), String::new(), "production".into()];
        vhost.default_queue_type = Some("quorum".into());
        vhost.protected = true;
        vhost.tracing = true;
    });
    assert!(said.expect("a new vhost"));
    let before = view(&disk, "v");
    assert_eq!((before.description.as_str(), before.tags.len()), ("orders", 3));
    assert_eq!(before.default_queue_type.as_deref(), Some("quorum"));
    assert!(before.protected && before.tracing);
    disk.restart();
    assert_eq!(view(&disk, "v"), before);
    assert!(disk.broker.vhost("v").expect("the vhost").is_traced());
    disk.restart_from_checkpoint();
    assert_eq!(view(&disk, "v"), before);
}

#[test]
fn an_empty_type_is_that_of_the_vhost() {
    let world = World::new();
    default_type(&world, "quorum");
    let empty = FieldTable::new().with("x-queue-type", "");
    declare_with(&mut world.connect(), "q", true, &empty);
    assert_eq!(type_of(&world, "q"), "quorum");
}

#[test]
fn other_limits_leave_the_rest_as_it_is() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.change_vhost("v", |vhost| vhost.description = "kept".into()).expect("a vhost");
    let limits = VhostLimits { connections_max: None, queues_max: Some(1) };
    assert!(!admin.change_vhost("v", |vhost| vhost.limits = limits).expect("it is there"));
    let shown = view(&world, "v");
    assert_eq!((shown.description.as_str(), shown.limits), ("kept", limits));
}

#[test]
fn nothing_is_made_for_what_cant_be_meant() {
    let world = World::new();
    let admin = world.broker.admin();
    let nonsense =
        admin.change_vhost("v", |vhost| vhost.default_queue_type = Some("nosuch".into()));
    let nonsense = nonsense.expect_err("refused").to_string();
    assert_eq!(nonsense, "406 PRECONDITION_FAILED - nosuch is not a valid queue type");
    assert!(admin.change_vhost("v", |vhost| vhost.description = "x".repeat(4097)).is_err());
    assert!(admin.change_vhost("v", |vhost| vhost.tags = vec!["x".into(); 33]).is_err());
    assert!(admin.change_vhost("v", |vhost| vhost.tags = vec!["x".repeat(256)]).is_err());
    assert!(admin.vhost("v").is_none());
}

#[test]
fn a_protected_vhost_is_not_deleted() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.change_vhost("v", |vhost| vhost.protected = true).expect("a vhost");
    assert_eq!(
        admin.delete_vhost("v").expect_err("refused").to_string(),
        "406 PRECONDITION_FAILED - Refusing to delete virtual host 'v' because it is protected from \
         deletion"
    );
    admin.change_vhost("v", |vhost| vhost.protected = false).expect("a vhost");
    admin.delete_vhost("v").expect("it may go");
}

#[test]
fn queues_declared_without_a_type_are_of_the_default_type_of_their_vhost() {
    let world = World::new();
    let mut client = world.connect();
    default_type(&world, "quorum");
    declare_durable(&mut client, "q");
    assert_eq!(type_of(&world, "q"), "quorum");
    // Said or not, it is the same queue.
    declare_durable(&mut client, "q");
    declare_with(&mut client, "q", true, &FieldTable::new().with("x-queue-type", "quorum"));
    declare_with(&mut client, "c", true, &FieldTable::new().with("x-queue-type", "classic"));
    assert_eq!(type_of(&world, "c"), "classic");
    default_type(&world, "stream");
    declare_durable(&mut client, "s");
    assert_eq!(type_of(&world, "s"), "stream");
}

#[test]
fn queues_that_cant_be_of_the_default_type_are_classic() {
    let world = World::new();
    let mut client = world.connect();
    default_type(&world, "quorum");
    client.declare("transient");
    let declare = |name, exclusive, auto_delete| queue::Declare {
        queue: short(name),
        durable: true,
        exclusive,
        auto_delete,
        ..Default::default()
    };
    client.call(declare("exclusive", true, false));
    client.call(declare("auto-delete", false, true));
    for name in ["transient", "exclusive", "auto-delete"] {
        assert_eq!(type_of(&world, name), "classic", "{name}");
    }
}

#[test]
fn a_queue_that_is_there_keeps_its_type_when_the_default_changes() {
    let world = World::new();
    let mut client = world.connect();
    declare_durable(&mut client, "q");
    default_type(&world, "quorum");
    declare_durable(&mut client, "q");
    assert_eq!(type_of(&world, "q"), "classic");
}
