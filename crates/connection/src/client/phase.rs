//! Where a client's connection stands.

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// `connection.start`.
    Starting,
    /// `connection.tune`, the answer to a login.
    Tuning,
    /// `connection.open-ok`.
    Opening,
    /// Anything: the connection is in use.
    Running,
    /// `connection.close-ok`, after a `connection.close` from here.
    Closing,
    /// Nothing.
    Closed,
}

impl Phase {
    /// The name that error texts use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Tuning => "tuning",
            Self::Opening => "opening",
            Self::Running => "running",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }

    /// Whether the connection is over, be it that something is still to be sent or awaited.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Closing | Self::Closed)
    }
}
