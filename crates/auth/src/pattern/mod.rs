//! Patterns of names: PCRE's syntax, searched anywhere in the name.
//!
//! What the engine that never backtracks can compile, it matches in a time linear in the name. Look-around and
//! back-references need one that backtracks; its steps are bounded, and a match that takes more is
//! no match. What neither can compile, or what they would read otherwise than PCRE does, is refused
//! when it is set: a pattern never grants more than its author wrote.

mod dialect;

use crate::bounds::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX as COMPILED_BYTES_MAX};
use dialect::Reading;

/// Bytes that an engine may use to match one pattern faster.
const CACHE_BYTES_MAX: usize = 256 << 10;
/// Steps back before a match is given up, and where one request looks at all names that there are.
const BACKTRACK_STEPS_MAX: usize = 20_000;
const BACKTRACK_STEPS_OF_LIST_MAX: usize = 1_000;

/// Why a pattern can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is too long.
    #[error("it has more than {PATTERN_BYTES_MAX} bytes")]
    Length,
    /// It would not be read as it was meant.
    #[error("{what} at byte {at} is not supported: {instead}")]
    Dialect {
        /// What stands there.
        what: String,
        /// Where.
        at: usize,
        /// What to write instead.
        instead: &'static str,
    },
    /// It is no regular expression, or one that is too large.
    #[error("{0}")]
    Syntax(String),
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Engine);

#[derive(Clone, Debug)]
enum Engine {
    Everything,
    /// Only the empty name.
    Nameless,
    /// Not even that.
    Never,
    Linear(regex::bytes::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If it can't be compiled, or would be read otherwise than PCRE reads it.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Pattern::within(text, BACKTRACK_STEPS_MAX)
    }

    /// As [`Pattern::new`], to be looked for in all names of a list: a match in one of them is given up sooner.
    ///
    /// # Errors
    /// Likewise.
    pub fn of_list(text: &str) -> Result<Self, PatternError> {
        Pattern::within(text, BACKTRACK_STEPS_OF_LIST_MAX)
    }

    fn within(text: &str, steps_max: usize) -> Result<Self, PatternError> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::Length);
        }
        match text {
            "" | "^$" => return Ok(Pattern(Engine::Nameless)),
            ".*" | "^.*" | ".*$" => return Ok(Pattern(Engine::Everything)),
            _ => {}
        }
        if dialect::read(text)? == Reading::Any {
            // PCRE works on bytes here; only classes with other than ASCII characters need more.
            for unicode in [false, true] {
                if let Ok(regex) = linear(text, unicode) {
                    return Ok(Pattern(Engine::Linear(regex)));
                }
            }
        }
        backtracking(text, steps_max).map(|regex| Pattern(Engine::Backtracking(Box::new(regex))))
    }

    /// A pattern that is found nowhere.
    pub(crate) fn never() -> Self {
        Pattern(Engine::Never)
    }

    /// Whether it is found in every name.
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self.0, Engine::Everything)
    }

    /// Whether a match may take more than a time linear in the name.
    pub fn backtracks(&self) -> bool {
        matches!(self.0, Engine::Backtracking(_))
    }

    /// Whether the pattern is found in `name`.
    pub fn matches(&self, name: &[u8]) -> bool {
        match &self.0 {
            Engine::Everything => true,
            Engine::Nameless => name.is_empty(),
            Engine::Never => false,
            Engine::Linear(regex) => regex.is_match(name),
            // An error is a match that took too many steps.
            Engine::Backtracking(regex) => {
                regex.is_match(&*String::from_utf8_lossy(name)).unwrap_or(false)
            }
        }
    }
}

fn linear(text: &str, unicode: bool) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(text)
        .unicode(unicode)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX)
        .build()
}

fn backtracking(text: &str, steps_max: usize) -> Result<fancy_regex::Regex, PatternError> {
    fancy_regex::RegexBuilder::new(text)
        .backtrack_limit(steps_max)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .delegate_dfa_size_limit(CACHE_BYTES_MAX)
        .build()
        .map_err(|error| PatternError::Syntax(error.to_string()))
}

/// What the variables of a topic permission stand for.
pub(crate) struct Variables<'a> {
    pub username: &'a str,
    pub vhost: &'a str,
    /// Where there is none, the variable stands for itself.
    pub client_id: Option<&'a str>,
}

/// Puts what the variables stand for into a pattern, escaped.
pub(crate) fn expand(text: &str, variables: &Variables<'_>) -> String {
    let known = [
        ("{username}", variables.username),
        ("{vhost}", variables.vhost),
        ("{client_id}", variables.client_id.unwrap_or("{client_id}")),
    ];
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(brace) = rest.find('{') {
        let (before, from) = rest.split_at(brace);
        expanded.push_str(before);
        match known.iter().find(|(name, _)| from.starts_with(name)) {
            Some((name, value)) => {
                expanded.push_str(&regex::escape(value));
                rest = &from[name.len()..];
            }
            None => {
                expanded.push('{');
                rest = &from[1..];
            }
        }
    }
    expanded + rest
}
