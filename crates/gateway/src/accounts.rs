//! What peers work as in the broker: the endpoint's user and vhost, or others that their name or key is mapped to.
//!
//! Each of these accounts has an AMQP connection of its own, so what a peer may do is for the broker to say.

use crate::config::EndpointConfig;
use crate::security::{Security, public};
use omq_tokio::{PeerAuthentication, PeerPublicKey};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What a peer works as, as far as it is not what its endpoint works as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// A user of the broker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of that user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A virtual host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost: Option<String>,
}

/// A user of the broker, in a virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The virtual host.
    pub vhost: String,
}

/// Who works as what at an endpoint.
#[derive(Debug)]
pub(crate) struct Roster {
    /// Each once; there is at least one.
    pub logins: Vec<Login>,
    /// Places in `logins`, by PLAIN name and by CURVE key.
    by_name: HashMap<String, usize>,
    by_key: HashMap<[u8; 32], usize>,
}

impl Roster {
    pub fn of(config: &EndpointConfig) -> Self {
        let mut roster =
            Roster { logins: Vec::new(), by_name: HashMap::new(), by_key: HashMap::new() };
        match &config.security {
            Security::Plain { users, .. } => {
                for (name, user) in users {
                    let place = roster.place(config, &user.account);
                    roster.by_name.insert(name.clone(), place);
                }
            }
            Security::Curve { clients, .. } => {
                for client in clients {
                    let place = roster.place(config, &client.account);
                    // A key that is none has been refused with the settings.
                    if let Ok(key) = public("", &client.key) {
                        roster.by_key.insert(*key.as_bytes(), place);
                    }
                }
            }
            Security::Null => {}
        }
        if roster.logins.is_empty() {
            roster.place(config, &Account::default());
        }
        roster
    }

    fn place(&mut self, config: &EndpointConfig, account: &Account) -> usize {
        let or = |own: &Option<String>, endpoint: &String| own.as_ref().unwrap_or(endpoint).clone();
        let login = Login {
            user: or(&account.user, &config.user),
            password: or(&account.password, &config.password),
            vhost: or(&account.vhost, &config.vhost),
        };
        self.logins.iter().position(|other| *other == login).unwrap_or_else(|| {
            self.logins.push(login);
            self.logins.len() - 1
        })
    }

    /// The place in `logins` of a peer that was let in. `None` for one that is not on the list.
    pub fn find(&self, peer: &PeerAuthentication) -> Option<usize> {
        match (&peer.username, &peer.public_key) {
            (Some(name), _) => self.by_name.get(name).copied(),
            (None, Some(PeerPublicKey::Curve(key))) => self.by_key.get(key).copied(),
            _ => None,
        }
    }
}
