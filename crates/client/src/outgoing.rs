//! Messages on their way to the server.

use courser_codec::{FieldValue, OwnedProperties, ShortString};

use crate::error::Error;
use crate::names::short;

/// A message to publish: a body, and what else there is to say about it.
///
/// Bytes and text become one without further ado; everything else is added by functions:
///
/// ```
/// use courser_client::Outgoing;
///
/// # fn main() -> Result<(), courser_client::Error> {
/// let message = Outgoing::new(b"{}")
///     .persistent()
///     .content_type("application/json")?
///     .header("attempt", 1)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Outgoing<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) properties: OwnedProperties,
    pub(crate) is_mandatory: bool,
}

impl<'a> Outgoing<'a> {
    /// A message with this body and no properties.
    #[must_use]
    pub fn new(body: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { body: body.as_ref(), ..Self::default() }
    }

    /// Comes back ([`Channel::returns`](crate::Channel::returns)) if no queue takes it.
    #[must_use]
    pub fn mandatory(mut self) -> Self {
        self.is_mandatory = true;
        self
    }

    /// Survives a restart of the server, in a durable queue.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.properties.delivery_mode = Some(2);
        self
    }

    /// Has these properties, in place of all that were set before.
    #[must_use]
    pub fn properties(mut self, properties: OwnedProperties) -> Self {
        self.properties = properties;
        self
    }

    /// Has a body of this MIME type.
    ///
    /// # Errors
    /// When the text has more than 255 bytes.
    pub fn content_type(mut self, content_type: &str) -> Result<Self, Error> {
        self.properties.content_type = Some(short("a content type", content_type)?.into());
        Ok(self)
    }

    /// Is answered to this queue.
    ///
    /// # Errors
    /// When the name has more than 255 bytes.
    pub fn reply_to(mut self, queue: &str) -> Result<Self, Error> {
        self.properties.reply_to = Some(short("a reply queue's name", queue)?.into());
        Ok(self)
    }

    /// Belongs to what has this identity, a request for example.
    ///
    /// # Errors
    /// When the identity has more than 255 bytes.
    pub fn correlation_id(mut self, correlation_id: &str) -> Result<Self, Error> {
        self.properties.correlation_id = Some(short("a correlation id", correlation_id)?.into());
        Ok(self)
    }

    /// Has one more header, or another value of a header.
    ///
    /// # Errors
    /// When the name has more than 255 bytes.
    pub fn header(mut self, name: &str, value: impl Into<FieldValue>) -> Result<Self, Error> {
        let name = ShortString::from(short("a header's name", name)?);
        self.properties.headers.get_or_insert_default().insert(name, value);
        Ok(self)
    }
}

impl<'a> From<&'a [u8]> for Outgoing<'a> {
    fn from(body: &'a [u8]) -> Self {
        Self::new(body)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Outgoing<'a> {
    fn from(body: &'a [u8; N]) -> Self {
        Self::new(body)
    }
}

impl<'a> From<&'a Vec<u8>> for Outgoing<'a> {
    fn from(body: &'a Vec<u8>) -> Self {
        Self::new(body)
    }
}

impl<'a> From<&'a str> for Outgoing<'a> {
    fn from(body: &'a str) -> Self {
        Self::new(body)
    }
}

impl<'a> From<&'a String> for Outgoing<'a> {
    fn from(body: &'a String) -> Self {
        Self::new(body)
    }
}
