//! The pieces that a pattern is written in. The engines have to see their ends where they are seen here: what they took for
//! syntax would not have been checked.

use super::nesting::{Group, REPEATED_MAX};
use super::{refuse, refuse_costly};
use crate::pattern::PatternError;

/// Bytes of `{n}`, `{n,}` or `{n,m}`, and n; none if the brace stands for itself.
pub(super) fn repetition(text: &str, at: usize) -> Result<Option<(usize, u32)>, PatternError> {
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
    count(least).map(|least| Some((end + 1, least)))
}

/// Bytes of an escape.
pub(super) fn escape(text: &str, at: usize) -> Result<usize, PatternError> {
    let rest = &text[at + 1..];
    let Some(escaped) = rest.chars().next() else {
        return refuse("\\", at, "nothing follows it");
    };
    let refuse = |instead| refuse(&format!("\\{escaped}"), at, instead);
    match escaped {
        '<' | '>' => refuse("write it without the backslash"),
        'h' | 'H' => refuse("write [ \\t] or [^ \\t]"),
        'v' | 'V' => refuse("write [\\n\\r\\x0b\\f]"),
        'Q' | 'E' => refuse("escape each character by itself"),
        'b' | 'B' if rest[1..].starts_with('{') => refuse("escape the brace that follows it"),
        'p' | 'P' => match property(&rest[1..]) {
            Some(length) if is_any(&rest[1..=length]) => {
                refuse_costly(&format!("\\{escaped}"), at, "write (?s:.)")
            }
            Some(length) => Ok(2 + length),
            None => refuse("a letter or the name of a property in braces has to follow it"),
        },
        'x' => Ok(2 + hexadecimal(&rest[1..], 2)),
        'u' => Ok(2 + hexadecimal(&rest[1..], 4)),
        'U' => Ok(2 + hexadecimal(&rest[1..], 8)),
        _ => Ok(1 + escaped.len_utf8()),
    }
}

/// Bytes of a number, in braces or of at most so many digits.
fn hexadecimal(rest: &str, digits_max: usize) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    let digits = || rest.bytes().take(digits_max).take_while(|byte| is_digit(*byte)).count();
    braced(rest, is_digit).unwrap_or_else(digits)
}

/// The character that stands in a class, or the first of all if there may be several or it is not known which of ASCII's.
pub(super) fn code_point(text: &str) -> u32 {
    let number = |text: &str| u32::from_str_radix(text.trim_matches(['{', '}']), 16).ok();
    let escaped = text.strip_prefix('\\');
    if let Some(number) =
        escaped.and_then(|text| text.strip_prefix(['x', 'u', 'U'])).and_then(number)
    {
        return number;
    }
    let character = escaped.unwrap_or(text).chars().next().map_or(0, u32::from);
    if escaped.is_some() && character < 0x80 { 0 } else { character }
}

/// Whether a property is that of all characters there are, which would be gone through one by one.
fn is_any(property: &str) -> bool {
    let letters: String = property.chars().filter(char::is_ascii_alphabetic).collect();
    letters.to_ascii_lowercase().ends_with("any")
}

/// Bytes of what says which property is meant.
fn property(rest: &str) -> Option<usize> {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_^&=: -".contains(&byte);
    match rest.bytes().next()? {
        b'{' => braced(rest, of_name),
        letter => letter.is_ascii_alphabetic().then_some(1),
    }
}

/// Bytes from a brace to the one that closes it, if there are only such between them.
fn braced(rest: &str, belongs: impl Fn(u8) -> bool) -> Option<usize> {
    let within = rest.strip_prefix('{')?;
    let length = within.bytes().take_while(|byte| belongs(*byte)).count();
    within[length..].starts_with('}').then_some(length + 2)
}

/// Whether an item of a bracketed class is a class of all characters but some.
pub(super) fn is_complement(item: &str) -> bool {
    ["\\D", "\\S", "\\W", "\\P", "\\p{^", "[:^"].iter().any(|begin| item.starts_with(begin))
}

/// Bytes of `[:name:]`.
pub(super) fn posix_class(rest: &str) -> Option<usize> {
    let name = rest.strip_prefix("[:")?;
    let negated = usize::from(name.starts_with('^'));
    let letters = name[negated..].bytes().take_while(u8::is_ascii_lowercase).count();
    name[negated + letters..].starts_with(":]").then_some(negated + letters + 4)
}

/// What `<name>` or `'name'` begins with.
pub(super) fn delimited_name(rest: &str) -> Option<&str> {
    let close = match rest.bytes().next()? {
        b'<' => '>',
        b'\'' => '\'',
        _ => return None,
    };
    name(&rest[1..], close)
}

/// A name up to what closes it.
fn name(rest: &str, close: char) -> Option<&str> {
    let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (name, rest) = rest.split_at(length.count());
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    (begins && rest.starts_with(close)).then_some(name)
}

/// Bytes of an opening parenthesis with what says what it opens, and that.
pub(super) fn group(text: &str, at: usize) -> Result<(usize, Group<'_>), PatternError> {
    let Some(rest) = text[at..].strip_prefix("(?") else { return Ok((1, Group::Capture(None))) };
    let named = rest.strip_prefix('P').filter(|rest| rest.starts_with('<')).unwrap_or(rest);
    if let Some(name) = delimited_name(named) {
        let skipped = 2 + (rest.len() - named.len());
        return Ok((skipped + name.len() + 2, Group::Capture(Some(name))));
    }
    if let Some(name) = rest.strip_prefix("P=").and_then(|rest| name(rest, ')')) {
        return Ok((name.len() + 5, Group::Reference(name)));
    }
    for (opens, refused, instead) in [
        ("R", "(?R", "recursion is not available"),
        ("0)", "(?R", "recursion is not available"),
        ("P>", "(?P>", "no group can be called: write it again"),
        ("&", "(?&", "no group can be called: write it again"),
        ("(", "(?(", "write the cases as alternatives"),
        ("~", "(?~", "write what may stand there"),
        ("#", "(?#", "leave the comment out"),
    ] {
        if rest.starts_with(opens) {
            return refuse_costly(refused, at, instead);
        }
    }
    let flags = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic() || b"-^".contains(byte));
    let (flags, after) = rest.split_at(flags.count());
    let (is_group, is_options) = (after.starts_with(':'), after.starts_with(')'));
    if is_group || is_options {
        if let Some(flag) = flags.chars().find(|flag| !matches!(flag, 'i' | 'm' | 's' | 'U' | '-'))
        {
            let instead = "of the options there are i, m, s and U";
            return refuse(&format!("(?{flag}"), at, instead);
        }
        let group = if is_group { Group::Other } else { Group::Options };
        return Ok((flags.len() + 3, group));
    }
    match ["=", "!", "<=", "<!", ">"].into_iter().find(|opens| rest.starts_with(opens)) {
        Some(opens @ ("<=" | "<!")) => Ok((2 + opens.len(), Group::LookBehind)),
        Some(opens) => Ok((2 + opens.len(), Group::Other)),
        None => refuse("(?", at, "it begins no group that is known here"),
    }
}
