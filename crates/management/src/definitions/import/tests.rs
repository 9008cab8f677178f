//! Imports that are cut short, and what is said of those that fail.

use super::*;
use courser_auth::{Tags, User};
use courser_broker::{Broker, Limits};
use courser_store::{MemoryGauge, MemoryStore};
use serde_json::json;
use std::sync::Arc;

fn broker() -> Arc<Broker> {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    Broker::new(store, gauge, Limits::default(), 7)
}

#[test]
fn an_import_ends_when_another_changes_or_deletes_who_asks() {
    type Meanwhile = fn(&Admin);
    let changes: [(Meanwhile, usize); 3] = [
        (|_| {}, 4),
        (|admin| admin.delete_user("boss").expect("it is there"), 2),
        (
            |admin| {
                let change = |user: &mut User| {
                    user.tags = Tags::default();
                    Ok(())
                };
                admin.change_user("boss", change).expect("it is there");
            },
            2,
        ),
    ];
    for (meanwhile, rows) in changes {
        let broker = broker();
        let mut user = User::new("boss", PasswordHash::none());
        user.tags = Tags::administrator();
        broker.admin().create_user(user.clone()).expect("a user");
        let admin = &broker.admin().on_behalf_of(Arc::new(user));
        let mut import = Import::new(admin, None, None, 1, Hashing::default());
        let Value::Object(document) = json!({ "queues": [1, 2, 3, 4] }) else { unreachable!() };
        let mut made = 0;
        let done = import.each(&document, "queues", |_, _| {
            made += 1;
            if made == 2 {
                meanwhile(&broker.admin());
            }
            Ok(())
        });
        assert_eq!((made, done.is_ok()), (rows, rows == 4), "{done:?}");
    }
}

#[test]
fn an_error_of_a_row_names_it_and_shows_nothing_else_of_it() {
    let value = json!({ "src-uri": "amqp://u:PLANTED@h", "dest-uri": "amqp://u:PLANTED@i" });
    let rows = [
        json!({ "component": "shovel", "name": "s", "value": value }),
        json!({ "vhost": "/", "component": "shovel", "value": value }),
        json!({ "vhost": "/", "name": "s", "value": value }),
        json!({ "vhost": "/", "component": "shovel", "name": value }),
    ];
    let whys = [
        r#"'vhost': {"component":"shovel","name":"s"}"#,
        r#"'name': {"component":"shovel","vhost":"/"}"#,
        r#"'component': {"name":"s","vhost":"/"}"#,
        r#"'name': {"component":"shovel","vhost":"/"}"#,
    ];
    for (row, why) in rows.into_iter().zip(whys) {
        let file = json!({ "parameters": [row] }).to_string();
        let refused = import(&broker().admin(), file.as_bytes(), Hashing::default(), 1);
        let refused = refused.expect_err("it lacks something").to_string();
        assert_eq!(refused, format!("a parameter has no text {why}"));
    }
}
