//! Whatever comes in the place of a token or of keys: nothing panics, and nothing is let in.

use crate::support::{NOW, Signer, claims, rules};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_oauth::{Algorithm, KeySet, Token, verify};
use proptest::prelude::*;
use std::sync::LazyLock;

static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::new("k", Algorithm::ES256));
static KEYS: LazyLock<KeySet> = LazyLock::new(|| SIGNER.keys());
static GOOD: LazyLock<String> = LazyLock::new(|| SIGNER.sign(&claims()));

fn is_let_in(password: &[u8]) -> bool {
    Token::recognize(password).is_some_and(|token| verify(&token, &[&*KEYS], &rules(), NOW).is_ok())
}

fn json() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["alg", "kid", "crit", "typ", "jwk", "x5c", "sub", "exp"]);
    let value = prop::sample::select(vec![
        "\"ES256\"",
        "\"none\"",
        "\"HS256\"",
        "\"k\"",
        "[]",
        "{}",
        "7",
        "null",
        "-1e400",
        "\"\\u0000\"",
    ]);
    prop::collection::vec((name, value), 0..6).prop_map(|members| {
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

proptest! {
    #[test]
    fn bytes_are_not_let_in(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!is_let_in(&bytes));
    }

    #[test]
    fn what_is_made_up_is_not_let_in(header in json(), claims in json(), signature in prop::collection::vec(any::<u8>(), 0..80)) {
        let parts = [header.as_bytes(), claims.as_bytes(), &signature];
        let token = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        prop_assert!(!is_let_in(token.as_bytes()));
    }

    #[test]
    fn a_good_token_with_another_byte_is_not_let_in(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut token = GOOD.clone().into_bytes();
        let at = at.index(token.len());
        // The last character of a part has bits that mean nothing.
        let is_last = token.get(at + 1).is_none_or(|next| *next == b'.');
        prop_assume!(token[at] != byte && !is_last);
        token[at] = byte;
        prop_assert!(!is_let_in(&token));
    }

    #[test]
    fn any_text_is_a_set_of_keys_or_is_not(text in json(), bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = KeySet::from_jwks(&bytes);
        let _ = KeySet::from_jwks(format!("{{\"keys\":[{text}]}}").as_bytes());
        let mut keys = KeySet::default();
        prop_assert!(keys.add_pem("k", &bytes).is_err());
    }
}
