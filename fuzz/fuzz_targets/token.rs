//! Gives whatever the fuzzer comes upon as a token, and as keys: no client is let in that does not have the secret.
#![no_main]

use courser_oauth::{Algorithm, KeySet, Rules, Token, verify};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut keys = KeySet::default();
    keys.add_secret("k", &[7; 32], Algorithm::HS256).expect("long enough");
    let mut rules = Rules::new("mq");
    rules.algorithms.push(Algorithm::HS256);
    rules.default_key = Some("k".to_owned());
    if let Some(token) = Token::recognize(input) {
        assert!(verify(&token, &[&keys], &rules, 1_800_000_000).is_err());
    }
    if let Ok(set) = KeySet::from_jwks(input) {
        assert!(!set.is_empty());
    }
    let _ = keys.add_pem("p", input);
});
