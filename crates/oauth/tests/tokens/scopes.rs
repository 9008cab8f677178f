//! Where the scopes of a token are found.

use crate::support::{Signer, check, rules, with};
use courser_auth::{Authority, Resource, Right};
use courser_oauth::{Algorithm, Rules, TokenAuthority};
use serde_json::{Value, json};

fn given(claims: &Value, change: impl FnOnce(&mut Rules)) -> TokenAuthority {
    let signer = Signer::new("k", Algorithm::ES256);
    let mut rules = rules();
    change(&mut rules);
    check(&signer.sign(claims), &signer.keys(), &rules).expect("good")
}

fn may_read(authority: &TokenAuthority, name: &str) -> bool {
    authority.permits("/", Right::Read, Resource::Queue(name.as_bytes()))
}

#[test]
fn scopes_are_a_list_or_words() {
    for scope in [json!("x mq.read:*/a  mq.read:*/b"), json!(["mq.read:*/a", 7, "mq.read:*/b"])] {
        let all = given(&with("scope", scope), |_| {});
        assert!(may_read(&all, "a") && may_read(&all, "b") && !may_read(&all, "c"));
    }
    assert!(!may_read(&given(&with("scope", 7), |_| {}), "a"));
}

#[test]
fn scopes_are_found_in_other_claims_that_are_named() {
    let mut claims = with("scope", "");
    claims["realm_access"] = json!({ "roles": ["mq.read:*/a"] });
    claims["resource_access"] = json!({ "mq": ["read:*/b"], "other": ["mq.read:*/x"] });
    claims["https://example.com/roles"] = "mq.read:*/c".into();
    let paths = ["realm_access.roles", "resource_access", "https://example.com/roles", "missing.x"];
    let all = given(&claims, |rules| rules.additional_scopes = paths.map(str::to_owned).to_vec());
    assert!(["a", "b", "c"].into_iter().all(|name| may_read(&all, name)));
    assert!(!may_read(&all, "x"));
    assert!(!may_read(&given(&claims, |_| {}), "a"), "the rules do not name them");
}

#[test]
fn an_alias_stands_for_its_scopes() {
    let claims = with("scope", "staff");
    let alias = |rules: &mut Rules| {
        let scopes = vec!["mq.read:*/a".to_owned(), "mq.tag:monitoring".to_owned()];
        rules.scope_aliases.insert("staff".to_owned(), scopes);
    };
    let all = given(&claims, alias);
    assert!(may_read(&all, "a") && !may_read(&all, "b"));
    assert_eq!(all.user().tags.iter().collect::<Vec<_>>(), ["monitoring"]);
    assert!(!may_read(&given(&claims, |_| {}), "a"));
}

#[test]
fn the_prefix_may_be_another_or_none() {
    let claims = with("scope", "read:*/a api://read:*/b");
    let none = given(&claims, |rules| rules.scope_prefix.clear());
    assert!(may_read(&none, "a") && !may_read(&none, "b"));
    let other = given(&claims, |rules| rules.scope_prefix = "api://".to_owned());
    assert!(!may_read(&other, "a") && may_read(&other, "b"));
}

#[test]
fn a_scope_may_name_a_claim() {
    let all = given(&with("scope", "mq.write:*/x/u.{sub}.* mq.read:*/{missing}"), |_| {});
    assert!(all.permits_topic("/", Right::Write, b"x", b"u.alice.1"));
    assert!(!all.permits_topic("/", Right::Write, b"x", b"u.bob.1"));
    assert!(!may_read(&all, ""));
}
