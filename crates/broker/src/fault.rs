//! The errors a client can cause, with the reply codes and texts that RabbitMQ's clients know.

use courser_codec::{ShortStr, reply_code};
use courser_store::StoreError;
use std::fmt::{self, Display};

/// Why connections end when another machine comes to lead the log that their vhost is on.
pub const LEADER_CHANGED: &str = "the leader of the vhost has changed";
/// Why nothing is published any more by what has no connection that is told of the stop.
pub(crate) const STOPPING: &str = "the broker is being stopped";

/// Why a method was refused. Sent as `channel.close` or `connection.close` (AMQP 0-9-1, 1.1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Reply code, for example 404.
    pub code: u16,
    /// What was wrong, without the code's name that stands in front of it on the wire.
    pub explanation: String,
}

impl Fault {
    /// A fault with any reply code.
    pub fn new(code: u16, explanation: impl Display) -> Self {
        Fault { code, explanation: explanation.to_string() }
    }

    /// Whether the code ends the whole connection and not only the channel.
    pub fn closes_connection(&self) -> bool {
        matches!(self.code, 320 | 402 | 501..=506 | 530 | 540 | 541)
    }

    /// Whether the reason is that the broker goes, and not what was asked for: the next leader may do it, or this broker once it
    /// has started again.
    pub fn is_of_a_going_broker(&self) -> bool {
        let reasons = [LEADER_CHANGED, STOPPING];
        self.code == reply_code::CONNECTION_FORCED
            && reasons.iter().any(|reason| self.explanation.starts_with(reason))
    }

    /// 403: the client may not do this.
    pub fn access_refused(explanation: impl Display) -> Self {
        Fault::new(403, explanation)
    }

    /// 404: there is no such thing.
    pub fn not_found(explanation: impl Display) -> Self {
        Fault::new(404, explanation)
    }

    /// 405: another connection owns it.
    pub fn resource_locked(explanation: impl Display) -> Self {
        Fault::new(405, explanation)
    }

    /// 406: the request contradicts what exists.
    pub fn precondition_failed(explanation: impl Display) -> Self {
        Fault::new(406, explanation)
    }

    /// 530: the client broke a rule of the protocol; ends the connection.
    pub fn not_allowed(explanation: impl Display) -> Self {
        Fault::new(530, explanation)
    }

    /// 540: the method or option is not offered; ends the connection.
    pub fn not_implemented(explanation: impl Display) -> Self {
        Fault::new(540, explanation)
    }

    /// 541: the broker itself failed; ends the connection.
    pub fn internal_error(explanation: impl Display) -> Self {
        Fault::new(541, explanation)
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = reply_code::name(self.code).unwrap_or("ERROR");
        write!(f, "{} {name} - {}", self.code, self.explanation)
    }
}

impl std::error::Error for Fault {}

/// How a queue or exchange is named in an explanation: `queue 'q' in vhost '/'`.
pub(crate) struct Resource<'a> {
    pub kind: &'static str,
    pub name: ShortStr<'a>,
    pub vhost: &'a str,
}

impl Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}' in vhost '{}'", self.kind, self.name, self.vhost)
    }
}

/// What a client hears when the store can't do what it should. Where the broker keeps its files is
/// not for clients to know: details are in the log.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        store_fault(error)
    }
}

pub(crate) fn store_fault(error: StoreError) -> Fault {
    match error {
        StoreError::Full | StoreError::TooLarge(_) => Fault::new(506, error),
        StoreError::Lost(_) => {
            Fault::internal_error("a message is lost; the broker's log says more")
        }
        StoreError::Unread(_) => Fault::internal_error(
            "a message can't be read at the moment; the broker's log says more",
        ),
        StoreError::Failed(_) => {
            Fault::internal_error("the store has failed; the broker's log says more")
        }
        StoreError::Deposed => Fault::new(reply_code::CONNECTION_FORCED, LEADER_CHANGED),
    }
}
