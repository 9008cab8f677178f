//! A user whom somebody else than the brokers knows.

use courser_auth::{Authority, Origin, PasswordHash, Resource, Right, Tags, User};
use std::sync::Arc;

/// A user whom no directory knows: it may read what is called so in vhost `b`, and make what begins with it.
pub const OF_TOKEN: &str = "of-token";

#[derive(Debug)]
pub struct Told(Arc<User>);

impl Told {
    pub fn at_all() -> Arc<dyn Authority> {
        let mut user = User::new(OF_TOKEN, PasswordHash::none());
        user.origin = Origin::Elsewhere;
        user.tags = Tags::parse("management").expect("tags");
        Arc::new(Told(Arc::new(user)))
    }
}

impl Authority for Told {
    fn user(&self) -> &Arc<User> {
        &self.0
    }

    fn permits_vhost(&self, vhost: &str) -> bool {
        vhost == "b"
    }

    fn permits(&self, vhost: &str, right: Right, resource: Resource<'_>) -> bool {
        let begins = resource.name().starts_with(OF_TOKEN.as_bytes());
        vhost == "b" && begins && right != Right::Write
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn passport(&self) -> Option<String> {
        Some(OF_TOKEN.to_owned())
    }
}
