//! From a message in a queue to the message that its dead-letter exchange gets.

use super::death::{self, Death, Reason};
use crate::queue::{DeadLetterTo, Queue};
use crate::work;
use courser_codec::{ContentHeader, DecodeError, FieldTable, Properties, ShortStr, Table};
use courser_store::{KeptBody, MessageRef};

/// A message with its death written into its headers, ready to be published.
pub(super) struct Rewritten {
    pub address: Vec<u8>,
    pub header: Vec<u8>,
    pub body: KeptBody,
    pub headers: FieldTable,
    /// `delivery-mode` 2.
    pub persistent: bool,
    /// As in [`MessageRef`].
    pub one_key: bool,
    /// There is no room for all deaths that would show a circle.
    pub may_circle: bool,
}

impl Rewritten {
    /// What `message`, which has died in `queue`, becomes. Of its deaths it says as much as leaves the
    /// content header with `header_max_bytes`.
    pub fn of(
        message: &MessageRef<'_>,
        queue: &Queue,
        to: &DeadLetterTo,
        reason: Reason,
        (now_ms, header_max_bytes): (u64, usize),
    ) -> Result<Self, DecodeError> {
        let content = ContentHeader::parse(message.header)?;
        let properties = content.properties.decode()?;
        let mut headers = properties.headers.unwrap_or(Table::EMPTY).to_owned()?;
        work::count_values(&headers);
        let death = Death {
            queue: &queue.name,
            reason,
            time_s: now_ms / 1000,
            exchange: message.exchange(),
            routing_key: message.routing_key(),
            one_key: message.one_key,
            expiration: properties.expiration.map(ShortStr::as_bytes),
        };
        if !message.recorded_deaths {
            // Whatever a client says of deaths is only a header, and makes way for the first real one.
            headers.retain(|name, _| name.as_bytes() != death::X_DEATH.as_bytes());
        }
        death::record(&mut headers, &death);
        let properties = Properties { expiration: None, ..properties };
        let mut header = with_headers(message.header, &properties, &headers);
        while header.len() > header_max_bytes && death::shorten(&mut headers) {
            header = with_headers(message.header, &properties, &headers);
        }
        let may_circle = header.len() > header_max_bytes && death::circle(&headers).len() > 1;
        let mut address = Vec::new();
        let key = to.routing_key.as_ref().map_or(message.routing_key(), |key| key.as_bytes());
        for part in [to.exchange.as_bytes(), key] {
            address.push(part.len() as u8);
            address.extend_from_slice(part);
        }
        let body = KeptBody::of(message);
        let persistent = properties.delivery_mode == Some(2);
        // Where its queue says, it goes there and nowhere else.
        let one_key = message.one_key || to.routing_key.is_some();
        Ok(Rewritten { address, header, body, headers, persistent, one_key, may_circle })
    }

    /// `published_ms` is 0 where no queue needs it.
    pub fn message(&self, published_ms: u64) -> MessageRef<'_> {
        MessageRef {
            address: &self.address,
            header: &self.header,
            body: &self.body,
            shared_body: self.body.shared(),
            published_ms,
            recorded_deaths: true,
            one_key: self.one_key,
        }
    }
}

/// The content header of a message with other properties and headers: class, weight and body size stay.
fn with_headers(header: &[u8], properties: &Properties<'_>, headers: &FieldTable) -> Vec<u8> {
    let entries = headers.to_entries();
    let properties = Properties { headers: Some(Table::from_entries(&entries)), ..*properties };
    let mut changed = header[..courser_codec::CONTENT_HEADER_FIXED_LEN].to_vec();
    properties.encode(&mut changed);
    changed
}
