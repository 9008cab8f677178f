//! What routing looks at.

use courser_codec::{Properties, RawProperties, Table};

/// The outside of a message: all that exchanges may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope<'m> {
    /// The routing key, and behind it those of the headers CC and BCC.
    pub keys: &'m [&'m [u8]],
    /// The message's properties, which have been found well-formed.
    pub properties: RawProperties<'m>,
}

impl<'m> Envelope<'m> {
    /// The routing key of the publish.
    pub fn routing_key(&self) -> &'m [u8] {
        self.keys.first().copied().unwrap_or_default()
    }

    /// The headers; without any, the empty table.
    pub fn headers(&self) -> Table<'m> {
        if self.properties.flags() & Properties::HEADERS_FLAG == 0 {
            return Table::EMPTY;
        }
        self.properties.headers().ok().flatten().unwrap_or(Table::EMPTY)
    }
}
