//! How far a shard's log has got, and where a message is in it.

use std::fmt;

/// A position in the order of everything a shard's log was asked to keep: the number of bytes before
/// it.
///
/// A confirm hangs on one number: it may be sent when [`Log::durable`](crate::Log::durable) has
/// reached the LSN that [`Log::append`](crate::Log::append) gave for the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Behind everything that a log can have.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The LSN `bytes` further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Lsn(self.0 + bytes)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A proof that this machine still leads a replicated log: of the answers that wait for one, those with this number or a
/// lower one may go out when [`Log::proven`](crate::Log::proven) has reached it. 0 needs none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proof(pub u64);

/// Where a message is in the log of its shard.
///
/// It is the LSN at which the message's record begins, so it says the same on every machine that
/// holds a copy of that log, and nothing about the files in which one of them keeps it. It is no
/// position in another shard's log. Positions ascend in the order of the log; 0 is no message's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Whether the message was appended before the log ended at `lsn`.
    #[inline]
    pub fn is_before(self, lsn: Lsn) -> bool {
        self.0 < lsn.0
    }

    /// The message is durable when the log is durable up to here. A batch becomes durable as a whole,
    /// so this is reached only with the end of its batch.
    #[inline]
    pub fn durable_at(self) -> Lsn {
        Lsn(self.0 + 1)
    }
}

impl From<Lsn> for Position {
    fn from(lsn: Lsn) -> Self {
        Position(lsn.0)
    }
}

impl From<Position> for Lsn {
    fn from(position: Position) -> Self {
        Lsn(position.0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
