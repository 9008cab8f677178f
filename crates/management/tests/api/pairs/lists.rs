//! Questions beside changes of what they list: what goes meanwhile is not in the answer, and no question fails for it.

use super::reads::{questions, world};
use super::{FIRST, World};
use crate::direct::{Asked, Direct};
use courser_auth::{PasswordHash, Permission};
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewBinding, NewQueue};
use courser_codec::ShortString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of each kind, what comes and goes at a time.
const AT_A_TIME: usize = 40;
/// How often each question is asked.
const ROUNDS: usize = 20;

/// Makes vhosts and users, and queues and exchanges of the vhost `v`, and deletes them.
fn come_and_go(direct: &Direct) {
    let admin = direct.broker.admin();
    let names: Vec<String> = (0..AT_A_TIME).map(|nth| format!("n{nth}")).collect();
    let topic = ExchangeSettings {
        kind: ExchangeKind::Topic,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: Default::default(),
    };
    for name in &names {
        admin.change_vhost(name, |_| {}).expect("a vhost");
        direct.add_user_with(PasswordHash::decode(FIRST, None), name, "monitoring");
        admin.set_permission(name, "v", Permission::all()).expect("a permission");
        admin.declare_exchange("v", name, &topic).expect("an exchange");
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        admin.declare_queue("v", name, queue).expect("a queue");
        let short = ShortString::new(name.as_bytes()).expect("a name");
        let binding = NewBinding {
            source: short.clone(),
            destination: short.clone(),
            to_queue: true,
            routing_key: short,
            arguments: Default::default(),
        };
        admin.bind("v", binding).expect("bound");
    }
    for name in &names {
        admin.delete_vhost(name).expect("a vhost");
        admin.delete_user(name).expect("a user");
        admin.delete_exchange("v", name.as_bytes(), false).expect("an exchange");
        admin.delete_queue("v", name.as_bytes(), false, false).expect("a queue");
    }
}

/// The questions that are answered.
async fn answered(world: &World) -> Vec<String> {
    let mut answered = Vec::new();
    for path in questions(world).await {
        if world.direct.ask(Asked::new("GET", &path).by("root")).await.status == 200 {
            answered.push(path);
        }
    }
    for list in ["/api/bindings", "/api/definitions", "/api/policies/v", "/api/users"] {
        assert!(answered.iter().any(|one| one == list), "{list} is not asked for");
    }
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_are_answered_while_what_they_list_comes_and_goes() {
    let world = world().await;
    let questions = answered(&world).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let changing = {
        let (direct, is_over) = (Arc::clone(&world.direct), Arc::clone(&is_over));
        tokio::task::spawn_blocking(move || {
            while !is_over.load(Ordering::Relaxed) {
                come_and_go(&direct);
            }
        })
    };
    let mut failed = Vec::new();
    for path in &questions {
        for _ in 0..ROUNDS {
            let status = world.direct.ask(Asked::new("GET", path).by("root")).await.status;
            if status != 200 {
                failed.push(format!("{path}: {status}"));
                break;
            }
        }
    }
    is_over.store(true, Ordering::Relaxed);
    changing.await.expect("it changes");
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Queues of the vhost that moves: an export takes long enough to be met by a move.
const QUEUES: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_exports_are_answered_while_a_vhost_moves_to_another_group_and_back() {
    let world = world().await;
    let admin = world.direct.broker.admin();
    for nth in 0..QUEUES {
        admin.declare_queue("v", &format!("n{nth}"), NewQueue::default()).expect("a queue");
    }
    let vhost = admin.vhost_handle("v").expect("it is there");
    let is_over = Arc::new(AtomicBool::new(false));
    let moving = {
        let (direct, is_over) = (Arc::clone(&world.direct), Arc::clone(&is_over));
        tokio::task::spawn_blocking(move || {
            while !is_over.load(Ordering::Relaxed) {
                for group in [1, 0] {
                    direct.broker.admin().set_vhost_group(&vhost, group).expect("it is moved");
                }
            }
        })
    };
    let mut failed = Vec::new();
    for list in ["bindings", "consumers", "definitions", "parameters", "policies", "queues"] {
        for _ in 0..10 * ROUNDS {
            let path = format!("/api/{list}");
            let answer = world.direct.ask(Asked::new("GET", &path).by("root")).await;
            let has_vhost = list != "definitions" || {
                let vhosts = answer.json()["vhosts"].clone();
                vhosts.as_array().is_some_and(|rows| rows.iter().any(|row| row["name"] == "v"))
            };
            if answer.status != 200 || !has_vhost {
                failed.push(format!("{path}: {}", answer.status));
                break;
            }
        }
    }
    is_over.store(true, Ordering::Relaxed);
    moving.await.expect("it moves");
    assert!(failed.is_empty(), "{failed:#?}");
}
