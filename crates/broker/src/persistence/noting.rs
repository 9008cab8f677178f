//! What a replay of a log notes of messages for the broker, which reads none of them again when it is opened on the log.

use super::definition::{self, Definition};
use crate::queue::priority_of;
use crate::routing::deduplication::{self, Marker};
use courser_store::{Key, MessageRef, NO_KEY, Noting};

/// To be given to all that replay a broker's log.
pub static NOTING: &dyn Noting = &OfBroker;

#[derive(Debug)]
struct OfBroker;

impl Noting for OfBroker {
    fn priority(&self, message: &MessageRef<'_>) -> Option<u8> {
        priority_of(message)
    }

    fn keeps_apart(&self, key: &[u8], value: &[u8]) -> Option<(u64, Box<[u8]>)> {
        if key.first() != Some(&definition::QUEUE) {
            return None;
        }
        let Definition::Queue { id, settings, .. } = definition::parse(key, value)? else {
            return None;
        };
        let marker = Marker::of_what_is_present(&settings.arguments)?;
        Some((id, marker.name().into()))
    }

    fn key(&self, by: &[u8], message: &MessageRef<'_>) -> Key {
        deduplication::key_in(by, message.header).unwrap_or(NO_KEY)
    }
}
