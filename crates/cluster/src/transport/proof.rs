//! The secret that all nodes of a cluster know, and the proof that one knows it.

use hmac::digest::Output;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Bytes of a secret. What nodes prove with it can be tried against guesses by anyone who pretends to be a node.
pub const SECRET_BYTES_MIN: usize = 16;

/// Bytes of a proof.
pub(super) const PROOF_LEN: usize = 32;

/// The secret of a cluster.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

/// A secret that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have at least {SECRET_BYTES_MIN} bytes, such as those of 'openssl rand -hex 32'")]
pub struct WeakSecret;

/// Who proves: a proof of one end is none of the other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Prover {
    Dialler,
    Acceptor,
}

impl Prover {
    fn purpose(self) -> &'static [u8; 16] {
        match self {
            Prover::Dialler => b"courser: dialler",
            Prover::Acceptor => b"courser:acceptor",
        }
    }
}

impl Secret {
    /// The secret with these bytes.
    ///
    /// # Errors
    /// When it is too short.
    pub fn new(bytes: &[u8]) -> Result<Self, WeakSecret> {
        if bytes.len() < SECRET_BYTES_MIN { Err(WeakSecret) } else { Ok(Self::of(bytes)) }
    }

    /// No secret: everybody who reaches a node is let in. For nodes that nothing else reaches.
    pub fn none() -> Self {
        Self::of(&[])
    }

    fn of(bytes: &[u8]) -> Self {
        // Keys of any length will do for HMAC: longer ones than a block are hashed first.
        Secret(Hmac::new_from_slice(bytes).unwrap_or_else(|_| Hmac::new(&Default::default())))
    }

    /// The proof that one end knows the secret, for all that was said so far.
    pub(super) fn prove(&self, prover: Prover, said: &[&[u8]]) -> [u8; PROOF_LEN] {
        self.mac(prover.purpose(), said).finalize().into_bytes().into()
    }

    /// Whether it is that proof. Takes the same time wherever it differs.
    pub(super) fn is_proven(
        &self,
        prover: Prover,
        said: &[&[u8]],
        proof: &[u8; PROOF_LEN],
    ) -> bool {
        let proof: &Output<Hmac<Sha256>> = proof.into();
        self.mac(prover.purpose(), said).verify(proof).is_ok()
    }

    fn mac(&self, purpose: &[u8; 16], said: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(purpose);
        for part in said {
            // With their lengths, so that no two ways to cut the same bytes mean the same.
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
