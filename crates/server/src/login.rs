//! Logging in: credentials are checked against the accounts, and what is slow about that is done
//! away from the threads that serve connections, a few at a time.

use crate::peer::Peer;
use courser_auth::{Accounts, Attempt, Login, LoginRefused, Step, Verified};
use courser_connection::{Credentials, Mechanism};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Why somebody may not come in: for the log, not for who it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginError {
    #[error(transparent)]
    Refused(#[from] LoginRefused),
    #[error("{0}")]
    Certificate(&'static str),
    #[error("mechanism not offered")]
    Mechanism,
    #[error("the password could not be checked")]
    Interrupted,
}

/// Lets users in.
pub(crate) struct Logins {
    accounts: Arc<Accounts>,
    /// One for each password that may be checked at the same time.
    slots: Arc<Semaphore>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// A login that has begun.
pub(crate) enum Begun {
    Decided(Result<Login, LoginError>),
    Pending(Pending),
}

/// A password that is being checked, or waits for its turn. Whoever drops it, does not want to know.
pub(crate) struct Pending {
    task: JoinHandle<Option<Verified>>,
    user: String,
    mechanism: Mechanism,
}

impl Logins {
    pub fn new(accounts: Arc<Accounts>) -> Self {
        // Half of the processors, so that guessing passwords does not keep all of them busy.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let slots = Arc::new(Semaphore::new((processors / 2).max(1)));
        Logins { accounts, slots, succeeded: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// How many logins succeeded and failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.succeeded.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// Counts what a login has come to.
    pub fn count<T, E>(&self, decided: &Result<T, E>) {
        let counter = if decided.is_ok() { &self.succeeded } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// One permit for each password that may be checked at the same time, whoever brings it.
    pub fn slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.slots)
    }

    /// Begins to check credentials that came from `peer`.
    pub fn begin(&self, credentials: &Credentials, peer: &Peer, now_ms: u64) -> Begun {
        let (user, password) = match credentials {
            Credentials::Plain { user, password } | Credentials::AmqPlain { user, password } => {
                (user, password)
            }
            Credentials::External => return Begun::Decided(self.by_certificate(peer)),
            Credentials::Anonymous => return Begun::Decided(Err(LoginError::Mechanism)),
        };
        match self.accounts.login(user, password, peer.address.ip(), now_ms) {
            Step::Done(done) => Begun::Decided(done.map_err(LoginError::from)),
            Step::Verify(attempt) => Begun::Pending(Pending {
                task: tokio::spawn(verify(Arc::clone(&self.slots), attempt)),
                user: named(credentials),
                mechanism: credentials.mechanism(),
            }),
        }
    }

    /// Lets in the user whom the certificate of a client names.
    fn by_certificate(&self, peer: &Peer) -> Result<Login, LoginError> {
        let tls = peer.tls.as_ref().ok_or(LoginError::Mechanism)?;
        let named = tls.user.as_ref().map_err(|why| LoginError::Certificate(why))?;
        Ok(self.accounts.login_vouched(named, peer.address.ip())?)
    }

    /// Decides a login whose password has been checked.
    pub fn finish(&self, verified: Option<Verified>, now_ms: u64) -> Result<Login, LoginError> {
        let verified = verified.ok_or(LoginError::Interrupted)?;
        Ok(self.accounts.finish(verified, now_ms)?)
    }

    /// Checks credentials from here to the end.
    pub async fn check(
        &self,
        credentials: &Credentials,
        peer: &Peer,
        now_ms: u64,
    ) -> Result<Login, LoginError> {
        match self.begin(credentials, peer, now_ms) {
            Begun::Decided(decided) => decided,
            Begun::Pending(pending) => self.finish(pending.await, now_ms),
        }
    }
}

/// Waits for a slot, and checks a password on a thread that may be blocked.
async fn verify(slots: Arc<Semaphore>, attempt: Attempt) -> Option<Verified> {
    let slot = slots.acquire_owned().await.ok()?;
    let work = move || {
        let verified = attempt.verify();
        drop(slot);
        verified
    };
    tokio::task::spawn_blocking(work).await.ok()
}

impl Pending {
    /// Who the client says that it is.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// How it wants to log in.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }
}

impl Future for Pending {
    type Output = Option<Verified>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(cx).map(|joined| joined.ok().flatten())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who credentials say that they are of, for the log: no longer than a name can be.
pub(crate) fn named(credentials: &Credentials) -> String {
    let name: &[u8] = match credentials {
        Credentials::Plain { user, .. } | Credentials::AmqPlain { user, .. } => user,
        Credentials::External | Credentials::Anonymous => &[],
    };
    String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]).into_owned()
}

/// Bytes of a user's name.
const NAME_MAX: usize = 255;
