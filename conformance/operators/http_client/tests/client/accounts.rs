//! Users, permissions, limits.

use crate::support::{Vhost, api};
use rabbitmq_http_client::blocking_api::Client;
use rabbitmq_http_client::commons::{PaginationParams, UserLimitTarget, VirtualHostLimitTarget};
use rabbitmq_http_client::password_hashing;
use rabbitmq_http_client::requests::{
    EnforcedLimitParams, Permissions, TopicPermissions, UserParams,
};

fn hash(password: &str) -> String {
    password_hashing::base64_encoded_salted_password_hash_sha256(
        &password_hashing::salt(),
        password,
    )
}

#[test]
fn users_are_made_with_the_hash_of_their_password_and_log_in() {
    let api = api();
    api.create_user(&UserParams::monitoring("hc-user", &hash("secret"))).expect("made");
    let user = api.get_user("hc-user").expect("shown");
    assert!(user.tags.iter().any(|tag| tag == "monitoring"));
    assert!(api.list_users().expect("listed").iter().any(|user| user.name == "hc-user"));
    assert_eq!(api.list_users_paged(&PaginationParams::first_page(1)).expect("a page").len(), 1);
    let without = api.list_users_without_permissions().expect("listed");
    assert!(without.iter().any(|user| user.name == "hc-user"));

    let own = Client::new("http://127.0.0.1:15672/api", "hc-user", "secret");
    let current = own.current_user().expect("logged in");
    assert_eq!(current.name, "hc-user");
    own.list_nodes().expect("who monitors sees nodes");
    own.list_users().expect_err("users are for administrators");
    Client::new("http://127.0.0.1:15672/api", "hc-user", "wrong")
        .current_user()
        .expect_err("the password is wrong");

    api.create_user(&UserParams::without_tags("hc-other", &hash("x"))).expect("made");
    api.delete_users(vec!["hc-user", "hc-other"]).expect("deleted");
    api.delete_user("hc-user", false).expect_err("it is gone");
    api.delete_user("hc-user", true).expect("gone is as good as deleted");
}

#[test]
fn permissions_are_given_shown_and_taken() {
    let vhost = Vhost::new("hc.permissions");
    let (api, name) = (&vhost.api, vhost.name);
    api.create_user(&UserParams::management("hc-permitted", &hash("x"))).expect("a user");
    let given =
        Permissions { user: "hc-permitted", vhost: name, configure: "^c", read: "^r", write: "" };
    api.declare_permissions(&given).expect("given");
    let shown = api.get_permissions(name, "hc-permitted").expect("shown");
    assert_eq!((&*shown.configure, &*shown.read, &*shown.write), ("^c", "^r", ""));
    assert_eq!(api.list_permissions_in(name).expect("listed").len(), 2);
    assert_eq!(api.list_permissions_of("hc-permitted").expect("listed").len(), 1);
    assert!(api.list_permissions().expect("listed").len() >= 2);
    let topic = TopicPermissions {
        user: "hc-permitted",
        vhost: name,
        write: "^w",
        read: ".*",
        exchange: "amq.topic",
    };
    api.declare_topic_permissions(&topic).expect("given");
    assert_eq!(api.get_topic_permissions_of(name, "hc-permitted").expect("shown").write, "^w");
    assert_eq!(api.list_topic_permissions_in(name).expect("listed").len(), 1);
    assert_eq!(api.list_topic_permissions_of("hc-permitted").expect("listed").len(), 1);
    assert!(!api.list_topic_permissions().expect("listed").is_empty());
    api.clear_topic_permissions(name, "hc-permitted", false).expect("taken");
    api.clear_permissions(name, "hc-permitted", false).expect("taken");
    api.clear_permissions(name, "hc-permitted", false).expect_err("there are none");
    api.grant_full_permissions("hc-permitted", name).expect("given");
    api.delete_user("hc-permitted", false).expect("deleted");
    assert_eq!(api.list_permissions_in(name).expect("listed").len(), 1);
}

#[test]
fn limits_of_users_and_vhosts_are_set_and_cleared() {
    let vhost = Vhost::new("hc.limits");
    let (api, name) = (&vhost.api, vhost.name);
    api.set_vhost_limit(name, EnforcedLimitParams::new(VirtualHostLimitTarget::MaxQueues, 1))
        .expect("set");
    let shown = api.list_vhost_limits(name).expect("listed");
    assert_eq!(shown[0].limits.get("max-queues"), Some(&1.into()));
    assert!(api.list_all_vhost_limits().expect("listed").iter().any(|row| row.vhost == name));
    api.declare_classic_queue(name, "one").expect("within the limit");
    api.declare_classic_queue(name, "two").expect_err("beyond the limit");
    api.clear_vhost_limit(name, VirtualHostLimitTarget::MaxQueues).expect("cleared");
    api.declare_classic_queue(name, "two").expect("no limit");

    api.create_user(&UserParams::without_tags("hc-limited", &hash("x"))).expect("a user");
    api.set_user_limit("hc-limited", EnforcedLimitParams::new(UserLimitTarget::MaxChannels, 5))
        .expect("set");
    let shown = api.list_user_limits("hc-limited").expect("listed");
    assert_eq!(shown[0].limits.get("max-channels"), Some(&5.into()));
    assert!(
        api.list_all_user_limits().expect("listed").iter().any(|row| row.username == "hc-limited")
    );
    api.clear_user_limit("hc-limited", UserLimitTarget::MaxChannels).expect("cleared");
    api.delete_user("hc-limited", false).expect("deleted");
}
