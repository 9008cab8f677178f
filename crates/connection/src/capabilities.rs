//! What a peer says it can do, in the `capabilities` table of its properties.

use courser_codec::{Table, Value};

/// Capabilities that a peer announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u16);

macro_rules! capabilities {
    ($($bit:literal $method:ident $name:literal $doc:literal)*) => {
        impl Capabilities {
            const NAMES: &[(&str, u16)] = &[$(($name, 1 << $bit)),*];

            $(
                #[doc = $doc]
                #[must_use]
                pub const fn $method(self) -> bool {
                    self.0 & (1 << $bit) != 0
                }
            )*
        }
    };
}

capabilities! {
    0 authentication_failure_close "authentication_failure_close" "A refused login is told by `connection.close`."
    1 connection_blocked "connection.blocked" "Wants `connection.blocked` and `connection.unblocked`."
    2 consumer_cancel_notify "consumer_cancel_notify" "Wants `basic.cancel` when a consumer ends by itself."
    3 publisher_confirms "publisher_confirms" "Knows publisher confirms."
    4 basic_nack "basic.nack" "Knows `basic.nack`."
    5 exchange_exchange_bindings "exchange_exchange_bindings" "Knows bindings between exchanges."
    6 consumer_priorities "consumer_priorities" "Knows priorities of consumers."
    7 per_consumer_qos "per_consumer_qos" "Counts prefetch by consumer."
    8 direct_reply_to "direct_reply_to" "Knows direct reply-to."
}

impl Capabilities {
    /// Reads them from the properties of a peer. What is not `true` is not there.
    #[must_use]
    pub fn from_properties(properties: Table<'_>) -> Self {
        let Ok(Some(Value::Table(announced))) = properties.get("capabilities") else {
            return Self::default();
        };
        let (mut named, mut bits) = (0, 0);
        for (name, value) in announced.iter().flatten() {
            let known = Self::NAMES.iter().find(|(known, _)| known.as_bytes() == name.as_bytes());
            let bit = known.map_or(0, |(_, bit)| *bit);
            // The first of each name counts.
            if value == Value::Bool(true) {
                bits |= bit & !named;
            }
            named |= bit;
        }
        Self(bits)
    }
}
