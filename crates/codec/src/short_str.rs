//! Short strings as borrowed views: at most 255 bytes, by convention UTF-8.

use core::fmt;
use core::str::Utf8Error;

use crate::Sink;
use crate::sink::put_filled;

/// A borrowed short string: at most 255 bytes, any bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortStr<'a>(&'a [u8]);

/// Text that does not fit into a short string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Length of the text in bytes.
    pub len: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in a short string, which holds at most {}", self.len, ShortStr::MAX_LEN)
    }
}

impl core::error::Error for TooLong {}

impl<'a> ShortStr<'a> {
    /// The longest that there is, in bytes.
    pub const MAX_LEN: usize = 255;
    /// The empty string.
    pub const EMPTY: Self = Self(b"");

    /// A short string of these bytes.
    ///
    /// # Errors
    /// When there are more than 255.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Result<Self, TooLong> {
        if bytes.len() > Self::MAX_LEN {
            Err(TooLong { len: bytes.len() })
        } else {
            Ok(Self(bytes))
        }
    }

    /// A short string of as much of `text` as fits, cut at the end of a character.
    #[must_use]
    pub fn cut(text: &'a str) -> Self {
        Self(&text.as_bytes()[..text.floor_char_boundary(Self::MAX_LEN)])
    }

    /// A short string of a literal, checked when the program is compiled.
    ///
    /// # Panics
    /// When `text` has more than 255 bytes.
    #[must_use]
    pub const fn from_static(text: &'static str) -> ShortStr<'static> {
        assert!(text.len() <= Self::MAX_LEN, "a short string holds at most 255 bytes");
        ShortStr(text.as_bytes())
    }

    /// For bytes whose number came from one byte.
    #[inline]
    pub(crate) const fn from_checked(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() <= Self::MAX_LEN);
        Self(bytes)
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text, if it is any.
    ///
    /// # Errors
    /// When the bytes are not UTF-8.
    pub const fn to_str(self) -> Result<&'a str, Utf8Error> {
        core::str::from_utf8(self.0)
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that [`ShortStr::encode`] writes.
    #[inline]
    #[must_use]
    pub const fn encoded_len(self) -> usize {
        1 + self.0.len()
    }

    /// Writes the byte of length and the bytes.
    #[inline]
    pub fn encode(self, sink: &mut impl Sink) {
        put_filled!(sink, self.encoded_len(), |window| window.put_short_str(self));
    }

    /// Length in bytes as on the wire.
    #[inline]
    pub(crate) const fn wire_len(self) -> u8 {
        debug_assert!(self.0.len() <= Self::MAX_LEN);
        self.0.len() as u8
    }
}

impl<'a> TryFrom<&'a str> for ShortStr<'a> {
    type Error = TooLong;

    fn try_from(text: &'a str) -> Result<Self, TooLong> {
        Self::new(text.as_bytes())
    }
}

impl<'a> TryFrom<&'a [u8]> for ShortStr<'a> {
    type Error = TooLong;

    fn try_from(bytes: &'a [u8]) -> Result<Self, TooLong> {
        Self::new(bytes)
    }
}

impl AsRef<[u8]> for ShortStr<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl PartialEq<str> for ShortStr<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for ShortStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// The text, with U+FFFD for what is not UTF-8.
impl fmt::Display for ShortStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_str() {
            Ok(text) => f.pad(text),
            Err(_) => self.0.utf8_chunks().try_for_each(|chunk| {
                f.write_str(chunk.valid())?;
                if chunk.invalid().is_empty() { Ok(()) } else { f.write_str("\u{fffd}") }
            }),
        }
    }
}

impl fmt::Debug for ShortStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}
