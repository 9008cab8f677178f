//! How often permissions are compiled.

use crate::accounts::{accounts, change, permit, put};
use courser_auth::{
    Accounts, PasswordHash, Permission, Record, Resource, Right, TopicPermission, User, compiled,
};
use std::sync::Arc;

fn permit_topic(accounts: &Accounts, exchange: &str, write: &str) {
    let permission = TopicPermission { write: write.into(), read: "^r".into() };
    change(accounts, |directory| {
        Ok(vec![directory.set_topic_permission("a", "/", exchange, permission)?])
    })
    .expect("a permission");
}

/// Asks as a request over HTTP does, which keeps nothing. Returns whether the user may, and the patterns compiled for it.
fn asked(accounts: &Arc<Accounts>, user: &str, name: &str) -> (bool, u64) {
    let before = compiled();
    let checked = accounts.access(user, "/").check(Right::Write, Resource::Queue(name.as_bytes()));
    (checked.is_ok(), compiled() - before)
}

fn some(users: usize) -> Arc<Accounts> {
    let accounts = accounts();
    for name in ["a".to_owned()].into_iter().chain((1..users).map(|nth| format!("u{nth}"))) {
        put(&accounts, User::new(&name, PasswordHash::none()));
        permit(&accounts, &name, ["", "^q", "^r"]);
    }
    accounts
}

#[test]
fn what_is_not_in_use_any_more_is_not_compiled_for_each_question() {
    let accounts = some(1);
    assert_eq!(asked(&accounts, "a", "q"), (true, 1));
    assert_eq!(asked(&accounts, "a", "x"), (false, 0));
    put(&accounts, User::new("b", PasswordHash::none()));
    assert_eq!(asked(&accounts, "a", "q"), (true, 0), "another user has changed");
    permit(&accounts, "a", ["", "^x", ""]);
    assert_eq!(asked(&accounts, "a", "q"), (false, 1));
    assert_eq!(asked(&accounts, "a", "x"), (true, 0));
}

#[test]
fn only_what_is_asked_for_is_compiled() {
    let accounts = some(1);
    for nth in 0..1000 {
        permit_topic(&accounts, &format!("x{nth}"), "^w");
    }
    assert_eq!(asked(&accounts, "a", "q"), (true, 1));
    let before = compiled();
    for _ in 0..2 {
        let mut access = accounts.access("a", "/");
        access.check_topic(Right::Write, b"x500", b"w").expect("it may");
        access.check_topic(Right::Write, b"other", b"v").expect("nothing is said of it");
        access.check_topic(Right::Write, b"x999", b"v").expect_err("it may not");
        access.check_topic(Right::Read, b"x999", b"r").expect("it may");
    }
    assert_eq!(compiled() - before, 3);
}

#[test]
fn what_is_kept_is_bounded() {
    let accounts = some(1000);
    assert_eq!(asked(&accounts, "a", "q"), (true, 1));
    for nth in 1..100 {
        asked(&accounts, &format!("u{nth}"), "q");
    }
    assert_eq!(asked(&accounts, "a", "q"), (true, 0), "there are few");
    for nth in 1..1000 {
        asked(&accounts, &format!("u{nth}"), "q");
    }
    assert_eq!(asked(&accounts, "a", "q"), (true, 1), "others have come");
}

#[test]
fn a_permission_that_an_earlier_version_took_goes_on_permitting_what_it_says() {
    let accounts = some(1);
    let many = format!("^{}q", "(?!.*x.{9}y)".repeat(20));
    let permission = Permission { write: many, ..Permission::default() };
    permission.check().expect_err("more look-arounds than a pattern has now");
    let kept = |user: &str, permission: &Permission| Record::Permission {
        user: user.into(),
        vhost: "/".into(),
        permission: Some(permission.clone()),
    };
    change(&accounts, |_| Ok(vec![kept("a", &permission)])).expect("as from a log");
    assert!(asked(&accounts, "a", "q").0);
    assert!(!asked(&accounts, "a", "qx123456789y").0);
}
