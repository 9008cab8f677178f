//! Changes to the accounts, and when they hold.

use courser_auth::{
    AccountError, Accounts, Directory, Origin, PasswordHash, Permission, Record, Resource, Right,
    Settings, TopicPermission, User, UserLimits,
};
use std::sync::Arc;

type Kept = Result<(), AccountError>;

pub(crate) fn accounts() -> Arc<Accounts> {
    Accounts::new(Directory::default(), Settings::default())
}

pub(crate) fn change(
    accounts: &Accounts,
    decide: impl FnOnce(&Directory) -> Result<Vec<Record>, AccountError>,
) -> Result<Vec<Record>, AccountError> {
    accounts.change(decide, |_| Kept::Ok(()))
}

pub(crate) fn put(accounts: &Accounts, user: User) {
    let name = user.name.clone();
    let put = |one: &mut User| {
        *one = user;
        Ok(())
    };
    change(accounts, |directory| Ok(vec![directory.put_user(&name, put)?])).expect("a user");
}

pub(crate) fn permit(accounts: &Accounts, user: &str, [configure, write, read]: [&str; 3]) {
    let permission =
        Permission { configure: configure.into(), write: write.into(), read: read.into() };
    change(accounts, |directory| Ok(vec![directory.set_permission(user, "/", permission)?]))
        .expect("a permission");
}

fn user(name: &str) -> User {
    User::new(name, PasswordHash::none())
}

#[test]
fn a_change_holds_for_an_access_that_is_in_use() {
    let accounts = accounts();
    put(&accounts, user("a"));
    let mut access = accounts.access("a", "/");
    assert!(access.enter().is_err());
    permit(&accounts, "a", ["", "^q", ""]);
    access.enter().expect("it may");
    access.check(Right::Write, Resource::Queue(b"q1")).expect("it may");
    permit(&accounts, "a", ["", "", ""]);
    access.enter().expect("it may still");
    assert!(access.check(Right::Write, Resource::Queue(b"q1")).is_err());
    permit(&accounts, "a", [".*", ".*", ".*"]);
    change(&accounts, |directory| directory.delete_user("a")).expect("deleted");
    assert!(access.check(Right::Write, Resource::Queue(b"q1")).is_err());
    put(&accounts, user("a"));
    assert!(access.enter().is_err(), "permissions came back with a user of the same name");
}

#[test]
fn what_could_not_be_kept_has_not_happened() {
    let accounts = accounts();
    let kept = accounts.change(
        |directory| Ok(vec![directory.create_user(user("a"))?]),
        |_| Err(AccountError::Random),
    );
    assert_eq!(kept, Err(AccountError::Random));
    assert!(accounts.directory().user("a").is_none());
}

#[test]
fn a_user_changes_and_keeps_its_permissions() {
    let accounts = accounts();
    put(&accounts, user("a"));
    permit(&accounts, "a", [".*", "", ""]);
    let mut limited = user("a");
    limited.limits = UserLimits { max_connections: Some(0), max_channels: None };
    put(&accounts, limited);
    let directory = accounts.directory();
    assert_eq!(directory.user("a").expect("a user").limits.max_connections, Some(0));
    assert_eq!(directory.permission("a", "/").expect("a permission").configure, ".*");
}

#[test]
fn a_permission_whose_pattern_can_not_be_compiled_is_refused() {
    let wrong = Permission { write: "(".into(), ..Permission::all() };
    let error = wrong.check().expect_err("it is refused");
    assert!(error.to_string().starts_with("the write pattern can't be used: "), "{error}");
    let wrong = TopicPermission { write: "{username}(".into(), read: String::new() };
    assert!(wrong.check().is_err());
}

#[test]
fn what_is_not_there_can_not_be_changed() {
    let directory = Directory::default();
    let missing = AccountError::NoUser("a".into());
    assert_eq!(directory.delete_user("a"), Err(missing.clone()));
    assert_eq!(directory.set_permission("a", "/", Permission::all()), Err(missing.clone()));
    assert_eq!(directory.clear_permission("a", "/"), Err(missing));
    assert!(directory.create_user(user("")).is_err());
    assert!(directory.create_user(user(&"a".repeat(256))).is_err());
}

#[test]
fn the_user_of_the_file_may_do_everything_and_is_changed_there_only() {
    let mut directory = Directory::default();
    assert_eq!(directory.add_file_user(user("file")), Ok(true));
    let known = directory.user("file").expect("a user");
    assert_eq!(known.origin, Origin::ConfigurationFile);
    assert_eq!(directory.permission("file", "any"), Some(Permission::all()));
    let refused = AccountError::InFile("file".into());
    assert_eq!(directory.create_user(user("file")).err(), Some(refused.clone()));
    assert_eq!(directory.delete_user("file"), Err(refused.clone()));
    assert_eq!(directory.set_permission("file", "/", Permission::all()), Err(refused));
    assert!(directory.records().is_empty(), "it would be kept");
}

#[test]
fn a_user_of_the_same_name_made_at_run_time_goes_before_that_of_the_file() {
    let mut directory = Directory::default();
    let record = directory.create_user(user("a")).expect("a user");
    directory.apply(record);
    assert_eq!(directory.add_file_user(user("a")), Ok(false));
    assert_eq!(directory.permission("a", "/"), None);
}

#[test]
fn a_deleted_vhost_takes_its_permissions_along() {
    let accounts = accounts();
    put(&accounts, user("a"));
    permit(&accounts, "a", [".*", ".*", ".*"]);
    let topic = TopicPermission { write: "a".into(), read: "a".into() };
    change(&accounts, |all| Ok(vec![all.set_topic_permission("a", "/", "t", topic)?]))
        .expect("set");
    change(&accounts, |all| Ok(all.forget_vhost("/"))).expect("forgotten");
    let directory = accounts.directory();
    assert_eq!(directory.permission("a", "/"), None);
    assert_eq!(directory.topic_permission_rows().count(), 0);
}

#[test]
fn users_come_in_pages() {
    let accounts = accounts();
    for number in 0..25 {
        put(&accounts, user(&format!("u{number:02}")));
    }
    let directory = accounts.directory();
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page: Vec<_> = directory.users(after.as_deref()).take(10).collect();
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        seen.extend(page.iter().map(|user| user.name.clone()));
    }
    let wanted: Vec<String> = (0..25).map(|number| format!("u{number:02}")).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn limits_are_set_by_name_and_lifted_by_negative_values() {
    let mut limits = UserLimits::default();
    limits.set("max-connections", 5).expect("a limit");
    limits.set("max-channels", 0).expect("a limit");
    assert!(limits.iter().eq([("max-connections", 5), ("max-channels", 0)]));
    limits.set("max-connections", -1).expect("lifted");
    limits.clear("max-channels").expect("lifted");
    assert_eq!(limits, UserLimits::default());
    assert_eq!(limits.set("max-queues", 1), Err(AccountError::Limit("max-queues".into())));
    assert_eq!(
        UserLimits::connections_reached("plain", 1).to_string(),
        "connection refused for user 'plain': user connection limit (1) is reached"
    );
    assert_eq!(
        UserLimits::channels_reached("plain", 1).to_string(),
        "number of channels opened for user 'plain' has reached the maximum allowed user limit of 1"
    );
}

#[test]
fn an_account_that_is_made_anew_is_another_one() {
    let accounts = accounts();
    let number = || accounts.directory().account_number("a");
    assert_eq!(number(), None);
    put(&accounts, user("a"));
    let first = number();
    put(&accounts, User { limits: UserLimits::default(), loopback_only: true, ..user("a") });
    permit(&accounts, "a", ["", "", ""]);
    assert_eq!(number(), first, "a change is no deletion");
    let made_anew = |directory: &Directory| {
        let user = directory.user("a").map(|user| User::clone(user)).expect("it is there");
        let mut records = directory.delete_user("a")?;
        records.push(Record::User(Arc::new(user)));
        Ok(records)
    };
    change(&accounts, made_anew).expect("deleted and made");
    assert!(number().is_some() && number() != first);
}

#[test]
fn vhosts_that_a_user_may_enter_no_more_are_told_from_all_others() {
    let accounts = accounts();
    put(&accounts, user("a"));
    let enter = |vhost: &str| {
        let set = |directory: &Directory| {
            Ok(vec![directory.set_permission("a", vhost, Permission::all())?])
        };
        change(&accounts, set).expect("a permission");
    };
    let names: Vec<String> = (0..1000).map(|nth| format!("v{nth:04}")).collect();
    names.iter().for_each(|name| enter(name));
    let before = accounts.directory();
    let lost = || accounts.directory().vhosts_lost(&before, "a").join(" ");
    assert_eq!(lost(), "");
    put(&accounts, user("b"));
    permit(&accounts, "b", ["", "", ""]);
    permit(&accounts, "a", ["", "", ""]);
    change(&accounts, |directory| {
        Ok(vec![directory.set_permission("a", "v0500", Permission::default())?])
    })
    .expect("another permission");
    assert_eq!(lost(), "", "less of a vhost is not lost");
    for vhost in ["v0999", "v0000", "v0100"] {
        let clear = |directory: &Directory| {
            Ok(directory.clear_permission("a", vhost)?.into_iter().collect())
        };
        change(&accounts, clear).expect("cleared");
    }
    assert_eq!(lost(), "v0000 v0100 v0999");
    enter("v0100");
    assert_eq!(lost(), "v0000 v0999");
    change(&accounts, |directory| directory.delete_user("a")).expect("deleted");
    assert_eq!(accounts.directory().vhosts_lost(&before, "a").len(), names.len());
    assert!(before.vhosts_lost(&accounts.directory(), "a").is_empty(), "there was none before");
}
