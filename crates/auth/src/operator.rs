//! The operator of a machine, whom its system vouches for.

use crate::access::{Resource, Right};
use crate::authority::{Authority, Grant};
use crate::login::Login;
use crate::password::PasswordHash;
use crate::tags::{Tag, Tags};
use crate::user::{Origin, User};
use std::sync::Arc;

/// The name that the operator goes by. It is no user, and no other authority lets one in who has it.
pub(crate) const NAME: &str = "(operator)";

/// Lets the operator do everything, in every vhost.
#[derive(Debug)]
struct Operator(Arc<User>);

impl Login {
    /// That of the operator: the system's user whom the broker runs as, or root.
    pub fn of_operator() -> Self {
        let mut user = User::new(NAME, PasswordHash::none());
        // It is in no list of users, and has no permissions that could be kept.
        user.origin = Origin::ConfigurationFile;
        // One tag that is known is never too many, nor too long.
        user.tags = Tags::new([Tag::Administrator.name()]).unwrap_or_default();
        let user = Arc::new(user);
        let grant = Some(Grant::new(Arc::new(Operator(Arc::clone(&user)))));
        Login { user, account: None, rehashed: None, grant }
    }
}

impl Authority for Operator {
    fn user(&self) -> &Arc<User> {
        &self.0
    }

    fn permits_vhost(&self, _: &str) -> bool {
        true
    }

    fn permits(&self, _: &str, _: Right, _: Resource<'_>) -> bool {
        true
    }

    fn permits_topic(&self, _: &str, _: Right, _: &[u8], _: &[u8]) -> bool {
        true
    }
}
