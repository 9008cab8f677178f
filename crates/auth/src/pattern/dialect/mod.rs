//! Finds what PCRE reads otherwise than the engines here do: both would compile it, and match
//! something else. Refuses also what an engine would need much time, memory or stack to compile.

mod lexeme;
mod nesting;

use super::PatternError;
use nesting::{Group, Nesting, Target};

/// What a pattern needs of its reader.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// It has a possessive quantifier, which only the engine that backtracks knows as one.
    pub possessive: bool,
    /// It has a character beyond ASCII, or an escape that may stand for one.
    beyond_ascii: bool,
    /// Characters in all ranges.
    ranged: u32,
    classes: usize,
    /// Where the first class too many stands.
    class_too_many: Option<usize>,
    /// Where the first class of all characters but some stands in brackets.
    complement: Option<usize>,
    /// Case does not count somewhere.
    ignores_case: bool,
}

impl Reading {
    /// Whether Unicode's classes may be needed.
    ///
    /// # Errors
    /// If there would be too many of them: each is some hundred ranges. Or if all characters of one would be gone through
    /// one by one, as in a bracket that has something else beside it.
    pub fn needs_unicode(&self) -> Result<bool, PatternError> {
        if !self.beyond_ascii {
            return Ok(false);
        }
        if let Some(at) = self.class_too_many {
            let instead = "there may be 16 in an expression that has characters beyond ASCII";
            return refuse_costly("class", at, instead);
        }
        match self.complement {
            Some(at) if self.ignores_case => {
                refuse_costly("class", at, "write it beside the brackets, as in (?:[a-z]|\\S)")
            }
            _ => Ok(true),
        }
    }

    /// Without regard to case, all characters of a range are gone through.
    fn has_range(&mut self, at: usize, least: u32, most: u32) -> Result<(), PatternError> {
        self.ranged = self.ranged.saturating_add(most.saturating_sub(least));
        match self.ranged {
            0..=RANGED_MAX => Ok(()),
            _ => refuse_costly("-", at, "it is too wide: write what is not in it, as in [^a-z]"),
        }
    }

    fn has_class(&mut self, at: usize) {
        self.classes += 1;
        if self.classes > UNICODE_CLASSES_MAX {
            self.class_too_many.get_or_insert(at);
        }
    }
}

const CLASS_HINT: &str = "escape it with a backslash";
const UNICODE_CLASSES_MAX: usize = 16;
/// Characters in all ranges together: twice as many as have up to three bytes.
const RANGED_MAX: u32 = 0x20000;

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

/// Looks through a pattern.
pub(super) fn read(text: &str) -> Result<Reading, PatternError> {
    let reading = Reading { beyond_ascii: !text.is_ascii(), ..Reading::default() };
    let nesting = Nesting::default();
    let mut reader = Reader { text, before: Before::Nothing, reading, nesting };
    let mut at = 0;
    while at < text.len() {
        at += reader.next(at)?;
    }
    reader.nesting.check_references()?;
    Ok(reader.reading)
}

struct Reader<'a> {
    text: &'a str,
    before: Before,
    reading: Reading,
    nesting: Nesting<'a>,
}

impl Reader<'_> {
    /// Reads what stands at a place, and returns its length.
    fn next(&mut self, at: usize) -> Result<usize, PatternError> {
        let before = std::mem::replace(&mut self.before, Before::Item);
        let byte = self.text.as_bytes()[at];
        match byte {
            b'+' | b'?' if before == Before::Quantifier => {
                self.reading.possessive |= byte == b'+';
                self.before = Before::Nothing;
                return Ok(1);
            }
            b'*' | b'?' => return self.quantifier(at, 1, 0, before),
            b'+' => return self.quantifier(at, 1, 1, before),
            b'{' => {
                if let Some((length, least)) = lexeme::repetition(self.text, at)? {
                    return self.quantifier(at, length, least, before);
                }
            }
            b')' => {
                self.nesting.close();
                return Ok(1);
            }
            _ => {}
        }
        self.nesting.item();
        match byte {
            b'\\' => self.escape(at),
            b'[' => self.class(at),
            b'(' => self.group(at),
            b'|' | b'^' | b'$' => {
                self.before = Before::Nothing;
                Ok(1)
            }
            _ => Ok(1),
        }
    }

    /// Refuses a quantifier that has nothing to repeat: the engines would read over it.
    fn quantifier(
        &mut self,
        at: usize,
        length: usize,
        least: u32,
        before: Before,
    ) -> Result<usize, PatternError> {
        let what = &self.text[at..at + length];
        if before != Before::Item {
            return refuse(what, at, "it follows nothing that can be repeated");
        }
        self.before = Before::Quantifier;
        if !self.nesting.repeat(least) {
            return refuse_costly(
                what,
                at,
                "with those in it, it repeats something more than 65535 times",
            );
        }
        Ok(length)
    }

    fn escape(&mut self, at: usize) -> Result<usize, PatternError> {
        let rest = &self.text[at + 1..];
        match rest.bytes().next() {
            Some(b'b' | b'B' | b'A' | b'z' | b'Z' | b'G') => self.before = Before::Nothing,
            Some(b'0') => return refuse("\\0", at, "write \\x and two digits"),
            Some(b'1'..=b'9') => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                // One that is too large for a number is no group's.
                let number = rest[..digits].parse().unwrap_or(usize::MAX);
                self.nesting.refer(at, Target::Number(number))?;
                return Ok(1 + digits);
            }
            Some(b'k') => {
                let Some(name) = lexeme::delimited_name(&rest[1..]) else {
                    return refuse("\\k", at, "write \\k<name>");
                };
                self.nesting.refer(at, Target::Name(name))?;
                return Ok(name.len() + 4);
            }
            Some(b'g') => {
                return refuse_costly("\\g", at, "write \\1 or \\k<name>; no group can be called");
            }
            _ => {}
        }
        self.plain_escape(at)
    }

    /// An escape that stands for a character, a class or an assertion.
    fn plain_escape(&mut self, at: usize) -> Result<usize, PatternError> {
        match self.text.as_bytes().get(at + 1) {
            Some(b'd' | b'D' | b's' | b'S' | b'w' | b'W') => self.reading.has_class(at),
            Some(b'p' | b'P') => {
                self.reading.has_class(at);
                self.reading.beyond_ascii = true;
            }
            Some(b'x' | b'u' | b'U') => self.reading.beyond_ascii = true,
            _ => {}
        }
        lexeme::escape(self.text, at)
    }

    /// Bytes of a bracketed class.
    fn class(&mut self, start: usize) -> Result<usize, PatternError> {
        self.reading.has_class(start);
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        if bytes.get(at) == Some(&b'^') {
            at += 1;
        }
        // What a range may begin with, and what it began with.
        let (mut last, mut least) = (None, None);
        // A bracket that comes first stands for itself.
        if bytes.get(at) == Some(&b']') {
            last = Some(u32::from(b']'));
            at += 1;
        }
        while at < bytes.len() {
            let rest = &self.text[at..];
            let length = match bytes[at] {
                b']' => return Ok(at + 1 - start),
                b'\\' => self.plain_escape(at)?,
                b'[' => match lexeme::posix_class(rest) {
                    Some(length) => length,
                    None => return refuse("[", at, CLASS_HINT),
                },
                b'&' if rest.starts_with("&&") => return refuse("&&", at, CLASS_HINT),
                b'-' if rest.starts_with("--") => return refuse("--", at, CLASS_HINT),
                b'~' if rest.starts_with("~~") => return refuse("~~", at, CLASS_HINT),
                b'-' if last.is_some() => {
                    least = last.take();
                    at += 1;
                    continue;
                }
                _ => rest.chars().next().map_or(1, char::len_utf8),
            };
            if lexeme::is_complement(rest) {
                self.reading.complement.get_or_insert(at);
            }
            let point = lexeme::code_point(&rest[..length]);
            last = match least.take() {
                Some(least) => self.reading.has_range(at, least, point).map(|()| None)?,
                None => Some(point),
            };
            at += length;
        }
        refuse("[", start, "its closing bracket is missing")
    }

    /// Bytes of an opening parenthesis, with what says what it opens.
    fn group(&mut self, at: usize) -> Result<usize, PatternError> {
        let (length, group) = lexeme::group(self.text, at)?;
        if matches!(group, Group::Options | Group::Other) {
            self.reading.ignores_case |= self.text[at..at + length].contains('i');
        }
        match group {
            // It has been read whole, and may be repeated.
            Group::Reference(name) => self.nesting.refer(at, Target::Name(name))?,
            Group::Options => self.before = Before::Nothing,
            Group::Capture(_) | Group::Other | Group::LookBehind => {
                self.before = Before::Nothing;
                self.nesting.open(at, group)?;
            }
        }
        Ok(length)
    }
}

fn refuse<T>(what: &str, at: usize, instead: &'static str) -> Result<T, PatternError> {
    Err(PatternError::Dialect { what: format!("'{what}'"), at, instead })
}

/// As [`refuse`], for what could cost much to compile.
fn refuse_costly<T>(what: &str, at: usize, instead: &'static str) -> Result<T, PatternError> {
    Err(PatternError::Costly { what: format!("'{what}'"), at, instead })
}
