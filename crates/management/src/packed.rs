//! Texts that are made and packed once: strangers may ask for them as often as they like.

use crate::http::long::gzip;
use crate::http::request::wants_gzip;
use crate::reply::Reply;
use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, HeaderMap};

/// A text, plain and packed.
pub(crate) struct Packed {
    text: Bytes,
    /// None if it can't be packed.
    gzip: Option<Bytes>,
    content_type: &'static str,
}

impl Packed {
    pub fn new(text: String, content_type: &'static str) -> Self {
        let text = Bytes::from(text);
        Packed { gzip: gzip(&text), text, content_type }
    }

    /// The text as the client that sends these headers can read it.
    pub fn reply(&self, headers: &HeaderMap) -> Reply {
        match self.gzip.as_ref().filter(|_| wants_gzip(headers)) {
            Some(gzip) => {
                Reply::text(gzip.clone(), self.content_type).with_header(CONTENT_ENCODING, "gzip")
            }
            None => Reply::text(self.text.clone(), self.content_type),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Body;
    use hyper::header::{ACCEPT_ENCODING, HeaderValue};

    #[test]
    fn a_text_is_packed_once_for_all_that_want_it_so() {
        let packed = Packed::new("long ".repeat(1000), "text/plain");
        let mut headers = HeaderMap::new();
        let sent = |headers: &HeaderMap| match packed.reply(headers).body {
            Body::Text(bytes, _) => bytes,
            _ => Bytes::new(),
        };
        assert_eq!(sent(&headers), packed.text);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let (first, second) = (sent(&headers), sent(&headers));
        assert!(first.len() < packed.text.len());
        assert_eq!(first.as_ptr(), second.as_ptr(), "neither is packed anew");
        assert_eq!(packed.reply(&headers).headers.len(), 1);
    }
}
