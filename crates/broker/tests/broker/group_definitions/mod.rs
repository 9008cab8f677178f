//! What a group of a cluster takes over from the accounts, global parameters and vhosts of group 0.

mod changes;
mod histories;
mod recovered;
mod restricted;

use crate::support::{Heard, World, WorldOnDisk, declare_with, short};
use courser_auth::{PasswordHash, Permission, Record, User};
use courser_broker::admin::{Admin, GlobalParameter, GroupDefinitions, VhostView};
use courser_codec::{FieldTable, queue};
use courser_store::Lsn;

fn user(name: &str, password: &str) -> User {
    User::new(name, PasswordHash::quick(password.as_bytes()).expect("a hash"))
}

fn put(admin: &Admin, name: &str, group: u16) {
    assert!(admin.change_vhost(name, |vhost| vhost.group = group).expect("a vhost"));
}

fn move_to(admin: &Admin, name: &str, group: u16) {
    let vhost = admin.vhost_handle(name).expect("it is there");
    admin.set_vhost_group(&vhost, group).expect("moved");
}

/// As all of it goes from one node to another.
fn taken(home: &Admin, group: u16) -> GroupDefinitions {
    changed(home, group, Lsn(0))
}

/// The same of what has changed since a version, where that is known.
fn changed(home: &Admin, group: u16, have: Lsn) -> GroupDefinitions {
    let taken = home.definitions_of_group(group, have).expect("they are at home");
    assert_eq!(taken.version, home.definitions_version());
    GroupDefinitions::decode(&taken.encode()).expect("as it was")
}

fn adopt(home: &Admin, group: &World) -> bool {
    let admin = group.broker.admin();
    let definitions = changed(home, group.broker.group(), admin.adopted_version());
    let version = definitions.version;
    let is_newer = admin.adopt_definitions(definitions).expect("it is not older");
    assert_eq!(admin.adopted_version(), version);
    is_newer
}

/// What a vhost of the broker is, without what has happened in it.
fn said(view: VhostView) -> VhostView {
    VhostView { connections: 0, queues: 0, bindings: 0, counts: Default::default(), ..view }
}

/// What a group has to have, and has.
type Seen = (Vec<VhostView>, Vec<GlobalParameter>, Vec<Record>);

fn wanted(home: &Admin, group: u16) -> Seen {
    let vhosts: Vec<VhostView> =
        home.vhosts().into_iter().filter(|vhost| vhost.group == group).map(said).collect();
    let is_there = |name: &String| vhosts.iter().any(|vhost| vhost.name == *name);
    let mut accounts = home.accounts().records();
    accounts.retain(|record| match record {
        Record::Permission { vhost, .. } | Record::TopicPermission { vhost, .. } => is_there(vhost),
        Record::User(_) | Record::UserDeleted(_) => true,
    });
    (vhosts, home.global_parameters(), accounts)
}

fn had(group: &Admin) -> Seen {
    let vhosts = group.vhosts().into_iter().map(said).collect();
    (vhosts, group.global_parameters(), group.accounts().records())
}

#[test]
fn a_group_has_what_concerns_it_and_serves_its_vhosts() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put(&admin, "w", 2);
    admin.create_user(user("u", "secret")).expect("a user");
    for vhost in ["/", "v", "w"] {
        admin.set_permission("u", vhost, Permission::all()).expect("a permission");
    }
    admin.set_global_parameter("p", "1").expect("a parameter");
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
    let mut client = group.admit("u", "v").expect("admitted");
    client.declare("q");
    assert!(group.admit("u", "w").is_err() && group.admit("u", "/").is_err());
    assert!(!adopt(&admin, &group), "nothing has changed");
}

#[test]
fn older_definitions_and_those_of_others_are_refused() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    let old = taken(&admin, 1);
    put(&admin, "w", 1);
    assert!(adopt(&admin, &group));
    let to = group.broker.admin();
    let refused = to.adopt_definitions(old.clone()).expect_err("older").explanation;
    assert!(refused.starts_with(&format!("definitions of version {} are older", old.version)));
    let refused = to.adopt_definitions(taken(&admin, 2)).expect_err("another's").explanation;
    assert_eq!(refused, "definitions of group 2 are not for group 1");
    assert!(admin.adopt_definitions(taken(&admin, 1)).is_err());
    assert!(to.definitions_of_group(2, Lsn(0)).is_err());
    assert!(admin.definitions_of_group(0, Lsn(0)).is_err());
    assert_eq!(had(&to), wanted(&admin, 1));
}

#[test]
fn malformed_definitions_are_none() {
    let home = WorldOnDisk::new();
    put(&home.broker.admin(), "v", 1);
    let bytes = taken(&home.broker.admin(), 1).encode();
    // Of group and version alone, with what they are about, there are definitions too: none.
    for len in (0..22).chain(23..bytes.len()) {
        assert!(GroupDefinitions::decode(&bytes[..len]).is_none(), "{len}");
    }
}

#[test]
fn open_sessions_of_a_group_follow_the_accounts() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    for name in ["u", "w"] {
        admin.create_user(user(name, "secret")).expect("a user");
        admin.set_permission(name, "v", Permission::all()).expect("a permission");
    }
    adopt(&admin, &group);
    let mut stays = group.admit("u", "v").expect("admitted");
    let mut goes = group.admit("w", "v").expect("admitted");
    stays.declare("q");
    stays.publish("", "q", "allowed");
    let none = Permission { write: String::from("^$"), ..Permission::all() };
    admin.set_permission("u", "v", none).expect("a permission");
    admin.delete_user("w").expect("deleted");
    adopt(&admin, &group);
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - user 'w' was deleted".into());
    assert_eq!(goes.heard(), [closed]);
    let refused = stays.refused(queue::Bind {
        queue: short("q"),
        exchange: short("amq.fanout"),
        ..Default::default()
    });
    assert!(refused.starts_with("403 ACCESS_REFUSED"), "{refused}");
}

#[test]
fn a_user_that_was_deleted_is_disconnected_also_if_there_is_a_new_one_of_its_name() {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    let make = |name: &str| {
        admin.create_user(user(name, "secret")).expect("a user");
        admin.set_permission(name, "v", Permission::all()).expect("a permission");
    };
    make("u");
    make("w");
    adopt(&admin, &group);
    let mut goes = group.admit("u", "v").expect("admitted");
    let mut stays = group.admit("w", "v").expect("admitted");
    admin.delete_user("u").expect("deleted");
    make("u");
    let password = |changed: &mut User| {
        changed.password = user("w", "other").password;
        Ok(())
    };
    admin.change_user("w", password).expect("another password");
    adopt(&admin, &group);
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - user 'u' was deleted".into());
    assert_eq!(goes.heard(), [closed]);
    stays.declare("q");
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
    group.admit("u", "v").expect("the new one is let in");
}

#[test]
fn a_user_is_told_from_others_of_its_name_after_a_restart_too() {
    let mut home = WorldOnDisk::new();
    let made = |home: &WorldOnDisk| home.broker.admin().accounts().user("u").expect("there").made;
    home.broker.admin().create_user(user("u", "secret")).expect("a user");
    let first = made(&home);
    home.broker.admin().set_user_limit("u", "max-channels", 5).expect("a limit");
    home.restart();
    assert!(first > 0 && made(&home) == first);
    home.broker.admin().delete_user("u").expect("deleted");
    home.broker.admin().create_user(user("u", "secret")).expect("a user");
    assert_ne!(made(&home), first);
}

#[test]
fn a_vhost_that_was_deleted_is_gone_also_if_there_is_a_new_one_of_its_name() {
    let (home, mut group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put(&admin, "w", 1);
    adopt(&admin, &group);
    for vhost in ["v", "w"] {
        let mut client = group.connect_to(group.broker.vhost(vhost).expect("the vhost"));
        declare_with(&mut client, "q", true, &FieldTable::new());
        client.disconnect();
    }
    let mut client = group.connect_to(group.broker.vhost("v").expect("the vhost"));
    admin.delete_vhost("v").expect("deleted");
    put(&admin, "v", 1);
    admin.change_vhost("w", |vhost| vhost.description = "kept".into()).expect("changed");
    adopt(&admin, &group);
    let closed = Heard::ConnectionClosed("320 CONNECTION_FORCED - vhost 'v' is deleted".into());
    assert_eq!(client.heard(), [closed]);
    client.disconnect();
    for _ in 0..2 {
        let to = group.broker.admin();
        assert_eq!(to.queues(Some("v")).expect("the vhost").len(), 0);
        assert_eq!(to.queues(Some("w")).expect("the vhost").len(), 1);
        drop(to);
        group.restart();
    }
    // A stay is another one also if the vhost has been away meanwhile.
    move_to(&admin, "w", 2);
    move_to(&admin, "w", 1);
    adopt(&admin, &group);
    assert_eq!(group.broker.admin().queues(Some("w")).expect("the vhost").len(), 0);
}

#[test]
fn a_full_disk_keeps_no_user_in_and_leaves_the_version_behind() {
    let (home, mut group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    admin.create_user(user("u", "secret")).expect("a user");
    adopt(&admin, &group);
    group.fill_disk();
    let value = format!("\"{}\"", "x".repeat(60_000));
    let full = (0..100).find_map(|nth| {
        // What was written last leaves some room.
        admin.set_global_parameter(&nth.to_string(), &value).expect("there is room at home");
        group.sync();
        group.broker.admin().adopt_definitions(taken(&admin, 1)).err()
    });
    assert_eq!(full.expect("no room").code, 506);
    admin.delete_user("u").expect("deleted");
    let to = group.broker.admin();
    assert!(to.adopt_definitions(taken(&admin, 1)).is_err());
    assert!(to.adopted_version() < admin.definitions_version());
    assert!(to.accounts().user("u").is_none());
    drop(to);
    group.free_disk();
    group.restart();
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
}

#[test]
fn what_a_crash_has_cut_short_is_repaired_by_the_next() {
    let (home, mut group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    let mut halves = 0;
    for round in 0..60 {
        for nth in 0..8 {
            let name = format!("{round}-{nth}");
            put(&admin, &name, 1);
            admin.create_user(user(&name, "secret")).expect("a user");
            admin.set_permission(&name, &name, Permission::all()).expect("a permission");
            admin.set_global_parameter(&name, "1").expect("a parameter");
            if round > 0 {
                let old = format!("{}-{nth}", round - 1);
                admin.delete_vhost(&old).expect("deleted");
                admin.delete_user(&old).expect("deleted");
                admin.clear_global_parameter(&old).expect("cleared");
            }
        }
        let before = had(&group.broker.admin());
        adopt(&admin, &group);
        group.crash_while_writing();
        let after = had(&group.broker.admin());
        halves += usize::from(after != before && after != wanted(&admin, 1));
        // A vhost is served as soon as it is there: the users who may enter it are known by then.
        let is_new = |vhost: &&VhostView| vhost.name.starts_with(&format!("{round}-"));
        for VhostView { name, .. } in after.0.iter().filter(is_new) {
            let lets_in =
                |one: &Record| matches!(one, Record::Permission { vhost, .. } if vhost == name);
            assert!(after.2.iter().any(lets_in), "no user may enter vhost {name}");
        }
        adopt(&admin, &group);
        assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
        group.sync();
    }
    assert!(halves >= 5, "{halves}: it has to be cut in the middle");
}
