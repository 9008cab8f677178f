//! Password hashes: how a password is kept, and how it is checked.
//!
//! New passwords are hashed with argon2id. The salted SHA-256 and SHA-512 that RabbitMQ's
//! definitions carry are accepted and checked too; they are one round only, so at the first good
//! login they are replaced by an argon2id hash, unless [`Hashing::RabbitSha256`] asks for hashes
//! that RabbitMQ can import. No hash is ever given out under another algorithm's name.

mod argon;
mod no_hashing;
mod rabbit;

use crate::bounds::PASSWORD_BYTES_MAX;
use crate::error::AccountError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub use no_hashing::NoHashing;
use rabbit::{Salted, Sum};
use std::fmt;

/// RabbitMQ's name of salted SHA-256.
const RABBIT_SHA256: &str = "rabbit_password_hashing_sha256";
/// RabbitMQ's name of salted SHA-512.
const RABBIT_SHA512: &str = "rabbit_password_hashing_sha512";
/// Our name of argon2id; what is encoded is the text in PHC's format.
const ARGON2ID: &str = "argon2id";

/// How new passwords are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// argon2id; older hashes are replaced at the next good login.
    #[default]
    Argon2id,
    /// RabbitMQ's salted SHA-256, so that exported definitions can be imported there; nothing is
    /// replaced. An attacker who gets hold of such a hash tries passwords millions of times faster.
    RabbitSha256,
}

/// What a password is checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// There is no password that is right.
    NoPassword,
    Salted(Salted),
    /// The text in PHC's format, which has been checked.
    Argon2id(String),
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what could be tried out.
        f.write_str(self.algorithm().unwrap_or("no password"))
    }
}

impl PasswordHash {
    /// For a user who can't log in with a password.
    pub fn none() -> Self {
        PasswordHash(Kind::NoPassword)
    }

    /// Hashes a password with a random salt. Takes tens of milliseconds with argon2id.
    ///
    /// # Errors
    /// If the password is too long, or the system gives no random numbers.
    pub fn new(password: &[u8], hashing: Hashing) -> Result<Self, AccountError> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(AccountError::PasswordLength);
        }
        let kind = match hashing {
            Hashing::Argon2id => Kind::Argon2id(argon::hash(password)?),
            Hashing::RabbitSha256 => Kind::Salted(Salted::new(Sum::Sha256, password)?),
        };
        Ok(PasswordHash(kind))
    }

    /// Hashes a password that stands in a file in clear anyway: at no cost.
    ///
    /// # Errors
    /// As [`PasswordHash::new`].
    pub fn quick(password: &[u8]) -> Result<Self, AccountError> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(AccountError::PasswordLength);
        }
        Ok(PasswordHash(Kind::Salted(Salted::new(Sum::Sha512, password)?)))
    }

    /// A hash as definitions carry it: in base64, with the name of its algorithm. Without a name it
    /// is salted SHA-256.
    ///
    /// # Errors
    /// If the algorithm is not known, or did not make this hash.
    pub fn decode(hash: &str, algorithm: Option<&str>) -> Result<Self, AccountError> {
        let wrong = |why: String| Err(AccountError::Hash(why));
        if hash.is_empty() {
            return Ok(PasswordHash::none());
        }
        let Ok(bytes) = STANDARD.decode(hash) else {
            return wrong("it is not base64".into());
        };
        let kind = match algorithm.unwrap_or(RABBIT_SHA256) {
            RABBIT_SHA256 => Salted::decode(Sum::Sha256, &bytes).map(Kind::Salted),
            RABBIT_SHA512 => Salted::decode(Sum::Sha512, &bytes).map(Kind::Salted),
            ARGON2ID => argon::decode(&bytes).map(Kind::Argon2id),
            other => Err(format!(
                "algorithm '{other}' is not supported; there are {ARGON2ID}, {RABBIT_SHA256} and \
                 {RABBIT_SHA512}. Set the password anew"
            )),
        };
        kind.map(PasswordHash).or_else(wrong)
    }

    /// The hash in base64; empty where there is no password.
    pub fn encode(&self) -> String {
        match &self.0 {
            Kind::NoPassword => String::new(),
            Kind::Salted(salted) => STANDARD.encode(salted.encode()),
            Kind::Argon2id(text) => STANDARD.encode(text),
        }
    }

    /// The name of its algorithm, if there is a password.
    pub fn algorithm(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::NoPassword => None,
            Kind::Salted(salted) => Some(match salted.sum {
                Sum::Sha256 => RABBIT_SHA256,
                Sum::Sha512 => RABBIT_SHA512,
            }),
            Kind::Argon2id(_) => Some(ARGON2ID),
        }
    }

    /// Whether this is RabbitMQ's name of an algorithm, so that it can check passwords against such hashes.
    pub fn is_name_of_rabbitmq(algorithm: &str) -> bool {
        matches!(algorithm, RABBIT_SHA256 | RABBIT_SHA512)
    }

    /// Whether RabbitMQ could check passwords against it.
    pub fn is_known_to_rabbitmq(&self) -> bool {
        !matches!(self.0, Kind::Argon2id(_))
    }

    /// Whether this is the password. Takes tens of milliseconds for argon2id.
    pub fn verify(&self, password: &[u8]) -> bool {
        match &self.0 {
            // Nor is the empty password right anywhere.
            _ if password.is_empty() || password.len() > PASSWORD_BYTES_MAX => false,
            Kind::NoPassword => false,
            Kind::Salted(salted) => salted.verify(password),
            Kind::Argon2id(text) => argon::verify(text, password),
        }
    }

    /// Whether checking it costs less than what this broker makes does, as of hashes from elsewhere.
    pub(crate) fn is_cheap(&self) -> bool {
        match &self.0 {
            Kind::Argon2id(text) => argon::is_cheap(text),
            Kind::NoPassword | Kind::Salted(_) => true,
        }
    }

    /// Whether checking it takes no noticeable time.
    pub(crate) fn is_quick(&self) -> bool {
        !matches!(self.0, Kind::Argon2id(_))
    }
}

/// Takes as long as it takes to check a password against an argon2id hash.
pub(crate) fn verify_nothing(password: &[u8]) {
    argon::verify_nothing(password);
}

/// Bytes for a salt or a key.
fn random<const N: usize>() -> Result<[u8; N], AccountError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| AccountError::Random)?;
    Ok(bytes)
}
