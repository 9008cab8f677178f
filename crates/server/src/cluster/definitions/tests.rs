//! What the other group of three nodes has of home's definitions.

mod aside;
mod majority;
mod pieces;
mod silent;

use super::super::testing::{HOME, ONE, Three, wait_until};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::Admin;
use courser_store::Lsn;
use std::sync::atomic::Ordering;

fn put_user(home: &Admin, name: &str) {
    let password = PasswordHash::quick(b"secret").expect("a hash");
    home.create_user(User::new(name, password)).expect("a user");
}

/// Waits as an operator's answer does, and again where that did not wait until all have a version: for as long as it may be, or
/// because a group had no leader.
async fn spread(three: &Three, version: Lsn) {
    wait_until("all groups have it", async || {
        three.spread().await;
        let home = three.front(three.leader(HOME).await);
        home.spreading.held_by_all.load(Ordering::Acquire) >= version.0
    })
    .await;
}

fn is_served(group: &Admin, name: &str) -> bool {
    group.vhost(name).is_some_and(|vhost| vhost.group == ONE.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_has_what_an_operator_has_changed_when_it_is_answered() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    let other = (leader + 1) % 3;
    three.leader(ONE).await;
    // By way of another node, and at home's own.
    for node in [other, leader] {
        three.move_lead(ONE, node).await;
        let (home, group) = (three.admin(HOME).await, three.admin(ONE).await);
        let vhost = format!("v{node}");
        home.change_vhost(&vhost, |settings| settings.group = ONE.0).expect("a vhost");
        put_user(&home, "u");
        home.set_permission("u", &vhost, Permission::all()).expect("a permission");
        // More than one piece.
        for nth in 0..30 {
            let value = format!("\"{}\"", "x".repeat(60_000));
            home.set_global_parameter(&format!("p{nth}"), &value).expect("a parameter");
        }
        let version = home.definitions_version();
        spread(&three, version).await;
        assert!(group.adopted_version() >= version, "the answer waits for it");
        assert!(is_served(&group, &vhost));
        assert_eq!(group.accounts().permission("u", &vhost), Some(Permission::all()));
        // Again where it has waited for as long as it may.
        wait_until("the group has it", async || {
            three.front(node).wait_for_version(ONE, version).await.is_ok()
        })
        .await;
        home.delete_user("u").expect("deleted");
        spread(&three, home.definitions_version()).await;
        assert!(group.accounts().user("u").is_none());
        // What is not written anywhere yet, no node can have.
        let later = home.definitions_version().plus(1 << 40);
        assert!(three.front(node).wait_for_version(ONE, later).await.is_err());
        assert!(three.front((node + 1) % 3).wait_for_version(ONE, version).await.is_err());
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_follows_home_by_itself_also_when_leads_move() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    three.move_lead(ONE, (leader + 1) % 3).await;
    let home = three.admin(HOME).await;
    home.change_vhost("v", |settings| settings.group = ONE.0).expect("a vhost");
    let group = three.admin(ONE).await;
    wait_until("the vhost is there", async || is_served(&group, "v")).await;
    assert!(group.vhost("/").is_none(), "that is at home");
    let before = group.adopted_version();
    drop(group);

    three.move_lead(ONE, (leader + 2) % 3).await;
    let group = three.admin(ONE).await;
    // It serves only after it has asked home.
    assert!(is_served(&group, "v") && group.adopted_version() >= before);
    drop((group, home));

    three.move_lead(HOME, (leader + 1) % 3).await;
    let home = three.admin(HOME).await;
    assert!(home.definitions_version() >= before);
    home.change_vhost("w", |settings| settings.group = ONE.0).expect("a vhost");
    home.delete_vhost("v").expect("deleted");
    let group = three.admin(ONE).await;
    wait_until("the other one is there", async || {
        is_served(&group, "w") && group.vhost("v").is_none()
    })
    .await;
    drop((group, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn little_that_has_changed_waits_for_no_turn() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    // Another node's question, and one of the same node.
    for node in [(leader + 1) % 3, leader] {
        three.move_lead(ONE, node).await;
        let (home, group) = (three.admin(HOME).await, three.admin(ONE).await);
        let turn = three.front(leader).spreading.pieces.turn().await;
        let user = format!("u{node}");
        put_user(&home, &user);
        wait_until("the user is there", async || group.accounts().user(&user).is_some()).await;
        drop(turn);
    }
    three.stop().await;
}
