//! Keys that tokens are signed with, by name.
//!
//! A key is good for algorithms of its own kind only, whatever a token says: what is public must never be taken for a secret.

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;
use std::fmt;

/// Keys of a set.
pub const KEYS_MAX: usize = 100;
/// Bytes of a key's name.
const NAME_BYTES_MAX: usize = 1024;
/// Bytes of a secret that is shared with the signer.
const SECRET_BYTES_MIN: usize = 32;
/// Bytes of the point that a public key is, with a curve of 256 and of 384 bits.
const P256_BYTES: usize = 65;
const P384_BYTES: usize = 97;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Why keys can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// It is no set of keys.
    #[error("it is no JSON with a list 'keys': {0}")]
    NoSet(String),
    /// There are too many.
    #[error("it has {0} keys; at most {KEYS_MAX} are read")]
    TooMany(usize),
    /// None of them can be used.
    #[error(
        "none of its {0} keys can be used: each needs a 'kid', and RSA, P-256, P-384 or Ed25519"
    )]
    NoneUsable(usize),
    /// It is no public key.
    #[error("it is no public key in PEM form (RSA, P-256, P-384 or Ed25519)")]
    NoPublicKey,
    /// A secret is easily guessed.
    #[error("a secret for HS256, HS384 or HS512 needs at least {SECRET_BYTES_MIN} bytes")]
    ShortSecret,
}

/// Keys by their names.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Clone)]
pub(crate) struct Key {
    name: String,
    /// Those that it may be used with.
    algorithms: Vec<Algorithm>,
    pub decoding: DecodingKey,
}

impl KeySet {
    /// Reads a set of keys as issuers publish it (JWKS). What can't be used is left out: encryption keys, secrets, and
    /// kinds that are not known.
    ///
    /// # Errors
    /// If it is no set, has too many keys, or none that can be used.
    pub fn from_jwks(text: &[u8]) -> Result<Self, KeysError> {
        let set: Value =
            serde_json::from_slice(text).map_err(|error| KeysError::NoSet(error.to_string()))?;
        let Some(list) = set.get("keys").and_then(Value::as_array) else {
            return Err(KeysError::NoSet("there is no such list".to_owned()));
        };
        if list.len() > KEYS_MAX {
            return Err(KeysError::TooMany(list.len()));
        }
        let keys: Vec<Key> = list.iter().filter_map(Key::from_jwk).collect();
        if keys.is_empty() {
            return Err(KeysError::NoneUsable(list.len()));
        }
        Ok(KeySet { keys })
    }

    /// Adds a public key in PEM form.
    ///
    /// # Errors
    /// If it is none.
    pub fn add_pem(&mut self, name: &str, pem: &[u8]) -> Result<(), KeysError> {
        let is_public = pem.windows(10).any(|part| part == b"PUBLIC KEY");
        let found = is_public.then(|| public_key(pem)).flatten();
        let (decoding, algorithms) = found.ok_or(KeysError::NoPublicKey)?;
        self.keys.push(Key { name: name.to_owned(), algorithms, decoding });
        Ok(())
    }

    /// Adds a secret that the signer has too.
    ///
    /// # Errors
    /// If it is short enough to be guessed.
    pub fn add_secret(
        &mut self,
        name: &str,
        secret: &[u8],
        algorithm: Algorithm,
    ) -> Result<(), KeysError> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(KeysError::ShortSecret);
        }
        let decoding = DecodingKey::from_secret(secret);
        self.keys.push(Key { name: name.to_owned(), algorithms: vec![algorithm], decoding });
        Ok(())
    }

    /// Whether there is a key of this name.
    pub fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key of this name, for this algorithm.
    pub(crate) fn find(&self, name: &str, algorithm: Algorithm) -> Option<&Key> {
        let mut named = self.keys.iter().filter(|key| key.name == name);
        named.find(|key| key.algorithms.contains(&algorithm))
    }
}

impl Key {
    fn from_jwk(value: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        let name = jwk.common.key_id.clone().filter(|name| name.len() <= NAME_BYTES_MAX)?;
        let is_for_signing =
            jwk.common.public_key_use.as_ref().is_none_or(|one| *one == PublicKeyUse::Signature);
        let verifies = jwk
            .common
            .key_operations
            .as_ref()
            .is_none_or(|all| all.contains(&KeyOperations::Verify));
        let kinds: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA,
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Algorithm::ES256],
                EllipticCurve::P384 => &[Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            // A secret that is published is none.
            _ => return None,
        };
        let algorithms = match jwk.common.key_algorithm {
            None => kinds.to_vec(),
            Some(only) => kinds.iter().copied().filter(|kind| is(only, *kind)).collect(),
        };
        if !is_for_signing || !verifies || algorithms.is_empty() {
            return None;
        }
        Some(Key { name, algorithms, decoding: DecodingKey::from_jwk(&jwk).ok()? })
    }
}

fn is(named: KeyAlgorithm, algorithm: Algorithm) -> bool {
    named.to_string().parse() == Ok(algorithm)
}

/// A public key in PEM form, and what it can be used with.
fn public_key(pem: &[u8]) -> Option<(DecodingKey, Vec<Algorithm>)> {
    if let Ok(key) = DecodingKey::from_rsa_pem(pem) {
        return Some((key, RSA.to_vec()));
    }
    if let Ok(key) = DecodingKey::from_ed_pem(pem) {
        return Some((key, vec![Algorithm::EdDSA]));
    }
    let key = DecodingKey::from_ec_pem(pem).ok()?;
    let algorithm = match key.try_get_as_bytes().ok()?.len() {
        P256_BYTES => Algorithm::ES256,
        P384_BYTES => Algorithm::ES384,
        _ => return None,
    };
    Some((key, vec![algorithm]))
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.name)).finish()
    }
}
