//! Where a server's connection stands.

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The protocol header.
    Header,
    /// `connection.start-ok`.
    Starting,
    /// The driver's answer to a login.
    LoginPending,
    /// `connection.tune-ok`.
    Tuning,
    /// `connection.open`.
    Opening,
    /// The driver's answer to an open.
    OpenPending,
    /// Anything: the connection is in use.
    Running,
    /// `connection.close-ok`, after a `connection.close` from here.
    Closing,
    /// The client to close the socket. Input is thrown away.
    Lingering,
    /// The same, of a client that has been told by the end of the stream that nothing follows.
    Refused,
    /// Nothing.
    Closed,
}

impl Phase {
    /// The name that error texts use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "pre_init",
            Self::Starting => "starting",
            Self::LoginPending => "securing",
            Self::Tuning => "tuning",
            Self::Opening | Self::OpenPending => "opening",
            Self::Running => "running",
            Self::Closing => "closing",
            Self::Lingering | Self::Refused | Self::Closed => "closed",
        }
    }

    /// Whether the connection is over, be it that something is still to be sent or awaited.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Closing | Self::Lingering | Self::Refused | Self::Closed)
    }
}
