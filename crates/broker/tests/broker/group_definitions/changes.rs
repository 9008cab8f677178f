//! What a group gets that has an earlier version: what has changed since.

use super::{adopt, changed, had, move_to, put, user, wanted};
use crate::support::{World, WorldOnDisk};
use courser_auth::Permission;
use courser_broker::admin::{Admin, Parameter};
use courser_store::Lsn;

/// Changed definitions that a broker remembers.
const CHANGED_MAX: usize = 4096;

fn set_global(admin: &Admin, nth: usize, value: &str) {
    admin.set_global_parameter(&format!("p{nth}"), value).expect("a parameter");
}

/// Bytes on their way to group 1, which has this version.
fn bytes(admin: &Admin, have: Lsn) -> usize {
    let changed = changed(admin, 1, have);
    let bytes = changed.encode().len();
    assert_eq!(changed.encoded_len(), bytes);
    bytes
}

/// A home with many definitions, and a group that has them.
fn with_many() -> (WorldOnDisk, World) {
    let (home, group) = (WorldOnDisk::new(), World::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    put(&admin, "w", 2);
    let value = format!("\"{}\"", "x".repeat(60_000));
    for nth in 0..10 {
        set_global(&admin, nth, &value);
        let name = format!("u{nth}");
        admin.create_user(user(&name, "secret")).expect("a user");
        for vhost in ["/", "v", "w"] {
            admin.set_permission(&name, vhost, Permission::all()).expect("a permission");
        }
    }
    assert!(adopt(&admin, &group));
    (home, group)
}

#[test]
fn what_no_group_adopts_raises_no_version() {
    let (home, group) = with_many();
    let admin = home.broker.admin();
    let version = admin.definitions_version();
    let (vhost, component) = ("/".to_owned(), "shovel".to_owned());
    let parameter = Parameter { vhost, component, name: "p".into(), value: "1".into() };
    admin.set_parameter(&parameter).expect("a parameter");
    admin.clear_parameter("/", "shovel", "p").expect("cleared");
    assert_eq!(admin.definitions_version(), version);
    assert!(!adopt(&admin, &group));
    set_global(&admin, 0, "1");
    assert!(admin.definitions_version() > version);
}

#[test]
fn a_group_gets_what_has_changed_and_nothing_else() {
    let (home, group) = with_many();
    let admin = home.broker.admin();
    assert!(bytes(&admin, Lsn(0)) > 600_000);
    let topic = courser_auth::TopicPermission { write: "a".into(), read: "b".into() };
    let changes: [&dyn Fn(); 12] = [
        &|| set_global(&admin, 3, "3"),
        &|| drop(admin.clear_global_parameter("p4")),
        &|| drop(admin.clear_permission("u1", "v")),
        &|| drop(admin.set_topic_permission("u2", "v", "amq.topic", topic.clone())),
        &|| admin.delete_user("u3").expect("deleted"),
        &|| {
            admin.delete_user("u4").expect("deleted");
            admin.create_user(user("u4", "secret")).expect("a user");
        },
        &|| drop(admin.change_vhost("v", |vhost| vhost.description = "changed".into())),
        // Its permissions come along with it, though nothing has changed in them.
        &|| move_to(&admin, "w", 1),
        &|| move_to(&admin, "v", 2),
        &|| admin.delete_vhost("w").expect("deleted"),
        &|| put(&admin, "w", 1),
        &|| drop(admin.change_vhost("/", |vhost| vhost.description = "of home".into())),
    ];
    for (nth, change) in changes.iter().enumerate() {
        let have = group.broker.admin().adopted_version();
        change();
        assert!(bytes(&admin, have) < 10_000, "change {nth}");
        assert!(adopt(&admin, &group));
        assert_eq!(had(&group.broker.admin()), wanted(&admin, 1), "change {nth}");
    }
}

#[test]
fn changes_are_no_use_to_a_group_that_lacks_earlier_ones() {
    let (home, group) = with_many();
    let admin = home.broker.admin();
    set_global(&admin, 0, "1");
    let between = admin.definitions_version();
    set_global(&admin, 1, "1");
    let later = changed(&admin, 1, between);
    let to = group.broker.admin();
    let had_version = to.adopted_version();
    let refused = to.adopt_definitions(later.clone()).expect_err("some are missing").explanation;
    let wanted_text = format!(
        "group 1 has version {had_version}, and these are the changes since version {between} only"
    );
    assert_eq!(refused, wanted_text);
    assert_eq!(to.adopted_version(), had_version);
    assert_ne!(to.global_parameter("p1").as_deref(), Some("1"));
    to.adopt_definitions(changed(&admin, 1, had_version)).expect("all of them");
    assert_eq!(had(&to), wanted(&admin, 1));
}

#[test]
fn a_group_that_is_far_behind_or_meets_a_new_leader_of_home_gets_all() {
    let (mut home, group) = with_many();
    let have = group.broker.admin().adopted_version();
    let admin = home.broker.admin();
    for nth in 0..CHANGED_MAX {
        set_global(&admin, 10, &nth.to_string());
    }
    assert!(bytes(&admin, have) < 1000, "it is the same one each time");
    for nth in 0..CHANGED_MAX {
        set_global(&admin, 100 + nth, "1");
    }
    assert!(bytes(&admin, have) > 600_000);
    let near = admin.definitions_version();
    set_global(&admin, 0, "1");
    assert!(bytes(&admin, near) < 1000, "one that keeps up does not notice");
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
    drop(admin);
    home.restart();
    let admin = home.broker.admin();
    set_global(&admin, 0, "2");
    assert!(bytes(&admin, group.broker.admin().adopted_version()) > 500_000);
    assert!(adopt(&admin, &group));
    assert_eq!(had(&group.broker.admin()), wanted(&admin, 1));
}
