//! Why a command failed, and the code that the program ends with: those of `sysexits.h`, as RabbitMQ's
//! tools use them.

use crate::format::plain;
use std::fmt;
use std::io::{self, Write as _};

/// The command line is wrong.
pub const USAGE: u8 = 64;
/// What was given is wrong: a password, a file, the name of something that is not there.
pub const DATA: u8 = 65;
/// There is no such user.
pub const NO_USER: u8 = 67;
/// The broker can't be reached, refuses, or does not do this.
pub const UNAVAILABLE: u8 = 69;
/// Something that should be new is there already.
pub const SOFTWARE: u8 = 70;
/// A file can't be written.
pub const CANT_CREATE: u8 = 73;
/// It took too long.
pub const TEMPORARY: u8 = 75;
/// The user may not do this.
pub const NO_PERMISSION: u8 = 77;
/// The file of contexts is wrong.
pub const CONFIG: u8 = 78;

/// Says something on standard error, which may be closed or full: the code still tells. Names that clients chose may stand in
/// it: no control character but the end of a line reaches the terminal.
pub(crate) fn say_error(what: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "{}", shown(what));
}

fn shown(what: &dyn fmt::Display) -> String {
    what.to_string().split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the program ends with.
    pub code: u8,
    /// What is said on standard error.
    pub text: String,
}

impl Failure {
    /// A failure with this code and text.
    pub fn new(code: u8, text: impl Into<String>) -> Self {
        Failure { code, text: text.into() }
    }

    /// A mistake on the command line.
    pub fn usage(text: impl fmt::Display) -> Self {
        Failure::new(USAGE, format!("Error (argument validation): {text}"))
    }

    /// Anything else, with the word that others look for.
    pub fn error(code: u8, text: impl fmt::Display) -> Self {
        Failure::new(code, format!("Error:\n{text}"))
    }

    /// The broker answered something that it never should.
    pub fn answer(what: impl fmt::Display) -> Self {
        Failure::error(UNAVAILABLE, format!("unexpected answer from the broker: {what}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_of_an_error_reaches_the_terminal() {
        let failure = Failure::error(DATA, "no queue '\u{1b}]0;title\u{7}é\r'\nThis was 1 of 2");
        let expected = "Error:\nno queue '\\u{1b}]0;title\\u{7}é\\r'\nThis was 1 of 2";
        assert_eq!(shown(&failure), expected);
    }
}
