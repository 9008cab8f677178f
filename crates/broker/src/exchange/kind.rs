//! The types of exchanges, as `exchange.declare` names them.

use courser_codec::FieldTable;

/// The argument of a delayed exchange that says how it routes.
pub(crate) const DELAYED_TYPE: &str = "x-delayed-type";

/// The types of exchanges: those of AMQP 0-9-1, 3.1.3, and those that RabbitMQ's plug-ins add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// To the bindings whose key equals the routing key.
    Direct = 0,
    /// To every binding.
    Fanout = 1,
    /// To the bindings whose pattern matches the routing key word by word.
    Topic = 2,
    /// To the bindings whose arguments match the message's headers.
    Headers = 3,
    /// To one destination, the same for the same key, in proportion to the bindings' weights.
    ConsistentHash = 4,
    /// To one destination, any.
    Random = 5,
    /// To one destination, the same for the same key as long as the bindings stay the same.
    ModulusHash = 6,
    /// To every binding, and to those that come later.
    RecentHistory = 7,
    /// As another type that the argument `x-delayed-type` names, after some time.
    Delayed = 8,
    /// To every binding, unless the message has been there before.
    Deduplicating = 9,
    /// As [`ExchangeKind::Random`], to queues only.
    LocalRandom = 10,
}

impl ExchangeKind {
    const ALL: [Self; 11] = [
        Self::Direct,
        Self::Fanout,
        Self::Topic,
        Self::Headers,
        Self::ConsistentHash,
        Self::Random,
        Self::ModulusHash,
        Self::RecentHistory,
        Self::Delayed,
        Self::Deduplicating,
        Self::LocalRandom,
    ];

    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// The kind with this name, if it is one.
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// The kind that `self as u8` stands for; the numbers are those of the store's definitions.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The kind that a delayed exchange with these arguments routes as, if they name one.
    pub(crate) fn delayed(arguments: &FieldTable) -> Option<Self> {
        let kind = Self::parse(arguments.get(DELAYED_TYPE)?.as_long_str()?)?;
        // Neither keeps messages twice.
        (!matches!(kind, Self::Delayed | Self::RecentHistory)).then_some(kind)
    }

    /// Its name in `exchange.declare`.
    pub fn name(self) -> &'static str {
        match self {
            ExchangeKind::Direct => "direct",
            ExchangeKind::Fanout => "fanout",
            ExchangeKind::Topic => "topic",
            ExchangeKind::Headers => "headers",
            ExchangeKind::ConsistentHash => "x-consistent-hash",
            ExchangeKind::Random => "x-random",
            ExchangeKind::ModulusHash => "x-modulus-hash",
            ExchangeKind::RecentHistory => "x-recent-history",
            ExchangeKind::Delayed => "x-delayed-message",
            ExchangeKind::Deduplicating => "x-message-deduplication",
            ExchangeKind::LocalRandom => "x-local-random",
        }
    }
}
