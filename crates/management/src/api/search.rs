//! What is looked for in messages, in time that grows with the messages alone, however the pattern is
//! made.

use crate::json::from_value;
use crate::refusal::Refusal;
use courser_broker::admin::MessageView;
use courser_codec::ContentHeader;
use memchr::memmem::Finder;
use serde_json::Value;

/// Bytes of what is looked for.
const PATTERN_BYTES_MAX: usize = 4096;
/// Bytes of bodies and headers that one request looks at; who wants more asks again.
pub(super) const SEARCHED_BYTES_MAX: usize = 256 << 20;

/// What is looked for in messages: all of this.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Bytes of the payload.
    contains: Option<Finder<'static>>,
    /// The name of a header, and what it is as text, if that matters.
    header: Option<(String, Option<String>)>,
}

impl Search {
    pub fn asked(contains: Option<&str>, header: Option<&str>) -> Result<Self, Refusal> {
        let contains = pattern("contains", contains)?;
        let header = pattern("header", header)?.map(|text| match text.split_once(':') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (text.to_owned(), None),
        });
        let contains = contains.map(|text| Finder::new(text).into_owned());
        Ok(Search { contains, header })
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.contains.is_none() && self.header.is_none()
    }

    /// Whether a message has it. Its body has to be whole.
    pub fn finds(&self, message: &MessageView) -> bool {
        let in_body = |finder: &Finder<'_>| finder.find(&message.body).is_some();
        self.contains.as_ref().is_none_or(in_body) && self.finds_header(message)
    }

    fn finds_header(&self, message: &MessageView) -> bool {
        let Some((wanted, value)) = &self.header else { return true };
        let found = ContentHeader::parse(&message.header)
            .ok()
            .and_then(|header| {
                header.properties.headers().ok().flatten()?.get(wanted).ok().flatten()
            })
            .and_then(|found| found.to_owned().ok());
        let is_value = |found: Value| match value {
            None => true,
            Some(value) => match found {
                Value::String(text) => text == *value,
                other => other.to_string().as_str() == value.as_str(),
            },
        };
        found.is_some_and(|found| is_value(from_value(&found)))
    }
}

fn pattern<'a>(name: &str, text: Option<&'a str>) -> Result<Option<&'a str>, Refusal> {
    match text.filter(|text| !text.is_empty()) {
        Some(text) if text.len() > PATTERN_BYTES_MAX => Err(Refusal::bad_request(format!(
            "{name} has {} bytes, {PATTERN_BYTES_MAX} at most",
            text.len()
        ))),
        text => Ok(text),
    }
}
