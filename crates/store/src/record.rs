//! A message as the broker hands it around, and its layout in a chunk.
//!
//! The parts are kept as they came off the wire, because that is also how they leave: a
//! `basic.deliver` repeats the exchange and routing key of its `basic.publish` octet for octet,
//! and its content header is the publisher's.
//!
//! ```text
//! offset  size  field
//!      0     4  header_len
//!      4     4  body_len, or 0xffff_ffff when the body is held beside the chunk
//!      8     2  address_len
//!     10     n  exchange and routing key, each a short string
//!            n  content header payload (class, weight, body size, property flags, properties)
//!            n  body
//! ```
//! Integers are little-endian; records follow each other without padding.

use crate::StoreError;
use bytes::Bytes;

/// Octets in front of a record's parts.
pub const PREFIX_LEN: usize = 10;
const BODY_BESIDE: u32 = u32::MAX;

/// Bodies from this size on, when they are already owned, are shared instead of copied.
pub const SHARED_BODY_MIN_BYTES: usize = 4096;

/// One message, borrowed from the read buffer of a connection or from a store.
#[derive(Clone, Copy, Debug)]
pub struct MessageRef<'a> {
    /// Exchange and routing key: two AMQP short strings, as they stand in `basic.publish` and
    /// `basic.deliver`.
    pub address: &'a [u8],
    /// Payload of the content header frame.
    pub header: &'a [u8],
    /// The whole body, however many frames it came in.
    pub body: &'a [u8],
    /// The same body when it is shared memory that can be sent without a copy.
    pub shared_body: Option<&'a Bytes>,
}

impl<'a> MessageRef<'a> {
    /// Octets this message takes in a chunk.
    pub fn record_len(&self) -> usize {
        let body = if self.shares_body() { 0 } else { self.body.len() };
        PREFIX_LEN + self.address.len() + self.header.len() + body
    }

    /// Whether the body is large enough, and owned, so that it is kept beside the chunk.
    pub fn shares_body(&self) -> bool {
        self.shared_body.is_some() && self.body.len() >= SHARED_BODY_MIN_BYTES
    }

    /// The exchange's name, out of [`MessageRef::address`].
    pub fn exchange(&self) -> &'a [u8] {
        split_address(self.address).0
    }

    /// The routing key, out of [`MessageRef::address`].
    pub fn routing_key(&self) -> &'a [u8] {
        split_address(self.address).1
    }

    /// What stands in front of the parts of a record; the body follows it if `inline`.
    fn prefix(&self, inline: bool) -> Result<[u8; PREFIX_LEN], StoreError> {
        let too_large = || StoreError::TooLarge(self.body.len() as u64);
        let header_len = u32::try_from(self.header.len()).map_err(|_| too_large())?;
        let address_len = u16::try_from(self.address.len()).map_err(|_| too_large())?;
        let body_len = u32::try_from(self.body.len())
            .ok()
            .filter(|len| *len != BODY_BESIDE)
            .ok_or_else(too_large)?;
        let body_len = if inline { body_len } else { BODY_BESIDE };
        let mut prefix = [0; PREFIX_LEN];
        prefix[..4].copy_from_slice(&header_len.to_le_bytes());
        prefix[4..8].copy_from_slice(&body_len.to_le_bytes());
        prefix[8..].copy_from_slice(&address_len.to_le_bytes());
        Ok(prefix)
    }

    /// Appends the record of this message to `chunk`, without the body if that is shared.
    pub(crate) fn write(&self, chunk: &mut Vec<u8>) -> Result<(), StoreError> {
        let inline = !self.shares_body();
        chunk.extend_from_slice(&self.prefix(inline)?);
        chunk.extend_from_slice(self.address);
        chunk.extend_from_slice(self.header);
        if inline {
            chunk.extend_from_slice(self.body);
        }
        Ok(())
    }

    /// The record of this message in four parts, for a store that gathers them.
    pub fn record_parts(&self) -> Result<([u8; PREFIX_LEN], [&'a [u8]; 3]), StoreError> {
        Ok((self.prefix(true)?, [self.address, self.header, self.body]))
    }

    /// The message of a record that was written in parts; none if it is not whole.
    pub fn from_record(record: &'a [u8]) -> Option<Self> {
        let (prefix, rest) = record.split_first_chunk::<PREFIX_LEN>()?;
        let header_len = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
        let body_len = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]) as usize;
        let address_len = u16::from_le_bytes([prefix[8], prefix[9]]) as usize;
        let (address, rest) = rest.split_at_checked(address_len)?;
        let (header, body) = rest.split_at_checked(header_len)?;
        (body.len() == body_len).then_some(MessageRef { address, header, body, shared_body: None })
    }

    /// The record at `offset` of a chunk that [`MessageRef::write`] filled.
    pub(crate) fn parse(chunk: &'a [u8], offset: usize, beside: &'a Bytes) -> Self {
        let record = &chunk[offset..];
        let (prefix, rest) = record.split_at(PREFIX_LEN);
        let header_len = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
        let body_len = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]);
        let address_len = u16::from_le_bytes([prefix[8], prefix[9]]) as usize;
        let (address, rest) = rest.split_at(address_len);
        let (header, rest) = rest.split_at(header_len);
        if body_len == BODY_BESIDE {
            MessageRef { address, header, body: beside, shared_body: Some(beside) }
        } else {
            MessageRef { address, header, body: &rest[..body_len as usize], shared_body: None }
        }
    }
}

/// Exchange and routing key, out of a [`MessageRef::address`].
pub fn split_address(address: &[u8]) -> (&[u8], &[u8]) {
    let (exchange, rest) = split_short(address);
    (exchange, split_short(rest).0)
}

/// The first short string of `octets` and what follows it; what is missing counts as empty.
fn split_short(octets: &[u8]) -> (&[u8], &[u8]) {
    match octets.split_first() {
        Some((len, rest)) if rest.len() >= *len as usize => rest.split_at(*len as usize),
        _ => (&[], &[]),
    }
}
