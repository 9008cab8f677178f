//! A signer of tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_oauth::{Algorithm, KeySet, Rules, Token, TokenAuthority, TokenRefused, verify};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{EncodingKey, Header, encode};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
};
use serde_json::{Value, json};

/// The moment of all tests, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

/// A key that signs.
pub struct Signer {
    pub pair: KeyPair,
    pub algorithm: Algorithm,
    pub name: &'static str,
}

impl Signer {
    pub fn new(name: &'static str, algorithm: Algorithm) -> Self {
        let kind = match algorithm {
            Algorithm::ES256 => &PKCS_ECDSA_P256_SHA256,
            Algorithm::ES384 => &PKCS_ECDSA_P384_SHA384,
            Algorithm::EdDSA => &PKCS_ED25519,
            _ => &PKCS_RSA_SHA256,
        };
        Signer { pair: KeyPair::generate_for(kind).expect("a key"), algorithm, name }
    }

    fn encoding(&self) -> EncodingKey {
        match self.algorithm {
            Algorithm::ES256 | Algorithm::ES384 => {
                EncodingKey::from_ec_der(self.pair.serialized_der())
            }
            Algorithm::EdDSA => EncodingKey::from_ed_der(self.pair.serialized_der()),
            _ => EncodingKey::from_rsa_pem(self.pair.serialize_pem().as_bytes()).expect("RSA"),
        }
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&self.header(), claims)
    }

    pub fn header(&self) -> Header {
        Header { kid: Some(self.name.to_owned()), ..Header::new(self.algorithm) }
    }

    pub fn sign_with(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.encoding()).expect("a token")
    }

    pub fn jwk(&self) -> Value {
        if self.algorithm == Algorithm::EdDSA {
            let x = URL_SAFE_NO_PAD.encode(self.pair.public_key_raw());
            return json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.name });
        }
        let jwk = Jwk::from_encoding_key(&self.encoding(), self.algorithm).expect("a key");
        let mut jwk = serde_json::to_value(jwk).expect("JSON");
        jwk["kid"] = self.name.into();
        jwk
    }

    pub fn keys(&self) -> KeySet {
        set(&[self.jwk()]).expect("keys")
    }
}

pub fn set(keys: &[Value]) -> Result<KeySet, courser_oauth::KeysError> {
    KeySet::from_jwks(json!({ "keys": keys }).to_string().as_bytes())
}

/// Good claims.
pub fn claims() -> Value {
    json!({ "sub": "alice", "aud": "mq", "exp": NOW + 60, "scope": "mq.read:*/* mq.tag:management" })
}

pub fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[name] = value.into();
    claims
}

pub fn rules() -> Rules {
    let mut rules = Rules::new("mq");
    rules.algorithms = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]
        .map(|name| name.parse().expect("known"))
        .to_vec();
    rules
}

pub fn check(token: &str, keys: &KeySet, rules: &Rules) -> Result<TokenAuthority, TokenRefused> {
    let token = Token::recognize(token.as_bytes()).expect("a token by its form");
    verify(&token, &[keys], rules, NOW)
}
