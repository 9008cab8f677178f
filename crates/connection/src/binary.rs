//! Bytes as error texts show them: `<<"GET /">>` when they are text, `<<1,2,255>>` when they are not.
//!
//! Clients' logs and the people who read them know this form from RabbitMQ.

use std::fmt;

/// How many bytes of a payload a text shows.
pub(crate) const SNIPPET_LEN: usize = 16;

/// Displays bytes.
pub(crate) struct ErlangBinary<'a>(pub &'a [u8]);

impl fmt::Display for ErlangBinary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<<")?;
        if !self.0.is_empty()
            && self.0.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
        {
            write!(f, "\"{}\"", self.0.escape_ascii())?;
        } else {
            for (i, byte) in self.0.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(f, "{comma}{byte}")?;
            }
        }
        f.write_str(">>")
    }
}

/// Displays the type and the first bytes of a frame: what an error about a frame begins with.
pub(crate) struct FrameSnippet<'a> {
    pub frame_type: u8,
    /// The payload, or as much of it as there is, but no less than a snippet of it.
    pub payload: &'a [u8],
    /// Bytes of the whole payload.
    pub payload_len: usize,
}

impl fmt::Display for FrameSnippet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = if self.payload_len > SNIPPET_LEN { "first 16" } else { "all" };
        let shown = &self.payload[..self.payload.len().min(SNIPPET_LEN)];
        // "octets" is RabbitMQ's word: the text is the same, for those who look for it.
        write!(f, "type {}, {which} octets = {}", self.frame_type, ErlangBinary(shown))
    }
}
