//! Positions in the log.

use std::fmt;

/// A position in the endless log: the number of octets before it.
///
/// As the position of a record it is that of its first octet. Zero is no record's position, since
/// every segment starts with a header, so owners may use it for "nothing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The position `octets` further on.
    #[must_use]
    pub fn plus(self, octets: u64) -> Self {
        Lsn(self.0 + octets)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
