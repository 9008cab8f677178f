//! A cursor over encoded bytes, for what has no type of its own; every step checks what is left.

use crate::error::{DecodeError, DecodeErrorKind};
use crate::{ShortStr, Table};

/// Takes elementary values off the front of a slice (section 4.2.5 of the specification).
///
/// Every reading method fails with [`DecodeErrorKind::Truncated`] at the value's offset when the
/// input ends before the value does, and leaves the reader where it was.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    input_len: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `input`.
    #[inline]
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input, input_len: input.len() }
    }

    /// How many bytes were taken so far.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.input_len - self.rest.len()
    }

    /// Whether everything was taken.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
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

    /// Takes one byte.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes two bytes, the high one first.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes four bytes, the highest first.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes eight bytes, the highest first.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Takes a short string with its byte of length.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn short_str(&mut self) -> Result<ShortStr<'a>, DecodeError> {
        let Some((&len, rest)) = self.rest.split_first() else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        let Some((text, rest)) = rest.split_at_checked(usize::from(len)) else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        self.rest = rest;
        Ok(ShortStr::from_checked(text))
    }

    /// Takes a long string with its four bytes of length.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn long_str(&mut self) -> Result<&'a [u8], DecodeError> {
        let Some((len, rest)) = self.rest.split_first_chunk() else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        let len = u32::from_be_bytes(*len) as usize;
        let Some((bytes, rest)) = rest.split_at_checked(len) else {
            return self.fail(DecodeErrorKind::Truncated);
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Takes a field table with its four bytes of length. Its entries are not looked at.
    ///
    /// # Errors
    /// When the input ends before.
    #[inline]
    pub fn table(&mut self) -> Result<Table<'a>, DecodeError> {
        self.long_str().map(Table::from_entries)
    }

    /// Checks that everything was taken.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TrailingBytes`] when not.
    #[inline]
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { self.fail(DecodeErrorKind::TrailingBytes) }
    }
}
