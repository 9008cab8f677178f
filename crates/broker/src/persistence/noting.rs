//! What a replay of a log notes of messages for the broker, which reads none of them again when it is opened on the log.

use crate::queue::priority_of;
use courser_store::{MessageRef, Noting};

/// To be given to all that replay a broker's log.
pub static NOTING: &dyn Noting = &OfBroker;

#[derive(Debug)]
struct OfBroker;

impl Noting for OfBroker {
    fn priority(&self, message: &MessageRef<'_>) -> Option<u8> {
        priority_of(message)
    }
}
