//! Logging people in at whoever issues tokens: the code flow of OAuth 2 with PKCE.
//!
//! The browser only carries a code from the provider to the broker. The broker brings the code to the provider and keeps the
//! tokens that it gets for it, so no script can read them and the page needs no leave to connect to anybody else.
//!
//! - [`flow`]: from the page to the provider and back.
//! - [`renewal`]: new tokens for sessions whose tokens expire.

pub(crate) mod flow;
pub(crate) mod renewal;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What a page needs to log people in at whoever issues tokens.
#[derive(Clone)]
pub struct OAuthClient {
    /// The name of the page there.
    pub client_id: String,
    /// The address of whoever issues tokens; empty if only its endpoints are known.
    pub provider_url: String,
    /// What people call whoever issues tokens.
    pub provider_name: String,
    /// The scopes to ask for.
    pub scopes: String,
    /// Names and values that go along to where people log in.
    pub params: Vec<(String, String)>,
    /// Nobody logs in over HTTP with a name and a password.
    pub disable_basic_auth: bool,
    /// Whoever issues tokens.
    pub provider: Arc<dyn TokenProvider>,
}

/// What whoever issues tokens answers, some time later.
pub type Asking<T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send>>;

/// Whoever issues tokens. What it is asked takes bounded time and space.
pub trait TokenProvider: Send + Sync {
    /// Where it is. What is known is not asked for each time.
    fn endpoints(&self) -> Asking<Endpoints>;

    /// The tokens for a code, or for a token that renews others.
    fn tokens(&self, grant: TokenGrant) -> Asking<Issued>;
}

/// Where people log in and out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Where they log in.
    pub authorization: String,
    /// Where they log out, if that is possible.
    pub end_session: Option<String>,
}

/// What tokens are given for.
pub enum TokenGrant {
    /// That somebody has logged in.
    Code {
        /// What the provider said.
        code: Zeroizing<String>,
        /// What only whoever began the login knows.
        verifier: Zeroizing<String>,
        /// Where the provider has sent the browser.
        redirect_uri: String,
    },
    /// That somebody is still logged in.
    Refresh(Zeroizing<String>),
}

/// Tokens.
pub struct Issued {
    /// What the broker checks.
    pub access: Zeroizing<String>,
    /// For what others are given; the old one goes on to count without.
    pub refresh: Option<Zeroizing<String>>,
}

/// Why there are no tokens, for people to read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The provider says no.
    #[error("{0}")]
    Refused(String),
    /// It does not answer as it should.
    #[error("{0}")]
    Unreachable(String),
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthClient").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}
