//! Topic permissions restrict what permissions permit: on the way to a group, no user has more than before and than behind it.

use super::{had, put, taken, user, wanted};
use crate::support::WorldOnDisk;
use courser_auth::{Directory, Permission, TopicPermission};
use courser_broker::admin::Admin;
use courser_journal::testing::Call;
use courser_store::StoreError;

/// More than what is written to the log together.
const USERS: usize = 300;

/// Has the log of a group take only so many more changes.
fn let_through(group: &WorldOnDisk, changes: usize) {
    let mut left = changes;
    group.store().set_faults(move |call| {
        if call != Call::Append {
            return None;
        }
        let is_full = left == 0;
        left = left.saturating_sub(1);
        is_full.then_some(StoreError::Full)
    });
}

fn restrict(admin: &Admin, name: &str, write: &str) {
    let topic = TopicPermission { write: write.into(), read: write.into() };
    admin.set_topic_permission(name, "v", "amq.topic", topic).expect("a topic permission");
}

fn is_restricted(accounts: &Directory, name: &str) -> bool {
    accounts.has_topic_permissions(name, "v")
}

#[test]
fn a_topic_permission_is_there_before_what_it_restricts() {
    let (home, group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    let names: Vec<String> = (0..USERS).map(|nth| format!("u{nth}")).collect();
    for name in &names {
        admin.create_user(user(name, "secret")).expect("a user");
        restrict(&admin, name, "^a");
        admin.set_permission(name, "v", Permission::all()).expect("a permission");
    }
    let to = group.broker.admin();
    let mut halves = 0;
    for changes in 0..20 {
        let_through(&group, changes);
        let adopted = to.adopt_definitions(taken(&admin, 1));
        let accounts = to.accounts();
        let permitted = names.iter().filter(|name| accounts.permission(name, "v").is_some());
        let permitted: Vec<&String> = permitted.collect();
        assert!(permitted.iter().all(|name| is_restricted(&accounts, name)), "{changes} changes");
        halves += usize::from((1..USERS).contains(&permitted.len()));
        if adopted.is_ok() {
            break;
        }
    }
    assert!(halves > 0, "it has to be cut in the middle");
    assert_eq!(had(&to), wanted(&admin, 1));
}

#[test]
fn a_topic_permission_goes_when_what_it_restricts_is_as_it_is_wanted() {
    let (home, group) = (WorldOnDisk::new(), WorldOnDisk::of_group(1));
    let admin = home.broker.admin();
    put(&admin, "v", 1);
    for name in ["narrowed", "gone", "kept_out"] {
        admin.create_user(user(name, "secret")).expect("a user");
        restrict(&admin, name, "^a");
        admin.set_permission(name, "v", Permission::all()).expect("a permission");
    }
    let to = group.broker.admin();
    to.adopt_definitions(taken(&admin, 1)).expect("there is room");
    let narrow = Permission { write: "^y$".into(), ..Permission::all() };
    admin.set_permission("narrowed", "v", narrow).expect("a permission");
    admin.clear_permission("kept_out", "v").expect("cleared");
    for name in ["narrowed", "kept_out"] {
        admin.clear_topic_permissions(name, "v", None).expect("cleared");
    }
    admin.delete_user("gone").expect("deleted");
    let_through(&group, 0);
    to.adopt_definitions(taken(&admin, 1)).expect_err("there is no room");
    let accounts = to.accounts();
    assert_eq!(accounts.permission("narrowed", "v"), Some(Permission::all()));
    assert!(is_restricted(&accounts, "narrowed"), "it has never had all keys");
    assert_eq!(accounts.permission("kept_out", "v"), None, "no room is needed to take rights away");
    assert!(accounts.user("gone").is_none());
    group.store().heal();
    to.adopt_definitions(taken(&admin, 1)).expect("there is room");
    assert_eq!(had(&to), wanted(&admin, 1));
}
