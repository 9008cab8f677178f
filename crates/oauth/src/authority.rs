//! What a token permits.

use courser_auth::{Authority, Origin, PasswordHash, Resource, Right, Scopes, User};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a passport of a token is called.
const PASSPORT: &str = "token";

/// A user with a token that was good.
#[derive(Debug)]
pub struct TokenAuthority {
    pub(crate) user: Arc<User>,
    pub(crate) scopes: Scopes,
    pub(crate) expires_ms: Option<u64>,
}

impl TokenAuthority {
    /// What [`Authority::passport`] has said of a token that was good; `None` if it can't be read.
    pub fn readmitted(passport: &str) -> Option<Self> {
        let said: Value = serde_json::from_str(passport).ok()?;
        let said = said.get(PASSPORT)?;
        let list = said.get("scopes")?.as_array()?.iter().map(Value::as_str);
        let list: Vec<&str> = list.collect::<Option<_>>()?;
        let scopes = Scopes::new(list, "", &BTreeMap::new()).ok()?;
        let mut user = User::new(said.get("user")?.as_str()?, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = scopes.tags().clone();
        let expires_ms = said.get("expires_ms")?.as_u64();
        Some(TokenAuthority { user: Arc::new(user), scopes, expires_ms })
    }
}

impl Authority for TokenAuthority {
    fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn permits_vhost(&self, vhost: &str) -> bool {
        self.scopes.permit_vhost(vhost)
    }

    fn permits(&self, vhost: &str, right: Right, resource: Resource<'_>) -> bool {
        self.scopes.permit(vhost, right, resource.name())
    }

    fn permits_topic(
        &self,
        vhost: &str,
        right: Right,
        exchange: &[u8],
        routing_key: &[u8],
    ) -> bool {
        self.scopes.permit_topic(vhost, right, exchange, routing_key)
    }

    fn expires_ms(&self) -> Option<u64> {
        self.expires_ms
    }

    fn is_renewable(&self) -> bool {
        true
    }

    fn passport(&self) -> Option<String> {
        let TokenAuthority { user, scopes, expires_ms } = self;
        let said =
            json!({ "user": user.name, "scopes": scopes.to_list(), "expires_ms": expires_ms });
        Some(json!({ PASSPORT: said }).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_again_by_its_passport() {
        let list = ["read:v/q-*", "tag:management"];
        let scopes = Scopes::new(list, "", &BTreeMap::new()).expect("scopes");
        let user = Arc::new(User::new("me", PasswordHash::none()));
        let first = TokenAuthority { user, scopes, expires_ms: Some(5) };
        let passport = first.passport().expect("a passport");
        let again = TokenAuthority::readmitted(&passport).expect("it is known");
        assert_eq!((&*again.user.name, again.expires_ms), ("me", Some(5)));
        assert_eq!(again.scopes, first.scopes);
        for other in ["", "{}", "{\"http\":{}}", "{\"token\":{\"user\":1}}"] {
            assert!(TokenAuthority::readmitted(other).is_none(), "{other}");
        }
    }
}
