//! Who may connect to an endpoint or what it shows where it connects to, and what that looks like on the wire.

use crate::accounts::Account;
use crate::config::ConfigError;
use omq_tokio::{
    Authenticator, CurveKeypair, CurvePublicKey, CurveSecretKey, CurveServerOptions, MechanismSetup,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The security mechanism of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "lowercase", deny_unknown_fields)]
pub enum Security {
    /// Peers are not asked for credentials.
    #[default]
    Null,
    /// Name and password, readable on the wire.
    Plain {
        /// Who may connect, by name; for an endpoint that binds.
        #[serde(default)]
        users: BTreeMap<String, PlainUser>,
        /// The name that an endpoint that connects gives.
        #[serde(default)]
        username: Option<String>,
        /// The password that belongs to it.
        #[serde(default)]
        password: Option<String>,
    },
    /// Encrypted; peers are known by their keys.
    Curve {
        /// The endpoint's secret key: 40 characters of Z85.
        secret_key: String,
        /// The public key that belongs to it, which peers have to know.
        public_key: String,
        /// Who may connect; for an endpoint that binds.
        #[serde(default)]
        clients: Vec<CurveClient>,
        /// The public key of what an endpoint connects to.
        #[serde(default)]
        server_key: Option<String>,
    },
}

/// A peer that may connect with a password: the password alone, or a mapping with `secret` and what the peer works as.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct PlainUser {
    /// The password that the peer has to give.
    pub secret: String,
    /// What it works as.
    #[serde(flatten)]
    pub account: Account,
}

/// A peer that may connect with a key: the key alone, or a mapping with `key` and what the peer works as.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct CurveClient {
    /// Its public key.
    pub key: String,
    /// What it works as.
    #[serde(flatten)]
    pub account: Account,
}

impl TryFrom<Value> for PlainUser {
    type Error = String;
    fn try_from(written: Value) -> Result<Self, String> {
        divide(written, "secret").map(|(secret, account)| PlainUser { secret, account })
    }
}

impl TryFrom<Value> for CurveClient {
    type Error = String;
    fn try_from(written: Value) -> Result<Self, String> {
        divide(written, "key").map(|(key, account)| CurveClient { key, account })
    }
}

/// What a peer has to show, and its account: a text, or a mapping where the text is under `name`.
fn divide(written: Value, name: &str) -> Result<(String, Account), String> {
    let mut fields = match written {
        Value::String(text) => return Ok((text, Account::default())),
        Value::Object(fields) => fields,
        _ => return Err(format!("a text, or a mapping with '{name}', is expected")),
    };
    let Some(Value::String(text)) = fields.remove(name) else {
        return Err(format!("missing key '{name}': a text is required"));
    };
    let account =
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
    Ok((text, account))
}

impl Security {
    /// Whether there are peers that work as something else than the endpoint.
    pub(crate) fn has_accounts(&self) -> bool {
        let none = Account::default();
        match self {
            Security::Null => false,
            Security::Plain { users, .. } => users.values().any(|user| user.account != none),
            Security::Curve { clients, .. } => clients.iter().any(|client| client.account != none),
        }
    }

    /// What the socket of an endpoint that binds is set to.
    ///
    /// # Errors
    /// When a key is none, or no peer would be let in.
    pub(crate) fn of_server(&self) -> Result<MechanismSetup, ConfigError> {
        match self {
            Security::Null => Ok(MechanismSetup::Null),
            Security::Plain { username: Some(_), .. } => Err(for_connect("username")),
            Security::Plain { password: Some(_), .. } => Err(for_connect("password")),
            Security::Plain { users, .. } if users.is_empty() => {
                Err(ConfigError::new("security.users is missing or empty: no peer could connect"))
            }
            Security::Plain { users, .. } => {
                let users = users.clone();
                let authenticator = Authenticator::new(move |peer| {
                    let (Some(name), Some(password)) = (&peer.username, &peer.password) else {
                        return false;
                    };
                    let user = users.get(name);
                    user.is_some_and(|user| same(user.secret.as_bytes(), password.as_bytes()))
                });
                Ok(MechanismSetup::PlainServer { authenticator })
            }
            Security::Curve { server_key: Some(_), .. } => Err(for_connect("server_key")),
            Security::Curve { clients, .. } if clients.is_empty() => {
                Err(ConfigError::new("security.clients is missing or empty: no peer could connect"))
            }
            Security::Curve { secret_key, public_key, clients, .. } => {
                let allowed: Vec<[u8; 32]> = clients
                    .iter()
                    .map(|client| {
                        public("security.clients", &client.key).map(|key| *key.as_bytes())
                    })
                    .collect::<Result<_, _>>()?;
                if let Some(twice) = clients.iter().enumerate().find(|(index, client)| {
                    clients[..*index].iter().any(|other| other.key == client.key)
                }) {
                    let key = &twice.1.key;
                    return Err(ConfigError::new(format!(
                        "security.clients: '{key}' is there twice"
                    )));
                }
                let mut options = CurveServerOptions::new();
                options.authenticator =
                    Some(Authenticator::new(move |peer| allowed.contains(&peer.public_key)));
                Ok(MechanismSetup::CurveServer {
                    our_keypair: pair(secret_key, public_key)?,
                    options,
                })
            }
        }
    }

    /// What the socket of an endpoint that connects is set to.
    ///
    /// # Errors
    /// When something is missing, or a key is none.
    pub(crate) fn of_client(&self) -> Result<MechanismSetup, ConfigError> {
        match self {
            Security::Null => Ok(MechanismSetup::Null),
            Security::Plain { users, .. } if !users.is_empty() => Err(for_bind("users")),
            Security::Plain { username, password, .. } => Ok(MechanismSetup::PlainClient {
                username: username.clone().ok_or_else(|| missing("username"))?,
                password: password.clone().ok_or_else(|| missing("password"))?,
            }),
            Security::Curve { clients, .. } if !clients.is_empty() => Err(for_bind("clients")),
            Security::Curve { secret_key, public_key, server_key, .. } => {
                let server_key = server_key.as_ref().ok_or_else(|| missing("server_key"))?;
                Ok(MechanismSetup::CurveClient {
                    our_keypair: pair(secret_key, public_key)?,
                    server_public: public("security.server_key", server_key)?,
                })
            }
        }
    }
}

fn missing(key: &str) -> ConfigError {
    ConfigError::new(format!("security.{key} is missing: an endpoint that connects needs it"))
}

fn for_connect(key: &str) -> ConfigError {
    ConfigError::new(format!("security.{key} is for endpoints that connect; this one binds"))
}

fn for_bind(key: &str) -> ConfigError {
    ConfigError::new(format!("security.{key} is for endpoints that bind; this one connects"))
}

/// A public key, as it is written in the setting `name`.
pub(crate) fn public(name: &str, key: &str) -> Result<CurvePublicKey, ConfigError> {
    CurvePublicKey::from_z85(key).map_err(|_| no_key(&format!("{name}: '{key}'")))
}

fn pair(secret_key: &str, public_key: &str) -> Result<CurveKeypair, ConfigError> {
    let secret = CurveSecretKey::from_z85(secret_key).map_err(|_| no_key("security.secret_key"))?;
    let public = public("security.public_key", public_key)?;
    if secret.derive_public().as_bytes() != public.as_bytes() {
        return Err(ConfigError::new("security.public_key does not belong to security.secret_key"));
    }
    Ok(CurveKeypair { secret, public })
}

fn no_key(what: &str) -> ConfigError {
    ConfigError::new(format!("{what} is no CURVE key: 40 characters of Z85 are expected"))
}

/// Compares in a time that does not tell where the first difference is.
fn same(right: &[u8], given: &[u8]) -> bool {
    let differences = right.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
    right.len() == given.len() && differences == 0
}
