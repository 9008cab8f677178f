//! A login, in steps: what is known at once, the slow part, and what follows from it.
//!
//! A login that fails takes the same time whether the user or the password is wrong: where there is
//! no slow hash to check against, one is computed for nothing.

use crate::authority::Grant;
use crate::bounds::PASSWORD_BYTES_MAX;
use crate::password::{self, Hashing, PasswordHash};
use crate::user::User;
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A user who has logged in.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user.
    pub user: Arc<User>,
    /// The number of its account; none if another program than the directory knows it.
    pub account: Option<u64>,
    /// A stronger hash of the same password, to be kept in the place of an imported one.
    pub rehashed: Option<PasswordHash>,
    /// What the user may do, if an authority other than the directory knows it.
    pub grant: Option<Arc<Grant>>,
}

/// Why a login was refused: for the log, as a client hears the same of all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginRefused {
    /// There is no such user, it has no password, or the password is wrong.
    #[error("user '{0}' - invalid credentials")]
    InvalidCredentials(String),
    /// The password is empty.
    #[error("user '{0}' attempted to log in with a blank password, which is not permitted")]
    BlankPassword(String),
    /// The user may come from this machine only.
    #[error("user '{0}' can only connect via localhost")]
    LoopbackOnly(String),
    /// Another authority that was asked refuses it.
    #[error("user '{user}' - {why}")]
    Elsewhere {
        /// Who wants to log in.
        user: String,
        /// Why it is refused.
        why: String,
    },
    /// Another program that had to be asked has not answered, or the keys of a token can't be had.
    #[error("user '{user}' - {why}")]
    NotAnswered {
        /// Who wants to log in.
        user: String,
        /// Why there is no answer.
        why: String,
    },
    /// The password could not be looked at.
    #[error("user '{0}' - the password could not be checked")]
    NotChecked(String),
    /// Too many logins have failed.
    #[error("user '{user}' - too many failed logins; the next is possible in {wait_ms} ms")]
    Wait {
        /// Who wants to log in.
        user: String,
        /// How long this is refused.
        wait_ms: u64,
    },
}

/// How far a login has come.
#[derive(Debug)]
pub enum Step {
    /// It is decided.
    Done(Result<Login, LoginRefused>),
    /// The password has to be checked, which is slow.
    Verify(Attempt),
}

/// A password to be checked.
pub struct Attempt {
    pub(crate) name: String,
    /// `None` if there is no such user.
    pub(crate) user: Option<Arc<User>>,
    pub(crate) password: Zeroizing<Vec<u8>>,
    pub(crate) from: IpAddr,
    pub(crate) hashing: Hashing,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An attempt, decided as far as the password goes.
#[derive(Debug)]
pub struct Verified {
    pub(crate) attempt: Attempt,
    pub(crate) is_right: bool,
    pub(crate) rehashed: Option<PasswordHash>,
}

impl Attempt {
    /// Checks the password. Takes tens of milliseconds of a processor and some MiB of memory: not
    /// for a thread that others wait for.
    pub fn verify(self) -> Verified {
        let too_long = self.password.len() > PASSWORD_BYTES_MAX;
        let hash = self.user.as_ref().map(|user| &user.password).filter(|_| !too_long);
        let is_right = hash.is_some_and(|hash| hash.verify(&self.password));
        let is_cheap = hash.is_none_or(PasswordHash::is_cheap);
        let mut rehashed = None;
        if is_cheap && is_right && self.may_be_rehashed() {
            // Without random numbers the old hash stays for another time.
            rehashed = PasswordHash::new(&self.password, Hashing::Argon2id).ok();
        } else if is_cheap && !is_right {
            password::verify_nothing(&self.password);
        }
        Verified { attempt: self, is_right, rehashed }
    }

    fn may_be_rehashed(&self) -> bool {
        let is_kept = self.user.as_ref().is_some_and(|user| user.is_kept());
        is_kept && self.hashing == Hashing::Argon2id
    }
}
