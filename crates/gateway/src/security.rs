//! Who may connect to an endpoint, and what that looks like on the wire.

use crate::config::ConfigError;
use omq_tokio::{
    Authenticator, CurveKeypair, CurvePublicKey, CurveSecretKey, CurveServerOptions, MechanismSetup,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The security mechanism of an endpoint that binds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "lowercase", deny_unknown_fields)]
pub enum Security {
    /// Nobody is asked for anything.
    #[default]
    Null,
    /// Name and password, readable on the wire.
    Plain {
        /// Passwords by name.
        users: BTreeMap<String, String>,
    },
    /// Encrypted; peers are known by their keys.
    Curve {
        /// The endpoint's secret key: 40 characters of Z85.
        secret_key: String,
        /// The public key that belongs to it, which peers have to know.
        public_key: String,
        /// Public keys of those who may connect.
        clients: Vec<String>,
    },
}

impl Security {
    /// What the socket is set to.
    ///
    /// # Errors
    /// When a key is none, or nobody is let in.
    pub(crate) fn mechanism(&self) -> Result<MechanismSetup, ConfigError> {
        match self {
            Security::Null => Ok(MechanismSetup::Null),
            Security::Plain { users } if users.is_empty() => {
                Err(ConfigError::new("security.users is empty: nobody could connect"))
            }
            Security::Plain { users } => {
                let users = users.clone();
                let authenticator = Authenticator::new(move |peer| {
                    let (Some(name), Some(password)) = (&peer.username, &peer.password) else {
                        return false;
                    };
                    users.get(name).is_some_and(|right| same(right.as_bytes(), password.as_bytes()))
                });
                Ok(MechanismSetup::PlainServer { authenticator })
            }
            Security::Curve { clients, .. } if clients.is_empty() => {
                Err(ConfigError::new("security.clients is empty: nobody could connect"))
            }
            Security::Curve { secret_key, public_key, clients } => {
                let allowed: Vec<[u8; 32]> =
                    clients.iter().map(|key| public(key)).collect::<Result<_, _>>()?;
                let mut options = CurveServerOptions::new();
                options.authenticator =
                    Some(Authenticator::new(move |peer| allowed.contains(&peer.public_key)));
                let our_keypair = CurveKeypair {
                    secret: CurveSecretKey::from_z85(secret_key)
                        .map_err(|_| no_key("security.secret_key"))?,
                    public: CurvePublicKey::from_bytes(public(public_key)?),
                };
                Ok(MechanismSetup::CurveServer { our_keypair, options })
            }
        }
    }
}

fn public(key: &str) -> Result<[u8; 32], ConfigError> {
    let key = CurvePublicKey::from_z85(key).map_err(|_| no_key(&format!("'{key}'")))?;
    Ok(*key.as_bytes())
}

fn no_key(what: &str) -> ConfigError {
    ConfigError::new(format!("{what} is no CURVE key: 40 characters of Z85 are expected"))
}

/// Compares in a time that does not tell where the first difference is.
fn same(right: &[u8], given: &[u8]) -> bool {
    let differences = right.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
    right.len() == given.len() && differences == 0
}
