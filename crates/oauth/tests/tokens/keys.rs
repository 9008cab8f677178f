//! Sets of keys and keys from files.

use crate::support::{Signer, check, claims, rules, set};
use courser_oauth::{Algorithm, KEYS_MAX, KeySet, KeysError};
use serde_json::json;

#[test]
fn what_a_set_has_that_can_not_be_used_is_left_out() {
    let signer = Signer::new("k", Algorithm::ES256);
    let mut encrypts = Signer::new("enc", Algorithm::RS256).jwk();
    encrypts["use"] = "enc".into();
    let mut signs = Signer::new("ops", Algorithm::RS256).jwk();
    signs["key_ops"] = json!(["encrypt"]);
    let mut nameless = Signer::new("n", Algorithm::ES256).jwk();
    nameless.as_object_mut().expect("an object").remove("kid");
    let secret =
        json!({ "kty": "oct", "kid": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0" });
    let strange = json!({ "kty": "moon", "kid": "moon" });
    let odd = json!(7);
    let keys = set(&[encrypts, signs, nameless, secret, strange, odd, signer.jwk()]).expect("one");
    assert_eq!(keys.len(), 1);
    assert!(keys.has("k") && !keys.has("oct"));
    check(&signer.sign(&claims()), &keys, &rules()).expect("good");
}

#[test]
fn a_set_is_bounded_and_has_something_in_it() {
    let key = Signer::new("k", Algorithm::ES256).jwk();
    let many = vec![key; KEYS_MAX + 1];
    assert_eq!(set(&many).expect_err("many"), KeysError::TooMany(KEYS_MAX + 1));
    assert_eq!(set(&many[..KEYS_MAX]).expect("enough").len(), KEYS_MAX);
    assert_eq!(set(&[]).expect_err("none"), KeysError::NoneUsable(0));
    for text in ["", "{", "[]", r#"{"keys":7}"#, "<html>", r#"{"error":"x"}"#] {
        let read = KeySet::from_jwks(text.as_bytes());
        assert!(matches!(read, Err(KeysError::NoSet(_))), "{text}");
    }
}

#[test]
fn a_public_key_is_read_from_a_file() {
    for algorithm in [Algorithm::RS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA] {
        let signer = Signer::new("k", algorithm);
        let mut keys = KeySet::default();
        keys.add_pem("k", signer.pair.public_key_pem().as_bytes()).expect("a key");
        check(&signer.sign(&claims()), &keys, &rules()).expect("good");
    }
    let mut keys = KeySet::default();
    let private = Signer::new("k", Algorithm::ES256).pair.serialize_pem();
    for text in [private.as_str(), "", "PUBLIC KEY", "-----BEGIN PUBLIC KEY-----\nAAAA\n"] {
        assert_eq!(keys.add_pem("k", text.as_bytes()), Err(KeysError::NoPublicKey));
    }
    assert_eq!(keys.add_secret("s", &[1; 31], Algorithm::HS256), Err(KeysError::ShortSecret));
    assert!(keys.is_empty());
}
