//! A cursor over the octets of a payload; every step checks what is left.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::{ShortStr, Table};

/// Takes elementary values off the front of a slice.
///
/// Holds the rest and where the input ended; the offset of an error is found from these only when there is one.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    input_len: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(input: &'a [u8]) -> Self {
        Self { rest: input, input_len: input.len() }
    }

    /// How many octets were taken so far.
    #[inline]
    pub(crate) const fn offset(&self) -> usize {
        self.input_len - self.rest.len()
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn fail<T>(&self, kind: DecodeErrorKind) -> Result<T, DecodeError> {
        Err(DecodeError::new(self.offset(), kind))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[octet]| octet)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn short_str(&mut self) -> Result<ShortStr<'a>, DecodeError> {
        let Some((&len, rest)) = self.rest.split_first() else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        let Some((text, rest)) = rest.split_at_checked(usize::from(len)) else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        self.rest = rest;
        Ok(ShortStr::from_checked(text))
    }

    #[inline]
    pub(crate) fn long_str(&mut self) -> Result<&'a [u8], DecodeError> {
        let Some((len, rest)) = self.rest.split_first_chunk() else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        let len = u32::from_be_bytes(*len) as usize;
        let Some((octets, rest)) = rest.split_at_checked(len) else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        self.rest = rest;
        Ok(octets)
    }

    #[inline]
    pub(crate) fn table(&mut self) -> Result<Table<'a>, DecodeError> {
        self.long_str().map(Table::from_entries)
    }

    /// Checks that nothing is left.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { self.fail(DecodeErrorKind::TrailingOctets) }
    }
}
