//! Why a connection or a channel ends: reply codes, their names, and texts that fit into a short string.

use std::fmt;

use courser_codec::ShortStr;
use courser_codec::reply_code::{self, REPLY_SUCCESS};

/// Who ended a connection or a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// The other side asked for it.
    Peer,
    /// This side did, for an error or because its owner wanted so.
    Local,
}

/// Why a connection or a channel ended (`connection.close`, `channel.close`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReason {
    /// Who ended it.
    pub by: ClosedBy,
    /// The reply code; 200 is a close on purpose, 0 stands for an end without any close method (time is up).
    pub code: u16,
    /// The reply text as on the wire: `NAME - explanation` for errors that a server reports.
    pub text: String,
    /// Class of the method that caused it, 0 if none did.
    pub class_id: u16,
    /// Method that caused it, 0 if none did.
    pub method_id: u16,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            ClosedBy::Peer => "closed by the peer",
            ClosedBy::Local => "closed",
        };
        write!(f, "{by} ({}): {}", self.code, self.text)
    }
}

/// An error that a machine has found or its driver reports; becomes `connection.close` or `channel.close`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub code: u16,
    pub explanation: String,
    pub class_id: u16,
    pub method_id: u16,
}

impl Failure {
    /// An error that no method is to blame for.
    pub fn new(code: u16, explanation: impl Into<String>) -> Self {
        Self { code, explanation: explanation.into(), class_id: 0, method_id: 0 }
    }

    /// An error of the method with these ids.
    pub fn of(
        code: u16,
        explanation: impl Into<String>,
        (class_id, method_id): (u16, u16),
    ) -> Self {
        Self { code, explanation: explanation.into(), class_id, method_id }
    }

    pub fn into_reason(self) -> CloseReason {
        CloseReason {
            by: ClosedBy::Local,
            code: self.code,
            text: reply_text(self.code, &self.explanation),
            class_id: self.class_id,
            method_id: self.method_id,
        }
    }
}

impl CloseReason {
    pub(crate) fn from_peer(code: u16, text: ShortStr<'_>, class_id: u16, method_id: u16) -> Self {
        Self { by: ClosedBy::Peer, code, text: text.to_string(), class_id, method_id }
    }

    /// An end that no close method goes with: a time limit has passed.
    pub(crate) fn silent(text: impl Into<String>) -> Self {
        Self { by: ClosedBy::Local, code: 0, text: text.into(), class_id: 0, method_id: 0 }
    }

    /// The text as a short string.
    pub(crate) fn short_text(&self) -> ShortStr<'_> {
        ShortStr::cut(&self.text)
    }
}

/// `NAME - explanation`, at most 255 bytes, ending in `...` when it had to be cut.
#[must_use]
pub fn reply_text(code: u16, explanation: &str) -> String {
    let text = match reply_code::name(code) {
        Some(name) if code != REPLY_SUCCESS => format!("{name} - {explanation}"),
        _ => explanation.to_owned(),
    };
    if text.len() <= ShortStr::MAX_LEN {
        return text;
    }
    let mut cut = text[..text.floor_char_boundary(ShortStr::MAX_LEN - 3)].to_owned();
    cut.push_str("...");
    cut
}
