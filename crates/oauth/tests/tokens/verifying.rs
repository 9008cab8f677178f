//! Signatures, keys and claims.

use crate::support::{NOW, Signer, check, claims, rules, set, with};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_auth::{Authority, Resource, Right};
use courser_oauth::{Algorithm, KeySet, TOKEN_BYTES_MAX, Token, TokenRefused};
use jsonwebtoken::{EncodingKey, Header, encode};
use rcgen::PublicKeyData as _;
use serde_json::{Value, json};

#[test]
fn a_good_token_names_a_user_and_says_what_it_may_do() {
    for algorithm in [Algorithm::RS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA] {
        let signer = Signer::new("k", algorithm);
        let good = check(&signer.sign(&claims()), &signer.keys(), &rules()).expect("good");
        assert_eq!(good.user().name, "alice");
        assert_eq!(good.user().tags.iter().collect::<Vec<_>>(), ["management"]);
        assert_eq!(good.expires_ms(), Some((NOW + 60) * 1000));
        assert!(good.is_renewable());
        assert!(good.permits("/", Right::Read, Resource::Queue(b"q")));
        assert!(!good.permits("/", Right::Write, Resource::Queue(b"q")));
    }
}

#[test]
fn a_token_that_was_changed_or_signed_by_another_key_is_refused() {
    let (signer, other) = (Signer::new("k", Algorithm::ES256), Signer::new("k", Algorithm::ES256));
    let refused = check(&other.sign(&claims()), &signer.keys(), &rules()).expect_err("foreign");
    assert_eq!(refused, TokenRefused::Signature);
    let token = signer.sign(&claims());
    let parts: Vec<&str> = token.split('.').collect();
    let forged = URL_SAFE_NO_PAD.encode(with("sub", "boss").to_string());
    let forged = format!("{}.{forged}.{}", parts[0], parts[2]);
    let refused = check(&forged, &signer.keys(), &rules()).expect_err("changed");
    assert_eq!(refused, TokenRefused::Signature);
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    let refused = check(&unsigned, &signer.keys(), &rules()).expect_err("unsigned");
    assert_eq!(refused, TokenRefused::Signature);
}

#[test]
fn a_token_that_is_not_signed_is_refused_however_it_is_written() {
    let keys = Signer::new("k", Algorithm::ES256).keys();
    for name in ["none", "None", "NONE", "nOnE", "", "ES256 "] {
        let header = URL_SAFE_NO_PAD.encode(json!({ "alg": name, "kid": "k" }).to_string());
        let token = format!("{header}.{}.", URL_SAFE_NO_PAD.encode(claims().to_string()));
        let refused = check(&token, &keys, &rules()).expect_err("not signed");
        assert_eq!(refused, TokenRefused::Algorithm(name.to_owned()));
    }
}

#[test]
fn a_public_key_is_never_taken_for_a_secret() {
    let signer = Signer::new("k", Algorithm::RS256);
    let mut rules = rules();
    rules.algorithms.push(Algorithm::HS256);
    let header = Header { kid: Some("k".to_owned()), ..Header::new(Algorithm::HS256) };
    let pem = signer.pair.public_key_pem();
    let der = signer.pair.subject_public_key_info();
    let mut of_pem = KeySet::default();
    of_pem.add_pem("k", pem.as_bytes()).expect("a key");
    for secret in [pem.as_bytes(), pem.trim().as_bytes(), &der, signer.pair.public_key_raw()] {
        let token = encode(&header, &claims(), &EncodingKey::from_secret(secret)).expect("a token");
        for keys in [&of_pem, &signer.keys()] {
            let refused = check(&token, keys, &rules).expect_err("confused");
            assert_eq!(refused, TokenRefused::UnknownKey("k".to_owned()));
        }
    }
}

#[test]
fn only_algorithms_that_are_asked_for_are_accepted() {
    let signer = Signer::new("k", Algorithm::RS256);
    let mut rules = rules();
    rules.algorithms = vec![Algorithm::ES256];
    let refused = check(&signer.sign(&claims()), &signer.keys(), &rules).expect_err("RS256");
    assert_eq!(refused, TokenRefused::Algorithm("RS256".to_owned()));
    // A key that says what it is for is for nothing else.
    let rules = crate::support::rules();
    let header = Header { alg: Algorithm::PS256, ..signer.header() };
    let token = signer.sign_with(&header, &claims());
    let mut jwk = signer.jwk();
    jwk["alg"] = "RS256".into();
    let refused = check(&token, &set(&[jwk.clone()]).expect("keys"), &rules).expect_err("PS256");
    assert_eq!(refused, TokenRefused::UnknownKey("k".to_owned()));
    jwk.as_object_mut().expect("an object").remove("alg");
    check(&token, &set(&[jwk]).expect("keys"), &rules).expect("it may be used with both");
}

#[test]
fn a_shared_secret_is_for_its_own_algorithm() {
    let secret = [7; 32];
    let mut keys = KeySet::default();
    keys.add_secret("s", &secret, Algorithm::HS256).expect("long enough");
    let sign = |algorithm| {
        let header = Header { kid: Some("s".to_owned()), ..Header::new(algorithm) };
        encode(&header, &claims(), &EncodingKey::from_secret(&secret)).expect("a token")
    };
    let mut rules = rules();
    let refused = check(&sign(Algorithm::HS256), &keys, &rules).expect_err("not accepted");
    assert_eq!(refused, TokenRefused::Algorithm("HS256".to_owned()));
    rules.algorithms = vec![Algorithm::HS256, Algorithm::HS512];
    check(&sign(Algorithm::HS256), &keys, &rules).expect("good");
    let refused = check(&sign(Algorithm::HS512), &keys, &rules).expect_err("another");
    assert_eq!(refused, TokenRefused::UnknownKey("s".to_owned()));
}

#[test]
fn the_key_is_the_one_that_the_token_names_or_the_default() {
    let (one, two) = (Signer::new("one", Algorithm::ES256), Signer::new("two", Algorithm::ES256));
    let keys = set(&[one.jwk(), two.jwk()]).expect("keys");
    check(&two.sign(&claims()), &keys, &rules()).expect("good");
    let nameless = two.sign_with(&Header::new(Algorithm::ES256), &claims());
    assert_eq!(check(&nameless, &keys, &rules()).expect_err("nameless"), TokenRefused::NoKey);
    let mut rules = rules();
    rules.default_key = Some("two".to_owned());
    check(&nameless, &keys, &rules).expect("good");
    let unknown = Signer::new("three", Algorithm::ES256).sign(&claims());
    let refused = check(&unknown, &keys, &rules).expect_err("unknown");
    assert_eq!(refused, TokenRefused::UnknownKey("three".to_owned()));
    // Keys in the token itself, or addresses of some, mean nothing.
    let mut header = one.header();
    let stranger = Signer::new("one", Algorithm::ES256);
    header.jwk = serde_json::from_value(stranger.jwk()).ok();
    header.jku = Some("https://attacker.example/keys".to_owned());
    let refused =
        check(&stranger.sign_with(&header, &claims()), &keys, &rules).expect_err("own key");
    assert_eq!(refused, TokenRefused::Signature);
}

#[test]
fn a_token_with_critical_parts_is_refused() {
    let signer = Signer::new("k", Algorithm::ES256);
    let header = Header { crit: Some(vec!["b64".to_owned()]), ..signer.header() };
    let refused = check(&signer.sign_with(&header, &claims()), &signer.keys(), &rules());
    assert_eq!(refused.expect_err("critical"), TokenRefused::Critical);
}

/// What is said of these claims.
fn refusal(claims: &Value, change: impl FnOnce(&mut courser_oauth::Rules)) -> Option<TokenRefused> {
    let signer = Signer::new("k", Algorithm::ES256);
    let mut rules = rules();
    change(&mut rules);
    check(&signer.sign(claims), &signer.keys(), &rules).err()
}

#[test]
fn a_token_counts_from_nbf_to_exp_and_a_little_longer() {
    let expired = TokenRefused::Expired { at: NOW, now: NOW };
    assert_eq!(refusal(&with("exp", NOW), |_| {}), Some(expired));
    assert_eq!(refusal(&with("exp", NOW), |rules| rules.leeway_s = 1), None);
    assert_eq!(refusal(&with("exp", NOW as f64 + 1.5), |_| {}), None);
    let never = TokenRefused::Expired { at: 0, now: NOW };
    assert_eq!(refusal(&with("exp", -5), |_| {}), Some(never));
    assert_eq!(refusal(&with("exp", "soon"), |_| {}), Some(TokenRefused::NoNumber("exp")));
    assert_eq!(refusal(&with("exp", Value::Null), |_| {}), Some(TokenRefused::NoNumber("exp")));
    assert_eq!(refusal(&with("exp", u64::MAX), |_| {}), None);
    let mut endless = claims();
    endless.as_object_mut().expect("an object").remove("exp");
    assert_eq!(refusal(&endless, |_| {}), Some(TokenRefused::NoExpiry));
    assert_eq!(refusal(&endless, |rules| rules.require_expiry = false), None);
    let early = TokenRefused::NotYet { from: NOW + 5, now: NOW };
    assert_eq!(refusal(&with("nbf", NOW + 5), |_| {}), Some(early));
    assert_eq!(refusal(&with("nbf", NOW + 5), |rules| rules.leeway_s = 5), None);
    assert_eq!(refusal(&with("nbf", NOW), |_| {}), None);
}

#[test]
fn a_token_is_for_this_broker_and_from_its_issuer() {
    let foreign = Some(TokenRefused::Audience("mq".to_owned()));
    for audience in [json!("other"), json!([]), json!(["a", "mqx"]), json!(7), json!({ "mq": 1 })] {
        assert_eq!(refusal(&with("aud", audience), |_| {}), foreign);
    }
    for audience in [json!("mq"), json!(["a", "mq"]), json!("a mq")] {
        assert_eq!(refusal(&with("aud", audience), |_| {}), None);
    }
    assert_eq!(refusal(&with("aud", "other"), |rules| rules.verify_audience = false), None);
    let issuer = "https://id.example/realms/mq";
    let want = |rules: &mut courser_oauth::Rules| rules.issuer = Some(issuer.to_owned());
    assert_eq!(refusal(&with("iss", issuer), want), None);
    let foreign = Some(TokenRefused::Issuer(issuer.to_owned()));
    assert_eq!(refusal(&with("iss", "https://id.example"), want), foreign);
    assert_eq!(refusal(&claims(), want), foreign);
}

#[test]
fn a_token_has_to_name_its_user() {
    let named = |claims: &Value, wanted: &[&str]| {
        let signer = Signer::new("k", Algorithm::ES256);
        let mut rules = rules();
        rules.name_claims = wanted.iter().map(ToString::to_string).collect();
        check(&signer.sign(claims), &signer.keys(), &rules).map(|good| good.user().name.clone())
    };
    assert_eq!(named(&with("user_name", "bob"), &["user_name"]).as_deref(), Ok("bob"));
    assert_eq!(named(&claims(), &["user_name"]).as_deref(), Ok("alice"));
    assert_eq!(named(&with("user_name", 7), &["user_name"]).as_deref(), Ok("alice"));
    let mut client = with("client_id", "program");
    client["sub"] = "".into();
    assert_eq!(named(&client, &[]).as_deref(), Ok("program"));
    client["client_id"] = Value::Null;
    assert_eq!(named(&client, &[]), Err(TokenRefused::NoName));
    assert_eq!(named(&with("sub", "x".repeat(256)), &[]), Err(TokenRefused::NoName));
}

#[test]
fn a_token_is_bounded() {
    let signer = Signer::new("k", Algorithm::ES256);
    let long = signer.sign(&with("filler", "x".repeat(TOKEN_BYTES_MAX)));
    let refused = check(&long, &signer.keys(), &rules()).expect_err("long");
    assert_eq!(refused, TokenRefused::TooLong);
    let many = "mq.read:*/* ".repeat(1001);
    let refused = check(&signer.sign(&with("scope", many)), &signer.keys(), &rules());
    assert!(matches!(refused, Err(TokenRefused::Scopes(_))), "{refused:?}");
}

#[test]
fn a_password_is_no_token() {
    let header = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT"}"#);
    for password in ["", "secret", "a.b.c", "..", "a.b", &format!("{header}.e30.x"), "a.b.c.d"] {
        assert_eq!(Token::recognize(password.as_bytes()), None, "{password}");
    }
    let good = Signer::new("k", Algorithm::ES256).sign(&claims());
    assert_eq!(Token::recognize(format!("{good}=").as_bytes()), None, "padding is none");
    assert_eq!(Token::recognize(format!("{good}.x").as_bytes()), None);
    assert!(Token::recognize(good.as_bytes()).is_some_and(|token| token.key() == Some("k")));
}
