//! RabbitMQ's hashes: a salt of four bytes, then the sum of salt and password.

use super::random;
use crate::error::AccountError;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

const SALT_BYTES: usize = 4;

/// What is summed up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Sha256,
    Sha512,
}

impl Sum {
    fn of(self, salt: &[u8], password: &[u8]) -> Vec<u8> {
        match self {
            Sum::Sha256 => {
                Sha256::new().chain_update(salt).chain_update(password).finalize().to_vec()
            }
            Sum::Sha512 => {
                Sha512::new().chain_update(salt).chain_update(password).finalize().to_vec()
            }
        }
    }

    fn len(self) -> usize {
        match self {
            Sum::Sha256 => 32,
            Sum::Sha512 => 64,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Salted {
    pub sum: Sum,
    salt: [u8; SALT_BYTES],
    digest: Vec<u8>,
}

impl Salted {
    pub fn new(sum: Sum, password: &[u8]) -> Result<Self, AccountError> {
        let salt = random()?;
        Ok(Salted { sum, salt, digest: sum.of(&salt, password) })
    }

    pub fn decode(sum: Sum, bytes: &[u8]) -> Result<Self, String> {
        match bytes.split_first_chunk() {
            Some((salt, digest)) if digest.len() == sum.len() => {
                Ok(Salted { sum, salt: *salt, digest: digest.to_vec() })
            }
            _ => Err(format!("it has {} bytes, not {}", bytes.len(), SALT_BYTES + sum.len())),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        [&self.salt[..], &self.digest].concat()
    }

    pub fn verify(&self, password: &[u8]) -> bool {
        self.sum.of(&self.salt, password).ct_eq(&self.digest).into()
    }
}
