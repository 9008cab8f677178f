//! Users whom the directory does not know: what is asked of their authority instead.

use crate::access::{Resource, Right};
use crate::user::User;
use arc_swap::ArcSwap;
use std::fmt::Debug;
use std::sync::Arc;

/// Says what one user may do whom the directory does not know. It is asked on threads that others wait for: an answer
/// that takes long is for it to make on another one.
pub trait Authority: Debug + Send + Sync {
    /// The user.
    fn user(&self) -> &Arc<User>;

    /// Whether a vhost may be entered.
    fn permits_vhost(&self, vhost: &str) -> bool;

    /// Whether something may be done in a vhost; the name of the default exchange is `amq.default` here.
    fn permits(&self, vhost: &str, right: Right, resource: Resource<'_>) -> bool;

    /// Whether a routing key may be used with a topic exchange. Asked besides [`Authority::permits`].
    fn permits_topic(&self, vhost: &str, right: Right, exchange: &[u8], routing_key: &[u8])
    -> bool;

    /// Whether another program is asked, which may take its time.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// When this comes to its end, in milliseconds since 1970.
    fn expires_ms(&self) -> Option<u64> {
        None
    }

    /// Whether what the user has logged in with can be renewed (`connection.update-secret`).
    fn is_renewable(&self) -> bool {
        false
    }

    /// Asks again who the user is, unless that has been asked lately. May take long.
    fn again(&self) -> Again {
        Again::Same
    }

    /// A text by which another node of the cluster, which takes this one's word, knows as much of the user. None if there is no such
    /// text.
    fn passport(&self) -> Option<String> {
        None
    }
}

/// Who a user is, asked again.
#[derive(Debug)]
pub enum Again {
    /// The same as before.
    Same,
    /// The same user, who may do something else.
    Changed(Arc<dyn Authority>),
    /// It would not be let in any more.
    Refused,
}

/// What a user may do who has logged in elsewhere, shared by all that it does here: what renews it holds everywhere at
/// once.
#[derive(Debug)]
pub struct Grant {
    current: ArcSwap<Arc<dyn Authority>>,
}

impl Grant {
    /// What `authority` says.
    pub fn new(authority: Arc<dyn Authority>) -> Arc<Self> {
        Arc::new(Grant { current: ArcSwap::from_pointee(authority) })
    }

    /// Who says now what is permitted.
    pub fn authority(&self) -> Arc<dyn Authority> {
        Arc::clone(&self.current.load())
    }

    /// Lets another authority decide from now on.
    pub fn renew(&self, authority: Arc<dyn Authority>) {
        self.current.store(Arc::new(authority));
    }

    /// Asks again who the user is, as [`Authority::again`], for all that it does here. Returns whether
    /// it would still be let in.
    pub fn ask_again(&self) -> bool {
        match self.authority().again() {
            Again::Same => true,
            Again::Changed(authority) => {
                self.renew(authority);
                true
            }
            Again::Refused => false,
        }
    }

    /// When it comes to its end unless it is renewed, in milliseconds since 1970.
    pub fn expires_ms(&self) -> Option<u64> {
        self.current.load().expires_ms()
    }

    /// Whether it can be renewed.
    pub fn is_renewable(&self) -> bool {
        self.current.load().is_renewable()
    }
}
