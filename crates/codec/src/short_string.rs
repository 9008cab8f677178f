//! Short strings that are kept: names of queues and exchanges, keys of tables.

use alloc::sync::Arc;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::Utf8Error;

use crate::{ShortStr, TooLong};

/// An owned short string: at most 255 bytes, any bytes. A clone copies a few bytes or counts a
/// reference up.
///
/// Equality, order and hash are those of the bytes, so a map with such keys can be asked with a
/// `&[u8]`.
#[derive(Clone)]
pub struct ShortString(Repr);

/// Most keys, queues and exchanges have short names, which need no memory of their own.
#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_LEN] },
    Shared(Arc<[u8]>),
}

/// What fits beside the length into the room that the other variant takes anyway.
const INLINE_LEN: usize = 22;

impl ShortString {
    /// A short string of these bytes.
    ///
    /// # Errors
    /// When there are more than 255.
    pub fn new(bytes: &[u8]) -> Result<Self, TooLong> {
        ShortStr::new(bytes).map(Self::from)
    }

    /// Takes another text. In place, since moving what was just written in small pieces costs more
    /// than writing it.
    pub(crate) fn assign(&mut self, text: ShortStr<'_>) {
        let short = text.as_bytes();
        match &mut self.0 {
            Repr::Inline { len, bytes } if short.len() <= INLINE_LEN => {
                bytes[..short.len()].copy_from_slice(short);
                *len = short.len() as u8;
            }
            _ => *self = Self::from(text),
        }
    }

    /// The borrowed form.
    #[inline]
    #[must_use]
    pub fn as_short_str(&self) -> ShortStr<'_> {
        ShortStr::from_checked(self.as_bytes())
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Shared(bytes) => bytes,
        }
    }

    /// The text, if it is any.
    ///
    /// # Errors
    /// When the bytes are not UTF-8.
    pub fn to_str(&self) -> Result<&str, Utf8Error> {
        core::str::from_utf8(self.as_bytes())
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether there are no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

impl Default for ShortString {
    fn default() -> Self {
        Self(Repr::Inline { len: 0, bytes: [0; INLINE_LEN] })
    }
}

impl PartialEq for ShortString {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ShortString {}

impl PartialOrd for ShortString {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ShortString {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

/// The same as of the bytes, which [`Borrow`] relies on.
impl Hash for ShortString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for ShortString {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for ShortString {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<ShortStr<'_>> for ShortString {
    fn from(text: ShortStr<'_>) -> Self {
        let text = text.as_bytes();
        let mut bytes = [0; INLINE_LEN];
        match bytes.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text);
                // Cannot be cut: it is at most `INLINE_LEN`.
                Self(Repr::Inline { len: text.len() as u8, bytes })
            }
            None => Self(Repr::Shared(Arc::from(text))),
        }
    }
}

impl<'a> From<&'a ShortString> for ShortStr<'a> {
    fn from(text: &'a ShortString) -> Self {
        text.as_short_str()
    }
}

impl TryFrom<&str> for ShortString {
    type Error = TooLong;

    fn try_from(text: &str) -> Result<Self, TooLong> {
        Self::new(text.as_bytes())
    }
}

impl TryFrom<&[u8]> for ShortString {
    type Error = TooLong;

    fn try_from(bytes: &[u8]) -> Result<Self, TooLong> {
        Self::new(bytes)
    }
}

impl PartialEq<str> for ShortString {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for ShortString {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<ShortStr<'_>> for ShortString {
    fn eq(&self, other: &ShortStr<'_>) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

/// The text, with U+FFFD for what is not UTF-8.
impl fmt::Display for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_short_str(), f)
    }
}

impl fmt::Debug for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_short_str(), f)
    }
}
