//! argon2id, in PHC's text format.

use super::random;
use crate::error::AccountError;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

/// KiB that one hash takes: little, because several may be made at once beside a broker's messages.
const MEMORY_KIB: u32 = 7 * 1024;
/// Rounds; with so much memory, as strong as two with 19 MiB.
const ROUNDS: u32 = 5;
const SALT_BYTES: usize = 16;

/// What a hash from elsewhere may cost at most, so that nobody is kept busy by one.
const FOREIGN_MEMORY_KIB_MAX: u32 = 128 * 1024;
const FOREIGN_ROUNDS_MAX: u32 = 16;
const FOREIGN_LANES_MAX: u32 = 8;
const FOREIGN_TEXT_BYTES_MAX: usize = 512;

fn ours() -> Argon2<'static> {
    // These are good; were they not, the library's own would do.
    let params = Params::new(MEMORY_KIB, ROUNDS, 1, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

pub(super) fn hash(password: &[u8]) -> Result<String, AccountError> {
    let salt: [u8; SALT_BYTES] = random()?;
    match ours().hash_password_with_salt(password, &salt) {
        Ok(hash) => Ok(hash.to_string()),
        Err(error) => Err(AccountError::Hash(error.to_string())),
    }
}

pub(super) fn verify(text: &str, password: &[u8]) -> bool {
    // The costs are those in the text.
    PasswordHash::new(text).is_ok_and(|hash| ours().verify_password(password, &hash).is_ok())
}

pub(super) fn verify_nothing(password: &[u8]) {
    let mut out = [0_u8; 32];
    // What comes out, or why nothing does, is of no interest: only the time is.
    let _ = ours().hash_password_into(password, &[0; SALT_BYTES], &mut out);
    std::hint::black_box(out);
}

/// Checks a text from elsewhere.
pub(super) fn decode(bytes: &[u8]) -> Result<String, String> {
    let wrong = || "it is no argon2id hash in PHC's format".to_owned();
    if bytes.len() > FOREIGN_TEXT_BYTES_MAX {
        return Err(wrong());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let hash = PasswordHash::new(text).map_err(|_| wrong())?;
    let is_whole = hash.hash.is_some() && hash.salt.is_some();
    if hash.algorithm.as_str() != "argon2id" || !is_whole {
        return Err(wrong());
    }
    let params = Params::try_from(&hash).map_err(|_| wrong())?;
    if params.m_cost() > FOREIGN_MEMORY_KIB_MAX
        || params.t_cost() > FOREIGN_ROUNDS_MAX
        || params.p_cost() > FOREIGN_LANES_MAX
    {
        return Err(format!(
            "its costs m={},t={},p={} are above m={FOREIGN_MEMORY_KIB_MAX},t={FOREIGN_ROUNDS_MAX},\
             p={FOREIGN_LANES_MAX}",
            params.m_cost(),
            params.t_cost(),
            params.p_cost()
        ));
    }
    Ok(text.to_owned())
}
