//! Settings of logins with tokens.

use super::ConfigError;
use courser_oauth::{Algorithm, Rules};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Logins with tokens of OAuth 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// The name of this broker at the issuer of tokens; without it there are no logins with tokens.
    pub resource_server_id: String,
    /// Who issues tokens: its address, at which it says where its keys are. Tokens have to name it.
    pub issuer: String,
    /// Where its keys are, if it does not say so itself.
    pub jwks_uri: String,
    /// Keys from files.
    pub signing_keys: Vec<SigningKey>,
    /// The key of tokens that name none.
    pub default_key: String,
    /// How tokens may be signed.
    pub algorithms: Vec<String>,
    /// Whether tokens have to name the resource server in `aud`.
    pub verify_aud: bool,
    /// Whether tokens have to expire.
    pub require_exp: bool,
    /// Seconds by which the clocks of this machine and the issuer's may differ.
    pub leeway_seconds: u64,
    /// What scopes of this broker begin with; without it, the resource server's id and a dot.
    pub scope_prefix: Option<String>,
    /// Scopes that stand for others.
    pub scope_aliases: Vec<ScopeAlias>,
    /// Claims that hold scopes besides `scope`.
    pub additional_scopes: Vec<String>,
    /// Claims that name the user, before `sub` and `client_id`.
    pub username_claims: Vec<String>,
    /// Authorities of the issuer's certificate, in PEM form, if not those of this machine.
    pub ca: PathBuf,
    /// Milliseconds that the issuer may take to say its keys.
    pub timeout_ms: u64,
    /// Seconds after which its keys are asked for again.
    pub keys_cache_seconds: u64,
    /// Seconds between two questions for them, at least.
    pub keys_retry_seconds: u64,
    /// The name, at the issuer, of the web page: with it people log in there.
    pub client_id: String,
    /// What the issuer knows that name by, if it wants a secret.
    pub client_secret: String,
    /// The scopes that the page asks for.
    pub client_scopes: String,
    /// What the page calls the issuer; without it, by its host.
    pub provider_name: String,
    /// Where people log in, if the issuer does not say so itself.
    pub authorization_endpoint: String,
    /// Where tokens are given for codes, likewise.
    pub token_endpoint: String,
    /// Where people log out, likewise.
    pub end_session_endpoint: String,
    /// What else goes to where people log in: `NAME=VALUE`.
    pub authorization_params: Vec<String>,
    /// What else goes to where tokens are given, likewise.
    pub token_params: Vec<String>,
    /// Whether names and passwords are refused over HTTP.
    pub disable_basic_auth: bool,
}

/// A key from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningKey {
    /// What tokens call it (`kid`).
    pub id: String,
    /// Its file: a public key in PEM form, or a secret.
    pub file: PathBuf,
    /// `HS256`, `HS384` or `HS512` for a secret; nothing for a public key.
    #[serde(default)]
    pub algorithm: String,
}

/// A scope that stands for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeAlias {
    /// What is in tokens.
    pub alias: String,
    /// What it means.
    pub scopes: Vec<String>,
}

/// All that need no secret.
const ASYMMETRIC: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
const SYMMETRIC: [&str; 3] = ["HS256", "HS384", "HS512"];
/// No login waits longer than that.
const TIMEOUT_MS_MAX: u64 = 30_000;
const LEEWAY_SECONDS_MAX: u64 = 300;
const CACHE_SECONDS_MAX: u64 = 86_400;
const RETRY_SECONDS_MAX: u64 = 3600;

/// Parameters of a login that only the broker sets.
const OF_THE_FLOW: [&str; 9] = [
    "response_type",
    "response_mode",
    "client_id",
    "client_secret",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];

/// Parameters of a request for tokens that only the broker sets.
const OF_TOKEN_REQUESTS: [&str; 7] = [
    "grant_type",
    "client_id",
    "client_secret",
    "redirect_uri",
    "code",
    "code_verifier",
    "refresh_token",
];

impl Default for OAuth {
    fn default() -> Self {
        OAuth {
            resource_server_id: String::new(),
            issuer: String::new(),
            jwks_uri: String::new(),
            signing_keys: Vec::new(),
            default_key: String::new(),
            algorithms: ASYMMETRIC.map(str::to_owned).to_vec(),
            verify_aud: true,
            require_exp: true,
            leeway_seconds: 10,
            scope_prefix: None,
            scope_aliases: Vec::new(),
            additional_scopes: Vec::new(),
            username_claims: Vec::new(),
            ca: PathBuf::new(),
            timeout_ms: 5000,
            keys_cache_seconds: 3600,
            keys_retry_seconds: 10,
            client_id: String::new(),
            client_secret: String::new(),
            client_scopes: "openid profile".to_owned(),
            provider_name: String::new(),
            authorization_endpoint: String::new(),
            token_endpoint: String::new(),
            end_session_endpoint: String::new(),
            authorization_params: Vec::new(),
            token_params: Vec::new(),
            disable_basic_auth: false,
        }
    }
}

impl OAuth {
    /// Whether users can log in with tokens.
    pub(crate) fn is_used(&self) -> bool {
        !self.resource_server_id.is_empty()
    }

    /// What tokens must be like.
    pub(crate) fn rules(&self) -> Rules {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let mut rules = Rules::new(&self.resource_server_id);
        rules.issuer = given(&self.issuer);
        rules.verify_audience = self.verify_aud;
        rules.require_expiry = self.require_exp;
        rules.leeway_s = self.leeway_seconds;
        if let Some(prefix) = &self.scope_prefix {
            rules.scope_prefix.clone_from(prefix);
        }
        let aliases = self.scope_aliases.iter();
        rules.scope_aliases = aliases.map(|one| (one.alias.clone(), one.scopes.clone())).collect();
        rules.additional_scopes.clone_from(&self.additional_scopes);
        rules.name_claims.clone_from(&self.username_claims);
        rules.algorithms = self.algorithms.iter().filter_map(|name| name.parse().ok()).collect();
        rules.default_key = given(&self.default_key);
        rules
    }

    /// What people call the issuer.
    pub(crate) fn provider_name(&self) -> String {
        if !self.provider_name.is_empty() {
            return self.provider_name.clone();
        }
        let address = match &*self.issuer {
            "" => &self.authorization_endpoint,
            issuer => issuer,
        };
        let uri = address.parse::<hyper::Uri>().ok();
        uri.and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default()
    }

    /// What else goes to where people log in, by name.
    pub(crate) fn authorization_params(&self) -> Vec<(String, String)> {
        pairs(&self.authorization_params)
    }

    /// What else goes to where tokens are given, by name.
    pub(crate) fn token_params(&self) -> Vec<(String, String)> {
        pairs(&self.token_params)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |key: &str, why: &str| Err(ConfigError::invalid(&format!("oauth.{key}"), why));
        if !self.is_used() {
            let why = "is needed where anything else is set for tokens: it is the name of this \
                       broker at the issuer of tokens";
            return if *self == OAuth::default() {
                Ok(())
            } else {
                wrong("resource_server_id", why)
            };
        }
        if self.resource_server_id.len() > 255 {
            return wrong("resource_server_id", "must have at most 255 bytes");
        }
        check_address("issuer", &self.issuer)?;
        check_address("jwks_uri", &self.jwks_uri)?;
        let is_asked = !self.issuer.is_empty() || !self.jwks_uri.is_empty();
        if !is_asked && self.signing_keys.is_empty() {
            return wrong(
                "issuer",
                "is needed, or jwks_uri, or signing_keys: to check tokens with",
            );
        }
        if !is_asked && !self.ca.as_os_str().is_empty() {
            return wrong("ca", "is for issuer and jwks_uri: neither is set");
        }
        self.check_client()?;
        self.check_numbers()?;
        self.check_algorithms()?;
        self.check_aliases()
    }

    /// Logins of people at the issuer.
    fn check_client(&self) -> Result<(), ConfigError> {
        let wrong = |key: &str, why: &str| Err(ConfigError::invalid(&format!("oauth.{key}"), why));
        let ends = [
            ("authorization_endpoint", &self.authorization_endpoint),
            ("token_endpoint", &self.token_endpoint),
            ("end_session_endpoint", &self.end_session_endpoint),
        ];
        for (key, address) in ends {
            check_address(key, address)?;
        }
        if self.client_id.is_empty() {
            let usual = OAuth::default();
            let of_client = [
                ("client_secret", !self.client_secret.is_empty()),
                ("client_scopes", self.client_scopes != usual.client_scopes),
                ("provider_name", !self.provider_name.is_empty()),
                ("authorization_endpoint", !self.authorization_endpoint.is_empty()),
                ("token_endpoint", !self.token_endpoint.is_empty()),
                ("end_session_endpoint", !self.end_session_endpoint.is_empty()),
                ("authorization_params", !self.authorization_params.is_empty()),
                ("token_params", !self.token_params.is_empty()),
                ("disable_basic_auth", self.disable_basic_auth),
            ];
            return match of_client.into_iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => wrong(key, "is for the web page's logins: set client_id too"),
                None => Ok(()),
            };
        }
        let knows_ends = !self.authorization_endpoint.is_empty() && !self.token_endpoint.is_empty();
        if self.issuer.is_empty() && !knows_ends {
            return wrong(
                "issuer",
                "is needed with client_id, or authorization_endpoint and token_endpoint: people log in there",
            );
        }
        check_params("authorization_params", &self.authorization_params, &OF_THE_FLOW)?;
        check_params("token_params", &self.token_params, &OF_TOKEN_REQUESTS)
    }

    fn check_numbers(&self) -> Result<(), ConfigError> {
        let numbers = [
            ("leeway_seconds", self.leeway_seconds, 0, LEEWAY_SECONDS_MAX),
            ("timeout_ms", self.timeout_ms, 1, TIMEOUT_MS_MAX),
            ("keys_cache_seconds", self.keys_cache_seconds, 1, CACHE_SECONDS_MAX),
            ("keys_retry_seconds", self.keys_retry_seconds, 1, RETRY_SECONDS_MAX),
        ];
        for (key, number, least, most) in numbers {
            if !(least..=most).contains(&number) {
                let why = format!("must be from {least} to {most}");
                return Err(ConfigError::invalid(&format!("oauth.{key}"), &why));
            }
        }
        Ok(())
    }

    fn check_algorithms(&self) -> Result<(), ConfigError> {
        let wrong = |key: &str, why: &str| Err(ConfigError::invalid(&format!("oauth.{key}"), why));
        let known = |name: &String| name.parse::<Algorithm>().is_ok();
        if self.algorithms.is_empty() || !self.algorithms.iter().all(known) {
            let names = [&ASYMMETRIC[..], &SYMMETRIC].concat().join(", ");
            return wrong("algorithms", &format!("must be some of {names}"));
        }
        let mut ids = BTreeSet::new();
        for key in &self.signing_keys {
            if key.id.is_empty() || !ids.insert(&key.id) {
                return wrong("signing_keys", "must each have an id of its own");
            }
            if key.file.as_os_str().is_empty() {
                return wrong("signing_keys", "must each name a file");
            }
            let is_secret = SYMMETRIC.contains(&&*key.algorithm);
            if !is_secret && !key.algorithm.is_empty() {
                let why = "must have no algorithm for a public key, and HS256, HS384 or HS512 for a \
                           secret";
                return wrong("signing_keys", why);
            }
            if is_secret && !self.algorithms.contains(&key.algorithm) {
                let why = format!("must name {} too, as a key in signing_keys does", key.algorithm);
                return wrong("algorithms", &why);
            }
        }
        Ok(())
    }

    fn check_aliases(&self) -> Result<(), ConfigError> {
        let mut aliases = BTreeSet::new();
        for one in &self.scope_aliases {
            let is_good = !one.alias.is_empty() && !one.scopes.is_empty();
            if !is_good || !aliases.insert(&one.alias) {
                let why = "must each have an alias of its own, and scopes";
                return Err(ConfigError::invalid("oauth.scope_aliases", why));
            }
        }
        Ok(())
    }
}

/// Parameters by name, of texts that are `NAME=VALUE`.
fn pairs(params: &[String]) -> Vec<(String, String)> {
    let pairs = params.iter().filter_map(|param| param.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn check_params(key: &str, params: &[String], ours: &[&str]) -> Result<(), ConfigError> {
    for param in params {
        let why = match param.split_once('=') {
            None | Some(("", _)) => "must each be NAME=VALUE".to_owned(),
            Some((name, _)) if ours.contains(&name) => {
                format!("must not have {name}: the broker sets it")
            }
            Some(_) => continue,
        };
        return Err(ConfigError::invalid(&format!("oauth.{key}"), &why));
    }
    Ok(())
}

fn check_address(key: &str, address: &str) -> Result<(), ConfigError> {
    let is_https = address.starts_with("https://") && !address.contains('#');
    let is_good = is_https && address.parse::<hyper::Uri>().is_ok();
    if is_good || address.is_empty() {
        return Ok(());
    }
    let why = "must be an address that begins with https://";
    Err(ConfigError::invalid(&format!("oauth.{key}"), why))
}
