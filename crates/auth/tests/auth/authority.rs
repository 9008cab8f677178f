//! Users of another authority: what is asked of it, and what is said where it refuses.

use super::accounts::accounts;
use courser_auth::{
    Access, Authority, Grant, Login, LoginRefused, Origin, PasswordHash, Resource, Right, Settings,
    Tags, Tried, User,
};
use std::net::IpAddr;
use std::sync::Arc;

/// Lets its user do this with names that begin with `own`, in the vhost `v`.
#[derive(Debug)]
struct Told {
    user: Arc<User>,
    right: Right,
}

impl Authority for Told {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, vhost: &str) -> bool {
        vhost == "v"
    }

    fn permits(&self, vhost: &str, right: Right, resource: Resource<'_>) -> bool {
        let is_own = resource.name().starts_with(b"own") || resource.name() == b"amq.default";
        vhost == "v" && right == self.right && is_own
    }

    fn permits_topic(&self, _: &str, _: Right, exchange: &[u8], key: &[u8]) -> bool {
        exchange == b"own" && key == b"good"
    }
}

fn told(name: &str, right: Right, tags: &str) -> Arc<dyn Authority> {
    let mut user = User::new(name, PasswordHash::none());
    user.origin = Origin::Elsewhere;
    user.tags = Tags::parse(tags).expect("tags");
    Arc::new(Told { user: Arc::new(user), right })
}

#[test]
fn what_it_says_counts_and_refusals_read_as_always() {
    let grant = Grant::new(told("u", Right::Write, ""));
    let mut access = Access::granted(&grant, "v");
    access.enter().expect("permitted");
    assert!(!access.permits_everything() && !access.may_impersonate());
    access.check(Right::Write, Resource::Queue(b"own-1")).expect("permitted");
    access.check(Right::Write, Resource::Exchange(b"")).expect("asked for by its name");
    access.check_any(Resource::Queue(b"own-1")).expect("one right is enough");
    let refused = access.check(Right::Read, Resource::Queue(b"own-1")).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "read access to queue 'own-1' in vhost 'v' refused for user 'u'"
    );
    let refused = access.check_any(Resource::Queue(b"other")).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "configure access to queue 'other' in vhost 'v' refused for user 'u'"
    );
    access.check_topic(Right::Write, b"own", b"good").expect("permitted");
    let refused = access.check_topic(Right::Write, b"own", b"bad").expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "write access to topic 'bad' in exchange 'own' in vhost 'v' refused for user 'u'"
    );
    let refused = Access::granted(&grant, "/").enter().expect_err("refused");
    assert_eq!(refused.to_string(), "access to vhost '/' refused for user 'u'");
}

#[test]
fn what_renews_it_holds_at_once_for_all_that_share_it() {
    let grant = Grant::new(told("u", Right::Write, ""));
    let mut access = Access::granted(&grant, "v");
    grant.renew(told("u", Right::Read, "impersonator"));
    access.check(Right::Read, Resource::Queue(b"own")).expect("new");
    access.check(Right::Write, Resource::Queue(b"own")).expect_err("not any more");
    assert!(access.may_impersonate());
}

#[test]
fn no_other_authority_lets_in_who_has_the_name_of_the_operator() {
    let operator = Login::of_operator().user;
    let near: IpAddr = "::1".parse().expect("an address");
    let login =
        accounts().login_granted(told(&operator.name, Right::Read, ""), Tried::Secret(b"t"), near);
    let refused = login.expect_err("refused").to_string();
    assert_eq!(refused, "user '(operator)' - this is the name of who operates the machine");
}

#[test]
fn the_list_of_users_of_this_machine_is_for_them_too() {
    let accounts = accounts();
    let loopback_users = ["here".to_owned()].into();
    accounts.configure(Settings { loopback_users, ..Settings::default() });
    let afar: IpAddr = "203.0.113.7".parse().expect("an address");
    let near: IpAddr = "::1".parse().expect("an address");
    let refused = accounts
        .login_granted(told("here", Right::Read, ""), Tried::Secret(b"t"), afar)
        .expect_err("refused");
    assert_eq!(refused, LoginRefused::LoopbackOnly("here".to_owned()));
    for (name, from) in [("here", near), ("there", afar)] {
        let login = accounts
            .login_granted(told(name, Right::Read, ""), Tried::Secret(b"t"), from)
            .expect("let in");
        assert_eq!(login.user.name, name);
        assert!(login.grant.is_some());
    }
}
