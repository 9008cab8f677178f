//! Sessions of people who have logged in with a browser.
//!
//! A session is a cookie that scripts can't read and that no other site's page sends along. A request
//! that changes something with it has to send a header besides, which pages of other sites can't add
//! without being allowed to (`management.cors_origins`). Sessions are in memory: a restart ends
//! them all.

use crate::Api;
use crate::caller::{Account, Caller};
use crate::cookies::Cookie;
use crate::oauth::renewal::Renewal;
use crate::refusal::Refusal;
use courser_auth::{Grant, Login};
use hyper::HeaderMap;
use hyper::header::HeaderName;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The header without which nothing is changed in a session.
pub(crate) const CHANGE_HEADER: HeaderName = HeaderName::from_static("x-courser-csrf");
/// What stands for a session.
pub(crate) const SESSION: Cookie = Cookie("courser_session");
/// Sessions at the same time; the one that is unused for longest gives way.
const SESSIONS_MAX: usize = 1000;
/// Of those, sessions of one user.
const SESSIONS_OF_USER_MAX: usize = 50;
/// Bytes of the secret in a cookie.
const SECRET_BYTES: usize = 32;

/// The sum of a secret: what is kept of it.
type Sum = [u8; 32];

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<Sum, Session>>,
}

/// A session.
#[derive(Clone)]
pub(crate) struct Session {
    /// Its end, or another password, ends the session.
    account: Account,
    /// What the user may do, if an authority other than the directory knows it.
    grant: Option<Arc<Grant>>,
    /// It was begun at the provider of tokens, who may give others for those that expire.
    pub renewal: Option<Arc<Renewal>>,
    life: Arc<Life>,
}

/// How long a session lives. Whatever has begun in it has a weak reference, and ends with it.
#[derive(Debug)]
pub(crate) struct Life {
    used_ms: AtomicU64,
    idle_ms: u64,
}

impl Life {
    fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Whether it has been used lately.
    pub fn goes_on(&self, now_ms: u64) -> bool {
        self.used_ms().saturating_add(self.idle_ms) >= now_ms
    }
}

impl Sessions {
    /// Begins a session, which ends when it is unused for so long. Returns the secret that stands for it.
    pub fn begin(&self, caller: &Caller, now_ms: u64, idle_ms: u64) -> Result<String, Refusal> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret)
            .map_err(|_| Refusal::internal("the system has no random bytes"))?;
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (grant, renewal) = (caller.grant.clone(), caller.renewal.clone());
        let life = Arc::new(Life { used_ms: AtomicU64::new(now_ms), idle_ms });
        let session = Session { account: caller.account(), grant, renewal, life };
        let mut open = self.open.lock();
        let is_of_user = |one: &Session| one.account.name == session.account.name;
        if open.values().filter(|one| is_of_user(one)).count() >= SESSIONS_OF_USER_MAX {
            end_oldest(&mut open, is_of_user);
        } else if open.len() >= SESSIONS_MAX {
            end_oldest(&mut open, |_| true);
        }
        open.insert(sum(&secret), session);
        Ok(secret)
    }

    /// The session that a request belongs to, if it has any.
    pub fn find(
        &self,
        headers: &HeaderMap,
        peer: SocketAddr,
        api: &Api,
    ) -> Result<Option<Session>, Refusal> {
        let Some(secret) = SESSION.value(headers) else { return Ok(None) };
        let now_ms = api.now_ms();
        let key = sum(secret);
        let mut open = self.open.lock();
        let Some(session) = open.get(&key) else { return Ok(None) };
        let user = match &session.grant {
            Some(grant) => {
                let is_over = grant.expires_ms().is_some_and(|until| until <= now_ms);
                let lives = !is_over || session.is_renewable();
                lives.then(|| Arc::clone(grant.authority().user()))
            }
            None => session.account.user_in(&api.settings.accounts.directory()),
        };
        let Some(user) = user.filter(|_| session.life.goes_on(now_ms)) else {
            open.remove(&key);
            return Ok(None);
        };
        if api.settings.accounts.come_from(&user, peer.ip()).is_err() {
            return Err(Refusal::not_authorised("User can only log in via localhost"));
        }
        session.life.used_ms.store(now_ms, Ordering::Relaxed);
        Ok(Some(session.clone()))
    }

    /// Ends the session that a request belongs to, and returns it.
    pub fn end(&self, headers: &HeaderMap) -> Option<Session> {
        let secret = SESSION.value(headers)?;
        self.open.lock().remove(&sum(secret))
    }
}

impl Session {
    /// What the user may do, and what keeps that going; nothing where the directory says it.
    pub fn renewable(&self) -> Option<(&Arc<Grant>, &Arc<Renewal>)> {
        Some((self.grant.as_ref()?, self.renewal.as_ref()?))
    }

    fn is_renewable(&self) -> bool {
        self.renewal.as_ref().is_some_and(|renewal| renewal.is_possible())
    }

    /// Who has it, if the request is one that its browser means to send.
    pub fn caller(
        &self,
        is_change: bool,
        headers: &HeaderMap,
        api: &Api,
    ) -> Result<Caller, Refusal> {
        if is_change && !headers.contains_key(CHANGE_HEADER) {
            let reason = format!("Changes in a session need the header {CHANGE_HEADER}");
            return Err(Refusal::not_authorised(reason));
        }
        let accounts = &api.settings.accounts;
        if let Some(grant) = &self.grant {
            let user = Arc::clone(grant.authority().user());
            let login =
                Login { user, account: None, rehashed: None, grant: Some(Arc::clone(grant)) };
            return Ok(Caller::of_login(login, accounts).within(&self.life));
        }
        let user = self.account.user_in(&accounts.directory());
        Ok(Caller::new(user.ok_or_else(Refusal::challenge)?, accounts).within(&self.life))
    }
}

fn sum(secret: &str) -> Sum {
    Sha256::digest(secret).into()
}

fn end_oldest(open: &mut HashMap<Sum, Session>, is_one: impl Fn(&Session) -> bool) {
    let those = open.iter().filter(|(_, session)| is_one(session));
    if let Some(oldest) =
        those.min_by_key(|(_, session)| session.life.used_ms()).map(|(key, _)| *key)
    {
        open.remove(&oldest);
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_auth::{Accounts, Directory, PasswordHash, Settings, User};

    #[test]
    fn there_is_a_bound_to_sessions() {
        let sessions = Sessions::default();
        let accounts = Accounts::new(Directory::default(), Settings::default());
        let begin = |user: &str, now_ms: u64| {
            let user = Arc::new(User::new(user, PasswordHash::none()));
            sessions.begin(&Caller::new(user, &accounts), now_ms, 0).expect("a session");
        };
        for nth in 0..SESSIONS_OF_USER_MAX as u64 + 10 {
            begin("one", nth);
        }
        assert_eq!(sessions.open.lock().len(), SESSIONS_OF_USER_MAX);
        for nth in 0..SESSIONS_MAX as u64 + 10 {
            begin(&nth.to_string(), 1000 + nth);
        }
        let open = sessions.open.lock();
        assert_eq!(open.len(), SESSIONS_MAX);
        assert!(open.values().all(|one| one.account.name != "one"), "the oldest gave way");
    }
}
