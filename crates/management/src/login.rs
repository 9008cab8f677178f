//! Logging in with HTTP Basic, or with a token (Bearer): against the accounts that AMQP clients log in with, and with the
//! same patience for wrong passwords.

use crate::caller::Caller;
use crate::path::query;
use crate::refusal::Refusal;
use crate::settings::{LogIn, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_auth::{Accounts, Login, LoginRefused};
use courser_broker::admin::Admin;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// What is said to names and passwords where only tokens count.
const ONLY_TOKENS: &str = "HTTP access denied: basic auth disabled";

/// Lets users in.
pub(crate) struct Logins {
    accounts: Arc<Accounts>,
    log_in: LogIn,
    /// Names and passwords are refused.
    only_tokens: bool,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// Name and password.
struct Credentials {
    user: Vec<u8>,
    password: Vec<u8>,
}

impl Logins {
    pub fn new(settings: &Settings) -> Self {
        Logins {
            accounts: Arc::clone(&settings.accounts),
            log_in: Arc::clone(&settings.log_in),
            only_tokens: settings
                .web
                .oauth
                .as_ref()
                .is_some_and(|client| client.disable_basic_auth),
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Whether names and passwords are refused.
    pub fn only_tokens(&self) -> bool {
        self.only_tokens
    }

    /// How many logins succeeded and failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.succeeded.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// Forgets these counts.
    pub fn reset(&self) {
        self.succeeded.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
    }

    /// Who sends a request with these headers.
    pub async fn of_headers(
        &self,
        headers: &HeaderMap,
        peer: SocketAddr,
        admin: &Admin,
    ) -> Result<Caller, Refusal> {
        let header = headers.get(AUTHORIZATION).ok_or_else(Refusal::challenge)?;
        let header = header.as_bytes();
        let named = basic(header);
        if self.only_tokens && named.is_some() {
            return Err(Refusal::not_authorised(ONLY_TOKENS));
        }
        let credentials = named.or_else(|| bearer(header)).ok_or_else(wrong)?;
        self.check(&credentials.user, &credentials.password, peer, admin).await
    }

    /// Who logs in: by a header, or by what a form or an object says.
    pub async fn of_login(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        peer: SocketAddr,
        admin: &Admin,
    ) -> Result<Caller, Refusal> {
        if headers.contains_key(AUTHORIZATION) {
            return self.of_headers(headers, peer, admin).await;
        }
        if self.only_tokens {
            return Err(Refusal::not_authorised(ONLY_TOKENS));
        }
        let (user, password) = said(body).ok_or_else(wrong)?;
        self.check(user.as_bytes(), password.as_bytes(), peer, admin).await
    }

    /// Who has this name and password.
    async fn check(
        &self,
        user: &[u8],
        password: &[u8],
        peer: SocketAddr,
        admin: &Admin,
    ) -> Result<Caller, Refusal> {
        let mut decided = self.decide(user, password, peer).await;
        if let Ok(login) = &decided
            && login.rehashed.is_some()
            && keep_rehashed(admin, login).await
        {
            // The user has another hash now, by this login or by another one at the same moment.
            decided = self.ask(user, password, peer).await;
        }
        let login = decided.map_err(|why| refusal(&why))?;
        Ok(Caller::of_login(login, &self.accounts))
    }

    /// Whose token this is.
    pub async fn of_token(&self, token: &str, peer: SocketAddr) -> Result<Login, LoginRefused> {
        self.decide(b"", token.as_bytes(), peer).await
    }

    /// Counts a login that did not come as far as this.
    pub fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    async fn ask(
        &self,
        user: &[u8],
        password: &[u8],
        peer: SocketAddr,
    ) -> Result<Login, LoginRefused> {
        (self.log_in)(user.to_vec(), Zeroizing::new(password.to_vec()), peer.ip()).await
    }

    async fn decide(
        &self,
        user: &[u8],
        password: &[u8],
        peer: SocketAddr,
    ) -> Result<Login, LoginRefused> {
        let decided = self.ask(user, password, peer).await;
        match &decided {
            Ok(_) => {
                self.succeeded.fetch_add(1, Ordering::Relaxed);
            }
            Err(refused) => {
                self.count_failed();
                // Guessing must not fill the log: back-off bounds how often this is said.
                tracing::debug!(%peer, %refused, "HTTP login refused");
            }
        }
        decided
    }
}

/// What a client is told that is not let in.
fn refusal(why: &LoginRefused) -> Refusal {
    match why {
        LoginRefused::LoopbackOnly(_) => {
            Refusal::not_authorised("User can only log in via localhost")
        }
        LoginRefused::NotChecked(_) => Refusal::internal("the password could not be checked"),
        LoginRefused::Wait { wait_ms, .. } => Refusal::wait(*wait_ms),
        LoginRefused::InvalidCredentials(_)
        | LoginRefused::BlankPassword(_)
        | LoginRefused::Elsewhere { .. }
        | LoginRefused::NotAnswered { .. } => wrong(),
    }
}

fn wrong() -> Refusal {
    Refusal::not_authorized("Not_Authorized")
}

/// Keeps a stronger hash, on a thread that may be blocked. Returns whether it has; without that, the old hash still does.
async fn keep_rehashed(admin: &Admin, login: &Login) -> bool {
    let (admin, login) = (admin.clone(), login.clone());
    let keeping = tokio::task::spawn_blocking(move || {
        admin.keep_rehashed(&login).unwrap_or_else(|error| {
            tracing::warn!(user = login.user.name, %error, "a stronger password hash can't be kept");
            false
        })
    });
    keeping.await.unwrap_or(false)
}

/// Name and password of a body.
fn said(body: &[u8]) -> Option<(String, String)> {
    if let Ok(Value::Object(members)) = serde_json::from_slice(body) {
        let text = |name: &str| Some(members.get(name)?.as_str()?.to_owned());
        return Some((text("username")?, text("password")?));
    }
    let fields = query(std::str::from_utf8(body).ok()?)?;
    let text = |name: &str| Some(fields.iter().find(|(known, _)| known == name)?.1.clone());
    Some((text("username")?, text("password")?))
}

/// The credentials of an `Authorization` header.
fn basic(header: &[u8]) -> Option<Credentials> {
    let decoded = STANDARD.decode(of_scheme(header, b"Basic ")?).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(Credentials { user: decoded[..colon].to_vec(), password: decoded[colon + 1..].to_vec() })
}

/// A token, which says itself whose it is.
fn bearer(header: &[u8]) -> Option<Credentials> {
    let token = of_scheme(header, b"Bearer ")?;
    Some(Credentials { user: Vec::new(), password: token.to_vec() })
}

/// What is behind the name of a scheme.
fn of_scheme<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (scheme, rest) = header.split_at_checked(name.len())?;
    scheme.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_split_at_the_first_colon() {
        let header = format!("basic {}", STANDARD.encode("me:a:b"));
        let credentials = basic(header.as_bytes()).expect("credentials");
        assert_eq!((&*credentials.user, &*credentials.password), (&b"me"[..], &b"a:b"[..]));
    }

    #[test]
    fn a_body_is_a_form_or_an_object() {
        let expected = Some(("me".to_owned(), "a&b c".to_owned()));
        assert_eq!(said(b"username=me&password=a%26b+c"), expected);
        assert_eq!(said(br#"{"username":"me","password":"a&b c"}"#), expected);
        for body in [&b""[..], b"username=me", b"{\"username\":\"me\"}", b"[]", b"\xff"] {
            assert_eq!(said(body), None);
        }
    }

    #[test]
    fn a_login_that_has_to_wait_is_not_told_that_its_credentials_are_wrong() {
        let why = LoginRefused::Wait { user: String::new(), wait_ms: 1_500 };
        let told = refusal(&why);
        let reason = "Too many logins failed: the next is possible in 2 s.";
        assert_eq!((told.status.as_u16(), told.body.expect("a reason").1), (429, reason.into()));
    }

    #[test]
    fn a_token_comes_without_a_name() {
        let credentials = bearer(b"bearer  a.b.c ").expect("credentials");
        assert_eq!((&*credentials.user, &*credentials.password), (&b""[..], &b"a.b.c"[..]));
        assert!(bearer(b"Basic eA==").is_none() && bearer(b"Bearer").is_none());
    }

    #[test]
    fn what_is_no_basic_header_has_none() {
        for header in ["", "Basic", "Basic !!", "Bearer eA==", "Basic bm9jb2xvbg=="] {
            assert!(basic(header.as_bytes()).is_none(), "{header}");
        }
    }
}
