//! What a queue does beyond keeping messages in order, parsed from its arguments.

use courser_codec::{FieldTable, FieldValue};
use std::sync::Arc;

/// The effective settings of a queue. One that asks for nothing special has none of this, and that
/// is all that its messages have to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueTraits {
    /// How long it lives without being used (`x-expires`).
    pub expires_ms: Option<u64>,
}

impl QueueTraits {
    /// What these arguments, which have been found good, ask for; none if it is nothing special.
    pub fn of(arguments: &FieldTable) -> Option<Arc<Self>> {
        let traits = QueueTraits { expires_ms: number(arguments, "x-expires") };
        (traits != QueueTraits::default()).then(|| Arc::new(traits))
    }
}

fn number(arguments: &FieldTable, name: &str) -> Option<u64> {
    arguments.get(name).and_then(FieldValue::as_integer).and_then(|number| number.try_into().ok())
}
