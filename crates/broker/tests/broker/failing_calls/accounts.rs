//! Users, what they may do, and the vhosts in which they may.

use super::scene::{Census, Scene};
use super::trial;
use crate::support::World;
use courser_auth::{Permission, Tags, TopicPermission};
use courser_broker::AccountsError;
use courser_broker::admin::{Admin, Parameter, VhostSettings};

/// A user with a topic permission, and one more vhost.
const USER: &str = "u";
const EXCHANGE: &str = "amq.topic";
const VHOST: &str = "another";

/// Who there is, what each may do, and where.
pub fn census(world: &World) -> Census {
    let (admin, mut census) = (world.broker.admin(), Census::new());
    let accounts = admin.accounts();
    let mut known = Vec::new();
    for vhost in ["/", VHOST] {
        let is_admitted = world.admit(USER, vhost).is_ok();
        known.extend(is_admitted.then(|| format!("{USER} may enter {vhost}")));
        known.extend(accounts.permission(USER, vhost).map(|may| format!("{vhost}: {may:?}")));
        known.extend(accounts.topic_permissions(USER, vhost).iter().map(|may| format!("{may:?}")));
    }
    known.extend(accounts.user(USER).map(|user| format!("{USER} has {:?}", user.tags)));
    census.insert("accounts".into(), known);
    let parameters = admin.parameters(None, None).expect("all vhosts are there");
    let parameters = parameters.iter().map(|one| format!("{one:?}"));
    let global = admin.global_parameters();
    let global = global.iter().map(|one| format!("{one:?}"));
    census.insert("parameters".into(), parameters.chain(global).collect());
    let vhosts = admin.vhosts().into_iter().map(|one| (one.name, one.description));
    let vhosts = vhosts.map(|(name, description)| format!("{name}: {description}"));
    census.insert("vhosts".into(), vhosts.collect());
    census
}

fn admin(scene: &Scene) -> Admin {
    scene.world.broker.admin()
}

fn put_user(scene: &mut Scene) -> Result<bool, AccountsError> {
    admin(scene).put_user(USER, &[("/".to_owned(), Permission::all())], |_| Ok(()))
}

fn with_user(scene: &mut Scene) {
    assert!(put_user(scene).expect("a user"));
}

fn put_topic_permission(scene: &mut Scene) -> Result<bool, AccountsError> {
    let own = || "^own$".to_owned();
    let permission = TopicPermission { write: own(), read: own() };
    admin(scene).set_topic_permission(USER, "/", EXCHANGE, permission)
}

fn make_vhost(scene: &mut Scene) {
    admin(scene).change_vhost(VHOST, |_| {}).expect("a vhost");
}

fn parameter() -> Parameter {
    let [vhost, component, name, value] = ["/", "component", "name", "1"].map(str::to_owned);
    Parameter { vhost, component, name, value }
}

#[test]
fn put_a_user() {
    trial(|_| {}, |scene| Scene::asked(put_user(scene))).every_call_fails_once();
}

#[test]
fn change_a_user() {
    trial(with_user, |scene| {
        Scene::asked(admin(scene).change_user(USER, |user| {
            user.tags = Tags::administrator();
            Ok(())
        }))
    })
    .every_call_fails_once();
}

#[test]
fn delete_a_user() {
    trial(with_user, |scene| Scene::asked(admin(scene).delete_user(USER))).every_call_fails_once();
}

#[test]
fn set_a_permission() {
    let set = |scene: &mut Scene| {
        let permission = Permission { read: "^a$".to_owned(), ..Permission::all() };
        Scene::asked(admin(scene).set_permission(USER, "/", permission))
    };
    trial(with_user, set).every_call_fails_once();
}

#[test]
fn clear_a_permission() {
    trial(with_user, |scene| Scene::asked(admin(scene).clear_permission(USER, "/")))
        .every_call_fails_once();
}

#[test]
fn set_a_topic_permission() {
    trial(with_user, |scene| Scene::asked(put_topic_permission(scene))).every_call_fails_once();
}

#[test]
fn clear_topic_permissions() {
    let prepare = |scene: &mut Scene| {
        with_user(scene);
        put_topic_permission(scene).expect("a permission");
    };
    trial(prepare, |scene| Scene::asked(admin(scene).clear_topic_permissions(USER, "/", None)))
        .every_call_fails_once();
}

#[test]
fn make_a_vhost() {
    trial(|_| {}, |scene| Scene::asked(admin(scene).change_vhost(VHOST, |_| {})))
        .every_call_fails_once();
}

#[test]
fn change_a_vhost() {
    trial(make_vhost, |scene| {
        let change = |one: &mut VhostSettings| one.description = "changed".to_owned();
        Scene::asked(admin(scene).change_known_vhost(VHOST, change))
    })
    .every_call_fails_once();
}

#[test]
fn delete_a_vhost_with_what_is_in_it() {
    let prepare = |scene: &mut Scene| {
        make_vhost(scene);
        with_user(scene);
        admin(scene).set_permission(USER, VHOST, Permission::all()).expect("a permission");
        let parameter = Parameter { vhost: VHOST.to_owned(), ..parameter() };
        admin(scene).set_parameter(&parameter).expect("a parameter");
    };
    trial(prepare, |scene| Scene::asked(admin(scene).delete_vhost(VHOST))).every_call_fails_once();
}

#[test]
fn set_a_parameter() {
    trial(|_| {}, |scene| Scene::asked(admin(scene).set_parameter(&parameter())))
        .every_call_fails_once();
}

#[test]
fn clear_a_parameter() {
    let prepare = |scene: &mut Scene| drop(admin(scene).set_parameter(&parameter()));
    trial(prepare, |scene| Scene::asked(admin(scene).clear_parameter("/", "component", "name")))
        .every_call_fails_once();
}

#[test]
fn set_a_global_parameter() {
    trial(|_| {}, |scene| Scene::asked(admin(scene).set_global_parameter("name", "1")))
        .every_call_fails_once();
}
