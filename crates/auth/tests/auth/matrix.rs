//! Every right on every kind of thing, and what is said where it is missing.

use super::accounts::{accounts, change, permit, put};
use courser_auth::{Access, PasswordHash, Resource, Right, TopicPermission, User};

const RIGHTS: [Right; 3] = [Right::Configure, Right::Write, Right::Read];

/// What a user may do who has exactly the rights of a bit set, on names that begin with `x`.
fn access_with(bits: usize) -> Access {
    let accounts = accounts();
    put(&accounts, User::new("u", PasswordHash::none()));
    let pattern = |bit: usize| if bits & (1 << bit) != 0 { "^x" } else { "" };
    permit(&accounts, "u", [pattern(0), pattern(1), pattern(2)]);
    accounts.access("u", "/")
}

#[test]
fn each_right_is_given_by_its_own_pattern_alone() {
    for bits in 0..8 {
        let mut access = access_with(bits);
        access.enter().expect("a row is enough to enter");
        for resource in [Resource::Queue(b"x-1"), Resource::Exchange(b"x-1")] {
            for (bit, right) in RIGHTS.into_iter().enumerate() {
                let given = access.check(right, resource).is_ok();
                assert_eq!(given, bits & (1 << bit) != 0, "{bits:03b} {right} {resource}");
            }
            assert_eq!(access.check_any(resource).is_ok(), bits != 0, "{bits:03b} {resource}");
        }
        for resource in [Resource::Queue(b"y-x"), Resource::Exchange(b""), Resource::Queue(b"")] {
            for right in RIGHTS {
                // An empty pattern stands for the nameless queue.
                let nameless = resource == Resource::Queue(b"");
                let bit = RIGHTS.iter().position(|one| *one == right).expect("a right");
                let wanted = nameless && bits & (1 << bit) == 0;
                assert_eq!(access.check(right, resource).is_ok(), wanted, "{right} {resource}");
            }
        }
    }
}

#[test]
fn refusals_have_the_texts_that_clients_know() {
    let mut access = access_with(0);
    let text =
        |refused: Result<(), courser_auth::Refusal>| refused.expect_err("refused").to_string();
    assert_eq!(
        text(access.check(Right::Configure, Resource::Queue(b"r-q"))),
        "configure access to queue 'r-q' in vhost '/' refused for user 'u'"
    );
    assert_eq!(
        text(access.check(Right::Read, Resource::Exchange(b"w-x"))),
        "read access to exchange 'w-x' in vhost '/' refused for user 'u'"
    );
    assert_eq!(
        text(access.check(Right::Write, Resource::Exchange(b""))),
        "write access to exchange 'amq.default' in vhost '/' refused for user 'u'"
    );
    assert_eq!(
        text(access.check_any(Resource::Queue(b"r-q"))),
        "configure access to queue 'r-q' in vhost '/' refused for user 'u'"
    );
    let mut nowhere = accounts().access("mon", "/");
    assert_eq!(text(nowhere.enter()), "access to vhost '/' refused for user 'mon'");
    for right in RIGHTS {
        assert!(nowhere.check(right, Resource::Queue(b"q")).is_err());
    }
    assert!(nowhere.check_topic(Right::Write, b"t", b"k").is_err());
}

#[test]
fn the_default_exchange_is_asked_for_under_its_name() {
    let accounts = accounts();
    put(&accounts, User::new("u", PasswordHash::none()));
    permit(&accounts, "u", ["", "^amq\\.default$", ""]);
    let mut access = accounts.access("u", "/");
    access.check(Right::Write, Resource::Exchange(b"")).expect("it may");
}

#[test]
fn topic_permissions_narrow_what_their_exchange_takes() {
    let accounts = accounts();
    put(&accounts, User::new("u.x", PasswordHash::none()));
    permit(&accounts, "u.x", ["", ".*", ".*"]);
    let mut access = accounts.access("u.x", "/");
    access.check_topic(Right::Write, b"t", b"anything").expect("there is no row");
    let permission = TopicPermission { write: r"^ok\.{username}\..*".into(), read: String::new() };
    change(&accounts, |all| Ok(vec![all.set_topic_permission("u.x", "/", "t", permission)?]))
        .expect("set");
    access.check_topic(Right::Write, b"t", b"ok.u.x.1").expect("it may");
    // The name of a user is no pattern.
    assert!(access.check_topic(Right::Write, b"t", b"ok.uyx.1").is_err());
    let refused = access.check_topic(Right::Write, b"t", b"bad.cc").expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "write access to topic 'bad.cc' in exchange 't' in vhost '/' refused for user 'u.x'"
    );
    assert!(access.check_topic(Right::Read, b"t", b"#").is_err());
    access.check_topic(Right::Read, b"t", b"").expect("an empty pattern is that of the empty key");
    access.check_topic(Right::Write, b"other", b"bad").expect("another exchange");
}

#[test]
fn a_variable_that_has_no_value_stands_for_itself() {
    let accounts = accounts();
    put(&accounts, User::new("u", PasswordHash::none()));
    permit(&accounts, "u", ["", ".*", ".*"]);
    let permission = TopicPermission { write: "^{client_id}$".into(), read: "^{vhost}$".into() };
    change(&accounts, |all| Ok(vec![all.set_topic_permission("u", "/", "t", permission)?]))
        .expect("set");
    let mut access = accounts.access("u", "/");
    assert!(access.check_topic(Right::Write, b"t", b"client").is_err());
    access.check_topic(Right::Write, b"t", b"{client_id}").expect("the text itself");
    access.check_topic(Right::Read, b"t", b"/").expect("the vhost");
}

#[test]
fn who_is_unrestricted_may_do_everything() {
    let mut access = Access::unrestricted("embedded", "/");
    access.enter().expect("it may");
    for right in RIGHTS {
        access.check(right, Resource::Queue(b"q")).expect("it may");
        access.check_topic(right, b"t", b"k").expect("it may");
    }
}
