//! Imports that are cut short.

use super::*;
use courser_auth::{Tags, User};
use courser_broker::{Broker, Limits};
use courser_store::{MemoryGauge, MemoryStore};
use serde_json::json;
use std::sync::Arc;

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
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        let broker = Broker::new(store, gauge, Limits::default(), 7);
        let mut user = User::new("boss", PasswordHash::none());
        user.tags = Tags::administrator();
        broker.admin().create_user(user.clone()).expect("a user");
        let admin = &broker.admin().on_behalf_of(Arc::new(user));
        let (done, skipped, hashing) = <_>::default();
        let (vhost, call, groups) = (None, None, 1);
        let asked_ms = 0;
        let mut import = Import { admin, vhost, call, asked_ms, groups, hashing, done, skipped };
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
