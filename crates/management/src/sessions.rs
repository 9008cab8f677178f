//! Sessions of people who have logged in with a browser.
//!
//! A session is a cookie that scripts can't read and that no other site's page sends along. Whoever
//! changes something with it has to send a header besides, which pages of other sites can't add
//! without being allowed to (`management.cors_origins`). Sessions are in memory: a restart ends
//! them all.

use crate::Api;
use crate::caller::Caller;
use crate::refusal::Refusal;
use courser_auth::{Grant, Login, PasswordHash, User};
use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST, HeaderName};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The header without which nothing is changed in a session.
pub(crate) const CHANGE_HEADER: HeaderName = HeaderName::from_static("x-courser-csrf");
/// How the name of the cookie begins. Browsers send cookies to all ports of a host: the port that they
/// ask at follows, so that brokers on one machine don't end each other's sessions.
const COOKIE_NAME: &str = "courser_session";
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
    user: String,
    /// What the password was checked against: another one ends the session.
    password: PasswordHash,
    /// What the user may do, if it is somebody else than the directory who knows it.
    grant: Option<Arc<Grant>>,
    used_ms: u64,
}

impl Sessions {
    /// Begins a session. Returns the secret that stands for it.
    pub fn begin(
        &self,
        user: &User,
        grant: Option<Arc<Grant>>,
        now_ms: u64,
    ) -> Result<String, Refusal> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret)
            .map_err(|_| Refusal::internal("the system has no random bytes"))?;
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (user, password) = (user.name.clone(), user.password.clone());
        let session = Session { user, password, grant, used_ms: now_ms };
        let mut open = self.open.lock();
        let of_user = open.values().filter(|one| one.user == session.user).count();
        if of_user >= SESSIONS_OF_USER_MAX {
            end_oldest(&mut open, |one| one.user == session.user);
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
        let Some(secret) = secret_of(headers) else { return Ok(None) };
        let (now_ms, idle_ms) = (api.now_ms(), api.settings.web.session_idle_s * 1000);
        let key = sum(secret);
        let mut open = self.open.lock();
        let Some(session) = open.get_mut(&key) else { return Ok(None) };
        let directory = api.settings.accounts.directory();
        let is_same = match &session.grant {
            Some(grant) => grant.expires_ms().is_none_or(|until| now_ms < until),
            None => {
                directory.user(&session.user).is_some_and(|user| user.password == session.password)
            }
        };
        if !is_same || session.used_ms.saturating_add(idle_ms) < now_ms {
            open.remove(&key);
            return Ok(None);
        }
        let is_local = peer.ip().to_canonical().is_loopback();
        if !is_local && directory.user(&session.user).is_some_and(|user| user.loopback_only) {
            return Err(Refusal::not_authorised("User can only log in via localhost"));
        }
        session.used_ms = now_ms;
        Ok(Some(session.clone()))
    }

    /// Ends the session that a request belongs to.
    pub fn end(&self, headers: &HeaderMap) {
        if let Some(secret) = secret_of(headers) {
            self.open.lock().remove(&sum(secret));
        }
    }
}

impl Session {
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
            let login = Login { user, rehashed: None, grant: Some(Arc::clone(grant)) };
            return Ok(Caller::of_login(login, accounts));
        }
        let directory = accounts.directory();
        let user = directory.user(&self.user).ok_or_else(Refusal::challenge)?;
        Ok(Caller::new(user.clone(), accounts))
    }
}

/// The header that gives a browser the cookie, or takes it back if there is no secret.
pub(crate) fn set_cookie(
    headers: &HeaderMap,
    secret: Option<&str>,
    is_tls: bool,
    path_prefix: &str,
) -> String {
    let name = cookie_name(headers);
    let path = if path_prefix.is_empty() { "/" } else { path_prefix };
    let secure = if is_tls { "; Secure" } else { "" };
    let ends = if secret.is_none() { "; Max-Age=0" } else { "" };
    let secret = secret.unwrap_or_default();
    format!("{name}={secret}; Path={path}; HttpOnly; SameSite=Strict{secure}{ends}")
}

/// The name of the cookie for whom a request asks.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.map_or_else(|| COOKIE_NAME.to_owned(), |port| format!("{COOKIE_NAME}_{port}"))
}

fn secret_of(headers: &HeaderMap) -> Option<&str> {
    let wanted = cookie_name(headers);
    let lists = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = lists.flat_map(|list| list.split(';'));
    cookies.find_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == wanted).then_some(value)
    })
}

fn sum(secret: &str) -> Sum {
    Sha256::digest(secret).into()
}

fn end_oldest(open: &mut HashMap<Sum, Session>, is_one: impl Fn(&Session) -> bool) {
    let those = open.iter().filter(|(_, session)| is_one(session));
    if let Some(oldest) = those.min_by_key(|(_, session)| session.used_ms).map(|(key, _)| *key) {
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
    use hyper::header::HeaderValue;

    #[test]
    fn cookies_are_for_this_broker_only() {
        let headers = HeaderMap::new();
        let cookie = set_cookie(&headers, Some("x"), true, "");
        assert_eq!(cookie, "courser_session=x; Path=/; HttpOnly; SameSite=Strict; Secure");
        let gone = set_cookie(&headers, None, false, "/mq");
        assert_eq!(gone, "courser_session=; Path=/mq; HttpOnly; SameSite=Strict; Max-Age=0");
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; courser_session=s; c=d".parse().expect("a value"));
        assert_eq!(secret_of(&headers), Some("s"));
        assert_eq!(secret_of(&HeaderMap::new()), None);
    }

    #[test]
    fn each_port_of_a_host_has_a_cookie_of_its_own() {
        let to = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            let cookies = "courser_session=no; courser_session_15672=a; courser_session_15673=b";
            headers.insert(COOKIE, HeaderValue::from_static(cookies));
            headers
        };
        for (host, secret) in [
            ("broker:15672", "a"),
            ("[::1]:15673", "b"),
            ("broker", "no"),
            ("[fe80::]", "no"),
            ("broker:x; Path=/", "no"),
        ] {
            assert_eq!(secret_of(&to(host)), Some(secret), "{host}");
        }
        let cookie = set_cookie(&to("broker:15673"), Some("x"), false, "");
        assert!(cookie.starts_with("courser_session_15673=x; "), "{cookie}");
    }

    #[test]
    fn there_is_a_bound_to_sessions() {
        let sessions = Sessions::default();
        for nth in 0..SESSIONS_OF_USER_MAX as u64 + 10 {
            sessions.begin(&User::new("one", PasswordHash::none()), None, nth).expect("a session");
        }
        assert_eq!(sessions.open.lock().len(), SESSIONS_OF_USER_MAX);
        for nth in 0..SESSIONS_MAX as u64 + 10 {
            let user = User::new(nth.to_string(), PasswordHash::none());
            sessions.begin(&user, None, 1000 + nth).expect("a session");
        }
        let open = sessions.open.lock();
        assert_eq!(open.len(), SESSIONS_MAX);
        assert!(open.values().all(|session| session.user != "one"), "the oldest gave way");
    }
}
