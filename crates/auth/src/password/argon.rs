//! argon2id, in PHC's text format.

use super::{no_hashing, random};
use crate::error::AccountError;
use allocator_api2::alloc::System;
use allocator_api2::vec::Vec;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::password_hash::{self, CustomizedPasswordHasher, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Block, Params, Version};

/// KiB that one hash takes: little, because several may be made at once beside a broker's messages.
const MEMORY_KIB: u32 = 7 * 1024;
/// Rounds; with so much memory, as strong as two with 19 MiB.
const ROUNDS: u32 = 5;
const SALT_BYTES: usize = 16;

/// Blocks of 1 KiB that are asked for at least, though most are never touched: glibc keeps for later what is given back of less than 32 MiB.
const NOT_KEPT_BLOCKS: usize = 33 * 1024;

/// What a hash from elsewhere may cost at most, so that the check of one can't keep the broker busy.
const FOREIGN_MEMORY_KIB_MAX: u32 = 128 * 1024;
const FOREIGN_ROUNDS_MAX: u32 = 16;
const FOREIGN_LANES_MAX: u32 = 8;
const FOREIGN_TEXT_BYTES_MAX: usize = 512;

/// Hashes in memory that the system gives and gets back. A program's allocator keeps what it is given
/// back for a while, and that would be more than all else that an idle broker holds.
struct Hasher {
    algorithm: Algorithm,
    version: Version,
    params: Params,
}

impl Hasher {
    fn ours() -> Self {
        // These are good; were they not, the library's own would do.
        let params = Params::new(MEMORY_KIB, ROUNDS, 1, None).unwrap_or_default();
        Hasher { algorithm: Algorithm::Argon2id, version: Version::V0x13, params }
    }

    fn hash_into(&self, password: &[u8], salt: &[u8], out: &mut [u8]) -> argon2::Result<()> {
        no_hashing::check();
        let count = self.params.block_count();
        let mut memory = Vec::new_in(System);
        memory
            .try_reserve_exact(count.max(NOT_KEPT_BLOCKS))
            .map_err(|_| argon2::Error::OutOfMemory)?;
        memory.resize(count, Block::new());
        let argon = Argon2::new(self.algorithm, self.version, self.params.clone());
        argon.hash_password_into_with_memory(password, salt, out, &mut memory[..])
    }
}

impl PasswordHasher<PasswordHash> for Hasher {
    fn hash_password_with_salt(
        &self,
        password: &[u8],
        salt: &[u8],
    ) -> password_hash::Result<PasswordHash> {
        let mut out = [0; Output::MAX_LENGTH];
        let len = self.params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let out = out.get_mut(..len).ok_or(password_hash::Error::OutputSize)?;
        self.hash_into(password, salt, out)?;
        Ok(PasswordHash {
            algorithm: self.algorithm.ident(),
            version: Some(self.version.into()),
            params: ParamsString::try_from(&self.params)?,
            salt: Some(Salt::new(salt)?),
            hash: Some(Output::new(out)?),
        })
    }
}

/// With this, the library checks passwords by the same memory: what they are compared with and how is its own.
impl CustomizedPasswordHasher<PasswordHash> for Hasher {
    type Params = Params;

    fn hash_password_customized(
        &self,
        password: &[u8],
        salt: &[u8],
        algorithm: Option<&str>,
        version: Option<u32>,
        params: Params,
    ) -> password_hash::Result<PasswordHash> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?.unwrap_or_default();
        // PHC's text format: the version is left out where it is the first.
        let version = version.map_or(Ok(Version::V0x10), Version::try_from)?;
        Hasher { algorithm, version, params }.hash_password_with_salt(password, salt)
    }
}

pub(super) fn hash(password: &[u8]) -> Result<String, AccountError> {
    let salt: [u8; SALT_BYTES] = random()?;
    match Hasher::ours().hash_password_with_salt(password, &salt) {
        Ok(hash) => Ok(hash.to_string()),
        Err(error) => Err(AccountError::Hash(error.to_string())),
    }
}

pub(super) fn verify(text: &str, password: &[u8]) -> bool {
    // The costs are those in the text.
    PasswordHash::new(text)
        .is_ok_and(|hash| Hasher::ours().verify_password(password, &hash).is_ok())
}

/// Whether fewer blocks are computed for a hash than for ours. Lanes share them.
pub(super) fn is_cheap(text: &str) -> bool {
    let params = PasswordHash::new(text).ok().and_then(|hash| Params::try_from(&hash).ok());
    params.is_none_or(|params| {
        u64::from(params.m_cost()) * u64::from(params.t_cost())
            < u64::from(MEMORY_KIB) * u64::from(ROUNDS)
    })
}

pub(super) fn verify_nothing(password: &[u8]) {
    let mut out = [0_u8; 32];
    // What comes out, or why nothing does, is of no interest: only the time is.
    let _ = Hasher::ours().hash_into(password, &[0; SALT_BYTES], &mut out);
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
    if let Some(version) = hash.version {
        Version::try_from(version).map_err(|_| wrong())?;
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
