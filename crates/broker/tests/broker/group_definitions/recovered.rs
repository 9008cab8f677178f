//! After a recovery of the cluster home's log may end before what a group has adopted.

use super::{adopt, had, put, taken, user, wanted};
use crate::support::{Message, WorldOnDisk, declare_with};
use courser_auth::Permission;
use courser_broker::admin::Admin;
use courser_codec::FieldTable;
use courser_store::Lsn;

fn put_user(home: &Admin, name: &str, vhost: &str) {
    home.create_user(user(name, "secret")).expect("a user");
    home.set_permission(name, vhost, Permission::all()).expect("a permission");
}

/// A group that has adopted what a longer log of home said.
fn group_that_is_ahead(vhosts: &[&str]) -> WorldOnDisk {
    let (lost, group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = lost.broker.admin();
    for nth in 0..40 {
        put_user(&admin, &format!("u{nth}"), "/");
    }
    for vhost in vhosts {
        put(&admin, vhost, 1);
        put_user(&admin, vhost, vhost);
    }
    adopt(&admin, &group);
    group
}

/// Restarts a group in a cluster that was recovered once.
fn restart_recovered(group: &mut WorldOnDisk) {
    group.restart();
    group.broker.admin().set_recoveries(1);
}

/// How many messages are in the queue of a vhost, if there is one.
fn messages(group: &WorldOnDisk, vhost: &str) -> Option<usize> {
    group.broker.admin().queue(vhost, b"q").ok().map(|queue| queue.ready)
}

#[test]
fn a_group_that_was_ahead_of_home_when_the_cluster_was_recovered_follows_it() {
    let mut group = group_that_is_ahead(&["v"]);
    let home = WorldOnDisk::new();
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put_user(&admin, "w", "v");
    assert!(admin.definitions_version() < group.broker.admin().adopted_version());
    assert!(group.admit("v", "v").is_ok());
    restart_recovered(&mut group);
    assert_eq!(group.broker.admin().adopted_version(), Lsn(0));
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
    assert!(group.admit("v", "v").is_err(), "home does not know this user");

    let old = taken(&admin, 1);
    admin.clear_permission("w", "v").expect("cleared");
    assert!(adopt(&admin, &group));
    assert!(group.admit("w", "v").is_err());
    restart_recovered(&mut group);
    assert!(!adopt(&admin, &group), "nothing has changed");
    let older = group.broker.admin().adopt_definitions(old).expect_err("older").explanation;
    assert!(older.contains("are older"), "{older}");
}

#[test]
fn a_user_made_anew_at_a_position_that_home_had_before_is_another_one() {
    let mut group = group_that_is_ahead(&["v"]);
    let home = WorldOnDisk::new();
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put_user(&admin, "v", "v");
    restart_recovered(&mut group);
    adopt(&admin, &group);
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
}

#[test]
fn vhosts_that_home_has_lost_keep_their_messages_until_they_are_added_again() {
    let mut group = group_that_is_ahead(&["known", "lost"]);
    for vhost in ["known", "lost"] {
        let mut client = group.connect_to(group.broker.vhost(vhost).expect("the vhost"));
        declare_with(&mut client, "q", true, &FieldTable::new());
        let message = Message::new("", "q", "kept");
        client.send(message.with_properties(|all| all.delivery_mode = Some(2)));
        client.disconnect();
    }
    let home = WorldOnDisk::new();
    let admin = home.broker.admin();
    put(&admin, "known", 1);
    let unknown = |group: &WorldOnDisk| group.broker.admin().vhosts_unknown_at_home();
    for round in 0..3 {
        restart_recovered(&mut group);
        adopt(&admin, &group);
        assert_eq!(unknown(&group), ["lost"], "{round}");
        assert_eq!([messages(&group, "known"), messages(&group, "lost")], [Some(1); 2], "{round}");
        assert!(group.admit("lost", "lost").is_err(), "nothing is permitted in it");
        put_user(&admin, &format!("later{round}"), "known");
    }

    put(&admin, "lost", 1);
    adopt(&admin, &group);
    assert_eq!(unknown(&group), [""; 0]);
    assert_eq!(messages(&group, "lost"), Some(1));
    for vhost in ["known", "lost"] {
        admin.delete_vhost(vhost).expect("deleted");
    }
    adopt(&admin, &group);
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
}
