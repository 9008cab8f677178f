//! What a token must be like.

use jsonwebtoken::Algorithm;
use std::collections::BTreeMap;

/// What a token must be like, and what its scopes mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whom tokens are for: the name of this broker at the issuer.
    pub resource_server: String,
    /// Who issues them; any issuer with a good key if there is none.
    pub issuer: Option<String>,
    /// Whether a token has to name the resource server in `aud`.
    pub verify_audience: bool,
    /// Whether a token has to expire.
    pub require_expiry: bool,
    /// Seconds by which clocks may differ.
    pub leeway_s: u64,
    /// What scopes of this broker begin with.
    pub scope_prefix: String,
    /// Scopes that stand for others.
    pub scope_aliases: BTreeMap<String, Vec<String>>,
    /// Claims that hold scopes besides `scope`, as paths with dots.
    pub additional_scopes: Vec<String>,
    /// Claims that name the user, before `sub` and `client_id`.
    pub name_claims: Vec<String>,
    /// How tokens may be signed.
    pub algorithms: Vec<Algorithm>,
    /// The key of tokens that name none.
    pub default_key: Option<String>,
}

impl Rules {
    /// Rules for tokens that are for `resource_server`, signed with what is usual and safe.
    pub fn new(resource_server: impl Into<String>) -> Self {
        let resource_server = resource_server.into();
        Rules {
            issuer: None,
            verify_audience: true,
            require_expiry: true,
            leeway_s: 0,
            scope_prefix: format!("{resource_server}."),
            scope_aliases: BTreeMap::new(),
            additional_scopes: Vec::new(),
            name_claims: Vec::new(),
            algorithms: vec![Algorithm::RS256, Algorithm::ES256],
            default_key: None,
            resource_server,
        }
    }
}
