//! Short strings that are kept: names of queues and exchanges, keys of tables.

use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::Utf8Error;

use crate::{ShortStr, TooLong};

/// An owned short string: at most 255 octets, any octets. A clone is a count, not a copy.
///
/// Equality, order and hash are those of the octets, so a map with such keys can be asked with a `&[u8]`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortString(Arc<[u8]>);

impl ShortString {
    /// A short string of these octets.
    ///
    /// # Errors
    /// When there are more than 255.
    pub fn new(octets: &[u8]) -> Result<Self, TooLong> {
        ShortStr::new(octets).map(Self::from)
    }

    /// The borrowed form.
    #[inline]
    #[must_use]
    pub fn as_short_str(&self) -> ShortStr<'_> {
        ShortStr::from_checked(&self.0)
    }

    /// The octets.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if it is any.
    ///
    /// # Errors
    /// When the octets are not UTF-8.
    pub fn to_str(&self) -> Result<&str, Utf8Error> {
        core::str::from_utf8(&self.0)
    }

    /// Length in octets.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no octets.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The same as of the octets, which [`Borrow`] relies on.
impl Hash for ShortString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Borrow<[u8]> for ShortString {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ShortString {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<ShortStr<'_>> for ShortString {
    fn from(text: ShortStr<'_>) -> Self {
        Self(Arc::from(text.as_bytes()))
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

    fn try_from(octets: &[u8]) -> Result<Self, TooLong> {
        Self::new(octets)
    }
}

impl PartialEq<str> for ShortString {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for ShortString {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<ShortStr<'_>> for ShortString {
    fn eq(&self, other: &ShortStr<'_>) -> bool {
        *self.0 == *other.as_bytes()
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
