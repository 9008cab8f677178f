//! Finds what PCRE reads otherwise than the engines here do: both would compile it, and match
//! something else.

use super::PatternError;

/// Who may read a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All engines read it alike.
    Any,
    /// It has a possessive quantifier, which only the engine that backtracks knows as one.
    BacktrackingOnly,
}

const CLASS_HINT: &str = "escape it with a backslash";

/// Looks through a pattern.
pub(super) fn read(text: &str) -> Result<Reading, PatternError> {
    let bytes = text.as_bytes();
    let mut reading = Reading::Any;
    let mut at = 0;
    // Whether a quantifier ended just before `at`.
    let mut quantified = false;
    while at < bytes.len() {
        let mut now_quantified = false;
        at += match bytes[at] {
            b'\\' => escape(text, at)?,
            b'[' => class(text, at)?,
            b'(' => {
                group(text, at)?;
                1
            }
            b'+' if quantified => {
                reading = Reading::BacktrackingOnly;
                1
            }
            // After a quantifier this makes it lazy.
            b'?' if quantified => 1,
            b'*' | b'+' | b'?' => {
                now_quantified = true;
                1
            }
            b'{' => match repetition(&bytes[at..]) {
                Some(length) => {
                    now_quantified = true;
                    length
                }
                // Older versions of PCRE read this as text, newer ones as a quantifier.
                None if bytes[at + 1..].starts_with(b",") => {
                    return refuse("{,", at, "write {0, or escape the brace");
                }
                None => 1,
            },
            _ => 1,
        };
        quantified = now_quantified;
    }
    Ok(reading)
}

fn refuse<T>(what: &str, at: usize, instead: &'static str) -> Result<T, PatternError> {
    Err(PatternError::Dialect { what: format!("'{what}'"), at, instead })
}

/// Bytes of `{n}`, `{n,}` or `{n,m}`.
fn repetition(rest: &[u8]) -> Option<usize> {
    let end = rest.iter().position(|byte| *byte == b'}')?;
    let inner = &rest[1..end];
    let is_count = inner.first().is_some_and(u8::is_ascii_digit)
        && inner.iter().all(|byte| byte.is_ascii_digit() || *byte == b',');
    is_count.then_some(end + 1)
}

/// Bytes of an escape.
fn escape(text: &str, at: usize) -> Result<usize, PatternError> {
    let rest = &text[at + 1..];
    let Some(escaped) = rest.chars().next() else {
        return refuse("\\", at, "nothing follows it");
    };
    match escaped {
        '<' | '>' => refuse(&format!("\\{escaped}"), at, "write it without the backslash"),
        'h' | 'H' => refuse(&format!("\\{escaped}"), at, "write [ \\t] or [^ \\t]"),
        'v' | 'V' => refuse(&format!("\\{escaped}"), at, "write [\\n\\r\\x0b\\f]"),
        'Q' | 'E' => refuse(&format!("\\{escaped}"), at, "escape each character by itself"),
        'b' | 'B' if rest[1..].starts_with('{') => {
            refuse(&format!("\\{escaped}{{"), at, "escape the brace")
        }
        _ => Ok(1 + escaped.len_utf8()),
    }
}

/// Bytes of a bracketed class.
fn class(text: &str, start: usize) -> Result<usize, PatternError> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    if bytes.get(at) == Some(&b'^') {
        at += 1;
    }
    // A bracket that comes first stands for itself.
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest[0] {
            b']' => return Ok(at + 1 - start),
            b'\\' => escape(text, at)?,
            b'[' if rest.starts_with(b"[:") => match text[at..].find(":]") {
                Some(end) => end + 2,
                None => return refuse("[", at, CLASS_HINT),
            },
            b'[' => return refuse("[", at, CLASS_HINT),
            b'&' if rest.starts_with(b"&&") => return refuse("&&", at, CLASS_HINT),
            b'-' if rest.starts_with(b"--") => return refuse("--", at, CLASS_HINT),
            b'~' if rest.starts_with(b"~~") => return refuse("~~", at, CLASS_HINT),
            _ => 1,
        };
    }
    refuse("[", start, "its closing bracket is missing")
}

/// Looks at what follows an opening parenthesis.
fn group(text: &str, at: usize) -> Result<(), PatternError> {
    let Some(rest) = text[at..].strip_prefix("(?") else { return Ok(()) };
    if rest.starts_with('R') || rest.starts_with("0)") {
        return refuse("(?R", at, "recursion is not available");
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '-' && c != '^');
    let flags = &rest[..end.unwrap_or(rest.len())];
    let ends_flags = end.is_none_or(|end| rest[end..].starts_with([')', ':']));
    match flags.chars().find(|flag| matches!(flag, 'x' | 'R' | 'u' | 'J' | '^')) {
        Some(flag) if ends_flags => {
            refuse(&format!("(?{flag}"), at, "of the options there are i, m, s and U")
        }
        _ => Ok(()),
    }
}
