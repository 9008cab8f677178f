//! Logging in: credentials are checked against the accounts, and then, if there is one, by another program that knows
//! users. What is slow about that is done away from the threads that serve connections, a few at a time. A password that
//! is a token is looked at as that, and in no other way.

mod pending;

use crate::auth_http::{HttpUsers, NotLetIn};
use crate::clock::Clock;
use crate::oauth::{TokenError, Tokens};
use crate::peer::Peer;
use crate::turns::{Turn, Turns};
use courser_auth::{
    Accounts, Attempt, Authority, Grant, Login, LoginRefused, PasswordHash, Step, Tried,
};
use courser_connection::Credentials;
use courser_management::OAuthClient;
use courser_oauth::Token;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

pub(crate) use pending::{Pending, Renewal};

/// Why a client may not come in: for the log, not for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginError {
    #[error(transparent)]
    Refused(#[from] LoginRefused),
    #[error("{0}")]
    Certificate(&'static str),
    #[error("mechanism not offered")]
    Mechanism,
    #[error("the login was given up")]
    Interrupted,
}

/// Why a client may not go on with a new token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RenewalError {
    #[error("it is no token")]
    NoToken,
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("the token is of the user '{0}'")]
    OtherUser(String),
    #[error("the token was given up")]
    Interrupted,
}

impl RenewalError {
    /// Whether that may be a guess. Without keys it is not known whether a token is good.
    fn is_guess(&self) -> bool {
        match self {
            RenewalError::NoToken => true,
            RenewalError::Token(TokenError::Refused(why)) => why.is_unsigned(),
            RenewalError::Token(TokenError::NoKeys(_))
            | RenewalError::OtherUser(_)
            | RenewalError::Interrupted => false,
        }
    }
}

/// Who knows users besides the broker, and who is let in without credentials.
#[derive(Clone, Default)]
pub(crate) struct Elsewhere {
    /// The user that clients without credentials are.
    pub anonymous: Option<String>,
    /// Another program, which is asked.
    pub program: Option<Arc<HttpUsers>>,
    /// The issuer of tokens.
    pub tokens: Option<Arc<Tokens>>,
    /// How pages log people in there.
    pub client: Option<OAuthClient>,
}

/// Lets users in.
pub(crate) struct Logins {
    checks: Arc<Checks>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// Checks names and passwords.
struct Checks {
    accounts: Arc<Accounts>,
    /// Who is asked for users that the accounts do not let in.
    elsewhere: Elsewhere,
    clock: Clock,
    /// One for each password that may be checked at the same time.
    turns: Turns,
}

/// A login that has begun.
pub(crate) enum Begun {
    Decided(Result<Login, LoginError>),
    Pending(Pending),
}

impl Logins {
    pub fn new(accounts: &Arc<Accounts>, elsewhere: Elsewhere, clock: Clock) -> Self {
        // Half of the processors, so that guessing passwords does not keep all of them busy.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let turns = Turns::new((processors / 2).max(1));
        let checks = Arc::new(Checks { accounts: Arc::clone(accounts), elsewhere, clock, turns });
        Logins { checks, succeeded: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// How many logins succeeded and failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.succeeded.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// Forgets these counts.
    pub fn forget_counts(&self) {
        self.succeeded.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
    }

    /// Counts what a login has come to.
    pub fn count<T, E>(&self, decided: &Result<T, E>) {
        let counter = if decided.is_ok() { &self.succeeded } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to check credentials that came from `peer`.
    pub fn begin(&self, credentials: &Credentials, peer: &Peer) -> Begun {
        let (user, password) = match credentials {
            Credentials::Plain { user, password } | Credentials::AmqPlain { user, password } => {
                (user, password)
            }
            Credentials::External => return Begun::Decided(self.vouched(peer)),
            Credentials::Anonymous => return Begun::Decided(self.without_credentials(peer)),
        };
        let from = peer.address.ip();
        let checks = Arc::clone(&self.checks);
        let (user, password) = (user.to_vec(), Zeroizing::new(password.to_vec()));
        let task = if checks.is_token(&password) {
            tokio::spawn(async move { checks.by_token(&user, &password, from).await })
        } else {
            match checks.begin(&user, &password, from) {
                Step::Done(done) => return Begun::Decided(done.map_err(LoginError::from)),
                Step::Verify(_) => {
                    tokio::spawn(async move { checks.finish(&user, &password, from).await })
                }
            }
        };
        let (user, mechanism) = (named(credentials), credentials.mechanism());
        Begun::Pending(Pending { task, user, mechanism })
    }

    /// Begins to look at a token that shall renew what a user may do.
    pub fn renew(&self, grant: &Arc<Grant>, secret: &[u8]) -> Renewal {
        let (checks, grant) = (Arc::clone(&self.checks), Arc::clone(grant));
        let secret = Zeroizing::new(secret.to_vec());
        Renewal(tokio::spawn(async move { checks.renew(&grant, &secret).await }))
    }

    /// Lets in the operator of the machine, or the user whom the certificate of a client names.
    fn vouched(&self, peer: &Peer) -> Result<Login, LoginError> {
        if peer.is_operator {
            return Ok(Login::of_operator());
        }
        let tls = peer.tls.as_ref().ok_or(LoginError::Mechanism)?;
        let named = tls.user.as_ref().map_err(|why| LoginError::Certificate(why))?;
        Ok(self.checks.accounts.login_vouched(named, peer.address.ip())?)
    }

    /// Lets in the user that clients without credentials are, if there is one.
    fn without_credentials(&self, peer: &Peer) -> Result<Login, LoginError> {
        let Checks { accounts, elsewhere, .. } = &*self.checks;
        let user = elsewhere.anonymous.as_ref().ok_or(LoginError::Mechanism)?;
        Ok(accounts.login_vouched(user, peer.address.ip())?)
    }

    /// Checks a name and a password from here to the end.
    pub async fn log_in(
        &self,
        user: &[u8],
        password: &[u8],
        from: IpAddr,
    ) -> Result<Login, LoginRefused> {
        if self.checks.is_token(password) {
            return self.checks.by_token(user, password, from).await;
        }
        match self.checks.begin(user, password, from) {
            Step::Done(done) => done,
            Step::Verify(_) => self.checks.finish(user, password, from).await,
        }
    }
}

impl Checks {
    fn is_token(&self, password: &[u8]) -> bool {
        self.elsewhere.tokens.is_some() && Token::recognize(password).is_some()
    }

    /// Lets in whom a token names, whatever name comes with it.
    async fn by_token(
        &self,
        user: &[u8],
        password: &[u8],
        from: IpAddr,
    ) -> Result<Login, LoginRefused> {
        let (tried, now_ms) = (Tried::Secret(password), self.clock.now_ms());
        self.accounts.may_try(tried, from, now_ms)?;
        let why = match self.authority(password).await {
            Ok(authority) => return self.accounts.login_granted(authority, tried, from),
            Err(why) => why,
        };
        if why.is_guess() {
            self.accounts.login_failed(tried, from, now_ms);
        }
        let (user, reason) = (shown(user), why.to_string());
        Err(match why {
            RenewalError::Token(TokenError::NoKeys(_)) => {
                LoginRefused::NotAnswered { user, why: reason }
            }
            _ => LoginRefused::Elsewhere { user, why: reason },
        })
    }

    /// Every user has a name. What comes without one may be a token that is no business of a program that knows users.
    fn refuse_nameless(&self, secret: &[u8], from: IpAddr) -> Result<Login, LoginRefused> {
        let (tried, now_ms) = (Tried::Secret(secret), self.clock.now_ms());
        self.accounts.may_try(tried, from, now_ms)?;
        self.accounts.login_failed(tried, from, now_ms);
        Err(LoginRefused::InvalidCredentials(String::new()))
    }

    async fn authority(&self, secret: &[u8]) -> Result<Arc<dyn Authority>, RenewalError> {
        let token = Token::recognize(secret).ok_or(RenewalError::NoToken)?;
        let tokens = self.elsewhere.tokens.as_ref().ok_or(RenewalError::NoToken)?;
        Ok(tokens.check(&token, self.clock.now_ms()).await?)
    }

    async fn renew(&self, grant: &Grant, secret: &[u8]) -> Result<(), RenewalError> {
        let authority = self.authority(secret).await?;
        let name = &authority.user().name;
        if *name != grant.authority().user().name {
            return Err(RenewalError::OtherUser(name.clone()));
        }
        grant.renew(authority);
        Ok(())
    }

    fn begin(&self, user: &[u8], password: &[u8], from: IpAddr) -> Step {
        if user.is_empty() && !password.is_empty() {
            return Step::Done(self.refuse_nameless(password, from));
        }
        let step = self.accounts.login(user, password, from, self.clock.now_ms());
        if let (Step::Verify(_), Some(elsewhere)) = (&step, &self.elsewhere.program)
            && let Ok(name) = std::str::from_utf8(user)
            && let Some(authority) = elsewhere.remembered(name, password, from)
        {
            return Step::Done(self.accounts.login_granted(authority, Tried::User(user), from));
        }
        step
    }

    /// Checks a password, and again where the user gets another hash meanwhile, of the same password or another one.
    async fn finish(
        self: &Arc<Self>,
        user: &[u8],
        password: &[u8],
        from: IpAddr,
    ) -> Result<Login, LoginRefused> {
        for _ in 1..CHECKS_MAX {
            match self.check(user, password, from).await {
                Err(LoginRefused::NotChecked(_)) => {}
                decided => return decided,
            }
        }
        self.check(user, password, from).await
    }

    async fn check(
        self: &Arc<Self>,
        user: &[u8],
        password: &[u8],
        from: IpAddr,
    ) -> Result<Login, LoginRefused> {
        let not_checked = || LoginRefused::NotChecked(shown(user));
        let turn = self.turns.take(from, &user[..user.len().min(NAME_MAX)]).await;
        let turn = turn.ok_or_else(not_checked)?;
        // What the user's other logins have come to meanwhile counts.
        let attempt = match self.begin(user, password, from) {
            Step::Done(done) => return done,
            Step::Verify(attempt) => attempt,
        };
        let (checks, name) = (Arc::clone(self), user.to_vec());
        let password = Zeroizing::new(password.to_vec());
        // A client that leaves keeps its place until the check has ended, and what that has come to counts.
        let deciding =
            tokio::spawn(async move { checks.decide(attempt, turn, &name, &password, from).await });
        deciding.await.unwrap_or_else(|_| Err(not_checked()))
    }

    async fn decide(
        &self,
        attempt: Attempt,
        turn: Turn,
        user: &[u8],
        password: &[u8],
        from: IpAddr,
    ) -> Result<Login, LoginRefused> {
        let checking = tokio::task::spawn_blocking(move || (attempt.verify(), turn));
        let checked = checking.await;
        let (verified, mut turn) = checked.map_err(|_| LoginRefused::NotChecked(shown(user)))?;
        turn.leave_place();
        let now_ms = self.clock.now_ms();
        let name = std::str::from_utf8(user).ok().filter(|name| name.len() <= NAME_MAX);
        let (Some(elsewhere), Some(name)) = (&self.elsewhere.program, name) else {
            return self.accounts.finish(verified, now_ms);
        };
        match self.accounts.decide(verified, now_ms) {
            Err(LoginRefused::InvalidCredentials(_)) => {}
            decided => return decided,
        }
        let tried = Tried::User(user);
        match elsewhere.log_in(name, password, from).await {
            Ok(authority) => self.accounts.login_granted(authority, tried, from),
            Err(why) => {
                if matches!(why, NotLetIn::Refused(_)) || self.has_password(name) {
                    self.accounts.login_failed(tried, from, now_ms);
                }
                let user = name.to_owned();
                Err(match why {
                    NotLetIn::Refused(why) => LoginRefused::Elsewhere { user, why },
                    NotLetIn::NoAnswer(error) => {
                        LoginRefused::NotAnswered { user, why: error.to_string() }
                    }
                })
            }
        }
    }

    /// Whether the broker itself has a password of a user, at which a login that the program does not answer may be a guess.
    /// The others are of users whom that would let in: as long as it is silent, they must not lock their address out.
    fn has_password(&self, name: &str) -> bool {
        let directory = self.accounts.directory();
        directory.user(name).is_some_and(|user| user.password != PasswordHash::none())
    }
}

/// Who credentials say that they are of, for the log: no longer than a name can be.
pub(crate) fn named(credentials: &Credentials) -> String {
    let name: &[u8] = match credentials {
        Credentials::Plain { user, .. } | Credentials::AmqPlain { user, .. } => user,
        Credentials::External | Credentials::Anonymous => &[],
    };
    shown(name)
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]).into_owned()
}

/// How often a password is checked for one login: each time it may be another one meanwhile.
const CHECKS_MAX: usize = 3;
/// Bytes of a user's name.
const NAME_MAX: usize = 255;

#[cfg(test)]
mod tests;
