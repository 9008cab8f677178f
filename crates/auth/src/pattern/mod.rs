//! Patterns of names: PCRE's syntax, searched anywhere in the name.
//!
//! What the engine that never backtracks can compile, it matches in a time linear in the name. Look-around and
//! back-references need one that backtracks; its steps are bounded, and what may be done in each of them, and a match that
//! takes more steps is no match. What neither can compile, or what they would read otherwise than PCRE does, is refused
//! when it is set: a pattern never grants more than its author wrote. So is what would cost much to compile, before anything
//! is compiled.

mod dialect;
mod linear;

use crate::bounds::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX as COMPILED_BYTES_MAX};
use fancy_regex::BytesMode;
use linear::Frugal;
use regex_automata::meta;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static COMPILED: Cell<u64> = const { Cell::new(0) };
}

/// The patterns that this thread has compiled so far, or read to see whether they can be, so that tests can tell what a question
/// costs, and whom, on any machine; 0 in a build without debug assertions.
pub fn compiled() -> u64 {
    COMPILED.get()
}

fn count() {
    if cfg!(debug_assertions) {
        COMPILED.set(COMPILED.get() + 1);
    }
}

/// Bytes that an engine may use to match one pattern faster.
const CACHE_BYTES_MAX: usize = 256 << 10;
/// What is asked of a pattern before it is taken, and of a match.
struct Bounds {
    /// Bytes of the compiled form, or twice as many, and so on: the smallest that suffice are its cost.
    first_size: usize,
    /// The rest is for those that backtrack. Steps back before a match is given up.
    steps_max: usize,
    /// Bytes of the compiled form of each part that is left to the other engine: every step may look for it in the whole
    /// name. A class that is repeated up to 255 times takes some 40 KiB.
    part_max: usize,
    /// Instructions: a look-around takes three or four, and between two steps all of them may be carried out.
    instructions_max: usize,
    /// What an engine may use to match it, or one of its parts, faster, for each thread that does.
    cache_bytes: usize,
    /// There may be very many such patterns: one that does not backtrack has little for all threads together.
    is_frugal: bool,
}

const BOUNDS: Bounds = Bounds {
    first_size: COMPILED_BYTES_MAX,
    cache_bytes: CACHE_BYTES_MAX,
    is_frugal: false,
    steps_max: 20_000,
    part_max: 64 << 10,
    instructions_max: 30,
};
/// Where one request looks at all names that there are.
const OF_LIST: Bounds = Bounds { steps_max: 1_000, ..BOUNDS };
/// Likewise, where the cost is to be known: it is compiled for each size that it does not have room in.
const OF_POLICY: Bounds =
    Bounds { first_size: 1 << 10, cache_bytes: 64 << 10, is_frugal: true, ..OF_LIST };
/// As they were once.
const KEPT: Bounds =
    Bounds { part_max: COMPILED_BYTES_MAX, instructions_max: usize::MAX, ..OF_POLICY };

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
    /// What stands there could cost very much to compile. Earlier versions have taken most of that.
    #[error("{what} at byte {at} is not supported: {instead}")]
    Costly {
        /// What stands there.
        what: String,
        /// Where.
        at: usize,
        /// What to write instead.
        instead: &'static str,
    },
    /// Its compiled form is too large.
    #[error("{0}")]
    TooLarge(String),
    /// It is no regular expression, or one of look-arounds and back-references that is too large.
    #[error("{0}")]
    Syntax(String),
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    engine: Engine,
    cost: usize,
}

#[derive(Clone, Debug)]
enum Engine {
    Everything,
    /// Only the empty name.
    Nameless,
    /// Not even that.
    Never,
    Linear(meta::Regex),
    Frugal(Arc<Frugal>),
    BacktrackingBytes(Box<fancy_regex::Regex>),
    /// It looks at characters: what is none in a name counts as U+FFFD.
    Backtracking(Box<fancy_regex::Regex>),
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If it can't be compiled, or would be read otherwise than PCRE reads it.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Pattern::within(text, &BOUNDS)
    }

    /// As [`Pattern::new`], to be looked for in all names of a list: a match in one of them is given up sooner.
    ///
    /// # Errors
    /// Likewise.
    pub fn of_list(text: &str) -> Result<Self, PatternError> {
        Pattern::within(text, &OF_LIST)
    }

    /// As [`Pattern::of_list`], and [`Pattern::cost`] is what it takes, not just the most that a pattern may. There may be
    /// very many of these: what is kept of one to match it faster has at most 32 KiB, or twice its cost, unless it backtracks.
    ///
    /// # Errors
    /// Likewise.
    pub fn of_policy(text: &str) -> Result<Self, PatternError> {
        Pattern::within(text, &OF_POLICY)
    }

    /// As [`Pattern::of_policy`], for a pattern that was taken when one that backtracks had fewer bounds: it is in a log.
    ///
    /// # Errors
    /// Likewise.
    pub fn kept(text: &str) -> Result<Self, PatternError> {
        Pattern::within(text, &KEPT)
    }

    /// Whether a pattern is refused that an earlier version may have taken: it has no mistake that its author could have
    /// been told of. Each version has had the bounds of its length and of its compiled form.
    pub fn is_outdated(text: &str) -> bool {
        match Pattern::new(text) {
            Err(PatternError::Costly { .. }) => true,
            Err(PatternError::Syntax(_)) => Pattern::kept(text).is_ok(),
            Ok(_) | Err(_) => false,
        }
    }

    /// Whether nothing in a pattern is refused before it is compiled. What was taken once and is not readable any more
    /// matches nothing.
    pub(crate) fn is_readable(text: &str) -> bool {
        count();
        let read = || dialect::read(text).and_then(|reading| reading.needs_unicode());
        text.len() <= PATTERN_BYTES_MAX && read().is_ok()
    }

    fn within(text: &str, bounds: &Bounds) -> Result<Self, PatternError> {
        count();
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::Length);
        }
        match text {
            "" | "^$" => return Ok(Pattern::without_search(Engine::Nameless)),
            ".*" | "^.*" | ".*$" => return Ok(Pattern::without_search(Engine::Everything)),
            _ => {}
        }
        let reading = dialect::read(text)?;
        // PCRE works on bytes here; only classes with other than ASCII characters need more.
        for unicode in [false, true] {
            if unicode && !reading.needs_unicode()? {
                break;
            }
            if !reading.possessive
                && let Some((regex, cost)) = linear::compile(text, unicode, bounds)?
            {
                let engine = match bounds.is_frugal {
                    true => Engine::Frugal(Arc::new(Frugal::new(regex, cost))),
                    false => Engine::Linear(regex),
                };
                return Ok(Pattern { engine, cost });
            }
        }
        let engine = backtracking(text, reading.needs_unicode()?, bounds)?;
        Ok(Pattern { engine, cost: COMPILED_BYTES_MAX })
    }

    /// A pattern that is found nowhere.
    pub(crate) fn never() -> Self {
        Pattern::without_search(Engine::Never)
    }

    fn without_search(engine: Engine) -> Self {
        Pattern { engine, cost: 0 }
    }

    /// What looking for it in a name may cost at most, in bytes of the compiled form: in the worst case, that is how many
    /// states are gone through for each byte of the name. One that backtracks costs as much as the largest of the others.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Whether it is found in every name.
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self.engine, Engine::Everything)
    }

    /// Whether the pattern is found in `name`.
    pub fn matches(&self, name: &[u8]) -> bool {
        match &self.engine {
            Engine::Everything => true,
            Engine::Nameless => name.is_empty(),
            Engine::Never => false,
            Engine::Linear(regex) => regex.is_match(name),
            Engine::Frugal(frugal) => frugal.is_match(name),
            // An error is a match that took too many steps.
            Engine::BacktrackingBytes(regex) => regex.is_match(name).unwrap_or(false),
            Engine::Backtracking(regex) => {
                regex.is_match(&*String::from_utf8_lossy(name)).unwrap_or(false)
            }
        }
    }
}

fn backtracking(text: &str, unicode: bool, bounds: &Bounds) -> Result<Engine, PatternError> {
    // A look-behind goes back as many bytes as its text has characters: each has to be one byte.
    let mode = if unicode { BytesMode::Unicode } else { BytesMode::Ascii };
    let regex = fancy_regex::RegexBuilder::new(text)
        .bytes_mode(mode)
        .backtrack_limit(bounds.steps_max)
        .max_prog_size(bounds.instructions_max)
        .delegate_size_limit(bounds.part_max)
        .delegate_dfa_size_limit(bounds.cache_bytes)
        .build();
    let regex = regex.map_err(|error| PatternError::Syntax(error.to_string()))?;
    Ok(match mode {
        BytesMode::Unicode => Engine::Backtracking(Box::new(regex)),
        _ => Engine::BacktrackingBytes(Box::new(regex)),
    })
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
