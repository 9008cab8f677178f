//! A message as the broker hands it around, and its layout in a chunk.
//!
//! The parts are kept as they came off the wire, because that is also how they leave: a
//! `basic.deliver` repeats the exchange and routing key of its `basic.publish` byte for byte,
//! and its content header is the publisher's.
//!
//! ```text
//! offset  size  field
//!      0     4  header_len
//!      4     4  body_len, or 0xffff_ffff when the body is held beside the chunk
//!      8     2  address_len; the highest bit set when there is a stamp, the next one when the broker
//!               has recorded deaths in the header
//!     10     8  the stamp, if there is one: when it was published, milliseconds since 1970
//!            n  exchange and routing key, each a short string
//!            n  content header payload (class, weight, body size, property flags, properties)
//!            n  body
//! ```
//! Integers are little-endian; records follow each other without padding.

use crate::{SharedBody, StoreError};

/// Bytes in front of a record's parts, without a stamp.
pub const PREFIX_LEN: usize = 10;
const STAMP_LEN: usize = 8;
/// Set in `address_len` when a stamp follows.
const STAMPED: u16 = 1 << 15;
/// Set in `address_len` when the header tells of deaths that the broker has recorded.
const DEATHS: u16 = 1 << 14;
/// Set in `address_len` when the routing key stands for all keys.
const ONE_KEY: u16 = 1 << 13;
const ADDRESS_LEN: u16 = ONE_KEY - 1;
const BODY_BESIDE: u32 = u32::MAX;

/// Bodies from this size on, when they are already owned, are shared instead of copied.
pub const SHARED_BODY_MIN_BYTES: usize = 4096;

/// One message, borrowed from the read buffer of a connection or from a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageRef<'a> {
    /// Exchange and routing key: two AMQP short strings, as they stand in `basic.publish` and
    /// `basic.deliver`.
    pub address: &'a [u8],
    /// Payload of the content header frame.
    pub header: &'a [u8],
    /// The whole body, however many frames it came in.
    pub body: &'a [u8],
    /// The same body when it is shared memory that can be sent without a copy.
    pub shared_body: Option<&'a SharedBody>,
    /// When it was published, in milliseconds since 1970; 0 where no queue needs it.
    pub published_ms: u64,
    /// The broker itself has recorded the deaths that the header tells of. What a client says of
    /// deaths is nothing but a header.
    pub recorded_deaths: bool,
    /// Its routing key has come in place of all its keys: what CC says in the header counts no more.
    pub one_key: bool,
}

/// What stands in front of the parts of a record.
#[derive(Clone, Copy, Debug)]
pub struct Prefix {
    bytes: [u8; PREFIX_LEN + STAMP_LEN],
    len: usize,
}

impl std::ops::Deref for Prefix {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The numbers of a prefix.
struct Lengths {
    header: usize,
    body: u32,
    address: usize,
    published_ms: u64,
    recorded_deaths: bool,
    one_key: bool,
}

impl Lengths {
    /// Takes a prefix off the front of a record; none if there is none.
    #[inline]
    fn read(record: &[u8]) -> Option<(Self, &[u8])> {
        let (prefix, mut rest) = record.split_first_chunk::<PREFIX_LEN>()?;
        let address = u16::from_le_bytes([prefix[8], prefix[9]]);
        let mut published_ms = 0;
        if address & STAMPED != 0 {
            let (stamp, after) = rest.split_first_chunk::<STAMP_LEN>()?;
            published_ms = u64::from_le_bytes(*stamp);
            rest = after;
        }
        let lengths = Lengths {
            header: u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize,
            body: u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]),
            address: (address & ADDRESS_LEN) as usize,
            published_ms,
            recorded_deaths: address & DEATHS != 0,
            one_key: address & ONE_KEY != 0,
        };
        Some((lengths, rest))
    }

    /// The message that these are the parts of.
    #[inline]
    fn message<'a>(
        &self,
        (address, header, body): (&'a [u8], &'a [u8], &'a [u8]),
        shared_body: Option<&'a SharedBody>,
    ) -> MessageRef<'a> {
        let Lengths { published_ms, recorded_deaths, one_key, .. } = *self;
        MessageRef { address, header, body, shared_body, published_ms, recorded_deaths, one_key }
    }
}

impl<'a> MessageRef<'a> {
    /// Bytes this message takes in a chunk.
    pub fn record_len(&self) -> usize {
        let body = if self.shares_body() { 0 } else { self.body.len() };
        let stamp = if self.published_ms == 0 { 0 } else { STAMP_LEN };
        PREFIX_LEN + stamp + self.address.len() + self.header.len() + body
    }

    /// Bytes of its record with the whole body, as a log keeps it.
    pub fn stored_len(&self) -> usize {
        let stamp = if self.published_ms == 0 { 0 } else { STAMP_LEN };
        PREFIX_LEN + stamp + self.address.len() + self.header.len() + self.body.len()
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
    fn prefix(&self, inline: bool) -> Result<Prefix, StoreError> {
        let too_large = || StoreError::TooLarge(self.body.len() as u64);
        let header_len = u32::try_from(self.header.len()).map_err(|_| too_large())?;
        let mut address_len = u16::try_from(self.address.len())
            .ok()
            .filter(|len| *len <= ADDRESS_LEN)
            .ok_or_else(too_large)?;
        let body_len = u32::try_from(self.body.len())
            .ok()
            .filter(|len| *len != BODY_BESIDE)
            .ok_or_else(too_large)?;
        let body_len = if inline { body_len } else { BODY_BESIDE };
        let mut prefix = Prefix { bytes: [0; PREFIX_LEN + STAMP_LEN], len: PREFIX_LEN };
        if self.published_ms != 0 {
            address_len |= STAMPED;
            prefix.len += STAMP_LEN;
            prefix.bytes[PREFIX_LEN..].copy_from_slice(&self.published_ms.to_le_bytes());
        }
        if self.recorded_deaths {
            address_len |= DEATHS;
        }
        if self.one_key {
            address_len |= ONE_KEY;
        }
        prefix.bytes[..4].copy_from_slice(&header_len.to_le_bytes());
        prefix.bytes[4..8].copy_from_slice(&body_len.to_le_bytes());
        prefix.bytes[8..10].copy_from_slice(&address_len.to_le_bytes());
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
    pub fn record_parts(&self) -> Result<(Prefix, [&'a [u8]; 3]), StoreError> {
        Ok((self.prefix(true)?, [self.address, self.header, self.body]))
    }

    /// The message of a record that was written in parts; none if it is not whole.
    pub fn from_record(record: &'a [u8]) -> Option<Self> {
        let (lengths, rest) = Lengths::read(record)?;
        let (address, rest) = rest.split_at_checked(lengths.address)?;
        let (header, body) = rest.split_at_checked(lengths.header)?;
        let message = lengths.message((address, header, body), None);
        (body.len() == lengths.body as usize).then_some(message)
    }

    /// Bytes of the body of the message whose record begins at `offset` of a chunk.
    #[inline]
    pub(crate) fn body_len_at(chunk: &[u8], offset: usize, beside: Option<&SharedBody>) -> u32 {
        let len = chunk.get(offset + 4..).and_then(|rest| rest.first_chunk::<4>());
        match len.map_or(0, |len| u32::from_le_bytes(*len)) {
            BODY_BESIDE => beside.map_or(0, |body| body.len()) as u32,
            len => len,
        }
    }

    /// The record at `offset` of a chunk that [`MessageRef::write`] filled.
    pub(crate) fn parse(chunk: &'a [u8], offset: usize, beside: Option<&'a SharedBody>) -> Self {
        // Chunks are made here and never leave memory: the record is whole.
        let Some((lengths, rest)) = Lengths::read(&chunk[offset..]) else {
            return MessageRef::default();
        };
        let (address, rest) = rest.split_at(lengths.address);
        let (header, rest) = rest.split_at(lengths.header);
        let (body, shared_body) = if lengths.body == BODY_BESIDE {
            (beside.map_or(&[][..], |body| body), beside)
        } else {
            (&rest[..lengths.body as usize], None)
        };
        lengths.message((address, header, body), shared_body)
    }
}

/// Exchange and routing key, out of a [`MessageRef::address`].
pub fn split_address(address: &[u8]) -> (&[u8], &[u8]) {
    let (exchange, rest) = split_short(address);
    (exchange, split_short(rest).0)
}

/// The first short string of `bytes` and what follows it; what is missing counts as empty.
fn split_short(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.split_first() {
        Some((len, rest)) if rest.len() >= *len as usize => rest.split_at(*len as usize),
        _ => (&[], &[]),
    }
}
