//! What a token permits.

use courser_auth::{Authority, Resource, Right, Scopes, User};
use std::sync::Arc;

/// A user with a token that was good.
#[derive(Debug)]
pub struct TokenAuthority {
    pub(crate) user: Arc<User>,
    pub(crate) scopes: Scopes,
    pub(crate) expires_ms: Option<u64>,
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
}
