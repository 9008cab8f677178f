//! Scopes of tokens: what they permit, and what is none.

use courser_auth::{Right, SCOPES_MAX, Scopes, Tag, TooManyScopes};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn scopes(list: &[&str]) -> Scopes {
    let claims = BTreeMap::from([("sub".to_owned(), "a*b".to_owned())]);
    Scopes::new(list.iter().copied(), "rabbitmq.", &claims).expect("not too many")
}

#[test]
fn a_scope_gives_one_right_to_what_fits_in_vhosts_that_fit() {
    let given = scopes(&["rabbitmq.read:prod-*/q-*", "rabbitmq.write:%2F/exact"]);
    assert!(given.permit("prod-1", Right::Read, b"q-1"));
    assert!(given.permit("prod-", Right::Read, b"q-"));
    assert!(!given.permit("prod-1", Right::Write, b"q-1"));
    assert!(!given.permit("prod-1", Right::Configure, b"q-1"));
    assert!(!given.permit("prod-1", Right::Read, b"my-q-1"));
    assert!(!given.permit("test", Right::Read, b"q-1"));
    assert!(given.permit("/", Right::Write, b"exact"));
    assert!(!given.permit("/", Right::Write, b"exactly"));
    assert!(given.permit_vhost("/") && given.permit_vhost("prod-2") && !given.permit_vhost("test"));
}

#[test]
fn a_third_part_is_for_routing_keys_and_without_it_all_are_good() {
    let given = scopes(&["rabbitmq.write:*/x/u.*.end", "rabbitmq.read:*/x"]);
    assert!(given.permit("v", Right::Write, b"x"));
    assert!(given.permit_topic("v", Right::Write, b"x", b"u.1.end"));
    assert!(!given.permit_topic("v", Right::Write, b"x", b"u.1"));
    assert!(!given.permit_topic("v", Right::Write, b"y", b"u.1.end"));
    assert!(given.permit_topic("v", Right::Read, b"x", b"anything"));
}

#[test]
fn a_list_of_them_says_the_same() {
    let claims = BTreeMap::from([("team".to_owned(), "a/b*%{c}".to_owned())]);
    let list = [
        "rabbitmq.read:prod-*/q-*/key.*.end",
        "rabbitmq.write:%2F/exact%2A%ff",
        "rabbitmq.configure:{vhost}/of-{team}-*",
        "rabbitmq.read:*/{vhost}",
        "rabbitmq.tag:monitoring",
    ];
    let given = Scopes::new(list, "rabbitmq.", &claims).expect("scopes");
    let list = given.to_list();
    let again = Scopes::new(list.iter().map(String::as_str), "", &BTreeMap::new());
    let again = again.expect("scopes");
    assert_eq!(again.to_list(), list);
    assert!(again.permit("/", Right::Write, b"exact*\xff") && again.tags().has(Tag::Monitoring));
    for (vhost, right, name) in [
        ("prod-1", Right::Read, &b"q-1"[..]),
        ("x-x", Right::Configure, b"of-a/b*%{c}-1"),
        ("x-x", Right::Configure, b"of-a/b"),
        ("own", Right::Read, b"own"),
        ("own", Right::Read, b"other"),
    ] {
        assert_eq!(again.permit(vhost, right, name), given.permit(vhost, right, name), "{vhost}");
    }
    assert!(again.permit("x-x", Right::Configure, b"of-a/b*%{c}-1"));
}

#[test]
fn tags_are_given_by_scopes_too() {
    let given = scopes(&["rabbitmq.tag:administrator", "rabbitmq.tag:x", "other.tag:monitoring"]);
    assert_eq!(given.tags().iter().collect::<Vec<_>>(), ["administrator", "x"]);
    assert!(!given.permit_vhost("/"), "a tag permits nothing in a vhost");
}

#[test]
fn what_is_no_scope_of_this_broker_gives_nothing() {
    let given = scopes(&[
        "read:*/*",
        "other.read:*/*",
        "rabbitmq.read",
        "rabbitmq.read:*",
        "rabbitmq.read:*/*/*/*",
        "rabbitmq.admin:*/*",
        "rabbitmq.Read:*/*",
        "rabbitmq.read:%/*",
        "rabbitmq.read:%2/*",
        "rabbitmq.read:%zz/*",
        "openid",
        "",
    ]);
    assert_eq!(given, Scopes::default());
}

#[test]
fn variables_stand_for_the_vhost_and_for_claims_and_are_no_wildcards() {
    let given = scopes(&["rabbitmq.read:*/{vhost}-{sub}", "rabbitmq.write:*/{missing}*"]);
    assert!(given.permit("v", Right::Read, b"v-a*b"));
    assert!(!given.permit("v", Right::Read, b"v-axb"));
    assert!(!given.permit("v", Right::Read, b"w-a*b"));
    assert!(!given.permit("v", Right::Write, b"{missing}"), "without the claim it fits nothing");
    // An encoded star is one, and not a wildcard.
    assert!(scopes(&["rabbitmq.read:*/a%2Ab"]).permit("v", Right::Read, b"a*b"));
    assert!(!scopes(&["rabbitmq.read:*/a%2Ab"]).permit("v", Right::Read, b"axb"));
}

#[test]
fn there_is_a_bound_to_scopes() {
    let none = BTreeMap::new();
    let many = vec!["rabbitmq.read:*/*"; SCOPES_MAX];
    assert!(Scopes::new(many.iter().copied(), "rabbitmq.", &none).is_ok());
    let more = vec!["rabbitmq.read:*/*"; SCOPES_MAX + 1];
    assert_eq!(Scopes::new(more.iter().copied(), "rabbitmq.", &none), Err(TooManyScopes));
    let long = format!("rabbitmq.read:*/{}", "a".repeat(5000));
    assert_eq!(Scopes::new([&*long], "rabbitmq.", &none), Err(TooManyScopes));
}

/// The same as a regular expression.
fn by_regex(pattern: &str, name: &str) -> bool {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    regex::Regex::new(&format!("^(?s:{})$", parts.join(".*"))).expect("a pattern").is_match(name)
}

proptest! {
    #[test]
    fn wildcards_match_as_the_regular_expression_does(
        pattern in "[ab*]{0,8}",
        name in "[ab]{0,10}",
    ) {
        let scope = format!("rabbitmq.read:v/{pattern}");
        let given = scopes(&[&scope]).permit("v", Right::Read, name.as_bytes());
        prop_assert_eq!(given, by_regex(&pattern, &name), "{} {}", pattern, name);
    }
}
