//! Users and permissions as definitions, and as what is kept.

use courser_auth::{
    Directory, PasswordHash, Permission, PermissionRow, Record, Tag, Tags, TopicPermission, User,
    UserLimits, UserRow,
};
use proptest::prelude::*;
use std::sync::Arc;

fn user_of(json: &str) -> Result<User, String> {
    let row: UserRow = serde_json::from_str(json).map_err(|error| error.to_string())?;
    User::try_from(&row).map_err(|error| error.to_string())
}

#[test]
fn a_user_of_rabbitmqs_export_is_read() {
    let user = user_of(
        r#"{"name":"guest","password_hash":"kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
            "hashing_algorithm":"rabbit_password_hashing_sha256",
            "tags":["administrator","my own"],"limits":{"max-connections":10,"max-channels":-1}}"#,
    )
    .expect("a user");
    assert!(user.password.verify(b"test12"));
    assert!(user.tags.has(Tag::Administrator));
    assert!(user.tags.iter().eq(["administrator", "my own"]));
    assert_eq!(user.limits, UserLimits { max_connections: Some(10), max_channels: None });
}

#[test]
fn older_spellings_are_read() {
    let user =
        user_of(r#"{"name":"a","password_hash":"","tags":"management, monitoring","limits":[]}"#)
            .expect("a user");
    assert!(user.tags.has(Tag::Management) && user.tags.has(Tag::Monitoring));
    let user = user_of(r#"{"name":"a","tags":""}"#).expect("a user");
    assert_eq!(user.tags, Tags::default());
    assert_eq!(user.password, PasswordHash::none());
}

#[test]
fn what_can_not_be_meant_is_refused() {
    for json in [
        r#"{"name":"a","limits":{"max-conections":1}}"#,
        r#"{"name":"a","limits":{"max-connections":"many"}}"#,
        r#"{"name":"a","tags":[1]}"#,
        r#"{"name":"a","tags":7}"#,
        r#"{"name":"a","password_hash":"AAAA"}"#,
        r#"{"password_hash":""}"#,
    ] {
        assert!(user_of(json).is_err(), "{json} was accepted");
    }
    let many: Vec<String> = (0..33).map(|number| format!("t{number}")).collect();
    assert!(Tags::new(&many).is_err());
    assert!(Tags::new(["x".repeat(256)]).is_err());
}

#[test]
fn what_is_written_has_rabbitmqs_keys() {
    let mut user = User::new("a", PasswordHash::none());
    user.tags = Tags::administrator();
    user.limits.set("max-channels", 3).expect("a limit");
    let json = serde_json::to_value(UserRow::from(&user)).expect("JSON");
    let wanted = serde_json::json!({
        "name": "a", "password_hash": "", "tags": ["administrator"], "limits": {"max-channels": 3}
    });
    assert_eq!(json, wanted);
}

fn apply(directory: &mut Directory, records: impl IntoIterator<Item = Record>) {
    for record in records {
        directory.apply(record);
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-d]", "\\PC{1,20}"]
}

/// One command on a directory, by small numbers, so that they meet.
#[derive(Clone, Debug)]
enum Command {
    User(String, Vec<String>, Option<u32>),
    Delete(String),
    Permission(String, String, String),
    Clear(String, String),
    Topic(String, String, String),
    ClearTopics(String, String),
    ForgetVhost(String),
}

fn command() -> impl Strategy<Value = Command> {
    let pattern = || prop_oneof!["[a-c]{0,3}", Just("^(?!x)".to_owned()), Just(".*".to_owned())];
    prop_oneof![
        3 => (name(), proptest::collection::vec("[a-z]{1,5}", 0..3), any::<Option<u32>>())
            .prop_map(|(name, tags, limit)| Command::User(name, tags, limit)),
        1 => name().prop_map(Command::Delete),
        3 => (name(), name(), pattern()).prop_map(|(u, v, p)| Command::Permission(u, v, p)),
        1 => (name(), name()).prop_map(|(u, v)| Command::Clear(u, v)),
        3 => (name(), name(), pattern()).prop_map(|(u, v, p)| Command::Topic(u, v, p)),
        1 => (name(), name()).prop_map(|(u, v)| Command::ClearTopics(u, v)),
        1 => name().prop_map(Command::ForgetVhost),
    ]
}

fn decide(directory: &Directory, command: Command) -> Vec<Record> {
    let one = |record: Result<Record, _>| record.into_iter().collect();
    match command {
        Command::User(name, tags, limit) => {
            let mut user = User::new(name, PasswordHash::none());
            user.tags = Tags::new(tags).expect("tags");
            user.limits.max_connections = limit;
            one(directory.create_user(user))
        }
        Command::Delete(name) => directory.delete_user(&name).unwrap_or_default(),
        Command::Permission(user, vhost, pattern) => {
            let permission = Permission { configure: pattern, ..Permission::all() };
            one(directory.set_permission(&user, &vhost, permission))
        }
        Command::Clear(user, vhost) => {
            directory.clear_permission(&user, &vhost).ok().flatten().into_iter().collect()
        }
        Command::Topic(user, vhost, pattern) => {
            let permission = TopicPermission { write: pattern, read: "{username}".into() };
            one(directory.set_topic_permission(&user, &vhost, "amq.topic", permission))
        }
        Command::ClearTopics(user, vhost) => {
            directory.clear_topic_permissions(&user, &vhost, None).unwrap_or_default()
        }
        Command::ForgetVhost(vhost) => directory.forget_vhost(&vhost),
    }
}

proptest! {
    #[test]
    fn a_log_of_the_changes_restores_the_accounts(
        commands in proptest::collection::vec(command(), 0..60),
    ) {
        let mut directory = Directory::default();
        let mut log = std::collections::BTreeMap::new();
        for command in commands {
            let records = decide(&directory, command);
            for record in &records {
                match record.value() {
                    Some(value) => drop(log.insert(record.key(), value)),
                    None => drop(log.remove(&record.key())),
                }
            }
            apply(&mut directory, records);
        }
        let decoded: Vec<Record> =
            log.iter().map(|(key, value)| Record::decode(key, value).expect("a record")).collect();
        prop_assert!(log.keys().all(|key| Record::owns(key)));
        let (users, rest): (Vec<_>, Vec<_>) =
            decoded.into_iter().partition(|record| matches!(record, Record::User(_)));
        let mut restored = Directory::default();
        apply(&mut restored, users);
        apply(&mut restored, rest);
        prop_assert_eq!(restored.records(), directory.records());
    }

    #[test]
    fn damaged_records_are_refused_and_never_panic(
        key in proptest::collection::vec(any::<u8>(), 0..20),
        value in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        drop(Record::decode(&key, &value));
    }
}

#[test]
fn a_record_under_another_ones_key_is_refused() {
    let record = |name: &str| Record::User(Arc::new(User::new(name, PasswordHash::none())));
    let value = record("a").value().expect("a value");
    assert!(Record::decode(&record("b").key(), &value).is_err());
}

#[test]
fn a_permission_row_without_a_vhost_is_that_of_a_vhosts_own_file() {
    let row: PermissionRow =
        serde_json::from_str(r#"{"user":"a","configure":"","write":".*","read":""}"#)
            .expect("a row");
    assert_eq!(row.vhost, "");
    assert_eq!(row.permission().write, ".*");
}
