//! What clients publish.

use super::owned;
use bytes::Bytes;
use courser_broker::Inbound;
use courser_codec::{FieldTable, OwnedProperties, basic};

/// A message, encoded as it comes off the wire.
#[derive(Clone, Debug)]
pub struct Message {
    address: Vec<u8>,
    header: Vec<u8>,
    pub(super) body: Bytes,
    mandatory: bool,
    immediate: bool,
    properties: OwnedProperties,
}

impl Message {
    pub fn new(exchange: &str, routing_key: &str, body: impl AsRef<[u8]>) -> Self {
        let mut address = Vec::new();
        for name in [exchange, routing_key] {
            address.push(name.len() as u8);
            address.extend_from_slice(name.as_bytes());
        }
        let body = Bytes::copy_from_slice(body.as_ref());
        let properties = OwnedProperties::default();
        let (mandatory, immediate) = (false, false);
        Message { address, header: Vec::new(), body, mandatory, immediate, properties }
            .with_properties(|_| {})
    }

    pub fn mandatory(self) -> Self {
        Message { mandatory: true, ..self }
    }

    pub fn immediate(self) -> Self {
        Message { immediate: true, ..self }
    }

    pub fn headers(self, headers: FieldTable) -> Self {
        self.with_properties(|properties| properties.headers = Some(headers))
    }

    pub fn expiration(self, text: &str) -> Self {
        self.with_properties(|properties| properties.expiration = Some(owned(text)))
    }

    pub fn user_id(self, user: &str) -> Self {
        self.with_properties(|properties| properties.user_id = Some(owned(user)))
    }

    pub fn with_properties(mut self, change: impl FnOnce(&mut OwnedProperties)) -> Self {
        change(&mut self.properties);
        self.header = vec![0, basic::CLASS_ID as u8, 0, 0];
        self.header.extend_from_slice(&(self.body.len() as u64).to_be_bytes());
        self.properties.encode(&mut self.header);
        self
    }

    /// With these bytes behind class, weight and body size, whatever they mean.
    pub fn with_encoded_properties(mut self, bytes: &[u8]) -> Self {
        self.header.truncate(12);
        self.header.extend_from_slice(bytes);
        self
    }

    pub fn properties(&self) -> &OwnedProperties {
        &self.properties
    }

    pub(super) fn inbound(&self, channel: u16, confirm_seq: u64) -> Inbound<'_> {
        let (exchange, routing_key) = courser_store::record::split_address(&self.address);
        Inbound {
            channel,
            publish: basic::Publish {
                exchange: exchange.try_into().expect("short"),
                routing_key: routing_key.try_into().expect("short"),
                mandatory: self.mandatory,
                immediate: self.immediate,
            },
            address: &self.address,
            header: &self.header,
            body: &self.body,
            shared_body: None,
            confirm_seq,
        }
    }
}
