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

/// What stands before a place in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Something that can be repeated.
    Item,
    /// A quantifier, which `+` makes possessive and `?` lazy.
    Quantifier,
    /// Neither.
    Nothing,
}

/// The largest count of a repetition.
const REPEATED_MAX: u32 = 65_535;

/// Looks through a pattern.
pub(super) fn read(text: &str) -> Result<Reading, PatternError> {
    let bytes = text.as_bytes();
    let mut reading = Reading::Any;
    let mut at = 0;
    let mut before = Before::Nothing;
    while at < bytes.len() {
        let mut now = Before::Item;
        at += match bytes[at] {
            b'\\' => {
                if bytes.get(at + 1).is_some_and(|escaped| b"bBAzZG".contains(escaped)) {
                    now = Before::Nothing;
                }
                escape(text, at)?
            }
            b'[' => class(text, at)?,
            b'(' => {
                now = Before::Nothing;
                group(text, at)?
            }
            b'|' | b'^' | b'$' => {
                now = Before::Nothing;
                1
            }
            b'+' | b'?' if before == Before::Quantifier => {
                if bytes[at] == b'+' {
                    reading = Reading::BacktrackingOnly;
                }
                now = Before::Nothing;
                1
            }
            b'*' | b'+' | b'?' => {
                now = quantifier(text, at, 1, before)?;
                1
            }
            b'{' => match repetition(text, at)? {
                Some(length) => {
                    now = quantifier(text, at, length, before)?;
                    length
                }
                None => 1,
            },
            _ => 1,
        };
        before = now;
    }
    Ok(reading)
}

/// Refuses a quantifier that has nothing to repeat: the engines would read over it.
fn quantifier(
    text: &str,
    at: usize,
    length: usize,
    before: Before,
) -> Result<Before, PatternError> {
    match before {
        Before::Item => Ok(Before::Quantifier),
        _ => refuse(&text[at..at + length], at, "it follows nothing that can be repeated"),
    }
}

fn refuse<T>(what: &str, at: usize, instead: &'static str) -> Result<T, PatternError> {
    Err(PatternError::Dialect { what: format!("'{what}'"), at, instead })
}

/// Bytes of `{n}`, `{n,}` or `{n,m}`; none if the brace stands for itself.
fn repetition(text: &str, at: usize) -> Result<Option<usize>, PatternError> {
    let rest = &text[at..];
    if rest.starts_with("{,") {
        // Older versions of PCRE read this as text, newer ones as a quantifier.
        return refuse("{,", at, "write {0, or escape the brace");
    }
    let Some(end) = rest.find('}') else { return Ok(None) };
    let (least, most) = match rest[1..end].split_once(',') {
        Some((least, most)) => (least, most),
        None => (&rest[1..end], ""),
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if least.is_empty() || !is_number(least) || !is_number(most) {
        return Ok(None);
    }
    let count = |text: &str| match text.parse::<u32>().ok().filter(|count| *count <= REPEATED_MAX) {
        Some(count) => Ok(count),
        None => refuse(&rest[..=end], at, "a number in it is larger than 65535"),
    };
    if !most.is_empty() && count(least)? > count(most)? {
        return refuse(&rest[..=end], at, "its numbers are out of order");
    }
    count(least).map(|_| Some(end + 1))
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

/// Bytes of an opening parenthesis, with the `?` of what is more than a group.
fn group(text: &str, at: usize) -> Result<usize, PatternError> {
    let Some(rest) = text[at..].strip_prefix("(?") else { return Ok(1) };
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
        _ => Ok(2),
    }
}
