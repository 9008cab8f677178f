//! Logging people in at the provider of tokens: the code flow of OAuth 2 with PKCE.
//!
//! The browser only carries a code from the provider to the broker. The broker brings the code to the provider and keeps the
//! tokens that it gets for it, so no script can read them and the page needs no leave to connect to another server.
//!
//! - [`flow`]: from the page to the provider and back.
//! - [`renewal`]: new tokens for sessions whose tokens expire.

pub(crate) mod flow;
pub(crate) mod renewal;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What a page needs to log people in at the provider.
#[derive(Clone)]
pub struct OAuthClient {
    /// The name of the page there.
    pub client_id: String,
    /// The address of the provider; empty if only its endpoints are known.
    pub provider_url: String,
    /// What people call the provider.
    pub provider_name: String,
    /// The scopes to ask for.
    pub scopes: String,
    /// Names and values that go along to where people log in.
    pub params: Vec<(String, String)>,
    /// Names and passwords are refused over HTTP.
    pub disable_basic_auth: bool,
    /// The provider.
    pub provider: Arc<dyn TokenProvider>,
}

/// What the provider answers, some time later.
pub type Asking<T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send>>;

/// A provider, which issues tokens. What it is asked takes bounded time and space.
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
    /// That a user has logged in.
    Code {
        /// What the provider said.
        code: Zeroizing<String>,
        /// PKCE's code verifier, which proves that this client began the login.
        verifier: Zeroizing<String>,
        /// Where the provider has sent the browser.
        redirect_uri: String,
    },
    /// That a user is still logged in.
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
