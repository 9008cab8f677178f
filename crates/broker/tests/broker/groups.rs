//! The groups of a cluster: which broker has a vhost, and which refuses it.

use crate::support::{World, WorldOnDisk, short};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::{Admin, ExchangeKind, ExchangeSettings, NewQueue, PolicyKind};
use courser_broker::{ApplyTo, Policy};
use courser_codec::{FieldTable, queue};
use courser_store::Record;

fn put(admin: &Admin, name: &str, group: u16) {
    assert!(admin.change_vhost(name, |vhost| vhost.group = group).expect("a vhost"));
}

fn move_to(admin: &Admin, name: &str, group: u16) {
    let vhost = admin.vhost_handle(name).expect("it is there");
    admin.set_vhost_group(&vhost, group).expect("moved");
}

fn group_of(admin: &Admin, name: &str) -> u16 {
    admin.vhost(name).expect("the vhost").group
}

fn add_user(admin: &Admin, name: &str) {
    let password = PasswordHash::quick(b"secret").expect("a hash");
    admin.create_user(User::new(name, password)).expect("a user");
}

fn policy(name: &str) -> Policy {
    Policy {
        name: name.to_owned(),
        pattern: String::from(".*"),
        apply_to: ApplyTo::All,
        priority: 0,
        definition: FieldTable::new().with("max-length", 1),
    }
}

#[test]
fn a_vhost_is_in_the_group_that_was_said_when_it_was_made() {
    for from_checkpoint in [false, true] {
        let mut disk = WorldOnDisk::new();
        let admin = disk.broker.admin();
        put(&admin, "v", 2);
        let said = admin.change_vhost("v", |vhost| vhost.description = "orders".into());
        assert!(!said.expect("it is there"));
        let refused = admin.change_vhost("v", |vhost| vhost.group = 1).expect_err("elsewhere");
        assert_eq!(
            refused.explanation,
            "vhost 'v' is in group 2, and stays there until it is moved: 'courser ctl cluster move' \
             does that"
        );
        drop(admin);
        if from_checkpoint {
            disk.restart_from_checkpoint()
        } else {
            disk.restart()
        }
        let view = disk.broker.admin().vhost("v").expect("the vhost");
        assert_eq!((view.group, view.description.as_str()), (2, "orders"));
        move_to(&disk.broker.admin(), "v", 0);
        disk.restart();
        assert_eq!(group_of(&disk.broker.admin(), "v"), 0);
        disk.connect_to(disk.broker.vhost("v").expect("the vhost")).disconnect();
    }
}

#[test]
fn what_was_written_before_there_were_groups_is_in_group_0() {
    // As every version before has written it: limits, flags, type, description.
    let mut value = Vec::new();
    value.extend_from_slice(&u64::MAX.to_le_bytes());
    value.extend_from_slice(&7_u64.to_le_bytes());
    value.push(2);
    value.extend_from_slice(&[0, 0, 1, 0, b'd']);
    let disk = WorldOnDisk::of(&[Record::Defined { key: b"v\x01\x00w", value: &value }]);
    let view = disk.broker.admin().vhost("w").expect("the vhost");
    assert_eq!((view.group, view.description.as_str(), view.protected), (0, "d", true));
    assert_eq!(view.limits.queues_max, Some(7));
}

#[test]
fn a_new_vhost_is_put_where_the_fewest_are() {
    let admin = World::new().broker.admin();
    // '/' is in group 0.
    for (name, group) in [("a", 1), ("b", 2), ("c", 0), ("d", 1)] {
        assert!(admin.place_vhost(name, &[0, 1, 2], None, |_| ()).expect("a vhost"));
        assert_eq!(group_of(&admin, name), group, "{name}");
    }
    assert!(admin.place_vhost("e", &[0, 1, 2], None, |vhost| vhost.group = 0).expect("a vhost"));
    assert_eq!((group_of(&admin, "e"), admin.group_with_fewest_vhosts(&[0, 1, 2])), (0, 2));
    assert!(!admin.place_vhost("a", &[0, 1, 2], None, |_| ()).expect("it is there"));
    assert_eq!(group_of(&admin, "a"), 1);
    assert!(admin.change_vhost("f", |_| ()).expect("a vhost"));
    assert_eq!((group_of(&admin, "f"), admin.group_with_fewest_vhosts(&[0])), (0, 0));
}

#[test]
fn no_client_enters_a_vhost_of_another_group() {
    let world = World::new();
    let admin = world.broker.admin();
    put(&admin, "v", 1);
    add_user(&admin, "u");
    admin.set_permission("u", "v", Permission::all()).expect("kept for its group");
    let Err(refused) = world.broker.admit("u", "v") else { panic!("it is not served here") };
    assert_eq!(
        refused.to_string(),
        "320 CONNECTION_FORCED - vhost 'v' is in another group of the cluster now; try again"
    );
    // Home has let a client pass that comes to another group.
    let other = World::of_group(1);
    let Err(refused) = other.broker.admit("u", "v") else { panic!("it is not there") };
    assert_eq!(refused.code, 320);
    assert_eq!(admin.vhost("v").expect("the vhost").connections, 0);
}

#[test]
fn nothing_is_made_or_shown_in_a_vhost_of_another_group() {
    let world = World::new();
    let admin = world.broker.admin();
    put(&admin, "v", 1);
    let reason = "vhost 'v' is not served by this broker, which is that of group 0: it is in group 1 \
                  of the cluster";
    let declared = admin.declare_queue("v", "q", NewQueue::default());
    assert_eq!(declared.expect_err("not here").explanation, reason);
    let fanout = ExchangeSettings {
        kind: ExchangeKind::Fanout,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: FieldTable::new(),
    };
    let declared = admin.declare_exchange("v", "x", &fanout);
    assert_eq!(declared.expect_err("not here").explanation, reason);
    let set = admin.set_policy("v", PolicyKind::User, policy("p"));
    assert_eq!(set.expect_err("not here").to_string(), reason);
    assert!(admin.queues(Some("v")).is_err());
    let vhosts: Vec<String> = admin
        .exchanges(None)
        .expect("all that are here")
        .iter()
        .map(|exchange| exchange.vhost)
        .collect();
    assert!(vhosts.iter().all(|vhost| vhost == "/"), "{vhosts:?}");
    admin.delete_vhost("v").expect("said of it at home");
    assert!(admin.vhost("v").is_none());
}

#[test]
fn another_group_than_0_has_nothing_of_its_own_and_changes_nothing() {
    let world = World::of_group(3);
    let admin = world.broker.admin();
    assert!(admin.vhosts().is_empty());
    let refused = admin.change_vhost("/", |_| {}).expect_err("not here").explanation;
    assert_eq!(
        refused,
        "a vhost can't be changed at the broker of group 3, which follows that of group 0: change \
         it there"
    );
    let password = PasswordHash::quick(b"secret").expect("a hash");
    let refused = admin.create_user(User::new("u", password)).expect_err("not here").to_string();
    assert!(refused.starts_with("a user or permission can't be changed"), "{refused}");
    assert!(admin.set_global_parameter("p", "1").is_err());
    assert!(admin.clear_global_parameter("p").is_err());
    assert!(admin.delete_vhost("/").is_err());
}

#[test]
fn a_policy_of_the_configuration_holds_once_its_vhost_is_here() {
    let world = World::new();
    let admin = world.broker.admin();
    put(&admin, "v", 1);
    let configured = vec![(String::from("v"), PolicyKind::User, policy("p"))];
    world.broker.configure_policies(configured).expect("good policies");
    move_to(&admin, "v", 0);
    assert_eq!(admin.policies("v", PolicyKind::User).expect("it is here").len(), 1);
    let mut client = world.connect_to(world.broker.vhost("v").expect("the vhost"));
    let declare = queue::Declare { queue: short("q"), ..Default::default() };
    client.call(declare);
    client.publish("", "q", "dropped");
    client.publish("", "q", "kept");
    assert_eq!(client.pop_all("q"), ["kept"]);
    move_to(&admin, "v", 1);
    assert!(admin.policies("v", PolicyKind::User).is_err());
}
